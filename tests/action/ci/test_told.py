"""What somebody tells of a failure in an issue: messages without their class, tests by their names, what was copied with marks in it."""

from __future__ import annotations

import pytest

from bot.action.ci import candidates
from bot.action.ci.paths import CheckoutPaths

TITLE = "=================================== FAILURES ===================================\n"


ENDED = 'Traceback (most recent call last):\n  File "/w/a.py", line 1, in f\nKeyError: 1\n'


def verdicts(log: str) -> list[str | None]:
    return [row["verdict"] for row in candidates.rows(log, CheckoutPaths([])) if row["verdict"] != "not a candidate"]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("Constraints violated (made_up)!\nNot all values of made_up are valid.", ["possible"]),
        ("<class 'RuntimeError'>: Found <class 'made.up.Cache'> in output, which is not a known type. If this", ["suggested"]),
        ("Operator does not support running with fake tensors\n  Explanation: made up", ["possible"]),
        (
            'input name: arg1_1. data pointer changed from 16 to 32. input stack trace:   File "/w/a.py", line 3, in f\n    g(x)',
            ["possible"],
        ),
        ("> cudaMallocAsync does not yet support checkPoolLiveAllocations", ["possible"]),
        ("> accessing tensor output of CUDAGraphs that has been overwritten by a subsequent run.", ["possible"]),
        ("RuntimeError: Error: accessing tensor output of CUDAGraphs that\nhas been overwritten by a subsequent run.", ["possible"]),
        ("The message is: Constraints violated (made_up)!", []),
        ("Conditions violated (made_up)!\nNot all values of made_up are valid.", []),
    ],
)
def test_a_message_without_the_name_of_its_class(message: str, expected: list[str]) -> None:
    assert verdicts(f"# A title\n\nIt says:\n\n```\n{message}\n```\n") == expected
    # what a long log says in between ended nothing
    assert verdicts("it runs\n" * 300 + message + "\nit runs\n") == []


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("  Hint: Made up. Remove the `torch.compile` call.", ["possible"]),
        ("  Explanation: Dynamo does not know how to make it up", ["possible"]),
        ("  Developer debug context: made up in fullgraph", ["possible"]),
        ("  Hint: Made up. Remove the call.", []),
        ("Hint: remove the `torch.compile` call.", []),
    ],
)
@pytest.mark.parametrize("mark", ["", "(Worker_TP0 pid=12) ERROR 01-02 03:04:05 [made_up.py:6] "])
def test_what_dynamo_says_below_its_message(said: str, expected: list[str], mark: str) -> None:
    assert verdicts(f"# A title\n\n```\n{mark}{said}\n{mark}\n```\n") == expected
    # a report of graph breaks
    assert verdicts(f"# A title\n\n```\nBreak Reason 1:\n{said}\n```\n") == []


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        ("NameError: name 's12' is not defined", ["suggested"]),
        ("NameError: name 'sizes' is not defined", []),
        ("AttributeError: 'SymNodeVariable' object has no attribute 'made_up'", ["suggested"]),
        ("AttributeError: 'MadeUpVariable' object has no attribute 'made_up'", []),
        ("TypeError: triton_poi_fused_mul_3() takes no argument", ["suggested"]),
        ("TypeError: triton_kernel() takes no argument", []),
        ("**Crash:** `RuntimeError: TODO: graph recording observed an input tensor made up`", ["suggested"]),
        ("**Note:** `RuntimeError: TODO: graph recording observed an input tensor made up`", []),
        ("Error message: InductorError: MadeUp: x", ["suggested"]),
        ("ValueError: made up for a FakeTensorMode", ["suggested"]),
        ("RuntimeError: run_func_( a ) API call failed at /w/torch/csrc/inductor/aoti_runner/made_up.cpp, line 145", ["suggested"]),
        (f"RuntimeError: Failure loading .so: c{51 * 'a'}.so: cannot open shared object file", ["suggested"]),
        (f"ImportError: /w/c{51 * 'a'}.main.so: undefined symbol: made_up", ["suggested"]),
        ("ImportError: /w/made_up.cpython-312-x86_64-linux-gnu.so: undefined symbol: made_up", []),
        ("RuntimeError: run_func_( a ) API call failed at /w/torch/csrc/made_up.cpp, line 145", []),
        (f"RuntimeError: aoti_torch_made_up(a) API call failed at /w/ab/c{51 * 'a'}.main.cpp, line 3311", ["suggested"]),
        ("RuntimeError: made_up(a) API call failed at /w/ab/cmade_up.main.cpp, line 3311", []),
        ("RuntimeError: Command 'git diff torch/csrc/inductor/aoti_torch/c/made_up.h' timed out", []),
        ("ImportError: cannot import name 'FakeTensorMode' from 'made.up'", []),
        ("AttributeError: module 'made.up' has no attribute 'FakeTensorMode'", []),
        ("AssertionError: Node made_up_2 was invalid, but is output", ["suggested"]),
        ("AssertionError: Mixing fake modes NYI", ["suggested"]),
        ("Error: AssertionError: fake mode (<made up>) from tensor input 0 doesn't match mode (<made up>)", ["suggested"]),
        ("AssertionError: Expected tensors only, but got: <class 'int'>", ["suggested"]),
        ("RuntimeError: vLLM failed to compile the model. It is made up.", ["suggested"]),
        ("RuntimeError: vLLM failed to make up the model.", []),
        ("Unsupported: made up\nExplanation: made up\nHint: none", ["suggested"]),
        ("Unsupported: made up\nHint: none", []),
        ("<class 'torch._dynamo.exc.UserError'>: made up", ["suggested"]),
        ("<class 'made.up.UserError'>: made up", []),
        ("RuntimeError: The runner failed with 'torch.compile with fullgraph=True\nfound no compiled frames.'", []),
        ("RuntimeError: Worker failed with error 'torch.compile with fullgraph=True\nfound no compiled frames.'", ["possible"]),
    ],
)
def test_a_message_that_the_compiler_alone_has(raised: str, expected: list[str]) -> None:
    assert verdicts(f"# A title\n\n```\n{raised}\n```\n") == expected


