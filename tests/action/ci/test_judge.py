"""What a failure looks like by itself."""

from __future__ import annotations

import pytest

from bot.action.ci.failing_test import Failure, Hint, Seen
from bot.action.ci.judge import fault, is_compiled, judge, sign

TEST = "tests/test_made_up.py::test_a"
FRAME = '  File "/w/{}", line 6, in {}\n    f(x)\n'
IN_TEST = FRAME.format("tests/test_made_up.py", "test_a")
LOWERING = IN_TEST + FRAME.format("site-packages/torch/_inductor/lowering.py", "made_up")
CALLED = IN_TEST + FRAME.format("site-packages/torch/_dynamo/eval_frame.py", "_fn")
NEVER = (
    IN_TEST + FRAME.format("site-packages/torch/_compile.py", "inner") + FRAME.format("site-packages/torch/_dynamo/eval_frame.py", "_fn")
)
TOOL = IN_TEST + FRAME.format("site-packages/torch/_inductor/utils.py", "run_and_get_code")
IMPORTED = IN_TEST + FRAME.format("site-packages/torch/_inductor/codegen/cpp.py", "<module>")
WRONG = "AssertionError: Tensor-likes are not close!\n\nMismatched elements: 9 / 9 (100.0%)"
INDUCTOR = "torch._inductor.exc.InductorError: "


def raised(frames: str, said: str, test: str = TEST, **more: object) -> Failure:
    return Failure(test.partition("::")[2], test, f"Traceback (most recent call last):\n{frames}{said}", **more)  # type: ignore[arg-type]


def verdict(failure: Failure) -> str:
    return judge(sign(failure), failure)[0]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (INDUCTOR + "LoweringException: AssertionError: made up", "suggested"),
        # a kernel that is too large for the GPU, whatever the class is called
        (
            INDUCTOR + "RuntimeError: No valid triton configs. OutOfMemoryError: out of resource: made_up Required: 9 Hardware limit: 8",
            "suggested",
        ),
        ("triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 9, Hardware limit: 8.", "suggested"),
        (INDUCTOR + "OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB.", "no"),
        ("torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:\nRuntimeError: CUDA error: out of memory", "no"),
        (INDUCTOR + "RuntimeError: MPS backend out of memory (MPS allocated: 9 GB)", "no"),
        (INDUCTOR + "OSError: [Errno 12] Cannot allocate memory", "no"),
        ("MemoryError", "no"),
        ("KeyboardInterrupt", "no"),
        ("torch.distributed.elastic.multiprocessing.api.SignalException: Process 9 got signal: 15", "no"),
    ],
)
def test_what_ended_the_compiler_from_outside_is_no_failure_of_it(said: str, expected: str) -> None:
    assert verdict(raised(LOWERING, said)) == expected


