"""What a failure names: lines of the script and operations of the graph."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.engine.capture.hints import below_torch, defined_at, failing_line, held, launches, named_nodes, script_lines
from bot.engine.capture.region import Capture, Object, Region, RegionRecipe
from bot.engine.capture.starts import Start
from bot.failure.outcome import Outcome
from bot.models.failure import Stage
from bot.reduce.graph.form import Graph, Input, Meta, Node, Program, Ref

TEXT = """Traceback (most recent call last):
  File "/home/me/fail.py", line 30, in <module>
    main()
  File "/home/me/fail.py", line 21, in main
    f(x)
  File "/home/me/helpers/fail.py.py", line 4, in helper
  File "/venv/lib/python3.11/site-packages/torch/_dynamo/eval_frame.py", line 832, in compile_wrapper
    return fn(*args, **kwargs)
  File "/venv/lib/python3.11/site-packages/torch/_inductor/graph.py", line 1200, in run_node
    result = super().run_node(n)
  File "/home/me/fail.py", line 7, in broken_lowering
    raise AssertionError("no")
torch._inductor.exc.InductorError: LoweringException: AssertionError: no
  target: aten.relu.default
  args[0]: TensorBox(StorageBox(
    InputBuffer(name='primals_1')
  ))

While executing %relu_1 : [num_users=1] = call_function[target=torch.ops.aten.relu.default](args = (%add,), kwargs = {})
Original traceback:
  File "/home/me/fail.py", line 11, in forward
    return x.relu()
"""


def start() -> Start:
    """Two operations of one name; the compiler calls them otherwise than the program does."""
    meta = Meta("tensor", (2,), (1,), "float32")
    nodes = (
        Node("add", "function", "torch.ops.aten.add.Tensor", (Ref("x"), 1), meta=meta),
        Node("relu", "function", "torch.ops.aten.relu.default", (Ref("add"),), meta=meta),
        Node("relu_2", "function", "torch.ops.aten.relu.default", (Ref("relu"),), meta=meta),
        Node("getitem", "function", "operator.getitem", (Ref("relu"), 0), meta=meta),
    )
    graph = Graph((Input("x", meta),), nodes, (Ref("relu_2"),))
    names = (("add_5", "add"), ("relu_1", "relu"), ("relu_7", "relu_2"), ("item", "getitem"))
    return Start(Stage.AOT, Program(graph), names=names)


SCRIPT = """import torch




def broken_lowering(x):
    raise AssertionError("no")


def f(x):
    return x.relu()


def main():
    x = torch.ones(3)




    f(x)


main()
"""


def test_functions_that_torch_called() -> None:
    assert below_torch(TEXT, "fail.py", SCRIPT) == ("broken_lowering",)
    assert below_torch(TEXT, "other.py", SCRIPT) == ()
    assert below_torch(TEXT, "fail.py", "def broken(:") == ()
    first, _, rest = TEXT.partition('  File "/venv')
    assert below_torch(first + rest[rest.index('  File "/home/me/fail.py", line 7') :], "fail.py", SCRIPT) == (), "torch is not above it"


def test_what_torch_waits_for_is_named_by_the_dump_of_a_hang() -> None:
    dump = """Timeout (0:00:10)!
