"""What is known of a failure whose error, or the name of its class, is cut off; and where there is no traceback at all."""

from __future__ import annotations

import pytest

from bot.action.ci import candidates
from bot.action.ci.failing_test import Failure
from bot.action.ci.judge import judge, sign
from bot.action.ci.paths import CheckoutPaths
from bot.action.ci.python_words import HEADER, JOINTS

FRAMES = """\
Traceback (most recent call last):
  File "/w/train.py", line 41, in <module>
    main(config)
  File "/w/lib/python3.12/site-packages/torch/_inductor/lowering.py", line 2020, in made_up
    return lowered(x)
"""
PROGRAM = FRAMES.partition('  File "/w/lib')[0]
TRITON = f"""\
{HEADER}
  File "/w/lib/python3.12/site-packages/triton/backends/nvidia/compiler.py", line 356, in make_cubin
    subprocess.run(made_up, check=True)
  File "/usr/lib/python3.12/subprocess.py", line 571, in run
    raise CalledProcessError(retcode, process.args,
"""
OWN_KERNEL = """\
  File "/w/kernels.py", line 41, in made_up
    kernel[grid](x)
  File "/w/lib/python3.12/site-packages/triton/runtime/jit.py", line 330, in <lambda>
    return lambda *args, **kwargs: self.run(grid=grid, warmup=False, *args, **kwargs)
"""


def verdicts(log: str) -> list[str | None]:
    return [row["verdict"] for row in candidates.rows(log, CheckoutPaths([])) if row["verdict"] != "not a candidate"]


@pytest.mark.parametrize("dots", ["...", "\u2026", ""])
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("torch._dynamo.exc.Unsupp", ["possible"]),
        ("torch._dynamo.e", ["possible"]),
        ("torch._d", ["possible"]),
        ("torch._in", ["possible"]),
        ("torch.export._made_up", ["possible"]),
        ("torch.fx.exp", ["possible"]),
        ("triton.com", ["possible"]),
        ("torch._", []),
        ("torch.e", []),
        ("torch.distrib", []),
        ("torch.fx.made_up", []),
        ("transfor", []),
    ],
)
def test_a_summary_that_is_cut_within_the_name_of_a_class(name: str, expected: list[str], dots: str) -> None:
    # a name that begins with a capital may be whole
    whole = not dots and name.endswith("Unsupp")
    found = verdicts(f"=== short test summary info ===\nFAILED tests/test_a.py::test_b[1-5] - {name}{dots}\n")
    assert found == (["suggested"] if whole else expected)


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        ("torc", "possible"),
        ("t", "possible"),
        ("triton", "possible"),
        ("torch.cuda.", "possible"),
        ("transformers.made_up", "not a candidate"),
        ("KeyError", "not a candidate"),
    ],
)
def test_a_log_ends_within_the_package_of_what_a_test_that_compiles_raised(said: str, verdict: str) -> None:
    summary = f"=== short test summary info ===\nFAILED tests/test_a.py::test_torch_compile - {said}"
    assert [row["verdict"] for row in candidates.rows(summary, CheckoutPaths([]))] == [verdict]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("It says that it is made up.", ["possible"]),
        ("RuntimeError: Cannot find a working triton installation. Look it up.", []),
        ("then: RuntimeError: Failed to find C compiler. Please say which.", []),
        ("RuntimeError: Found no NVIDIA driver on your system.", []),
        ("ld: cannot find -lcuda: No such file", []),
        ("It has a working triton installation.", ["possible"]),
    ],
)
def test_a_fault_of_the_machine_in_the_words_around_a_traceback(words: str, expected: list[str]) -> None:
    assert verdicts(f"# A title\n\n{words}\n\n```\n{FRAMES}```\n") == expected
    # a log of many other things
    assert verdicts(f"{words}\n" + "it runs\n" * 300 + FRAMES) == ["possible"]