@pytest.mark.parametrize("place", [f"/w/ab/c{51 * 'a'}.main.cpp", "/w/torch/csrc/inductor/aoti_runner/made_up.cpp"])
@pytest.mark.parametrize(
    "raised",
    [
        "{}\nRuntimeError: aoti_torch_made_up(a) {}\n",
        '{}\nTraceback (most recent call last):\n  File "/w/a.py", line 3, in f\n    g(x)\nRuntimeError: run_func_( a ) {}\n',
        "{}\nterminate called after throwing an instance of 'std::runtime_error'\n  what():  create_func_( a ) {}\n",
        '{}\nC++ exception with description "run_func_( a ) {}" thrown in the test body.\n',
    ],
)
def test_a_call_in_made_code_fails_for_what_was_printed_above(place: str, raised: str) -> None:
    call = f"API call failed at {place}, line 7"
    assert len(verdicts(f"it runs\n{raised.format('', call)}")) == 1
    assert len(verdicts(f"it runs\n{raised.format('Error: CUDA error: invalid argument', call)}")) == 1
    assert verdicts(f"it runs\n{raised.format('Error: CUDA out of memory. Tried to allocate 2.00 GiB.', call)}") == []
    assert verdicts(f"it runs\n{raised.format('', call.replace('aaaa.main', '.main').replace('inductor', 'made_up'))}") == []


@pytest.mark.parametrize(
    ("below", "expected"),
    [
        ("E       assert tensor(11.5, device='cuda:0') >= 20.0\n", ["possible"]),
        ("E       assert 11.5 >= 20.0\n", ["possible"]),
        ("E       assert False\nE        +  where False = <built-in method equal of type object at 0x1>(made, up)\n", ["possible"]),
        ("E       assert False\nE        +  where False = is_made_up(2)\n", []),
        # it counts
        ("E       assert 3 >= 20\n", []),
        # the log ends before it says what
        ("E", ["possible"]),
    ],
)
@pytest.mark.parametrize("indent", ["", "  "])
def test_numbers_in_a_test_that_compiles(below: str, expected: list[str], indent: str) -> None:
    whole = "\ntests/test_a.py:7: AssertionError\n" if below != "E" else ""
    shown = f"______ test_a[x] ______\n\n    def test_a(x):\n        f = torch.compile(f)\n>       assert good(f(x))\n{below}{whole}"
    assert verdicts(f"{indent and ' '}{TITLE}" + "".join(f"{indent}{line}\n" for line in shown.splitlines())) == expected


@pytest.mark.parametrize("file", ["made_up_fusion.py", "passes/made_up_pass.py", "pass_manager.py", "made_up.py"])
def test_a_pass_of_a_library(file: str) -> None:
    frames = (
        f'  File "/w/made/compilation/{file}", line 17, in __init__\n    super().__init__(key)\n'
        f'  File "/w/made/compilation/{file}", line 5, in __init__\n    assert key in KEYS\n'
    )
    log = f"# A title\n\n```\n{frames}"
    assert verdicts(log) == ([] if file == "made_up.py" else ["possible"])


def test_what_parts_the_lines_of_an_excerpt() -> None:
    frames = '  File "/w/a.py", line 1, in f\n--\n    g(x)\n  File "/w/torch/_inductor/made_up.py", line 2, in g\n--\n    h(x)\n'
    rows = candidates.rows(f"# A title\n\n```\nTraceback (most recent call last):\n{frames}KeyError: 'x'\n```\n", CheckoutPaths([]))
    assert [(row["verdict"], row["kind"]) for row in rows] == [("suggested", "exception")]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("pytest -v tests/test_compile.py::test_a", ["possible"]),
        ("pytest -v tests/test_eager.py::test_a", []),
        ("pytest -v tests/test_compile.py", []),
        ("pytest tests/test_compile.py::test_a tests/test_compile.py::test_b", []),
    ],
)
def test_a_command_above_a_traceback_that_is_cut_off_in_the_test(command: str, expected: list[str]) -> None:
    log = f'{command}\n\n```\nTraceback (most recent call last):\n  File "/w/tests/test_any.py", line 316, in\n'
    assert verdicts(log) == expected


LOGGED = "E0101 01:02:03.456789 12 torch/fx/experimental/recording.py:299] "


@pytest.mark.parametrize(
    ("logged", "below", "expected"),
    [
        ("failed while running evaluate_expr(*(Ne(u0, 2),))", "", ["possible"]),
        (
            "failed while running evaluate_expr(*(Ne(u0, 2),))",
            'Traceback (most recent call last):\n  File "/w/a.py", line 1, in',
            ["possible"],
        ),
        (
            "failed while running evaluate_expr(*(Ne(u0, 2),))",
            'Traceback (most recent call last):\n  File "/w/a.py", line 1, in f\nKeyError: 1',
            [],
        ),
        ("failed while made up", "", []),
        ("torch.fx.experimental.symbolic_shapes.GuardOnDataDependentSymNode: Could not guard on u0", "", ["possible"]),
        (
            "W",
            "W0101 01:02:03.456789 12 torch/fx/experimental/symbolic_shapes.py:6061] [0/0] failed during evaluate_expr(u0, hint=None",
            ["possible"],
        ),
        ("W", "W0101 01:02:03.456789 12 torch/fx/experimental/symbolic_shapes.py:6061] [0/0] made up", []),
    ],
)
def test_a_question_about_a_size_that_has_no_answer(logged: str, below: str, expected: list[str]) -> None:
    assert verdicts(f"{LOGGED}{logged}\n{below}\n") == expected


