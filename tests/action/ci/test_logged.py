"""What torch logged before it raised an error."""

from __future__ import annotations

import pytest

from bot.action.ci import lines, logged
from bot.action.ci.failing_test import Failure, Seen
from bot.action.ci.tracebacks import Printed

HEADER = "Traceback (most recent call last):\n"
MARK = "E0730 10:37:27.763392 123 site-packages/torch/{}.py:2500] [0/1] "
UNTOLD = "as torch logged, and the log does not show what ended the program"


def failures(log: str) -> list[Failure]:
    read = lines.read(log)
    return list(logged.failures(read, Printed(read)))


def notes(log: str) -> list[str]:
    found = failures(log)
    assert {(each.test, each.seen) for each in found} <= {("", Seen.LOGGED)}
    return [each.note for each in found]


def by(module: str, text: str) -> str:
    return "".join(f"{MARK.format(module)}{line}\n" for line in text.split("\n"))


GUARD = by("_guards", "Error while creating guard:\nName: ''\nCreated at:\n  File \"/w/a.py\", line 3, in f\n    g(x)\nmade up")


@pytest.mark.parametrize("stamp", ["", "2026-07-30T10:37:27.7633921Z "])
def test_a_guard_that_could_not_be_made(stamp: str) -> None:
    log = "".join(f"{stamp}{line}\r\n" for line in f"it runs\n{GUARD}".splitlines())
    (found,) = failures(log)
    assert found.text == f'{HEADER}  File "/w/a.py", line 3, in f\n    g(x)'
    assert found.note == f"a guard could not be made, {UNTOLD}"


def test_a_guard_whose_stack_is_cut_off() -> None:
    (found,) = failures(GUARD.partition("Created")[0].rpartition("\n")[0])
    assert (found.text, found.note) == ("", f"a guard could not be made, {UNTOLD}")


def test_what_is_printed_ended_the_program() -> None:
    raised = f'{HEADER}  File "/w/a.py", line 3, in f\n    g()\nKeyError: 1\n'
    assert notes(GUARD + raised) == []
    # one that is cut off, and the compiler's
    assert notes(GUARD + f'{HEADER}  File "/x/torch/_inductor/a.py", line 3, in f\n    g()\n') == []
    assert len(notes(GUARD + f'{HEADER}  File "/w/a.py", line 3, in f\n    g()\n')) == 1


@pytest.mark.parametrize(
    "said", ["RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB.", "OSError: [Errno 28] No space left on device: '/w'"]
)
def test_a_fault_of_the_machine(said: str) -> None:
    assert notes(GUARD + by("_inductor/a", said)) == []


def test_an_operator_on_tensors_without_values() -> None:
    note = f"an operator failed where its results are traced, {UNTOLD}"
    log = by("_subclasses/fake_tensor", "failed while attempting to run meta for aten.mm.default")
    raised = by("_subclasses/fake_tensor", f'{HEADER}  File "/x/torch/a.py", line 3, in f\n    g()\nRuntimeError: made up')
    assert [(each.text, each.note) for each in failures(log)] == [("", note)]
    assert [(each.text, each.note) for each in failures(log + raised)] == [(f"{HEADER}RuntimeError: made up", note)]
    assert notes(by("_subclasses/fake_tensor", "made up")) == []


CPP = f"/tmp/x/ab/c{'a' * 51}.main.cpp"