@pytest.mark.parametrize(
    ("name", "below", "expected"),
    [
        ("torch._inductor.codecache.BypassFxGraphCache", PROGRAM, []),
        ("torch._dynamo.exc.SpeculationRestartAnalysis: made up", PROGRAM, []),
        ("torch._inductor.codecache.BypassFxGraphCache", FRAMES, ["possible"]),
        # an error that is none of those that the compiler catches: what came then repeats it
        ("subprocess.CalledProcessError: Command 'made-up' returned 1.", PROGRAM, ["possible"]),
    ],
)
def test_what_the_compiler_catches_itself(name: str, below: str, expected: list[str]) -> None:
    handled = "\n\nDuring handling of the above exception, another exception occurred:\n\n"
    assert verdicts(f"{FRAMES}{name}{handled}{below}") == expected


@pytest.mark.parametrize(
    ("frames", "below", "expected"),
    [
        (TRITON, f"{HEADER}\n", ["possible"]),
        (FRAMES, f"{HEADER}\n", ["possible"]),
        (PROGRAM, f"{HEADER}\n", []),
        # what the program raised while it handled that one, and a kernel of its own
        (TRITON, PROGRAM, []),
        (f"{HEADER}\n{OWN_KERNEL}{TRITON.partition(chr(10))[2]}", f"{HEADER}\n", []),
    ],
)
def test_a_log_ends_where_nothing_is_shown_yet_of_what_was_raised_next(frames: str, below: str, expected: list[str]) -> None:
    raised = "subprocess.CalledProcessError: Command '['made-up']' returned non-zero exit status 255."
    assert verdicts(f"{frames}{raised}\n\n{JOINTS[1]}\n\n{below}") == expected
    if frames in (FRAMES, TRITON):
        # what causes the next one was not caught
        assert verdicts(f"{frames}{raised}\n\n{JOINTS[0]}\n\n{below}") == ["suggested"]


@pytest.mark.parametrize("frames", ["", FRAMES])
@pytest.mark.parametrize(
    ("joint", "raised", "expected"),
    [
        ("During handling of the above exception, another exception occurred:", "InternalTorchDynamoError: made up", ["suggested"]),
        ("The above exception was the direct cause of the following exception:", "InternalTorchDynamoError: made up", ["suggested"]),
        # what the program then did with it is no part of it
        ("It goes on:", "InternalTorchDynamoError: made up", ["suggested"]),
        ("During handling of the above exception, another exception occurred:", "ModuleNotFoundError: No module named 'made_up'", None),
    ],
)
def test_a_chain_that_is_cut_off_behind_what_the_compiler_raised(frames: str, joint: str, raised: str, expected: list[str] | None) -> None:
    log = f"{frames}{raised}\n\nYou can suppress this exception\n\n{joint}\n\n{PROGRAM}"
    if expected is None:
        # it may have been caught
        assert verdicts(log) == ["possible"] * bool(frames)
        return
    assert verdicts(log) == expected
    assert "made up" in str(candidates.rows(log, CheckoutPaths([]))[0]["why"])


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("However, I get dynamo errors when trying it:", ["possible"]),
        ("I cannot get it to work with `torch.compile` as described:", ["possible"]),
        ("During compile, it errs out with the following assert.", ["possible"]),
        ("Sadly pytorch compile does not work here.", ["possible"]),
        ("It says that compiled autograd doesn't seem to work.", ["possible"]),
        ("I get an error:", []),
        # it may not, and it may be of eager, or of something else that is called so
        ("It fails with torch.compile and in eager:", []),
        ("It fails without torch.compile:", []),
        ("torch.compile may fail here:", []),
        ("torch.compile falls back, the error is:", []),
        ("Dynamo 1.4.2 fails to start:", []),
        ("W0916 19:14:38 torch/_dynamo/made_up.py:7] torch.compile failed", []),
        ("model = torch.compile(model)  # it fails", []),
        ("# torch.compile fails", ["possible"]),
        ("# It does not fail with torch.compile", []),
        ("Compiled autograd doesn't seem to work there. (One GPU without made up seems to work)", ["possible"]),
        # two sentences are of two things
        ("I start it with --enable-torch-compile. The error is:", []),
        ("The server with `--enable-torch-compile` fails with this error:", ["possible"]),
    ],
)
def test_words_that_tell_that_compiling_fails_above_a_traceback_that_is_cut_off(words: str, expected: list[str]) -> None:
    assert verdicts(f"{words}\n\n```\n{PROGRAM}```\n") == expected
    # what was raised is shown; a module is imported; a log of many other things
    assert verdicts(f"{words}\n\n```\n{PROGRAM}KeyError: 'made up'\n```\n") == []
    assert verdicts(f"{words}\n\n```\n{PROGRAM.replace('main(config)', 'import made_up')}```\n") == []
    assert verdicts(f"{words}\n" + "it runs\n" * 300 + PROGRAM) == []