@pytest.mark.parametrize(
    ("said", "broken"),
    [
        ("RuntimeError: Failed to find C compiler. Please specify via CC environment variable.", "no C compiler"),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'g++'", "no C compiler"),
        ("RuntimeError: 0 active drivers ([]). There should only be one.", "no GPU that triton knows"),
        ("RuntimeError: Found no NVIDIA driver on your system.", "no cuda device"),
        (
            "CalledProcessError: Command '['/usr/bin/gcc', 'a.c', '-o', 'a.so', '-lcuda', '-L/x']' returned non-zero exit status 1.",
            "a C compiler that cannot build what triton needs for the driver",
        ),
        (
            "ld: cannot find -lcuda\nCalledProcessError: Command '['gcc', 'a.c', '-lcuda']' returned non-zero exit status 1.",
            "no driver of the GPU to link with",
        ),
        (
            "CppCompileError: C++ compile error\n\nOutput:\ng++: fatal error: Killed signal terminated program cc1plus",
            "the machine ran out of memory",
        ),
        (
            "CppCompileError: C++ compile error\n\nOutput:\na.cpp:1:10: fatal error: 'omp.h' file not found",
            "no OpenMP for the C++ compiler",
        ),
        ("CppCompileError: C++ compile error\n\nOutput:\na.cpp:1:10: error: 'x' was not declared in this scope", None),
        ("PermissionError: [Errno 13] Permission denied: '/tmp/made_up'", "a directory that may not be written"),
        ("OSError: [Errno 24] Too many open files: '/tmp/made_up'", "too many open files"),
        ("OSError: [Errno 5] Input/output error", "a disk that fails"),
        ("OSError: [Errno 122] Disk quota exceeded: '/home/made_up'", "the quota of a disk is used up"),
        ("OSError: [Errno 22] Invalid argument", None),
        ("KeyError: 'getpwuid(): uid not found: 1000'", "a user without a name"),
        ("KeyError: 'made up'", None),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'ldconfig'", "no ldconfig"),
        ("FileNotFoundError: [Errno 2] No such file or directory: '/sbin/ldconfig'", "no ldconfig"),
        ("ModuleNotFoundError: No module named 'made_up'", "a package that a backend imports"),
        ("ModuleNotFoundError: No module named 'torch.made_up'", None),
        ("RuntimeError: Compiler: cl is not found.", "no C++ compiler"),
        ("GPUTooOldForTriton: Found an old one", "a GPU that triton does not support"),
        ("RuntimeError: Dynamo is not supported on Python 3.99+", "a Python or a system that torch.compile does not support"),
        ("RuntimeError: torch.compile is not supported on Python 3.99+", "a Python or a system that torch.compile does not support"),
        ("RuntimeError: Windows not yet supported for torch.compile", "a Python or a system that torch.compile does not support"),
        ("RuntimeError: Python 3.99+ not yet supported for torch.compile", "a Python or a system that torch.compile does not support"),
        ("RuntimeError: torch.compile is not supported for made_up", None),
        ("CalledProcessError: Command '['/usr/bin/ptxas', 'a.ptx']' returned non-zero exit status 1.", None),
        ("AssertionError: made up", None),
    ],
)
def test_a_machine_that_is_not_made_for_it(said: str, broken: str | None) -> None:
    assert fault(raised(LOWERING, INDUCTOR + said)) == broken


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (raised(IN_TEST, WRONG), "no"),
        (raised(IN_TEST, WRONG, source="    compiled = torch.compile(f)"), "possible"),
        (raised(IN_TEST, WRONG, "tests/test_made_up.py::TestMadeUp::test_torch_compile"), "possible"),
        (raised(IN_TEST, WRONG, "test/inductor/test_made_up.py::test_a"), "possible"),
        (raised(IN_TEST, WRONG, hint=Hint(("PYTORCH_TEST_WITH_INDUCTOR=1",), "python a.py")), "possible"),
        (raised(IN_TEST, WRONG, job="inductor / test"), "possible"),
        (raised(IN_TEST.replace("f(x)", "assert_close(compiled_f(x), f(x))"), WRONG), "possible"),
        (raised(CALLED, WRONG), "possible"),
        (raised(NEVER, WRONG), "no"),
        # the switch of a test that has both
        (raised(IN_TEST, WRONG, "tests/test_made_up.py::TestA::test_a_compile_False_config0"), "no"),
        (raised(IN_TEST, WRONG, "tests/test_made_up.py::test_a[torch_compile=False-cuda]"), "no"),
        (raised(IN_TEST, WRONG, "tests/test_made_up.py::TestA::test_a_no_compile"), "no"),
        # what is called alike
        (raised(IN_TEST, WRONG, "tests/test_made_up.py::TestCompileKernel::test_compile_kernel"), "no"),
        (raised(IN_TEST, WRONG, "tests/test_made_up.py::TestA::test_a_compile_True_config0"), "possible"),
        (raised(IN_TEST, WRONG, "tests/test_compile.py::TestA::test_a_compile_False"), "possible"),
        (raised(IN_TEST, WRONG, hint=Hint(("TORCHDYNAMO_DISABLE=1",), "python a.py")), "no"),
        # the log shows the message alone: the name has to say that it compiles
        (raised("", WRONG), "no"),
        (Failure("a", TEST, "AssertionError: Tensor-likes are not close!"), "no"),
        (raised("", WRONG, "tests/test_made_up.py::test_torch_compile"), "possible"),
        # a CUDA graph can be captured without the compiler
        (raised("", WRONG, "tests/test_made_up.py::test_cudagraph"), "no"),
    ],
)
def test_wrong_numbers(failure: Failure, expected: str) -> None:
    assert verdict(failure) == expected