@pytest.mark.parametrize(
    ("raised", "program", "expected"),
    [
        ("OutOfResources: out of resource: made up, Required: 3", "f = torch.compile(g)", ["possible"]),
        ("triton.runtime.errors.OutOfResources: out of resource: made up", "@torch.compile", ["possible"]),
        ("> RuntimeError: Triton Error [CUDA]: made up", "f = torch.compile(g)", ["possible"]),
        ("ptxas fatal   : made up", "f = torch.compile(g)", ["possible"]),
        ("ValueError: Pointer argument (at 2) cannot be accessed from Triton (cpu tensor?)", "f = torch.compile(g)", ["possible"]),
        ("ValueError: Pointer argument (at 2) is made up", "f = torch.compile(g)", []),
        ("OutOfResources: out of resource: made up, Required: 3", "f = g", []),
        # it may be that of the program
        ("OutOfResources: out of resource: made up, Required: 3", "f = torch.compile(g)\n@triton.jit", []),
        ("RuntimeError: Triton Error [CUDA]: out of memory", "f = torch.compile(g)", []),
        ("It says OutOfResources: out of resource: made up", "f = torch.compile(g)", []),
    ],
)
def test_what_triton_says_of_a_program_that_compiles(raised: str, program: str, expected: list[str]) -> None:
    assert verdicts(f"# A title\n\n{raised}\n\n```python\n{program}\n```\n") == expected
    # what ended the program is shown
    assert verdicts(f"# A title\n\n{raised}\n\n```python\n{program}\n```\n\n```\n{ENDED}```\n") == []


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("With `torch.compile(model)` I got RuntimeError: Triton Error [CUDA]: made up", ["possible"]),
        ("A test of Inductor raised RuntimeError: Triton Error [ZE]: 0x7.", ["possible"]),
        ("The test of Inductor gets `RuntimeError: PassManager::run failed`", ["possible"]),
        ("My kernel raised RuntimeError: Triton Error [CUDA]: made up", []),
        ("Inductor raised RuntimeError: made up", []),
        ("Inductor raised RuntimeError: Triton Error [CUDA]: out of memory", []),
        ("Inductor raised RuntimeError: Triton Error [CUDA]: made up, which is fixed", []),
    ],
)
def test_a_sentence_that_says_of_what_triton_raised(said: str, expected: list[str]) -> None:
    text = f"# A title\n\n{said}\n\nThe case is:\n ` python test/a.py TestA.test_b `\n"
    assert verdicts(text) == expected
    found = [row for row in candidates.rows(text, CheckoutPaths([])) if row["verdict"] == "possible"]
    assert ["(exception in run: RuntimeError: " in str(row["why"]) for row in found] == [True] * len(expected)
    assert verdicts(f"# A title\n\n{said}\n\n```\n{ENDED}```\n") == []


ADVICE = "Set TORCHDYNAMO_VERBOSE=1 for the internal stack trace"


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("AssertionError: made up", ["possible"]),
        ("ValueError: made up", ["possible"]),
        # the machine's
        ("RuntimeError: Compiler: cl is not found.", []),
    ],
)
def test_what_was_raised_stands_above_the_advice_of_the_compiler(said: str, expected: list[str]) -> None:
    log = f"It fails:\n\n```\n{said}\n\n{ADVICE}\n```\n"
    found = candidates.rows(log, CheckoutPaths([]))
    assert [row["verdict"] for row in found if row["verdict"] != "not a candidate"] == expected
    assert not expected or said in str(found[0]["why"])


@pytest.mark.parametrize(("words", "expected"), [("It is made up.", []), ("I use torch.compile here.", ["suggested"])])
def test_a_title_that_tells_of_a_kernel_of_triton(words: str, expected: list[str]) -> None:
    found = candidates.rows(f"# CompilationError: at 114:24:\n\n{words}\n", CheckoutPaths([]))
    assert len(found) == len(expected)


PLACES = "made_up/passes.py:5 a_pass\ntorch/_inductor/fx_passes/made_up.py:12 _made_up\ntorch/_dynamo/made_up.py:7 _sorted\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"```\nAssertionError: made up\n```\n\non this path:\n\n```\n{PLACES}```\n", ["suggested"]),
        (f"AssertionError: made up\n{PLACES}", ["suggested"]),
        # of files that a change is about nothing was raised
        ("AssertionError: made up\n\nIt is in:\n\ntorch/_inductor/made_up.py\ntorch/_dynamo/made_up.py\n", []),
        (f"AssertionError: made up\n\nThat is another one.\n\nThe pass is on this path:\n\n{PLACES}", []),
        (f"It fails\non this path:\n\n{PLACES}", []),
        (f"AssertionError: made up\n{PLACES.replace('torch/', 'touch/')}", []),
    ],
)
def test_what_was_raised_stands_above_the_places_of_its_stack(text: str, expected: list[str]) -> None:
    assert verdicts(f"# A title\n\nThe failure is:\n\n{text}\nSee there.\n") == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Same `BackendCompilerFailed: made_up` failure across **7 jobs**:", ["possible"]),
        ("On main it fails with `torch._dynamo.exc.Unsupported: made up` now, it seems.", ["possible"]),
        ("It is said to mend `BackendCompilerFailed: made_up`, a failure.", []),
        ("It fails with `BackendCompilerFailed: made_up`, and falls back.", []),
        ("I have read of `BackendCompilerFailed: made_up` there.", []),
        ("# It fails with `BackendCompilerFailed: made_up` here", []),
        ("+ it fails with `BackendCompilerFailed: made_up` here", []),
        ("It fails with `BackendCompilerFailed: CUDA out of memory`, sometimes.", []),
        ("It fails with `ValueError: made_up`, sometimes.", []),
        ("Export fails with: `AssertionError: Failed to produce a graph during tracing as made_up`.", ["possible"]),
        ("Of `AssertionError: Failed to produce a graph during tracing as made_up` I have read.", []),
        ("All of them fail with` BackendCompilerFailed: made_up` now:", ["possible"]),
    ],
)
def test_an_error_told_of_in_a_sentence(line: str, expected: list[str]) -> None:
    assert verdicts(f"# A title\n\nThe builds of today:\n\n{line}\n\n| Job | Count |\n|---|---|\n") == expected
    # not beside an error that is shown, nor in a long log
    assert verdicts(f"# A title\n\n{line}\n\n{ENDED}") == []
    assert verdicts("it runs\n" * 300 + line + "\n") == []