def test_an_operator_that_runs_on_tensors_that_hold_no_values() -> None:
    fake = 'File "/w/site-packages/torch/_subclasses/fake_tensor.py", line 7, in dispatch\n    f()\n'
    called = '  File "/w/site-packages/torch/{}", line 6, in made_up\n    f()\n'
    said = "NotImplementedError: made up"

    def verdict(frames: str) -> str:
        failure = Failure("", "", f"Traceback (most recent call last):\n{frames}{said}")
        return judge(sign(failure), failure)[0]

    assert verdict(f"  {fake}{called.format('_ops.py')}") == "possible"
    assert verdict(f"  {fake}{called.format('_meta_registrations.py')}") == "possible"
    assert verdict(f"  {fake}{called.format('made_up.py')}") == "no"
    assert verdict(called.format("_ops.py")) == "no"


@pytest.mark.parametrize(
    ("file", "said", "expected"),
    [
        ("/w/made_up/c" + "x" * 51 + ".cpp", "error: no such made-up thing", ["possible"]),
        ("/w/made_up/c" + "x" * 51 + ".main.cpp", "error: no such made-up thing", ["possible"]),
        ("/w/made_up/c" + "x" * 51 + ".cpp", "warning: a made-up thing", []),
        ("/w/made_up/c" + "x" * 51 + ".cpp", "fatal error: made_up.h: No such file or directory", []),
        ("/w/made_up/kernel.cpp", "error: no such made-up thing", []),
    ],
)
def test_what_a_compiler_says_of_code_that_inductor_made(file: str, said: str, expected: list[str]) -> None:
    log = f"It fails with\n{file}: In function 'f':\n{file}:61:30: {said}\n   61 | f(x);\n"
    assert verdicts(log) == expected
    # what ended the program is told
    assert verdicts(log + PROGRAM + "ValueError: made up\n") == []
    # it went on
    assert verdicts(log + "===== 7 passed in 1.00s =====\n") == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("RecompileError", ["suggested"]),
        ("TorchExportError", ["suggested"]),
        ("torch.onnx.made_up.TorchExportError", ["suggested"]),
        ("made_up.TorchExportError", []),
        ("torch.onnx.made_up.MadeUpError", []),
    ],
)
def test_classes_of_the_compiler_alone_without_frames(name: str, expected: list[str]) -> None:
    assert verdicts(f"# A title\n\nIt says\n\n```\n{name}: it is made up.\n```\n") == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("NoValidChoicesError", ["suggested"]),
        ("torch._inductor.exc.LoweringException", ["suggested"]),
        ("    InductorError,", []),
        ("InductorError,", []),
        ("Unsupported", []),
        ("CompilationError", []),
        ("MadeUpError", []),
    ],
)
def test_a_class_of_the_compiler_with_no_message(line: str, expected: list[str]) -> None:
    assert verdicts(f"# A title\n\nIt fails with:\n```\n{line}\n```\nThe logs do not say why.\n") == expected


SERVER = """\
Traceback (most recent call last):
  File "/w/made_up/server.py", line 700, in serve
    raise RuntimeError(
RuntimeError: Worker failed with error '{}', please check the stack trace above for the root cause
"""