@pytest.mark.parametrize(
    ("said", "test", "expected"),
    [
        ("tensor(2.5, dtype=torch.float16) not greater than 40 : made_up failed when compiled", TEST, "possible"),
        ("tensor(2.5) not greater than 40", "tests/test_made_up.py::test_compiled", "possible"),
        ("0.0764 not less than or equal to 0.0054 : made up when compiled", TEST, "possible"),
        ("0.0764 not less than or equal to 0.0054 : made up", TEST, "no"),
        ("5 not less than or equal to 4", "tests/test_made_up.py::test_compiled", "no"),
        ("SQNR -2.9 is too low", "tests/test_made_up.py::test_compiled", "possible"),
        ("SQNR -2.9 is too low", TEST, "no"),
        ("made_up failed when compiled", TEST, "no"),
        ("expected it to be compiled", "tests/test_made_up.py::test_compiled", "no"),
    ],
)
@pytest.mark.parametrize("frames", [IN_TEST, ""])
def test_numbers_that_a_test_compares_by_itself(said: str, test: str, expected: str, frames: str) -> None:
    assert verdict(raised(frames, "AssertionError: " + said, test)) == expected


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("Failed: DID NOT RAISE <class 'NotImplementedError'>", "possible"),
        ("Failed: DID NOT RAISE ValueError", "possible"),
        ("Failed: DID NOT RAISE any of (<class 'ValueError'>, <class 'a.MadeUp'>)", "possible"),
        ("AssertionError: NotImplementedError not raised", "possible"),
        ("AssertionError: RuntimeError not raised by made_up", "possible"),
        # eager does not raise what is the compiler's
        ("Failed: DID NOT RAISE <class 'torch._dynamo.exc.Unsupported'>", "no"),
        ("Failed: DID NOT RAISE any of (<class 'ValueError'>, <class 'torch._inductor.exc.InductorError'>)", "no"),
        ("AssertionError: UserError not raised", "no"),
        ("AssertionError: nothing not raised", "no"),
        ("AssertionError: the ValueError was not raised", "no"),
        ("ValueError: DID NOT RAISE ValueError", "no"),
    ],
)
def test_an_error_that_did_not_come(said: str, expected: str) -> None:
    assert verdict(raised(IN_TEST, said, "tests/test_made_up.py::test_compiled")) == expected
    assert verdict(raised(IN_TEST, said)) == "no", "nothing shows that it compiles"


@pytest.mark.parametrize(
    ("source", "numbers", "expected"),
    [
        ("self.assertEqual(cnts.frame_count, 1)", "Expected 1 but got 2.", "no"),
        ("self.assertEqual(len(counters), 1)", "Expected 1 but got 2.", "no"),
        # a result of one element
        ("self.assertEqual(compiled(x), f(x))", "Expected 1 but got 2.", "possible"),
        ("self.assertEqual(count_loss(x), f(x))", "Expected 1.5 but got 1.25.", "possible"),
    ],
)
def test_what_is_counted(source: str, numbers: str, expected: str) -> None:
    said = "AssertionError: Scalars are not equal!\n\n" + numbers
    test = "test/dynamo/test_made_up.py::test_a"
    assert verdict(raised(IN_TEST, said, test, source=f">       {source}")) == expected
    assert verdict(raised(IN_TEST.replace("f(x)", source), said, test)) == expected


@pytest.mark.parametrize(("told", "expected"), [("made_up = 480 != counters 1384", "no"), ("count = 480", "no"), ("made_up", "possible")])
def test_what_was_counted_by_its_message(told: str, expected: str) -> None:
    said = f"AssertionError: Scalars are not equal!\n\nExpected 1384 but got 480.\n{told}"
    assert verdict(raised(IN_TEST, said, "test/dynamo/test_made_up.py::test_a")) == expected


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (raised(IN_TEST, "Failed: Timeout (>300.0s) from pytest-timeout.", seen=Seen.TIMEOUT), "no"),
        (
            raised(IN_TEST, "Failed: Timeout (>300.0s) from pytest-timeout.", seen=Seen.TIMEOUT, source="    compiled = torch.compile(f)"),
            "possible",
        ),
        (Failure("a", TEST, "", seen=Seen.TIMEOUT), "possible"),
    ],
)
def test_time_limits(failure: Failure, expected: str) -> None:
    assert verdict(failure) == expected