CUT = 'Traceback (most recent call last):\n  File "/w/a.py", line 1, in f\n    g(x)\n  File "/w/b.py", li\n'


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("The torch._dynamo.exc.InternalTorchDynamoError error is reported:", ["possible"]),
        ("With two workers it crashes with a `BackendCompilerFailed` at once.", ["possible"]),
        ("# [Bug]: made_up raises torch._dynamo.exc.Unsupported: made up", ["possible"]),
        ("A change that mends what raises torch._dynamo.exc.Unsupported here.", []),
        ("It should raise `torch._dynamo.exc.Unsupported` there.", []),
        ("It hits torch._dynamo.exc.Unsupported, and falls back.", []),
        ("WARNING: it got torch._dynamo.exc.Unsupported", []),
        ("# About torch._dynamo.exc.Unsupported", []),
        ("It raises torch.cuda.OutOfMemoryError.", []),
        ("It raises torch._dynamo.exc.Unsupported where CUDA is out of memory.", []),
    ],
)
def test_a_class_told_of_above_a_traceback_that_is_cut(line: str, expected: list[str]) -> None:
    assert verdicts(f"{line}\n\nIt says:\n\n```\n{CUT}") == expected
    # what was raised is shown, or nothing is
    assert verdicts(f"{line}\n\nIt says:\n\n```\n{ENDED}") == []
    # only a title says it alone
    assert verdicts(f"{line}\n\nIt says no more.\n") == (expected if line.startswith("# ") else [])


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("    # torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:\n    # RuntimeError: made up", ["possible"]),
        ("# BackendCompilerFailed: made up", ["possible"]),
        ("    # torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:\n    # RuntimeError: CUDA out of memory", []),
        ("    # it does not raise torch._dynamo.exc.Unsupported: made up", []),
        ("    # RuntimeError: made up", []),
    ],
)
def test_an_error_told_of_in_a_comment_of_a_program(comment: str, expected: list[str]) -> None:
    program = f"f = torch.compile(g)\nwith a():\n    f(x)\n{comment}\n"
    assert verdicts(f"# A title\n\nIt fails:\n\n```python\n{program}```\n\nThat is all.\n") == expected
    # a heading tells what a text is about
    assert verdicts(f"# A title\n\n```python\nf(x)\n```\n\n{comment.lstrip()}\n") == []


@pytest.mark.parametrize(
    ("place", "expected"),
    [("", ["suggested"]), ("aten/src/ATen/MadeUp.cpp:72: ", ["suggested"]), ("it says that ", [])],
)
def test_a_message_behind_the_place_of_a_check(place: str, expected: list[str]) -> None:
    said = f"RuntimeError: {place}SymIntArrayRef expected to contain only concrete integers"
    assert verdicts(f"# A title\n\nThe error is:\n\n`{said}`\n\nThanks!\n") == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("CRITICAL:torch._inductor.scheduler:Error in codegen for ComputedBuffer(name='made_up')", ["possible"]),
        (
            "C0304 05:06:07.123456 12 torch/_inductor/scheduler.py:99] [0/0] Error in codegen for ComputedBuffer(name='made_up')",
            ["possible"],
        ),
        ("W0304 05:06:07.123456 12 torch/_dynamo/repro/after_aot.py:9] Accuracy failed for the AOT Autograd graph made_up", ["possible"]),
        ("[2023-02-21 08:04:30,787] made: [WARNING] Accuracy failed for the TorchDynamo produced graph. Creating", ["possible"]),
        ("Accuracy failed for the graph made_up", []),
        ("Error in codegen for ComputedBuffer(name='made_up')", []),
        ("CRITICAL:made_up.scheduler:Error in codegen for ComputedBuffer(name='made_up')", []),
    ],
)
def test_what_is_logged_alone(line: str, expected: list[str]) -> None:
    assert verdicts(f"# A title\n\n```\n{line}\n```\n") == expected
    assert verdicts(f"# A title\n\n```\n{line}\n{ENDED}```\n") == []


def test_what_an_editor_shows_of_an_error() -> None:
    shown = "But there is:\nException has occurred: {}\nmade up\nKeyError: 7\n\nDuring handling\n"
    assert verdicts(shown.format("InternalTorchDynamoError")) == ["suggested"]
    assert verdicts(shown.format("torch._dynamo.exc.Unsupported")) == ["suggested"]
    assert verdicts(shown.format("ValueError")) == []
    shown = 'It fails:\n\n```python\n{{\n\t"name": "{}",\n\t"message": "TypeError: made up{}\n'
    assert verdicts(shown.format("InternalTorchDynamoError", '",\n\t"stack": "-----')) == ["suggested"]
    assert verdicts(shown.format("InternalTorchDynamoError", '\n\nfrom user code:\n   File \\"/w/a.py\\", line 3, in f')) == ["suggested"]
    assert verdicts(shown.format("ValueError", '",')) == []


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Sampler (made up) backend='inductor' raised: FileNotFoundError: [Errno 2] No such file: 'made.tmp' Set TORCH_LOGS", ["possible"]),
        ("Sampler (made up) backend='inductor' raised: RuntimeError: CUDA out of memory", []),
        ("# backend='inductor' raised: FileNotFoundError: [Errno 2] No such file", []),
        ("Sampler (made up) backend='inductor' raised", []),
    ],
)
def test_what_a_node_shows_in_one_line(line: str, expected: list[str]) -> None:
    assert verdicts(f"# A title\n\n{line}\n\nIs triton there?\n") == expected


WARNED = """\
[rank4]:WARNING:{}
[rank4]:Traceback (most recent call last):
[rank4]:  File "/w/torch/_inductor/codecache.py", line 649, in dumps
[rank4]:    self.dump(obj)
[rank4]:ValueError: it is made up
[rank4]:step 2
"""


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("torch._inductor.codecache:Failed to pickle cache key", []),
        ("torch._dynamo.made_up:Cannot make it up", []),
        ("torch._inductor.codecache:Writing minified repro to:", ["suggested"]),
        ("made_up.operators:Failed to import it", ["suggested"]),
    ],
)
def test_a_plain_logger_warns_of_what_it_caught(said: str, expected: list[str]) -> None:
    assert verdicts(WARNED.format(said)) == expected


RUNS = """\
  File "/w/torch/_inductor/cudagraph_trees.py", line 1886, in execute_node
    return node.run(new_inputs)
  File "{}", line 951, in run
    assert made_up
{}
"""