@pytest.mark.parametrize("mark", ["", "(Engine pid=7) ERROR 03-04 05:06:07 [made_up.py:9] "])
@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("torch._inductor.exc.InductorError: AssertionError: made up", ["possible"]),
        ("backend='made_up' raised:\nAssertionError: made up", ["possible"]),
        ("auto_functionalized was not removed", ["possible"]),
        ('made up\n\nfrom user code:\n   File "/w/a.py", line 3, in f\n    g(x)\n', ["possible"]),
        ("backend='made_up' raised:\nRuntimeError: CUDA error: out of memory", []),
        ("backend='made_up' raised:\nRuntimeError: Failed to find C compiler. Please say which.", []),
        ("torch.cuda.OutOfMemoryError: made up", []),
        ("it is made up", []),
    ],
)
def test_a_process_that_quotes_what_another_one_raised(said: str, expected: list[str], mark: str) -> None:
    log = "\n".join(mark + line for line in SERVER.format(said).split("\n"))
    assert verdicts(log) == expected
    # the other one's own error is shown
    other = f"{FRAMES}torch._inductor.exc.InductorError: AssertionError: made up\n"
    assert verdicts(f"{other}\n{log}") == ["suggested"]


@pytest.mark.parametrize(
    ("mark", "expected"),
    [
        ("2026-03-04 05:06:07,001 ERROR made.up: ", ["suggested"]),
        ("[2026-03-04 05:06:07,001] CRITICAL - ", ["suggested"]),
        ("ERROR:root:", ["suggested"]),
        ("2026-03-04 05:06:07.123 | ERROR | made.up:f:9 - ", ["suggested"]),
        ("!!! It broke while it ran !!! ", ["suggested"]),
        ("2026-03-04 05:06:07,001 WARNING made.up: ", []),
        ("INFO:root:", []),
        ("the ERROR 'in quotes' was ", []),
    ],
)
def test_a_message_alone_behind_the_words_of_a_logger(mark: str, expected: list[str]) -> None:
    said = "torch._inductor.exc.InductorError: LoweringException: made up"
    assert verdicts(f"# A title\n\n```\nit starts\n{mark}{said}\n```\n") == expected
    # it was handled
    assert verdicts(f"# A title\n\n```\nit starts\n{mark}{said}, falling back to eager\n```\n") == []
    # in a log of many other things it may have been handled
    assert verdicts("it runs\n" * 300 + f"{mark}{said}\n") == []


@pytest.mark.parametrize(
    ("level", "said", "below", "expected"),
    [
        ("E", "ValueError: it is made up", "", ["possible"]),
        # a warning; no error; what ended the program is told
        ("W", "ValueError: it is made up", "", []),
        ("E", "it is made up", "", []),
        ("E", "failed while attempting to run meta for made.up.default", "", ["possible"]),
        ("W", "failed while attempting to run meta for made.up.default", "", []),
        ("E", "ValueError: it is made up", PROGRAM + "KeyError: 'made up'\n", []),
    ],
)
def test_an_operator_that_fails_where_it_is_traced_as_torch_logs_it(level: str, said: str, below: str, expected: list[str]) -> None:
    mark = f"[rank5]:{level}0216 16:37:13.835000 2683263 site-packages/torch/_subclasses/fake_tensor.py:2391] [0/0] "
    log = f"It fails\n\n```\n{mark}    raise ValueError(\n{mark}{said}\n```\n{below}"
    assert verdicts(log) == expected
    if expected and "Error" in said:
        assert said in str(candidates.rows(log, CheckoutPaths([]))[0]["why"])