@pytest.mark.parametrize(
    ("frames", "said", "expected"),
    [
        (CALLED, "ValueError: made up", "possible"),
        (CALLED.replace("/", "\\"), "ValueError: made up", "possible"),
        (NEVER, "ValueError: made up", "no"),
        (IMPORTED, "AttributeError: module 'triton' has no attribute 'gone'", "no"),
        (IMPORTED + FRAME.format("site-packages/torch/_inductor/lowering.py", "register"), "KeyError: 'gone'", "no"),
        (IMPORTED, INDUCTOR + "AttributeError: module 'triton' has no attribute 'gone'", "suggested"),
        (TOOL + IN_TEST, "AssertionError: False is not true", "no"),
        (TOOL + IN_TEST, INDUCTOR + "AssertionError: made up", "suggested"),
        (TOOL, "AssertionError: made up", "suggested"),
        (IN_TEST + FRAME.format("tmp/torchinductor_root/ab/cab.py", "call"), "AssertionError: made up", "possible"),
        (IN_TEST, "torch._subclasses.fake_tensor.DataDependentOutputException: made up", "suggested"),
        # as it was in a repository of its own
        (IN_TEST, "torchdynamo.exc.MadeUp: made up", "suggested"),
        (IN_TEST, "touchdynamo.exc.MadeUp: made up", "no"),
        # torch.export, called by the exporter to ONNX; its later steps are none of the compiler
        (IN_TEST, "torch.onnx._internal.exporter._errors.TorchExportError: made up", "suggested"),
        (IN_TEST, "torch.onnx._internal.exporter._errors.ConversionError: made up", "no"),
        (IN_TEST + FRAME.format("site-packages/torch/_functorch/vmap.py", "wrapped"), "ValueError: made up", "no"),
        (IN_TEST.replace("f(x)", "torch.compile(f, made_up=1)"), "TypeError: unexpected", "no"),
        (IN_TEST, "ImportError: cannot import name 'gone' from 'torch._inductor.utils' (/x/torch/_inductor/utils.py)", "no"),
    ],
)
def test_the_compiler_is_on_the_stack_by_its_frames(frames: str, said: str, expected: str) -> None:
    assert verdict(raised(frames, said)) == expected


@pytest.mark.parametrize(
    ("made", "runtime", "expected"),
    [
        ("tmp/torchinductor_root/ab/cab.py", 3, True),
        ("x/inductor_cache/ab/cab.py", 3, True),
        # a test has a directory of its own for what is compiled
        ("tmp/tmp_a1/7z/c7z47qklytq4ytamkbainqu5jax5.py", 3, True),
        ("w/ab/cab.py", 3, False),
        # choosing a kernel goes deep
        ("tmp/torchinductor_root/ab/cab.py", 9, True),
    ],
)
def test_code_that_the_compiler_made(made: str, runtime: int, expected: bool) -> None:
    frames = FRAME.format(made, "call") + runtime * FRAME.format("site-packages/torch/_inductor/runtime/triton_heuristics.py", "bench")
    failure = raised(IN_TEST + frames + FRAME.format("site-packages/triton/testing.py", "do_bench"), "RuntimeError: CUDA error: made up")
    assert is_compiled(sign(failure), failure) is expected


@pytest.mark.parametrize("said", ["", "ValueError: made up"])
@pytest.mark.parametrize(("test", "expected"), [("", "possible"), (TEST, "no")])
def test_tensors_that_hold_no_values(said: str, test: str, expected: str) -> None:
    assert verdict(raised(FRAMES_OF_FAKES, said, test)) == expected


@pytest.mark.parametrize(("called", "broken"), [("_initialize_obj", "no driver that triton can use"), ("__getattr__", None)])
def test_a_driver_that_triton_gets_ready(called: str, broken: str | None) -> None:
    frames = FRAME.format("site-packages/triton/runtime/driver.py", called) + FRAME.format(
        "site-packages/triton/runtime/build.py", "_build"
    )
    assert fault(raised(LOWERING + frames, "RuntimeError: made up")) == broken


KERNEL = FRAME.format("site-packages/triton/runtime/jit.py", "run") + FRAME.format("site-packages/triton/compiler/compiler.py", "make_ir")
OWN = FRAME.format("site-packages/made_up/ops.py", "rope") + KERNEL
UNFIT = "triton.compiler.errors.CompilationError: at 9:4: made up"
NAMED = "triton.compiler.errors.CompilationError: at 1:0:\ndef {}(\n^\nValueError('made up')"
PTXAS = "triton.runtime.errors.PTXASError: PTXAS error: Internal Triton PTX codegen error\n`ptxas` stderr:\nmade up"