@pytest.mark.parametrize(
    ("path", "raised", "expected"),
    [
        ("/w/torch/_inductor/cudagraph_trees.py", "AssertionError", ["possible"]),
        ("/w/torch/_inductor/cudagraph_trees.py", "RuntimeError: made up", []),
        ("/w/torch/made_up.py", "AssertionError", []),
        ("/w/torch/_inductor/utils.py", "AssertionError", []),
    ],
)
def test_the_compiler_asserts_where_what_it_made_runs(path: str, raised: str, expected: list[str]) -> None:
    assert verdicts(f"The end of the log:\n```\n{RUNS.format(path, raised)}```\n") == expected


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        ("", ["possible"]),
        ('  File "/tmp/torchinductor_me/ab/made.py", line 7, in call\n', ["possible"]),
        # somebody calls it
        ('  File "<stdin>", line 1, in <module>\n', []),
    ],
)
def test_strides_that_differ(frame: str, expected: list[str]) -> None:
    header = "Traceback (most recent call last):\n" if frame else ""
    assert verdicts(f"# A title\n\n```\n{header}{frame}AssertionError: expected size 2==2, stride 1==2 at dim=0\n```\n") == expected


@pytest.mark.parametrize(
    ("item", "expected"),
    [("    - ", ["suggested"]), ("- [ ] ", ["suggested"]), ("", ["suggested"]), ("- [x] ", []), ("It says made ", [])],
)
def test_a_benchmark_that_is_told_of_in_a_list(item: str, expected: list[str]) -> None:
    assert verdicts(f"# A title\n\n- [ ] a job\n{item}made_up.v2  FAIL:     accuracy=fail_accuracy, expected=pass\n") == expected


@pytest.mark.parametrize("item", ["", "    - "])
def test_the_benchmarks_that_a_job_names_at_its_end(item: str) -> None:
    end = f"{item}Error: 2 models have accuracy status regressed:\n    made_up.v2 made_up.v3\n"
    assert verdicts(f"it runs\n{end}") == ["possible", "possible"]
    # the table says how
    row = "made_up.v3  FAIL:     accuracy=fail_accuracy, expected=pass\n"
    assert verdicts(f"it runs\n{row}{end}") == ["suggested", "possible"]
    assert verdicts(f"it runs\n{end.replace('regressed', 'improved')}") == []


@pytest.mark.parametrize("before", ["", "* ", "* `", "- `"])
def test_the_tests_that_failed_each_time_as_somebody_quotes_them(before: str) -> None:
    listed = "The following tests failed consistently: ['test/inductor/test_a.py::T::test_a', 'test/inductor/test_a.py::T::test_b']"
    assert verdicts(f"The tests:\n\n{before}{listed}{'`' * before.count('`')}\n") == ["possible", "possible"]
    assert verdicts(f"It says {listed}\n") == []


@pytest.mark.parametrize(
    ("file", "raised", "expected"),
    [
        ("inductor/test_a.py", "subprocess.CalledProcessError: Command '['python', '-c', 'import tor", ["possible"]),
        ("inductor/test_a.py", "subprocess.CalledProcessError: Command 'a' returned non-zero exit status 1.", ["possible"]),
        ("inductor/test_a.py", "KeyError: 'made up'", []),
        ("test_a.py", "subprocess.CalledProcessError: Command 'a' returned non-zero exit status 1.", []),
    ],
)
def test_a_test_whose_child_failed_in_a_text(file: str, raised: str, expected: list[str]) -> None:
    frames = f'  File "/w/test/{file}", line 3, in test_b\n    run(x)\n  File "/w/lib/subprocess.py", line 7, in run\n    raise made_up\n'
    assert verdicts(f"Trace:\n\n```\nTraceback (most recent call last):\n{frames}{raised}\n```\n") == expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("In the error message I find this line: {}", ["possible"]),
        ("It fails now: {}", ["possible"]),
        ("It ran last week. The error message is: BackendCompilerFailed {}", ["possible"]),
        ("It fails now: {}, falling back to eager", []),
        ("It is about this: {}", []),
        ("RuntimeError: {}", []),
        ("Error {}", ["possible"]),
        ("Then I get this error {}", ["possible"]),
        ("It fails with {}", ["possible"]),
        ("This is no error like {}", []),
        ("It works with {}", []),
    ],
)
def test_words_that_end_in_an_error_of_the_compiler(words: str, expected: list[str]) -> None:
    assert verdicts(f"# A title\n\n{words.format('torch._dynamo.exc.Unsupported: made up')}\n") == expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("It shows this: ", ["suggested"]),
        ("\u5b83\u5931\u8d25\uff1a", ["suggested"]),
        ("It shows ", []),
    ],
)
def test_a_line_of_the_summary_behind_words(words: str, expected: list[str]) -> None:
    assert verdicts(f"- {words}FAILED tests/test_a.py::test_b - torch._dynamo.exc.Unsupported: made up\n") == expected
    assert verdicts(f"- {words}FAILED tests/test_a.py::test_b - ValueError: made up\n") == []


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("ERROR: training failed: BackendCompilerFailed('backend=\\'made\\' raised:\\nRuntimeError: made up')", ["possible"]),
        ('it ends with an error: torch._inductor.exc.InductorError("made up")', ["possible"]),
        ("WARNING: it failed with InductorError('made up')", []),
        ("it failed with InductorError('made up'), falling back to eager", []),
        ('    raise InductorError("an error")', []),
        ("it shows InductorError('made up')", []),
        ("ERROR: it failed with MadeUpError('made up')", []),
    ],
)
def test_an_error_as_python_shows_the_object(said: str, expected: list[str]) -> None:
    log = "it runs\n" * 300 + f"{said}\nit ends\n"
    assert verdicts(log) == expected
    assert verdicts(log + "=== 3 passed in 2.1s ===\n") == []
    assert verdicts(log + ENDED) == []


@pytest.mark.parametrize(
    ("words", "expected"), [("training failed: ", ["suggested"]), ("", ["suggested"]), ("a.py:3: UserWarning: it failed: ", [])]
)
def test_the_message_of_a_backend_behind_words(words: str, expected: list[str]) -> None:
    assert verdicts(f"it runs\n{words}backend='made_up' raised:\nRuntimeError: made up\nit ends\n") == expected