@pytest.mark.parametrize(
    ("said", "expected"),
    [("RuntimeError: it is made up", ["possible"]), ("RuntimeError: Compiler: cl is not found.", []), ("MemoryError: OOM", [])],
)
@pytest.mark.parametrize("logger", ["_guards", "_subclasses/fake_tensor"])
def test_what_torch_logs_of_a_fault_of_the_machine(logger: str, said: str, expected: list[str]) -> None:
    mark = f"E0626 23:15:06.340000 3772 site-packages/torch/{logger}.py:362] [2/0] "
    frame = f'{mark}  File "/w/site-packages/torch/_inductor/cpp_builder.py", line 138, in made_up\n{mark}    raise made_up\n'
    assert verdicts(f"It fails:\n\n{frame}{mark}{said}\n\n## To reproduce\n") == expected


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        ("AssertionError: expected size 7==8, stride 8==8 at dim=1", ["possible"]),
        ("AssertionError: expected size 7, got 8", []),
        ("AssertionError: Made up: <torch.fx.experimental.proxy_tensor.MadeUpMode object at 0x7f00> is not there", ["suggested"]),
        ("TypeError: made_up(): argument 'x' is <class 'torch._inductor.ir.MadeUp'>", ["suggested"]),
        ("TypeError: made_up() cannot take <class 'torch._dynamo.eval_frame.OptimizedModule'>", []),
        ("ValueError: expected <class 'torch._dynamo.exc.MadeUp'>", []),
        ("AttributeError: 'FunctionalTensor' object has no attribute 'made_up'", ["suggested"]),
        ("AttributeError: 'Tensor' object has no attribute 'made_up'", []),
        ("TypeError: made_up(): argument 'size' must be tuple of SymInts, not int", []),
        ("ImportError: cannot import name 'FakeTensor' from 'torch._subclasses.fake_tensor'", []),
        ("RuntimeError: cannot add FakeTensor(..., size=(2, 3)) to 7", ["suggested"]),
        ("RuntimeError: w::made_up() expected a value of type 'Made', but found type 'FakeScriptObject'.", ["suggested"]),
        ("RuntimeError: Cannot access data pointer of Tensor (e.g. FakeTensor, FunctionalTensor).", ["suggested"]),
        ("made_up.errors.UserError: Could not guard on data-dependent expression Eq(u0, 1)", ["suggested"]),
        ("DataDependentOutputException: aten.made_up.default", ["suggested"]),
        ("NoValidChoicesError: made up", ["suggested"]),
        ("NoValidMadeUpError: made up", []),
        ("NotImplementedError: made_up of UserDefinedObjectVariable(MadeUp)", ["suggested"]),
        ("NotImplementedError: made_up of tf.Variable(MadeUp)", []),
        ("AssertionError: TensorBox(StorageBox(ComputedBuffer(name='buf7'", ["suggested"]),
        ("RuntimeError: There was no fake impl registered for <CustomOpDef(made::up)>", ["suggested"]),
        ("RuntimeError: There was no impl registered for <CustomOpDef(made::up)>", []),
    ],
)
def test_a_message_that_names_what_only_the_compiler_has(raised: str, expected: list[str]) -> None:
    assert verdicts(f"# A title\n\nIt says:\n\n```\n{raised}\n```\n\nThat is all.\n") == expected
    assert verdicts(f"{PROGRAM}{raised}\n") == expected


@pytest.mark.parametrize(
    "raised", ["AssertionError: it is FakeTensor(..., size=(2,))", "Failed: DID NOT RAISE <class 'torch._inductor.ir.MadeUp'>"]
)
def test_a_test_may_assert_what_it_traced_for_itself(raised: str) -> None:
    assert not verdicts(f"=== short test summary info ===\nFAILED tests/test_fakes.py::test_b - {raised}\n")


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ('.12/site-packages/torch/_dynamo/convert_frame.py", line 12, in made_up', ["suggested"]),
        ('orch/_inductor/../torch/_inductor/made_up.py", line 12, in made_up', ["suggested"]),
        ('.12/site-packages/torch/nn/made_up.py", line 12, in made_up', []),
        ('.12/site-packages/torch/_dynamo/convert_frame.py", line 12', []),
    ],
)
def test_what_was_copied_begins_within_a_path(head: str, expected: list[str]) -> None:
    assert verdicts(f"It ends so:\n```\n{head}\n    assert (\nAssertionError: made up\n```\n") == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("> torch._inductor.exc.InductorError: MadeUp: x", ["suggested"]),
        ("> Made up: torch._inductor.exc.InductorError: MadeUp: x", []),
        ("> raise torch._inductor.exc.InductorError", []),
    ],
)
def test_one_line_that_is_quoted(line: str, expected: list[str]) -> None:
    assert verdicts(f"It is still broken. Error:\n\n{line}\n\nThat is all.\n") == expected