@pytest.mark.parametrize(
    ("frames", "said", "expected"),
    [
        (IN_TEST + OWN, UNFIT, "no"),
        (IN_TEST + OWN, "triton.runtime.errors.OutOfResources: out of resource: made up", "no"),
        (IN_TEST + OWN, PTXAS, "no"),
        (IN_TEST + OWN, "triton.compiler.errors.CompileTimeAssertionFailure: at 9:4: made up", "no"),
        (IN_TEST + OWN + FRAME.format("lib/python3.12/pathlib.py", "open"), "FileNotFoundError: made up", "no"),
        (CALLED + OWN, UNFIT, "possible"),
        (CALLED + OWN, INDUCTOR + "CompilationError: at 9:4: made up", "suggested"),
        (IN_TEST + KERNEL, UNFIT, "no"),
        (LOWERING + KERNEL, UNFIT, "suggested"),
        (IN_TEST + FRAME.format("tmp/torchinductor_me/ab/cab.py", "call") + KERNEL, UNFIT, "suggested"),
        # what is cut off above may be the compiler's
        (KERNEL, UNFIT, "suggested"),
        (KERNEL, PTXAS, "suggested"),
        (LOWERING + KERNEL, PTXAS, "suggested"),
        # the first line of the kernel has its name, by which the compiler's are known
        (KERNEL, NAMED.format("rope_kernel"), "no"),
        (IN_TEST, NAMED.format("rope_kernel"), "no"),
        ("", NAMED.format("rope_kernel"), "suggested"),
        ("", NAMED.format("triton_poi_fused_add_0"), "suggested"),
        ("", NAMED.format("_triton_helper_fn_add0"), "suggested"),
        (LOWERING + KERNEL, NAMED.format("rope_kernel_0"), "suggested"),
        ("", INDUCTOR + NAMED.format("rope_kernel_0"), "suggested"),
    ],
)
def test_a_kernel_that_a_program_launches_itself(frames: str, said: str, expected: str) -> None:
    assert verdict(raised(frames, said)) == expected
    # so Triton raises what its own processes say
    handled = raised(KERNEL, "subprocess.CalledProcessError: Command '['made-up']' returned non-zero exit status 255.").text
    joint = "\n\nDuring handling of the above exception, another exception occurred:\n\n"
    assert verdict(Failure("test_a", TEST, f"{handled}{joint}{raised(frames, said).text}")) == expected


SERVER = "RuntimeError: Engine core initialization failed. See root cause above."
CAPTURED = FRAME.format("site-packages/made_up/cuda_graph.py", "capture_cudagraphs")


@pytest.mark.parametrize(
    ("frames", "test", "expected"),
    [
        (IN_TEST, TEST, "no"),
        ("", "tests/test_made_up.py::test_compile[made-up]", "possible"),
        ("", "tests/test_made_up.py::test_cudagraph[made-up]", "no"),
        (CAPTURED.replace("f(x)", "self.compile_or_warm_up_model()"), TEST, "no"),
        (CAPTURED.replace("f(x)", "self.compile_model()"), TEST, "possible"),
    ],
)
def test_another_process_that_failed(frames: str, test: str, expected: str) -> None:
    assert verdict(raised(frames, SERVER, test)) == expected


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("AssertionError: Guard failed on the same frame it was created. Made up", "suggested"),
        ("AssertionError: Guard check failed immediately after translation, made up", "suggested"),
        ("Exception: Please convert all Tensors to FakeTensors first, made up", "suggested"),
        ("RuntimeError: Internal Triton PTX codegen error: made up", "suggested"),
        ("AssertionError: made up: Guard failed", "no"),
    ],
)
def test_what_the_tracers_alone_say(said: str, expected: str) -> None:
    assert verdict(raised("", said)) == expected


FRAMES_OF_FAKES = FRAME.format("site-packages/torch/_subclasses/fake_tensor.py", "dispatch")
TRACEBACK = "Traceback (most recent call last):"
CAUSE = "The above exception was the direct cause of the following exception:"
DISABLED = CALLED.replace("in _fn", "in DisableContext.__call__.<locals>._fn")


@pytest.mark.parametrize(
    ("frames", "expected"),
    [
        (LOWERING, "possible"),
        (CALLED, "possible"),
        (IN_TEST, "no"),
        (DISABLED, "no"),
        (DISABLED + CALLED, "possible"),
        # a size that is traced; a test may make tensors that hold no values for itself
        (IN_TEST + FRAME.format("site-packages/torch/fx/experimental/sym_node.py", "evaluate"), "possible"),
        (IN_TEST + FRAME.format("site-packages/torch/fx/experimental/made_up.py", "evaluate"), "no"),
        (IN_TEST + FRAMES_OF_FAKES, "no"),
        # the last of a chain, whose cause is told
        (f"ValueError: made up\n\n{CAUSE}\n\n{TRACEBACK}\n{CALLED}", "possible"),
        (f"ValueError: made up\n\n{CAUSE}\n\n{TRACEBACK}\n{IN_TEST}", "no"),
    ],
)
def test_a_traceback_that_ends_before_it_says_what_was_raised(frames: str, expected: str) -> None:
    assert verdict(raised(frames, "")) == expected