@pytest.mark.parametrize(
    ("line", "note"),
    [
        (
            "W0730 10:37:27.763392 123 torch/fx/experimental/symbolic_shapes.py:6868] [0/0] failed during evaluate_expr(u0 > 3)",
            f"a size that is traced could not be told, {UNTOLD}",
        ),
        (
            by("_inductor/scheduler", "Error in codegen for ComputedBuffer(name='buf0')"),
            f"Inductor could not write code for a buffer, {UNTOLD}",
        ),
        ("CRITICAL:torch._inductor.scheduler:Error in codegen for made up", f"Inductor could not write code for a buffer, {UNTOLD}"),
        (
            "[2026-07-30 10:37:27,763] torch._dynamo: [WARNING] Accuracy failed for the TorchDynamo produced graph",
            "a compiled graph gives other numbers than eager, as PyTorch's minifier says",
        ),
        (f"{CPP}:7:12: error: made up", "C++ that Inductor made does not compile, as its compiler says"),
        (f"{CPP}:7:12: fatal error: made_up.h: No such file", ""),
        ("/w/made_up.cpp:7:12: error: made up", ""),
        (
            f'C++ exception with description "run_func_( a ) API call failed at {CPP}, line 7" thrown in the test body.',
            "a program in C++ died of a call in what the compiler made",
        ),
        ('C++ exception with description "run_func_( a ) API call failed at /w/a.cpp, line 7" thrown in the test body.', ""),
        ("it says that Accuracy failed for the TorchDynamo produced graph", ""),
    ],
)
def test_what_one_line_means(line: str, note: str) -> None:
    assert notes(f"it runs\n{line}\nit goes on\n") == ([note] if note else [])


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("RuntimeError: Triton Error [CUDA]: made up", "RuntimeError: Triton Error [CUDA]: made up"),
        ("RuntimeError: PassManager::run failed", "RuntimeError: PassManager::run failed"),
        ("E       RuntimeError: PassManager::run failed", "RuntimeError: PassManager::run failed"),
        ("ptxas fatal   : made up", ""),
    ],
)
def test_what_triton_raises_alone(line: str, text: str) -> None:
    """Of whose kernel that is, only a program shows that compiles and has none of its own."""
    program = "@torch.compile\ndef f(x):\n    return x\n"
    (found,) = failures(f"{program}{line}\n")
    assert found.text == (text and HEADER + text)
    assert found.note == "a kernel of a program that compiles failed, as triton says"
    assert notes(f"{line}\n") == []
    assert notes(f"@triton.jit\ndef k(x):\n    y\n{program}{line}\n") == []


@pytest.mark.parametrize(
    ("line", "tells"),
    [
        ("With torch.compile it raises RuntimeError: PassManager::run failed", True),
        ("On Inductor I get an `RuntimeError: Triton Error [CUDA]: made up`", True),
        ("In eager it raises RuntimeError: PassManager::run failed", False),
        ("With torch.compile it raises RuntimeError: PassManager::run failed and falls back to eager", False),
    ],
)
def test_what_somebody_says_that_triton_raises(line: str, tells: bool) -> None:
    assert bool(notes(f"{line}\n")) is tells


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("It crashes with InductorError('LoweringException: made up\\nmore')", "InductorError: LoweringException: made up"),
        ("The run failed: BackendCompilerFailed(\"made 'up'\")", "BackendCompilerFailed: made 'up'"),
        ("except InductorError('it failed')", None),
        ("It failed with InductorError('made up') and fell back to eager", None),
        ("It failed with ValueError('made up')", None),
        ("InductorError('made up') is made up", None),
    ],
)
def test_an_error_as_python_shows_the_object(line: str, text: str | None) -> None:
    assert [each.text for each in failures(f"{line}\n")] == ([] if text is None else [HEADER + text])


def test_the_source_of_a_kernel_that_could_not_be_compiled() -> None:
    note = f"a kernel could not be compiled or launched, {UNTOLD}"
    log = by(
        "_inductor/runtime/triton_heuristics", "Triton compilation failed: triton_poi_fused_add_0\ndef triton_poi_fused_add_0(x):\n    y"
    )
    assert notes(log) == [note]
    # what looks for the fastest one leaves those out, and a hook is somebody's
    assert notes(f"AUTOTUNE mm(8x8, 8x8)\n{log}") == []
    assert notes(by("_inductor/runtime/triton_heuristics", "jit_post_compile_hook failed") + log) == []


def test_a_log_in_which_torch_logged_nothing() -> None:
    assert notes("it runs\nmade up\n") == []
