"""Whether a failing test compiles anything, by what the log shows of it."""

from __future__ import annotations

import pytest

from bot.action.ci import compiles
from bot.action.ci.failing_test import Failure, Hint, Seen

HEADER = "Traceback (most recent call last):\n"
MADE = f"/tmp/torchinductor_me/ab/c{'a' * 51}.py"


def text(*paths: str, function: str = "f", end: str = "ValueError: made up") -> str:
    return HEADER + "".join(f'  File "{path}", line 3, in {function}\n    g(x)\n' for path in paths) + end


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (["/w/a.py", "/x/site-packages/torch/_dynamo/symbolic_convert.py"], True),
        (["C:\\x\\torch\\_inductor\\graph.py"], True),
        (["/x/torch/export/_trace.py"], True),
        (["/x/torch/_functorch/aot_autograd.py"], True),
        ([MADE], True),
        (["/x/torch/_functorch/vmap.py"], False),
        (["/w/torch_dynamo_of_mine/a.py"], False),
        (["/w/test/inductor/test_torchinductor_opinfo.py"], False),
        # a tool of its tests, and where a thread waits
        (["/x/torch/_dynamo/test_case.py", "/w/a.py"], False),
        (["/x/torch/_inductor/compile_worker/subproc_pool.py"], False),
        # a function that is never compiled
        (["/x/torch/_compile.py", "/x/torch/_dynamo/eval_frame.py", "/x/torch/utils/checkpoint.py"], False),
    ],
)
def test_the_compiler_on_the_stack(paths: list[str], expected: bool) -> None:
    assert compiles.on_stack(text(*paths)) is expected
    assert compiles.on_stack(text(*paths).replace('  File "', '      File "')) is expected


def test_where_a_function_is_called_that_may_be_switched_off() -> None:
    """What is above may be cut off, and have switched it off."""
    called = '  File "/x/torch/_dynamo/eval_frame.py", line 3, in _fn\n    return fn(*args)\n'
    called += '  File "/w/a.py", line 4, in g\n    h()\nKeyError: 1'
    assert not compiles.on_stack(HEADER + called)
    assert compiles.on_stack(f'{HEADER}  File "/w/a.py", line 2, in f\n    g()\n{called}')
    assert not compiles.on_stack(text("/w/a.py") + "\n" + called.replace("in _fn", "in DisableContext.__call__.<locals>._fn"))


@pytest.mark.parametrize("said", ["from torch/_inductor/a.py", "torch.compile(f)", "\nfrom user code:\n", "torch.export"])
def test_words_count_where_there_are_no_frames(said: str) -> None:
    assert compiles.on_stack(f"made up {said}")
    assert not compiles.on_stack(f"{text('/w/a.py')} {said}")


def test_only_the_last_traceback_counts() -> None:
    """Nested ones: of a handled exception, a cause, and what Dynamo quotes of the program."""
    joint = "\n\nDuring handling of the above exception, another exception occurred:\n\n"
    inductor, own = text("/x/torch/_inductor/graph.py"), text("/w/test_a.py")
    assert compiles.raised_in_compiler(own + joint + inductor)
    assert not compiles.raised_in_compiler(inductor + joint + own)
    assert compiles.raised_in_test(inductor + joint + own)
    assert not compiles.raised_in_test(own + joint + inductor)
    quoted = f'{inductor}\n\nfrom user code:\n   File "/w/test_a.py", line 3, in f\n    g(x)\n'
    assert compiles.raised_in_compiler(quoted)
    assert not compiles.raised_in_test(quoted)


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (["/w/a.py", MADE], True),
        (["/w/a.py", "/w/.cache/inductor_cache/made_up.py"], True),
        ([MADE, *["/w/a.py"] * 5], True),
        ([MADE, *["/w/a.py"] * 6], False),
        # what is torch's or Triton's is on the way to an operator or a kernel
        ([MADE, *["/x/torch/_ops.py"] * 9, "/x/triton/runtime/jit.py"], True),
        (["/w/test_torchinductor_made_up.py"], False),
    ],
)
def test_code_that_inductor_made(paths: list[str], expected: bool) -> None:
    assert compiles.raised_in_made(text(*paths)) is expected


@pytest.mark.parametrize("head", ["def f(x):", "async def f(x):", "@torch.compile"])
def test_what_dynamo_made_of_a_function(head: str) -> None:
    """It stands on the line of its head."""
    above = f'{HEADER}  File "/x/torch/_dynamo/eval_frame.py", line 3, in _fn\n    return fn(*args)\n  File "/w/a.py", line 4, in f\n    '
    assert compiles.raised_in_made(f"{above}{head}\nKeyError: 1")
    assert not compiles.raised_in_made(f"{above}g(x)\nKeyError: 1")
    assert not compiles.raised_in_made(f'{above}{head}\n  File "/w/b.py", line 4, in g\n    h()\nKeyError: 1')


@pytest.mark.parametrize(
    ("paths", "own"),
    [
        (["/w/kernels.py", "/x/triton/runtime/jit.py", "/x/triton/compiler/compiler.py"], True),
        (["/w/kernels.py", "/x/triton/runtime/autotuner.py", "/x/triton/runtime/jit.py"], True),
        ([MADE, "/x/triton/runtime/jit.py"], False),
        (["/x/torch/_inductor/runtime/triton_heuristics.py", "/x/triton/runtime/jit.py"], False),
        (["/w/kernels.py"], False),
    ],
)
def test_a_kernel_of_the_programs_own(paths: list[str], own: bool) -> None:
    assert compiles.raised_in_own_kernel(text(*paths)) is own