@pytest.mark.parametrize(("words", "expected"), [("in thread Thread-1 (main):", ["suggested"]), ("ignored in: <made up>", [])])
def test_a_thread_ends_with_an_error(words: str, expected: list[str]) -> None:
    raised = 'Traceback (most recent call last):\n  File "/w/a.py", line 1, in f\n    g()\ntorch._dynamo.exc.Unsupported: made up\n'
    assert verdicts(f"it runs\nException {words}\n{raised}\n") == expected


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("`{}`\nstarted failing consistently on Monday on\nthe made up job.", ["possible"]),
        ("The test `{}` fails on a made up machine.", ["possible"]),
        ("It broke the job. {} started FAILING CONSISTENTLY at this commit.", ["possible"]),
        ("`{}` is still failing.", ["possible"]),
        ("`{}` no longer fails.", []),
        ("`{}` fails without this change.", []),
        ("`{}` failed, and is skipped now.", []),
        ("`{}` is slow.\nIt never fails.", []),
        ("`{}`\n\nThe other one fails.", []),
        ("`{}` and what fails", []),
        ("`{}` fails: RuntimeError: made up", []),
        ("Example failing unit test: {}'", ["possible"]),
        ("A test: {}", []),
    ],
)
def test_a_sentence_that_says_of_a_test_that_it_fails(said: str, expected: list[str]) -> None:
    text = said.format("test/dynamo/test_made_up.py::TestMadeUp::test_a_device_cpu")
    assert verdicts(f"# A title\n\n### Describe the bug\n\n{text}\n") == expected
    # nothing says that this one compiles
    assert verdicts(f"# A title\n\n{text.replace('dynamo/', '')}\n") == []


def test_a_test_that_a_text_names_twice_is_one() -> None:
    test = "`test/dynamo/test_made_up.py::test_a`"
    assert verdicts(f"# A title\n\n### Failing tests\n\n- {test}\n\n{test} fails now.\n") == ["possible"]
    assert verdicts(f"# A title\n\n### Failing tests\n\n- {test}\n- {test}\n") == ["possible"]