@pytest.mark.parametrize(
    ("below", "expected"),
    [
        ("Ignoring this choice.\n", []),
        ("Runtime error during autotuning: \nmade up.\nIgnoring this choice.\nIt runs.\n", []),
        ("Runtime error during autotuning: \nmade up.\n", ["suggested"]),
        # said of another one
        ("It goes on.\nIt takes its time.\nIgnoring this choice.\n", ["suggested"]),
    ],
)
def test_the_compiler_goes_on_without_what_it_tried(below: str, expected: list[str]) -> None:
    assert verdicts(f"{FRAMES}RuntimeError: made up\n{below}") == expected
    # something else ended the program then
    assert verdicts(f"{FRAMES}RuntimeError: made up\n{below}{FRAMES}KeyError: 'made up'\n")


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        ("TypeError: BackendCompilerFailed.__init__() missing 1 required positional argument: 'made_up'", ["possible"]),
        ("TypeError: MadeUpFailed.__init__() missing 1 required positional argument: 'made_up'", []),
    ],
)
def test_an_error_that_could_not_be_raised_again(raised: str, expected: list[str]) -> None:
    assert verdicts(f"{PROGRAM}{raised}\n") == expected


PYTHON = "/w/lib/python3.12"
PACKAGES = f"{PYTHON}/site-packages"


def frames(*places: tuple[str, str]) -> str:
    return "".join(f'  File "{path}", line 7, in {function}\n    made_up()\n' for path, function in places)


BEGUN = ("/w/train.py", "<module>"), (f"{PACKAGES}/torch/__init__.py", "compile")
IMPORTED = (f"{PACKAGES}/torch/_dynamo/__init__.py", "<module>"), (f"{PACKAGES}/torch/_dynamo/made_up.py", "<module>")


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        ((*BEGUN, *IMPORTED), []),
        # what it imports, which may be a file of the program's own
        ((*BEGUN, *IMPORTED, (f"{PACKAGES}/made_up/__init__.py", "<module>")), []),
        ((*BEGUN, *IMPORTED, ("/w/triton.py", "<module>"), BEGUN[1]), []),
        ((*BEGUN, (f"{PACKAGES}/torch/_dynamo/eval_frame.py", "optimize")), ["possible"]),
        # a process of the compiler's
        (
            ((f"{PACKAGES}/torch/_inductor/compile_worker/__main__.py", "<module>"), (f"{PACKAGES}/torch/_inductor/codecache.py", "load")),
            ["possible"],
        ),
    ],
)
def test_a_log_ends_while_the_compiler_is_imported_by_what_it_imports(places: tuple[tuple[str, str], ...], expected: list[str]) -> None:
    assert verdicts(f"Traceback (most recent call last):\n{frames(*places)}") == expected