@pytest.mark.parametrize(("name", "own"), [("add_kernel", True), ("triton_poi_fused_add_0", False), ("_triton_helper_fn0", False)])
def test_a_kernel_that_could_not_be_compiled(name: str, own: bool) -> None:
    raised = f"triton.compiler.errors.CompilationError: at 5:12:\ndef {name}(x):\n    y\n    ^"
    assert compiles.raised_in_own_kernel(text("/x/triton/compiler/compiler.py", end=raised)) is own
    # nothing shows whose it is
    assert not compiles.raised_in_own_kernel(raised)


def test_where_a_module_is_imported() -> None:
    module = '  File "/x/torch/_dynamo/__init__.py", line 3, in <module>\n    from . import config\n'
    found = HEADER + module + '  File "/x/torch/_dynamo/config.py", line 4, in <module>\n    f()\nImportError: made up'
    assert compiles.raised_at_import(found)
    assert not compiles.raised_at_import(found.replace("/torch/_dynamo/", "/mine/"))
    assert not compiles.raised_at_import(found.replace("in <module>", "in f"))
    # what runs as a program
    assert not compiles.raised_at_import(text("/x/torch/_inductor/compile_worker/__main__.py", function="<module>"))
    assert compiles.ends_at_import(HEADER + module)
    assert compiles.ends_at_import(f'{HEADER}{module}  File "/x/torch/_dyn')
    assert compiles.ends_at_import(text("/w/a.py", "<frozen importlib._bootstrap>", end=""))
    assert not compiles.ends_at_import(found)


def test_where_something_is_traced() -> None:
    fakes = "/x/torch/_subclasses/fake_tensor.py"
    assert compiles.raised_on_fakes(text(fakes, "/x/torch/_ops.py", "/x/torch/_meta_registrations.py", "/x/torch/_refs/__init__.py"))
    assert not compiles.raised_on_fakes(text("/w/a.py", "/x/torch/_ops.py"))
    assert not compiles.raised_on_fakes(text(fakes, "/w/a.py"))
    assert compiles.raised_on_sizes(text("/w/a.py", "/x/torch/fx/experimental/sym_node.py"))
    assert not compiles.raised_on_sizes(text("/x/torch/fx/experimental/sym_node.py", "/w/a.py"))
    assert compiles.raised_at_prompt(text("/w/a.py", "<stdin>"))
    assert compiles.asserts(text("/w/test_a.py", "/x/lib/python3.12/unittest/case.py"))
    assert not compiles.asserts(text("/w/case.py"))


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (Failure("", "test/inductor/test_a.py::TestA::test_b", ""), True),
        (Failure("", "tests/test_a.py::test_b[compile=True]", ""), True),
        (Failure("", "tests/test_a.py::test_b[mode-\u00e9::torch.compile x]", ""), True),
        (Failure("", "tests/test_a.py::test_b[use_compile=False]", ""), False),
        (Failure("", "tests/test_a.py::test_b_without_compile", ""), False),
        (Failure("", "tests/test_a.py::test_onnx_export", ""), False),
        (Failure("", "tests/test_a.py::test_dynamodb", ""), False),
        (Failure("", "tests/test_dynamo_db.py::test_b", ""), False),
        (Failure("", "tests/test_a.py::test_b", "", job="linux / inductor"), True),
        (Failure("", "tests/test_a.py::test_b", "", hint=Hint(("PYTORCH_TEST_WITH_DYNAMO=1",), "python a.py")), True),
        (Failure("", "tests/test_a.py::test_b", "", hint=Hint(("TORCH_COMPILE_DISABLE=1",), "python a.py")), False),
        (Failure("", "tests/test_a.py::test_b", "", source="    m = torch.compile(m)"), True),
        (Failure("", "tests/test_a.py::test_b", "", source="    p = re.compile('x')"), False),
        (Failure("", "tests/test_a.py::test_b", text("/w/a.py", function="torch_dynamo_resume_in_f_at_3")), True),
        (Failure("", "tests/test_a.py::test_b", text("/w/a.py", function="<resume in f>")), True),
        (Failure("", "tests/test_a.py::test_b", text("/w/a.py")), False),
    ],
)
def test_what_says_that_a_test_compiles(failure: Failure, expected: bool) -> None:
    assert compiles.says_that_it_compiles(failure) is expected


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (Failure("", "tests/test_a.py::test_b", ""), True),
        (Failure("", "tests/test_a.py::test_b", text("/w/a.py")), False),
        (Failure("", "tests/test_a.py::test_b", "E  made up", source=">   f()"), False),
        (Failure("", "tests/test_a.py::test_b", "", seen=Seen.DEATH), False),
        (Failure("", "tests/test_a.py::test_b", "", signal="SIGSEGV", seen=Seen.DEATH), True),
        (Failure("", "", "", signal="SIGSEGV", seen=Seen.DEATH), False),
        (Failure("", "test/inductor/test_a.py", "", seen=Seen.DEATH), True),
    ],
)
def test_what_may_compile_where_the_log_shows_no_stack(failure: Failure, expected: bool) -> None:
    assert compiles.compiles(failure) is expected