@pytest.mark.parametrize(
    ("title", "said", "expected"),
    [
        ("FSDP does not work with torch.compile", "torch.made.up.MadeUpError: made up", ["possible"]),
        ("A title", "ValueError: made up", []),
        ("torch.compile asserts here", "[rank7]: AssertionError: made up", ["possible"]),
        ("A step of the compiled graph is broken", "MadeUpError: made up", ["possible"]),
        # of a change, of eager, of a path, of two errors, of what is not there
        ("ci: skip a job that fails with torch.compile", "RuntimeError: made up", []),
        ("Fix what fails with torch.compile", "RuntimeError: made up", []),
        ("It fails without torch.compile", "ValueError: made up", []),
        ("test/inductor/test_made_up.py fails", "AssertionError: 'made up' not found in ''", []),
        ("torch.compile fails", "ValueError: made up\nKeyError: made up", []),
        ("torch.compile fails", "ModuleNotFoundError: No module named 'made_up'", []),
        ("It fails when compiling it", "RuntimeError: Error compiling objects for extension", []),
        ("torch.compile fails", "RuntimeError: CUDA out of memory", []),
    ],
)
def test_the_only_error_of_a_text_that_says_that_compiling_fails(title: str, said: str, expected: list[str]) -> None:
    assert verdicts(f"# {title}\n\nIt shows\n```\n{said}\n```\n") == expected
    # a comment of a program
    assert verdicts(f"# A title\n\nIt shows\n```\n# {title}\n{said}\n```\n") == []
    # a line of the program
    assert verdicts(f"# {title}\n\nIt has\n```\n    raise {said.partition(chr(10))[0]}\n```\n") == []


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("It was failing at the `torch.export` stage with the error `RuntimeError: Found a made-up thing`.", ["possible"]),
        ("With torch.compile it raises `made.up.MadeUpError: made up` here.", ["possible"]),
        ("torch.compile fails here.\n\nErrors as ` made.up.MadeUpError: made up`:", ["possible"]),
        ("It fails with `RuntimeError: Found a made-up thing`, and compiles well.", []),
        ("Without torch.compile it raises `RuntimeError: made up`.", []),
        ("torch.compile works, and `RuntimeError: made up` is no more.", []),
        ("torch.compile fails with `ImportError: cannot import name 'made_up'`.", []),
    ],
)
def test_any_error_of_a_sentence_that_says_that_compiling_fails(said: str, expected: list[str]) -> None:
    assert verdicts(f"# A title\n\nI tried a model.\n\n{said}\n") == expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("## Describe the bug\n\nIt passes in eager mode but crashes during `torch.compile`.", ["possible"]),
        ("## Describe the bug\n\nEager gives a tensor; only the `torch.compile` path fails.", ["possible"]),
        ("## Describe the bug\n\nOnly eager fails; the `torch.compile` path gives a tensor.", []),
        ("It passes in eager mode but crashes during `torch.compile`.", []),
        ("I tried torch.compile(), and got errors as below.", ["possible"]),
        ("We encountered a TorchDynamo failure.", ["possible"]),
        ("Now when I use `torch_dynamo` I'm getting an error message.", ["possible"]),
        ("## A bug\n\nI tried `torch.compile` on a model. But I got the following error. Thanks!", ["possible"]),
        ("## A bug\n\nI tried `torch.compile` on a model. It is slow. But I got the following error. Thanks!", []),
        ("## A bug\n\nI tried `torch.compile` on a model. But I got the following error in eager. Thanks!", []),
        ("# torch.compile is not working\n\nBoth give the following error after a bit.", ["possible"]),
        ("## A bug\n\nThese lead to an error when combined:\n\n1. torch.compile\n2. a loop", ["possible"]),
        ("## A bug\n\nThese lead to an error when combined:\n\n1. a loop\n2. a list", []),
        ("# error in using torch compile on a GPU", ["possible"]),
        ("# Pytorch 2 compile + fsdp + transformers crash", ["possible"]),
        ("# pytorch2.1 compile raises an error", ["possible"]),
        ("## A bug\n\nCalling `f(x)` and using compile fails", ["possible"]),
        ("## A bug\n\nA build with compile flags fails, and a model with compile=False", []),
        ("# seg fault in aot_inductor_package", ["possible"]),
        ("# [BUG] AOTInductor compiling got segmentation error", ["possible"]),
        ("# A note on an error message of torch.compile", []),
        ("# An error in the pages on torch.compile", []),
        ("Getting an error with `torch.compile`.", ["possible"]),
        ("I can't use torch compile since it gives me an error.", ["possible"]),
        ("# Torch Compiled model error at a step", ["possible"]),
        ("# [made up] torch.compile error", ["possible"]),
        ("# Torch Dynamo error", ["possible"]),
        ("# Dynamo error", []),
        ("# Error caused when torch.compile() is used", ["possible"]),
        ("# Generative models fail in torch dynamo", ["possible"]),
        ("# Torch 2 compile and torch.compile cause a crash", ["possible"]),
        ("# [Inductor] made up segfaults", ["possible"]),
        ("# torch.compile fails to trace a backward pass", ["possible"]),
        ("# Torch export of a model fails", ["possible"]),
        ("# `torch._inductor.aoti_compile_and_package` fails", ["possible"]),
        ("# torch.compile crashes on a GPU without made-up support", ["possible"]),
        ("# Segmentation fault (core dumped) with torch.compile", ["possible"]),
        ("# torch.compile segmentation fault", ["possible"]),
        ("# `torch.made_up` triggers assertion fail in compile mode", ["possible"]),
        ("### Bug\n\nIt works fine in eager mode but raises an assertion fail in compile mode.", ["possible"]),
        ("I get an error with torch.compile (it works fine in eager).", ["possible"]),
        ("We get a failure in inductor on the branch a/disable-made-up.", ["possible"]),
        # what it does not say: a failure, one of the compiler's, one that is there
        ("It passes with torch.compile but crashes in eager mode.", []),
        ("# torch.compile is not working", []),
        ("# What triggers a fail in compile mode", []),
        ("# It crashes in eager mode (and with torch.compile, too)", []),
        ("# torch.compile fails to fuse a backward pass", []),
        ("torch.compile doesn\u2019t crash there.", []),
        ("We get a failure without torch.compile.", []),
        ("We get no error with torch.compile.", []),
        ("# Does torch.compile fail for you, too?", []),
        ("# What to do when torch.compile fails", []),
        ("# [dynamo][exceptions] Trace what is made up", []),
        ("# [inductor] Raise an error for what is made up", []),
        ("# [inductor] Propagate a failure", []),
        ('# Revert "[inductor] fail early"', []),
        ("# Debugging torch.compile failures", []),
        ("# The graph of torch.compile fails?", []),
        ("I see that the failure in inductor is unrelated.", []),
        ("When compiling an extension I get errors.", []),
        ("This test shows that torch.compile raises an error.", []),
        ("The dynamo error message is made up.", []),
        ("The error type raised by torch.compiler.made_up.", []),
        ("Dynamo graph-breaks there, with an error.", []),
        ("* torch.compile fails", []),
        ("# Fix a failure of torch.compile", []),
        ("# [easy] Skip a test that fails with torch.compile", []),
        ("# [easy] Skip a test\n\nIt fails with torch.compile.", []),
        # of something else, or of the machine
        ("torch.compile fails, and there is a ValueError: made up", []),
        ("torch.compile fails with an out of memory error.", []),
        ("It fails because torch.compile doesn't work on windows", []),
        ("```\ntorch.compile fails\n```", []),
    ],
)
def test_words_alone_that_say_that_compiling_fails(words: str, expected: list[str]) -> None:
    text = f"{words}\n\nThanks!\n" if words.startswith("#") else f"# A title\n\n{words}\n\nThanks!\n"
    assert verdicts(text) == expected
    found = [row for row in candidates.rows(text, CheckoutPaths([])) if row["verdict"] == "possible"]
    assert ["shows no error" in str(row["why"]) for row in found] == [True] * len(expected)
    assert verdicts(f"{text}{ENDED}") == []
    assert verdicts("it runs\n" * 300 + text) == []


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ('# torch.compile(mode="made up") produces different outputs from eager mode', ["possible"]),
        ("# Output mismatch between torch.compile and eager mode", ["possible"]),
        ("# Discrepancy between eager and inductor outputs", ["possible"]),
        ("# [Made up] mismatch eager vs compile floating point results", ["possible"]),
        ("# `torch.compile` leads to numeric mismatch compared to eager", ["possible"]),
        ("# `torch.compile()` makes loss `nan`", ["possible"]),
        ("We found that this model gives NaN results after compile.", ["possible"]),
        ("# [inductor] Silent incorrect gradients of what is made up", ["possible"]),
        ("# `torch.compile` silently produces all-zero `x.grad`", ["possible"]),
        ("### \U0001f41b Describe the bug\n\ntorch.compile leads to wrong results in the following program.", ["possible"]),
        ("torch.compile leads to wrong results in the following program.", []),
        ("# Got different outputs with and without torch.compile", ["possible"]),
        ("### Bug\n\nIts output in `torch.compile` differs from eager. They should be the same.", ["possible"]),
        ("### Bug\n\nDo the outputs of inductor and eager differ? It is made up.", []),
        ("### Bug\n\nThe results in eager mode are wrong, and right with torch.compile.", []),
        ("# torch.compile is slower, and NaNs", []),
        ("# The results of eager vs made up differ", []),
        ("# `torch.compile` silently produces a wrong answer", ["possible"]),
        ("I'm encountering a result mismatch between eager mode and `torch.compile`.", ["possible"]),
        ("There is a result mismatch between eager mode and `torch.compile`.", []),
        ("# torch.compile with different outputs", []),
        ("# The results of two eager runs are different", []),
        ("# Fix a mismatch between the outputs of eager and inductor", []),
        ("# Raise an error where the outputs of inductor and eager differ", []),
        ("# torch.compile should not give other results than eager", []),
        ("# Are different outputs of torch.compile and eager to be expected?", []),
    ],
)
def test_words_that_say_that_a_compiled_program_gives_other_results(words: str, expected: list[str]) -> None:
    text = f"{words}\n\nThanks!\n" if words.startswith("#") else f"# A title\n\n{words}\n\nThanks!\n"
    assert verdicts(text) == expected
    assert ["other results" in str(row["why"]) for row in candidates.rows(text, CheckoutPaths([]))] == [True] * len(expected)
    assert verdicts(f"{text}{ENDED}") == []
    assert verdicts("it runs\n" * 300 + text) == []