Thread 0x00007f00deadbeef (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 327 in wait
  File "/home/me/fail.py", line 7 in broken_lowering
  File "/venv/lib/python3.11/site-packages/torch/_inductor/graph.py", line 1200 in run_node
  File "/venv/lib/python3.11/site-packages/torch/_dynamo/eval_frame.py", line 832 in compile_wrapper
  File "/home/me/fail.py", line 21 in main
  File "/home/me/fail.py", line 30 in <module>
"""
    assert below_torch(dump, "fail.py", SCRIPT) == ("broken_lowering",)
    assert below_torch("Fatal Python error: Aborted\n\n" + dump.split("\n", 1)[1], "fail.py", SCRIPT) == ("broken_lowering",)


@pytest.mark.parametrize("file", ["testing/_internal/common_utils.py", "nn/modules/module.py"])
def test_a_test_or_a_module_is_not_called_by_the_compiler(file: str) -> None:
    text = f"""Traceback (most recent call last):
  File "/home/me/fail.py", line 22, in <module>
    main()
  File "/venv/lib/python3.11/site-packages/torch/{file}", line 300, in run
    return call()
  File "/home/me/fail.py", line 11, in f
    return x.relu()
AssertionError: Tensor-likes are not close!
"""
    assert below_torch(text, "fail.py", SCRIPT) == ()
    assert below_torch(text.replace(file, "_inductor/graph.py"), "fail.py", SCRIPT) == ("f",)


def test_what_a_script_defines_or_changes_at_a_line() -> None:
    source = "import x\n\n\n@x.register(\n    1\n)\ndef own(y):\n    return y\n\n\nlast = lambda y: y\nx.table[1].of = last\nx(2)\n"
    assert defined_at([4], source) == defined_at([7, 8], source) == ("own",), "code begins at its first decorator"
    assert defined_at([11], source) == ("last",)
    assert defined_at([12], source) == defined_at([13], source) == ("x",)
    assert defined_at([1, 3, 99], source) == ()
    assert defined_at([1], "def broken(:") == ()


def test_functions_that_torch_called_in_an_error_behind_the_last() -> None:
    head, _, end = TEXT.partition("torch._inductor.exc.InductorError")
    later = 'Traceback (most recent call last):\n  File "/home/me/fail.py", line 30, in <module>\n    main()\n'
    cause = "\n\nThe above exception was the direct cause of the following exception:\n\n"
    both = f"{head}AssertionError: no{cause}{later}torch._inductor.exc.InductorError{end}"
    assert below_torch(both, "fail.py", SCRIPT) == ("broken_lowering",)


def test_lines_of_the_script() -> None:
    assert script_lines(TEXT, "fail.py") == (30, 21, 7, 11)
    assert script_lines(TEXT.replace("/home/me/", "C:\\home\\"), "fail.py") == (30, 21, 7, 11)
    assert script_lines(TEXT, "other.py") == ()


def test_the_line_that_called_into_torch() -> None:
    assert failing_line(TEXT, "fail.py") == 21, "what the compiler calls back into is not it"
    assert failing_line(TEXT.replace("/torch/", "/else/"), "fail.py") == 11
    assert failing_line("no traceback", "fail.py") is None
    assert failing_line('  File "fail.py", line 3, in <module>\n', "fail.py") == 3


DUMPS = Path(__file__).parents[2] / "fixtures" / "tracebacks"


@pytest.mark.parametrize(
    ("dump", "lines", "called"), [("crash_kernel", (9, 5), 9), ("crash_lowering", (7, 6), 7), ("hang_pass", (6, 4), 6)]
)
def test_lines_of_a_crash_or_a_hang(dump: str, lines: tuple[int, ...], called: int) -> None:
    text = (DUMPS / f"{dump}.txt").read_text(encoding="utf-8")
    for said in (text, TEXT.replace("fail.py", "repro.py") + text):
        assert script_lines(said, "repro.py") == lines
        assert failing_line(said, "repro.py") == called, "the frames of a dump stand the other way round"
    assert script_lines(text + TEXT, "fail.py") == (30, 21, 7, 11), "what is printed last tells of the end"
    assert script_lines(text + TEXT, "repro.py") == ()


THREADS = """Fatal Python error: Segmentation fault

Thread 0x00007f01 (most recent call first):
  File "/lib/threading.py", line 324 in wait
  File "/home/me/fail.py", line 4 in helper

Current thread 0x00007f02 [worker] (most recent call first):
  File "/home/me/fail.py", line ??? in backward
  File "/home/me/fail.py", line 8 in backward

Thread 0x00007f03 (most recent call first):
  File "/site-packages/torch/autograd/graph.py", line 5 in run
  File "/home/me/fail.py", line 20 in main
  File "/home/me/fail.py", line 30 in <module>

Extension modules: torch._C
"""


def test_of_several_threads_the_one_that_was_hit() -> None:
    assert script_lines(THREADS, "fail.py") == (8,)
    nowhere = THREADS.replace('"/home/me/fail.py", line 8 in', '"/home/me/fail.py", line ??? in')
    assert script_lines(nowhere, "fail.py") == (30, 20), "the autograd engine's threads have no Python frames"
    assert failing_line(nowhere, "fail.py") == 20


def test_a_deep_dump_does_not_hold_the_call_into_torch() -> None:
    deep = THREADS.replace("line 8 in backward\n", "line 8 in backward\n  ...\n")
    assert script_lines(deep, "fail.py") == (8,)
    assert failing_line(deep, "fail.py") is None


def test_nodes_by_their_own_name_before_those_by_operator() -> None:
    assert named_nodes(TEXT, start()) == [{"relu"}, {"relu_2"}]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("%relu_7 : [num_users=2] = call_function[...]", [{"relu_2"}]),
        ("cannot fuse node relu_7 with", [{"relu_2"}]),
        ("the node named 'add_5' is not", [{"add"}]),
        ("  target: aten.add.Tensor\n", [{"add"}]),
        ("  target: aten.add\n", []),
        ("AssertionError: expected stride 1==4 at dim=0\nError in op: torch.ops.aten.add.Tensor\nThis", [{"add"}]),
        ("While executing %item : ", []),  # no operation
        ("While executing %unknown", []),
        ("", []),
    ],
)
def test_ways_of_naming(text: str, names: list[set[str]]) -> None:
    assert named_nodes(text, start()) == names


def test_operations_of_refused_code_come_behind_those_of_the_text() -> None:
    blamed = replace(start(), blamed=(("relu_7",), ("relu_7", "add_5", "gone"), ("gone",)))
    assert named_nodes("", blamed) == [{"relu_2"}, {"relu_2", "add"}]
    assert named_nodes("cannot fuse node relu_1 with", blamed)[0] == {"relu"}


WORDS = st.sampled_from(
    [
        *THREADS.splitlines(keepends=True),
        *TEXT.splitlines(keepends=True),
        "%",
        "File ",
        '"',
        "line 99999999999999999999",
        "\\",
        "\n",
        "node ",
        "target: a.b.",
    ]
)


@given(st.lists(WORDS | st.text(max_size=20), max_size=30).map("".join))
def test_no_text_is_too_strange(text: str) -> None:
    named = {node.name for node in start().program.graph.nodes}
    for names in named_nodes(text, start()):
        assert names
        assert names <= named
    lines = script_lines(text, "fail.py")
    assert failing_line(text, "fail.py") in (None, *lines)


STACK = """  File "/home/me/fail.py", line 21, in forward
    x = op(x)
  File "/home/me/fail.py", line 12, in op
    kernel[(1,)](x, out, BLOCK=64)
"""


def test_lines_that_launch_a_kernel_of_the_users() -> None:
    region = Region(
        hook="aot", failed="run", backward=False, recipe=RegionRecipe(), graph=None, reason=None, blobs=Path(), launches=(STACK, STACK)
    )
    (stack,) = launches([region, region])
    assert script_lines(stack, "fail.py") == (21, 12)
    assert launches([region.model_copy(update={"launches": ()})]) == []


def test_what_the_compiler_calls_of_a_script(tmp_path: Path) -> None:
    own = Object(text=None, name="own", expressions=("passes.own",), wanted=("passes.own",))
    recipe = RegionRecipe(config={"a": own, "b": Object(text="1", name="one")}, backend=Object(text=None, name="mine", wanted=("mine",)))
    base: dict[str, Any] = {"hook": "aot", "failed": "accuracy", "backward": False, "graph": None, "reason": None, "blobs": tmp_path}
    capture = Capture(
        outcome=Outcome(status="ok", exit=0, text=""), signature=None, regions=(Region(recipe=recipe, **base),), versions={}, log=tmp_path,
        installed=(1,),
    )  # fmt: skip
    assert held(capture, "def low(x): ...\ndef high(x): ...\n") == ("low", "passes", "mine")