@pytest.mark.parametrize(
    ("path", "said", "expected"),
    [
        (f"{PYTHON}/importlib/__init__.py", "", []),
        # a program may import what it looks for while it is traced
        (f"{PYTHON}/importlib/__init__.py", "InternalTorchDynamoError: made up\n", ["suggested"]),
        (f"{PACKAGES}/torch/_made_up.py", "", ["possible"]),
    ],
)
def test_a_log_ends_where_python_imports_a_module(path: str, said: str, expected: list[str]) -> None:
    asked = frames(*BEGUN).replace("made_up()\n", "return torch._dynamo.optimize(\n")
    assert verdicts(f"Traceback (most recent call last):\n{asked}{frames((path, 'import_module'))}{said}") == expected


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        ('  File "/w/made_up/ops.py", line 4, in <module>\n    import torch._dynamo\n', []),
        ('  File "/w/made_up/ops.py", line 4, in <module>\n    from torch._dynamo import made_up\n', []),
        ('  File "<frozen importlib._bootstrap>", line 1027, in _find_and_load\n', []),
        ('  File "/w/made_up/ops.py", line 4, in <module>\n    from made_up import f\n  File "/w/made_', []),
        ('  File "/w/made_up/ops.py", line 4, in <module>\n    torch._dynamo.made_up()\n', ["possible"]),
        ('  File "/w/made_up/ops.py", line 4, in f\n    import torch._dynamo\n', ["possible"]),
    ],
)
def test_a_log_ends_where_a_module_imports_another_one(last: str, expected: list[str]) -> None:
    above = '  File "/w/a.py", line 1, in <module>\n    f(torch.compile(g), made_up=torch._dynamo.made_up)\n'
    assert verdicts(f"The calls are:\n\n```text\n{above}{last}```\n") == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [("/w/torchdynamo/torchdynamo/eval_frame.py", ["possible"]), ("/w/torchdynamo/examples/eval_frame.py", [])],
)
def test_dynamo_as_it_was_in_a_repository_of_its_own(path: str, expected: list[str]) -> None:
    assert verdicts(f"```\n{frames(('/w/train.py', 'step'), (path, 'made_up'), ('/w/train.py', 'loss'))}```\n") == expected


@pytest.mark.parametrize(
    ("function", "expected"),
    [("torch_dynamo_resume_in_made_up_at_58", ["possible"]), ("<graph break in made_up>", ["possible"]), ("made_up", [])],
)
def test_the_rest_of_a_function_behind_a_graph_break(function: str, expected: list[str]) -> None:
    assert verdicts(f"```\n{frames(('/w/train.py', 'step'), ('/w/train.py', function))}```\n") == expected


RAISED = (
    f"Traceback (most recent call last):\n{frames((f'{PACKAGES}/torch/_dynamo/variables/made_up.py', 'create'))}AttributeError: made up\n"
)


@pytest.mark.parametrize(
    ("above", "expected"),
    [
        ("WON'T CONVERT f train.py line 4 \ndue to: \n", []),
        # the first line alone has a mark
        ("[2026-03-04 05:06:07,123] torch._dynamo.convert_frame: [ERROR] WON'T CONVERT f train.py line 4 \ndue to: \n", []),
        ("It fails in f train.py line 4 \ndue to: \n", ["suggested"]),
    ],
)
def test_a_function_that_dynamo_leaves_as_it_is(above: str, expected: list[str]) -> None:
    assert verdicts(f"{above}{RAISED}") == expected
    assert verdicts(f"{above}{RAISED.removesuffix('AttributeError: made up' + chr(10))}") == (["possible"] if expected else [])


@pytest.mark.parametrize(("end", "expected"), [("ok (0.152s)", []), ("ok", ["suggested"]), ("ok (I think)", ["suggested"])])
def test_what_was_printed_before_a_test_was_ok(end: str, expected: list[str]) -> None:
    assert verdicts(f"{RAISED}==========\n{end}\n") == expected


@pytest.mark.parametrize(
    ("said", "expected"),
    [("AssertionError: Scalars are not equal!\\n\\nExpected 1 but got 0.", []), ("torch._dynamo.exc.Unsupported: made up", ["suggested"])],
)
def test_a_report_that_shows_the_command_before_the_error_and_is_cut_off(said: str, expected: list[str]) -> None:
    command = "To execute this test, run the following from the base repo dir:\\n    python test/inductor/test_a.py"
    frame = '  File "/w/test/inductor/test_a.py", line 3, in test_a\\n    self.assertEqual(counters["a"], 1)\\n'
    text = f"Traceback (most recent call last):\\n{frame}{said}\\n\\n{command}"
    report = f"{{'message': '{said}\\n\\n{command} TestA.test_a\\n', 'text': '{text}"
    assert verdicts(f"# A title\n\n```\n{report}\n") == expected