@pytest.mark.parametrize(
    ("program", "said", "expected"),
    [
        ("f = torch.compile(g)", "AssertionError: Tensor-likes are not close!\n\nMismatched elements: 7 / 9", ["possible"]),
        ("f = g", "AssertionError: Tensor-likes are not close!\n\nMismatched elements: 7 / 9", []),
        ("f = torch.compile(g)", "AssertionError: made up", []),
        ("f = torch.compile(g)\n# AssertionError: Tensor-likes are not close!", "It is made up.", ["possible"]),
        ("f = g\n# AssertionError: Tensor-likes are not close!", "It is made up.", []),
        ("f = torch.compile(g)", "AssertionError: Tensor-likes are not close!\n\nValueError: made up", []),
    ],
)
def test_a_program_that_compiles_and_compares(program: str, said: str, expected: list[str]) -> None:
    assert verdicts(f"# A title\n\n```python\nimport torch\n{program}\n```\n\nOutput\n```\n{said}\n```\n") == expected


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("raise error_metas[0].to_error(msg)", "AssertionError: Tensor-likes are not close!\n\nMismatched elements: 7 / 9"),
        ("raise error_metas[0].to_error(msg)", "AssertionError: The values for attribute 'shape' do not match: torch.Size([7])"),
        ("raise error_metas[0].to_error(msg)\n    ^^^^^^^^^^^^^^^^^^^^", "AssertionError: Tens"),
        ("assert torch.allclose(eager, compiled)\n           ~~~~~~~~~~~~~~^^^^^^^^^", "AssertionError"),
        ("raise AssertionError(msg)", "AssertionError: \nNot equal to tolerance rtol=1e-05, atol=0"),
    ],
)
def test_a_program_that_compiles_and_ends_where_it_compares(source: str, said: str) -> None:
    raised = f'Traceback (most recent call last):\n  File "/w/a.py", line 1, in <module>\n    {source}\n{said}\n'
    text = f"# A title\n\n```python\n{{}}\n```\n\n```\n{raised}```\n"
    (row,) = candidates.rows(text.format("f = torch.compile(g)"), CheckoutPaths([]))
    assert (row["file"], row["verdict"], "ends where it compares" in str(row["why"])) == ("/w/a.py", "possible", True)
    assert verdicts(text.format("f = g")) == []
    assert verdicts(text.format("f = torch.compile(g)").replace("# A title", "# Fix what is made up")) == []
    # what else was raised ended it
    assert verdicts(text.format("f = torch.compile(g)") + ENDED) == []
    assert verdicts(text.format("f = torch.compile(g)").replace("to_error", "made_up").replace("close", "up").replace("toler", "")) == []


def test_a_process_that_quotes_a_class_and_is_cut_off() -> None:
    raised = 'Traceback (most recent call last):\n  File "/w/a.py", line 1, in f\n    raise Exception(\nException: It failed: {}: An exc'
    assert verdicts(raised.format("SubprocException")) == ["possible"]
    assert verdicts(raised.format("MadeUpException")) == []


@pytest.mark.parametrize("title", ["made/test_compile.py::test_a[x] fails now", "A title"])
def test_a_test_that_a_title_names_above_a_traceback_that_is_cut_off(title: str) -> None:
    found = candidates.rows(f"# {title}\n\n```\n{CUT}", CheckoutPaths([]))
    assert [row["test"] for row in found] == (["made/test_compile.py::test_a[x]"] if "::" in title else [])


@pytest.mark.parametrize(("mark", "expected"), [("", []), ("[rank0]:[rank0]: ", ["possible"])])
@pytest.mark.parametrize("blanks", ["", "    "])
def test_a_program_that_lets_the_compiler_fall_back(mark: str, blanks: str, expected: list[str]) -> None:
    setting = f"{blanks}torch._dynamo.config.suppress_errors = True"
    assert verdicts(f"# A title\n\n```python\n{mark}{setting}\n{mark}\n```\n") == (expected if blanks else [])
    assert verdicts(f"I use this:\n\n```python\nimport torch\n{setting}\nf = torch.compile(f)\n```\n") == []


@pytest.mark.parametrize(
    "line",
    [
        'TORCHDYNAMO_EXTENDED_DEBUG_CREATE_SYMBOL="u0" python a.py',
        'Set TORCH_LOGS="+dynamo" to see what is made up.',
    ],
)
def test_words_of_the_compilers_advice_are_no_end_of_its_message(line: str) -> None:
    assert verdicts(f"I run this:\n\n```\n{line}\n```\n\nIt works.\n") == []


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("E   RuntimeError: torch.compile is not supported on Python 3.99+", []),
        ("E   RuntimeError: CUDA out of memory", []),
        ("E   it is made up", ["possible"]),
    ],
)
def test_a_test_that_failed_for_what_the_line_below_says_of_the_machine(said: str, expected: list[str]) -> None:
    log = f"# A title\n\n```\nFAILED tests/test_a.py::TestA::test_compiled_b\n{said}\n```\n"
    assert verdicts(log) == expected
    # in a log of many other things they may be of others
    assert verdicts("it runs\n" * 300 + log) == ["possible"]


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        ("  args[2]: TensorBox(StorageBox(\n    Pointwise(\n      'cuda',\n    )\n  ))\n  args[3]: None", ["possible"]),
        ("  args[2]: made_up(\n  args[3]: None", []),
        ("\nFor C++ stack trace, run with TORC", ["possible"]),
        ("\nFor C++ stack traces, see there", []),
    ],
)
def test_the_end_of_a_message_of_the_compiler(end: str, expected: list[str]) -> None:
    frames = '  File "/w/a.py", line 1, in f\n    g(x)\n' if end.startswith("\n") else ""
    assert verdicts(f"I get this:\n\n```\n....\n{frames}{end}\n```\n\nIt works on one GPU.\n") == expected


def test_a_sentence_completes_a_traceback_that_is_cut_off() -> None:
    frames = '  File "/w/site-packages/torch/_inductor/lowering.py", line 8, in made_up\n    return g('
    (row,) = candidates.rows(f"# A title\n\nIt fails with `InductorError: made up`:\n\n```\n{frames}", CheckoutPaths([]))
    assert (row["verdict"], "InductorError: made up" in str(row["why"])) == ("possible", True)
