"""Signatures of failures that were really recorded (tests/fixtures/tracebacks), and of any text at all."""

from __future__ import annotations

import importlib
import re
import time
import traceback
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.failure.messages import essence
from bot.failure.outcome import Outcome
from bot.failure.signature import (
    complaint,
    ended_behind,
    is_of_own_code,
    is_own_verdict,
    is_statement,
    own_words,
    refusal,
    shows_one_place,
    signature_of,
    statement,
    waits_for_a_program,
)
from bot.models.failure import Kind, Phase, Signature

RECORDED = Path(__file__).parent.parent / "fixtures" / "tracebacks"
ALL = sorted(path.stem for path in RECORDED.glob("*.txt"))


def text_of(name: str) -> str:
    return (RECORDED / f"{name}.txt").read_text(encoding="utf-8")


def status_of(text: str) -> str:
    return "signal" if "Segmentation fault" in text else "timeout" if "Fatal Python error" in text else "raised"


def judged(text: str, *, status: str | None = None, script: str = "repro.py") -> Signature:
    status = status or status_of(text)
    signature = signature_of(Outcome(status=status, text=text, signal="SIGSEGV" if status == "signal" else None), script=script)
    assert signature is not None
    return signature


def failure(name: str) -> Signature:
    return judged(text_of(name))


LOWERING = "InductorError:LoweringException:"
# name: phase, classes, the beginning of the message
EXCEPTIONS = {
    "161562_class_in_fn": ("dynamo", "Unsupported", "Invalid call to __build_class__\nCannot trace class definition"),
    "171964_export_unflatten": ("export", "UserError", "Detected mismatch between the structure"),
    "188218_fracmaxpool0": (
        "inductor_lowering",
        LOWERING + "AssertionError",
        "max not supported for zero-dimension tensors!\ntarget: aten.fractional_max_pool2d.default",
    ),
    "191582_while_alias": ("aot_autograd", "BackendCompilerFailed:RuntimeError", "cond_fn might be aliasing the input or the output!"),
    "aot_alias": ("run", "RuntimeError", "h (with implementation in <module 'torch._library.custom_ops' from '<path>'>): The output"),
    "aot_eager_trace": ("aot_autograd", "BackendCompilerFailed:RuntimeError", "fake of my::h fails the second time N"),
    "aoti_188213_scatter": ("inductor_lowering", LOWERING + "AssertionError", "target: aten.scatter.src"),
    "aoti_bad_load": ("load", "RuntimeError", "Failed to initialize zip archive: file open failed"),
    "aoti_cpp_compile_error": ("cpp_compile", "InductorError:CppCompileError", "'compile' was not declared in this scope"),
    "backend_relu_compile_error": ("dynamo", "BackendCompilerFailed:ReluCompileError", ""),
    "backend_relu_runtime_error": ("run", "AssertionError", "ReluRuntimeError"),
    "bad_backend_name": ("dynamo", "InvalidBackend", "Invalid backend: 'nope'"),
    "bwd_compile_error": ("inductor_lowering", LOWERING + "NotImplementedError", "no lowering for my::g\ntarget: my.g.default"),
    "bwd_cpp_compile_error": ("cpp_compile", "InductorError:CppCompileError", "'compile' was not declared in this scope"),
    "bwd_joint_trace_error": ("dynamo", "TorchRuntimeError:RuntimeError", "shape '[N]' is invalid for input of size N"),
    "bwd_runtime_error": ("run", "RuntimeError", "unhandled error"),
    "bwd_twice": ("run", "RuntimeError", "torch.compile with aot_autograd does not currently support double backward"),
    "codegen_error": ("inductor_codegen", "InductorError:RuntimeError", "cannot generate sin of bufN"),
    "cpp_compile_error": ("cpp_compile", "InductorError:CppCompileError", "'compile' was not declared in this scope"),
    "cpp_other_error": (
        "cpp_compile",
        "InductorError:CppCompileError",
        "'class at::vec::CPU_CAPABILITY::Vectorized<float>' has no member named 'sinus'",
    ),
    "kernel_alone": ("cpp_compile", "CppCompileError", "'compile' was not declared in this scope"),
    "cpp_runtime_error": ("run", "RuntimeError", "unhandled error"),
    "custom_backend": ("dynamo", "BackendCompilerFailed:TypeError", "my backend does not know N"),
    "dyn_fake_shape": ("dynamo", "TorchRuntimeError:RuntimeError", "a and b must have same reduction dim, but got [N] X [N]."),
    "dyn_graph_break": (
        "dynamo",
        "Unsupported",
        "Failed to trace builtin operator\nDynamo does not know how to trace builtin operator `print`",
    ),
    "dyn_internal": ("dynamo", "InternalTorchDynamoError:KeyError", "lost N"),
    "dyn_nonzero_branch": ("dynamo", "UserError", "Consider annotating your code using torch._check*(). Could not guard on data-dep"),
    "dyn_recompile_limit": ("dynamo", "FailOnRecompileLimitHit:Unsupported", "Dynamo recompile limit exceeded"),
    "dyn_tolist_split": ("dynamo", "UserError:GuardOnDataDependentSymNode", "Could not guard on data-dependent expression uN > uN"),
    "dyn_user_raise": ("run", "ValueError", "user wants N"),
    "export_decomp": ("export", "RuntimeError", "decomp of relu broken"),
    "export_dynamic_const": ("export", "UserError", "Constraints violated (n)!\n- You marked n as dynamic but your code specialized it"),
    "export_nonstrict_break": ("export", "GuardOnDataDependentSymNode", "Could not guard on data-dependent expression Eq(uN, N)"),
    "export_run": ("run", "AssertionError", "Guard failed: x.size()[N] == N"),
    "export_strict_break": ("export", "Unsupported", "Data-dependent branching\nDetected data-dependent branching"),
    "export_type": ("export", "ValueError", "Expected `mod` to be an instance of `torch.nn.Module`"),
    "fe_async": (
        "dynamo",
        "Unsupported",
        "Attempted to call function marked as skipped\nDynamo does not know how to trace the builtin `_asyncio",
    ),
    "large_export_branch": ("export", "GuardOnDataDependentSymNode", "Could not guard on data-dependent expression uN > N"),
    "large_resnet_scatter": ("inductor_lowering", LOWERING + "AssertionError", "target: aten.scatter.src"),
    "lowering_assert": ("inductor_lowering", LOWERING + "AssertionError", "target: aten.relu.default"),
    "pass_joint_custom_post_pass": ("joint", "BackendCompilerFailed:ValueError", "the custom pass does not like N nodes"),
    "pass_joint_custom_pre_pass": ("joint", "BackendCompilerFailed:ValueError", "the custom pass does not like N nodes"),
    "pass_post_grad_custom_post_pass": ("post_grad", "InductorError:ValueError", "the custom pass does not like N nodes"),
    "pass_post_grad_custom_pre_pass": ("post_grad", "InductorError:ValueError", "the custom pass does not like N nodes"),
    "pass_pre_grad_custom_pass": ("pre_grad", "BackendCompilerFailed:ValueError", "the custom pass does not like N nodes"),
    "run_aot_eager_op": ("run", "RuntimeError", "kernel of my::z fails for N"),
    "run_eager_op": ("run", "RuntimeError", "kernel of my::z fails for N"),
    "run_index_oob": ("run", "RuntimeError", "kernel, <path>:N, index out of bounds: N <= tmpN < N"),
    "run_kernel_fallback": ("run", "RuntimeError", "kernel of my::z fails for N"),
    "scheduler_error": ("inductor_codegen", "InductorError:RuntimeError", "cannot fuse opN"),
    "syntax_error": ("run", "SyntaxError", "invalid syntax"),
    "user_error_outside": ("run", "RuntimeError", "shape '[N]' is invalid for input of size N"),
}


@pytest.mark.parametrize("name", sorted(EXCEPTIONS))
def test_exception(name: str) -> None:
    phase, classes, message = EXCEPTIONS[name]
    signature = failure(name)
    assert signature.kind is Kind.EXCEPTION
    assert (signature.phase.value, ":".join(signature.exception)) == (phase, classes)
    assert signature.message.startswith(message)
    assert bool(signature.message) == bool(message)


@pytest.mark.parametrize("name", ["bwd_compile_error", "bwd_cpp_compile_error", "bwd_runtime_error", "bwd_twice"])
def test_backward(name: str) -> None:
    assert failure(name).backward


@pytest.mark.parametrize(
    "name", ["cpp_compile_error", "cpp_runtime_error", "run_aot_eager_op", "pass_joint_custom_pre_pass", "191582_while_alias"]
)
def test_forward_is_not_backward(name: str) -> None:
    assert not failure(name).backward


@pytest.mark.parametrize("name", ["173054_hardswish_bf16", "187018_abs_uint8", "193757_bce_noerror", "script_assert"])
def test_accuracy(name: str) -> None:
    signature = failure(name)
    assert (signature.kind, signature.phase, signature.frame) == (Kind.ACCURACY, Phase.RUN, None)
    assert signature.exception == ("AssertionError",)
    assert signature.same(failure("script_assert"))


@pytest.mark.parametrize(
    ("name", "phase", "frame"),
    [
        ("190856_jacfwd2_segv", Phase.RUN, "torch/_inductor/output_code.py:__call__"),
        ("crash_kernel", Phase.RUN, "torch/_library/custom_ops.py:wrapped_fn"),
        ("crash_lowering", Phase.INDUCTOR_LOWERING, "torch/_inductor/lowering.py:wrapped"),
    ],
)
def test_crash(name: str, phase: Phase, frame: str) -> None:
    signature = failure(name)
    assert (signature.kind, signature.signal, signature.phase, signature.frame) == (Kind.CRASH, "SIGSEGV", phase, frame)


@pytest.mark.parametrize(("name", "phase"), [("147075_diff_n30", Phase.INDUCTOR_LOWERING), ("hang_pass", Phase.POST_GRAD)])
def test_hang(name: str, phase: Phase) -> None:
    signature = failure(name)
    assert (signature.kind, signature.phase, signature.signal) == (Kind.HANG, phase, None)


@pytest.mark.parametrize(
    ("user", "minimal"),
    [
        ("188218_fracmaxpool0", "form_pool_aten"),
        ("large_resnet_scatter", "aoti_188213_scatter"),
        ("cpp_compile_error", "form_relu_aten"),
        ("cpp_compile_error", "kernel_alone"),
        ("cpp_compile_error", "aoti_cpp_compile_error"),
        ("pass_post_grad_custom_pre_pass", "form_pass_aten"),
        ("lowering_assert", "form_lowering_aoti"),
        ("dyn_fake_shape", "dyn_fake_shape_module"),
    ],
)
def test_same_across_forms(user: str, minimal: str) -> None:
    assert failure(user).same_across_forms(failure(minimal))
    assert failure(user).fingerprint == failure(minimal).fingerprint


# Records of one bug: in two forms, at two hooks of one phase, in the forward and the backward graph.
ONE_BUG = [
    {"aoti_188213_scatter", "large_resnet_scatter"},
    {"form_pool_aten", "188218_fracmaxpool0"},
    {"form_relu_aten", "cpp_compile_error", "aoti_cpp_compile_error", "bwd_cpp_compile_error", "kernel_alone"},
    {"form_lowering_aoti", "lowering_assert"},
    {"form_pass_aten", "pass_post_grad_custom_pre_pass", "pass_post_grad_custom_post_pass"},
    {"pass_joint_custom_pre_pass", "pass_joint_custom_post_pass"},
    {"cpp_runtime_error", "bwd_runtime_error"},
    {"dyn_fake_shape", "dyn_fake_shape_module"},
    {"run_aot_eager_op", "run_eager_op", "run_kernel_fallback"},
    {"190856_jacfwd2_segv", "crash_kernel"},
]


def test_different_bugs_differ() -> None:
    bugs = {name: min(group) for group in ONE_BUG for name in group}
    seen: dict[str, str] = {}
    for name in ALL:
        signature = failure(name)
        if signature.kind is not Kind.ACCURACY:
            bug = bugs.get(name, name)
            assert seen.setdefault(signature.fingerprint, bug) == bug, name


def test_within_one_form_the_graph_and_the_frame_count_too() -> None:
    assert not failure("bwd_runtime_error").same(failure("cpp_runtime_error"))
    assert failure("pass_joint_custom_pre_pass").same(failure("pass_joint_custom_post_pass"))


@pytest.mark.parametrize("name", ALL)
def test_place_and_noise_change_nothing(name: str) -> None:
    """What a program prints before, where torch is installed, line numbers and colors are no part of the bug."""
    text = text_of(name)
    moved = text.replace("site-packages/", "/opt/conda/lib/python3.12/site-packages/").replace('"repro.py"', '"/home/me/here/repro.py"')
    moved = re.sub(r", line \d+,", ", line 77777,", moved)
    noisy = "W0101 torch warns\nTraceback (most recent call last):\n  something logged\nValueError: not this one\n" + moved
    if name == "syntax_error":
        noisy = moved  # has no traceback of its own
    assert judged(noisy, status=status_of(text)) == judged(text)
    colored = "\n".join(f"\x1b[1;35m{line}\x1b[0m" if line.strip() else line for line in text.split("\n"))
    assert judged(colored, status=status_of(text)) == judged(text)


@pytest.mark.parametrize("status", ["ok", "stopped", "infra"])
def test_no_failure(status: str) -> None:
    assert signature_of(Outcome(status=status, text=text_of("cpp_compile_error"))) is None


def test_exit_status_is_the_message() -> None:
    left = signature_of(Outcome(status="exit", exit=3, text="bye"))
    assert left is not None
    assert (left.kind, left.exception, left.message) == (Kind.EXCEPTION, ("SystemExit",), "3")


def test_killed_without_a_dump() -> None:
    killed = signature_of(Outcome(status="signal", signal="SIGKILL", text=""))
    assert killed is not None
    assert (killed.kind, killed.signal, killed.phase, killed.frame) == (Kind.CRASH, "SIGKILL", Phase.RUN, None)


def dump(head: str, *frames: str) -> str:
    lines = [f'  File "/v/site-packages/{frame.partition(":")[0]}", line 7 in {frame.partition(":")[2]}' for frame in frames]
    return "\n".join([head, *reversed(lines), '  File "fail.py", line 3 in <module>', ""])


SAMPLED, ABORTED = "Stack (most recent call first):", "Fatal Python error: Aborted\n\nCurrent thread 0x1 (most recent call first):"
TRACING, PARTITIONING = "torch/_dynamo/symbolic_convert.py:step", "torch/_functorch/partitioners.py:min_cut"


@pytest.mark.parametrize(
    ("sampled", "last", "phase"),
    [
        ([], TRACING, Phase.DYNAMO),
        ([TRACING, TRACING], PARTITIONING, Phase.DYNAMO),
        ([TRACING, PARTITIONING], PARTITIONING, Phase.AOT_AUTOGRAD),
        ([TRACING], PARTITIONING, Phase.AOT_AUTOGRAD),
        # what the program printed of its own long before
        ([TRACING] * 20 + [PARTITIONING] * 6, TRACING, Phase.AOT_AUTOGRAD),
    ],
)
def test_a_hang_is_in_the_phase_of_most_of_its_stacks(sampled: list[str], last: str, phase: Phase) -> None:
    text = "said before\n" + "".join(dump(SAMPLED, frame) for frame in sampled) + dump(ABORTED, last)
    found = signature_of(Outcome(status="timeout", text=text))
    assert found is not None
    assert (found.kind, found.phase) == (Kind.HANG, phase)
    assert found.frame == (TRACING if phase is Phase.DYNAMO else PARTITIONING)


@pytest.mark.parametrize(
    ("sampled", "last", "one"),
    [
        ([], TRACING, True),
        ([TRACING, TRACING], TRACING, True),
        # one in three may lie elsewhere, but not the last one
        ([TRACING, PARTITIONING], TRACING, True),
        ([TRACING, TRACING], PARTITIONING, False),
        ([PARTITIONING, PARTITIONING, TRACING], TRACING, False),
        ([PARTITIONING, PARTITIONING, TRACING, TRACING, TRACING], TRACING, True),
        ([PARTITIONING, PARTITIONING, TRACING, TRACING], TRACING, False),
    ],
)
def test_a_hang_stays_in_one_place(sampled: list[str], last: str, one: bool) -> None:
    text = "".join(dump(SAMPLED, frame) for frame in sampled) + dump(ABORTED, last)
    assert shows_one_place(Outcome(status="timeout", text=text)) is one


def test_a_run_without_stacks_shows_no_place() -> None:
    assert not shows_one_place(Outcome(status="timeout", text="nothing\n"))


def test_a_hang_without_a_stack() -> None:
    found = signature_of(Outcome(status="timeout", text="nothing\n"))
    assert found is not None
    assert (found.kind, found.phase, found.frame) == (Kind.HANG, Phase.RUN, None)


def stack(*frames: str) -> str:
    lines = ["Traceback (most recent call last):", '  File "repro.py", line 3, in <module>', "    f(x)"]
    for frame in frames:
        path, function = frame.split(":")
        lines += [f'  File "/v/lib/python3.11/site-packages/{path}", line 12, in {function}', "    call()"]
    return "\n".join(lines) + "\n"


COMPILING = stack("torch/_dynamo/convert_frame.py:_compile", "torch/_inductor/compile_fx.py:fx_codegen_and_compile")
LOWERING_STACK = COMPILING + '  File "/v/site-packages/torch/_inductor/graph.py", line 1, in call_function\n'
BUILDING = COMPILING + '  File "/v/site-packages/torch/_inductor/cpp_builder.py", line 1, in _run_compile_cmd\n'


def test_assertion_of_the_compiler_is_no_accuracy_failure() -> None:
    text = LOWERING_STACK + '  File "repro.py", line 9, in my_pass\nAssertionError: too many nodes\n'
    assert judged(text).kind is Kind.EXCEPTION


MISSING = "DID NOT RAISE IndexError"


@pytest.mark.parametrize(
    ("last", "said", "kind"),
    [
        ("_pytest/outcomes.py", MISSING, Kind.ACCURACY),
        ("jobs/outcomes.py", MISSING, Kind.EXCEPTION),
        # pytest.fail says anything
        ("_pytest/outcomes.py", "Timeout >Ns from pytest-timeout.", Kind.EXCEPTION),
    ],
)
def test_what_pytest_says_of_an_error_that_is_missing_is_a_verdict(last: str, said: str, kind: Kind) -> None:
    text = f"""Traceback (most recent call last):
  File "/tmp/repro.py", line 9, in <module>
    with pytest.raises(IndexError):
  File "/lib/site-packages/_pytest/raises.py", line 699, in __exit__
    fail(f"DID NOT RAISE {{self.expected_exceptions[0].__name__}}")
  File "/lib/site-packages/{last}", line 162, in __call__
    raise Failed(msg=reason, pytrace=pytrace)
Failed: {said}
"""
    found = signature_of(Outcome(status="raised", text=text))
    assert found is not None
    assert (found.kind, found.exception, found.message) == (kind, ("Failed",), said)


def test_assertion_under_another_script_name() -> None:
    text = stack().replace("repro.py", "/somewhere/fail.py") + "AssertionError: wrong\n"
    assert judged(text, script="fail.py").kind is Kind.ACCURACY
    assert judged(text, script="other.py").kind is Kind.EXCEPTION


BACKWARD = '  File "repro.py", line 2, in backward\n    return grad.item()\n'
LATER = stack("torch/autograd/__init__.py:backward").replace("line 3", "line 9") + BACKWARD
CHECKED = "torch/testing/_comparison.py:assert_close"
ILLEGAL = "torch.AcceleratorError: CUDA error: an illegal memory access was encountered\n"


@pytest.mark.parametrize(
    ("control", "failed", "behind"),
    [
        # the compiler traces a backward before eager runs it
        (LATER + "RuntimeError: no scalar\n", COMPILING + BACKWARD + "RuntimeError: no scalar\n", False),
        (LATER + "RuntimeError: 12 elements\n", COMPILING + BACKWARD + "RuntimeError: 8 elements\n", False),
        # the compiler looks for anomalies, so torch gives other advice
        (
            LATER + "RuntimeError: modified. Hint: look for it\n",
            COMPILING + BACKWARD + "RuntimeError: modified. Hint: it is above!\n",
            False,
        ),
        (LATER + "RuntimeError: no scalar\n", COMPILING + BACKWARD + "RuntimeError: no strides\n", True),
        (LATER + "RuntimeError: no scalar\n", COMPILING + BACKWARD + "ValueError: no scalar\n", True),
        (LATER + "RuntimeError: no scalar\n", COMPILING + "RuntimeError: no scalar\n", True),
        (LATER + "AssertionError\n", COMPILING + BACKWARD.replace("line 2", "line 1") + "AssertionError\n", True),
        # two comparisons, of which eager passes the first
        (stack(CHECKED).replace("line 3", "line 9") + "AssertionError: not close\n", stack(CHECKED) + "AssertionError: not close\n", True),
        # an earlier statement, and no error at all
        (stack(CHECKED).replace("line 3", "line 2") + "AssertionError: not close\n", stack(CHECKED) + "AssertionError: not close\n", False),
        ("", COMPILING + "RuntimeError: no scalar\n", False),
        # an error of a kernel shows at whatever waits for the GPU
        (LATER + ILLEGAL, stack() + ILLEGAL, False),
        (LATER + ILLEGAL, stack() + ILLEGAL.replace("torch.AcceleratorError: CUDA error", "RuntimeError: Triton Error [CUDA]"), False),
        (LATER + ILLEGAL, stack() + "RuntimeError: no scalar\n", True),
    ],
)
def test_eager_has_passed_what_fails_compiled_where_it_raises_another_error_later(control: str, failed: str, behind: bool) -> None:
    assert ended_behind(Outcome(status="raised", text=control), failed, "repro.py") is behind
    assert not ended_behind(Outcome(status="ok", text=control), failed, "repro.py")


RAISE = "    raise ValueError(said)\n"
# A stack of the program's own whose last line raises.
BY_HAND = stack().replace("    f(x)\n", RAISE)


def test_of_numbers_that_are_not_close_nothing_more_is_told() -> None:
    by_torch, by_program = stack(CHECKED) + "AssertionError: ", stack() + "AssertionError: "
    assert judged(by_torch + "Tensor-likes are not close!\n\nMismatched elements: 1 / 2").said == ""
    dtype = "The values for attribute 'dtype' do not match: torch.int64 != torch.int8."
    assert judged(by_torch + dtype).line() == f"accuracy in run: AssertionError: {dtype}"
    assert judged(by_program + "3 of 4 gradients are wrong").line() == "accuracy in run: AssertionError: 3 of 4 gradients are wrong"


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("assert seen == [1], ''", ": assert seen == [1], ''"),  # a list that compiled code appends to twice
        ("assert model.calls == 1  # one call", ": assert model.calls == 1"),
        ("assert all(", ""),  # it goes on in the next line
        ("check(seen)", ""),
        ("assert", ""),
    ],
)
def test_an_assert_without_a_message_is_shown_itself(source: str, shown: str) -> None:
    text = f'Traceback (most recent call last):\n  File "/a/repro.py", line 9, in <module>\n    {source}\n           ^^^\nAssertionError\n'
    assert judged(text).line() == f"accuracy in run: AssertionError{shown}"
    assert judged(text).message == ""


@pytest.mark.parametrize(
    ("text", "own"),
    [
        (BY_HAND + "ValueError: they differ\n", True),
        (stack().replace("    f(x)\n", "    raise ValueError(\n    ^^^^^^^^\n") + "ValueError: they differ\n", True),
        # Python's own, or a library's
        (stack() + "KeyError: y\n", False),
        (stack() + '  File "/env/lib/python3.11/json/decoder.py", line 3, in decode\n' + RAISE + "ValueError: no JSON\n", False),
        (stack("torch/testing/_comparison.py:assert_close") + "AssertionError: not close\n", True),
        (
            BY_HAND
            + "ValueError: they differ\n\nThe above exception was the direct cause of the following exception:\n\n"
            + BY_HAND
            + "RuntimeError: no\n",
            False,
        ),
        (stack("torch/nn/functional.py:linear") + "RuntimeError: shapes\n", False),
        (COMPILING + '  File "repro.py", line 9, in my_pass\n' + RAISE + "ValueError: too many nodes\n", False),
        (BY_HAND.replace("repro.py", "other.py") + "ValueError: they differ\n", False),
    ],
)
def test_an_error_of_the_programs_own_run_is_its_own_verdict(text: str, own: bool) -> None:
    outcome = Outcome(status="raised", text=text)
    assert is_own_verdict(judged(text), outcome, script="repro.py") is own


def test_a_verdict_in_a_group_is_one_as_well() -> None:
    inside = "".join(f"    | {line}\n" for line in BY_HAND.split("\n")[:-1])
    head = '  + Exception Group Traceback (most recent call last):\n  |   File "repro.py", line 30, in main\n  |     go()\n'
    text = f"{head}  | ExceptionGroup: tasks (1 sub-exception)\n  +-+---- 1 ----\n{inside}    | Mismatch: they differ by 0.1\n    +----\n"
    outcome = Outcome(status="raised", text=text)
    assert (judged(text).exception, judged(text).said) == (("Mismatch",), "they differ by 0.1")
    assert is_own_verdict(judged(text), outcome, script="repro.py")


CAUSED = "The above exception was the direct cause of the following exception:"
GENERATED = '  File "/tmp/torchinductor_me/ab/cabc.py", line 9, in call\n    buf0 = empty_strided_cpu((9,), (1,), torch.float32)\n'
HOOK = '  File "repro.py", line 9, in hook\n'


@pytest.mark.parametrize(
    ("text", "own"),
    [
        # of what was computed, but no verdict
        (stack() + "KeyError: 7\n", True),
        (stack("torch/nn/modules/module.py:_call_impl") + HOOK + RAISE + "Drift: mean 0.1\n", True),
        (stack("torch/autograd/graph.py:_engine_run_backward") + HOOK + "    assert norm < 3\nAssertionError\n", True),
        # for another error, of its own or of a comparison
        (stack() + f"KeyError: 7\n\n{CAUSED}\n\n" + BY_HAND + "RuntimeError: no\n", True),
        (
            stack("torch/testing/_comparison.py:assert_close") + f"AssertionError: not close\n\n{CAUSED}\n\n" + BY_HAND + "DeployError\n",
            True,
        ),
        # torch, a library or the compiler raised
        (stack("torch/nn/functional.py:linear") + f"RuntimeError: shapes\n\n{CAUSED}\n\n" + BY_HAND + "DeployError\n", False),
        (COMPILING + f"AssertionError\n\n{CAUSED}\n\n" + BY_HAND + "DeployError\n", False),
        (stack("torch/nn/functional.py:linear") + "RuntimeError: shapes\n", False),
        (stack() + '  File "/env/lib/python3.11/json/decoder.py", line 3, in decode\n' + RAISE + "ValueError: no JSON\n", False),
        (COMPILING + HOOK + RAISE + "ValueError: too many nodes\n", False),
        (COMPILING + HOOK + RAISE + "torch._dynamo.exc.BackendCompilerFailed: backend='hook' raised:\nValueError: no\n", False),
        (stack().replace("repro.py", "other.py") + "KeyError: 7\n", False),
        # memory: more of it is needed with float64, and in compiled code nothing of the program's raised
        (stack() + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 5.96 GiB.\n", False),
        (stack("torch/_dynamo/eval_frame.py:compile_wrapper") + GENERATED + "RuntimeError: no memory\n", False),
    ],
)
def test_what_a_program_does_with_results_may_raise_too(text: str, own: bool) -> None:
    outcome = Outcome(status="raised", text=text)
    assert is_of_own_code(judged(text), outcome, script="repro.py") is own


def fault(signal: str, *frames: str) -> Outcome:
    """A death by `signal`, with faulthandler's dump of these `frames`, each a file and a function, the innermost first."""
    lines = [f'  File "{path}", line 7 in {function}\n' for path, _, function in (frame.partition(":") for frame in frames)]
    text = "Fatal Python error: Aborted\n\nCurrent thread 0x00007f0000000000 (most recent call first):\n" + "".join(lines)
    return Outcome(status="signal", signal=signal, text=text if frames else "")


@pytest.mark.parametrize(
    ("outcome", "own"),
    [
        (Outcome(status="exit", exit=3), True),
        (Outcome(status="signal", signal="SIGSEGV"), False),
        (fault("SIGABRT", "/home/me/repro.py:watchdog", "/home/me/repro.py:<module>"), True),  # `os.abort`, or memory that is broken
        (fault("SIGABRT", "/v/site-packages/torch/_ops.py:__call__", "/home/me/repro.py:<module>"), False),
        (fault("SIGSEGV", "/home/me/other.py:<module>"), False),
        (fault("SIGTERM"), True),
        (fault("SIGKILL"), False),  # the machine may have had no memory left
        (Outcome(status="memory"), False),
    ],
)
def test_a_status_is_the_programs_own_verdict_and_so_may_a_signal_be(outcome: Outcome, own: bool) -> None:
    found = signature_of(outcome)
    assert found is not None
    assert is_own_verdict(found, outcome, script="repro.py") is own


def refused(source: str, raised: str, where: str = "repro.py") -> str:
    """A traceback from the compiler into a pass of the program's own."""
    return COMPILING + f'  File "{where}", line 9, in my_pass\n    {source}\n    ^^^^^^^\n{raised}\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (refused("assert len(nodes) >= 3", "AssertionError"), "assertlennodes>=3"),
        (refused("cost = TABLE[value.dim()]  # by rank", "KeyError: 0"), "cost=TABLEvalue.dim"),
        (refused("assert len(nodes) >= 3, said", "AssertionError: too few nodes"), ""),  # it has words
        (refused("raise ValueError(said)", "ValueError: too few nodes"), ""),
        (
            refused("return index[0]", "IndexError: list index out of range", "/v/site-packages/torch/_inductor/ir.py"),
            "",
        ),  # the compiler's own
        (stack() + "KeyError: 0\n", ""),  # in the program's own run
    ],
)
def test_the_statement_that_refused_is_told_where_nothing_else_is(text: str, said: str) -> None:
    assert refusal(judged(text), text, "repro.py") == said


def test_a_statement_is_known_again_in_another_spelling_and_by_its_first_line() -> None:
    wanted = statement(refused('assert value.meta["val"].dim() == 0 or value.flag', "AssertionError"))
    for source, same in (
        ("assert value.meta['val'].dim() == 0 or value.flag  # no scalars", True),
        ("assert value.meta['val'].dim() == 0 or (", True),
        ("assert len(value.users) >= 3", False),
    ):
        assert is_statement(statement(refused(source, "AssertionError")), wanted) is same, source
    assert is_statement(statement("AssertionError"), wanted), "a text that shows no line tells nothing"


@pytest.mark.parametrize("said", ["driver: status {}", "failed with error code {}", "[Errno {}] no room", "exit status=-{}", "code: {}"])
def test_a_number_that_names_the_error_stays(said: str) -> None:
    one, other = (judged(refused("raise RuntimeError(said)", f"RuntimeError: {said.format(n)} for 5 nodes")) for n in (7, 3))
    again = judged(refused("raise RuntimeError(said)", f"RuntimeError: {said.format(7)} for 2 nodes"))
    assert one.same_across_forms(again)
    assert not one.same_across_forms(other)


@pytest.mark.parametrize("wrapper", ["torch/utils/_contextlib.py:decorate_context", "torch/amp/autocast_mode.py:decorate_autocast"])
def test_a_comparison_in_a_decorated_function_is_one(wrapper: str) -> None:
    text = stack(wrapper) + '  File "repro.py", line 9, in main\nAssertionError: Tensor-likes are not close!\n'
    assert judged(text).kind is Kind.ACCURACY


def test_operators_that_differ_in_a_digit_differ() -> None:
    def of(target: str) -> Signature:
        said = f"LoweringException: AssertionError: \n  target: {target}\n  args[0]: TensorBox(\n"
        return judged(f"{LOWERING_STACK}torch._inductor.exc.InductorError: {said}")

    assert of("aten.avg_pool2d.default").message == "target: aten.avg_pool2d.default"
    assert not of("aten.avg_pool2d.default").same_across_forms(of("aten.avg_pool3d.default"))


def cpp(command: str, output: str) -> Signature:
    return judged(
        f"{BUILDING}torch._inductor.exc.InductorError: CppCompileError: C++ compile error\n\nCommand:\n{command}\n\nOutput:\n{output}\n",
        status="raised",
    )


@pytest.mark.parametrize(
    "output",
    [
        "/tmp/x/c1.main.cpp:18:33: error: use of undeclared identifier 'compile'",
        "a.h:1:1: warning: no error: here\nc1.cpp:18:33: error: use of undeclared identifier ‘compile’; did you mean ‘c’?",
        "c1.cpp:18:33: fatal error: use of undeclared identifier 'compile'\nc1.cpp:19:1: error: another",
    ],
)
def test_first_cpp_diagnostic(output: str) -> None:
    signature = cpp("g++ c1.main.cpp -D error: -o c1.so", output)
    assert signature.message == "use of undeclared identifier 'compile'"
    assert signature.phase is Phase.CPP_COMPILE


def test_linker_error() -> None:
    output = (
        "ld: cc12.o: in function `k':\nx.cpp:(.text+0x5): undefined reference to `at::foo3'\ncollect2: error: ld returned 1 exit status"
    )
    assert "at::foo3" in cpp("g++ x", output).message


def test_cpp_errors_do_not_depend_on_the_command() -> None:
    output = "c1.cpp:18:33: error: no"
    assert cpp("g++ -O3", output).same(cpp("clang++ -O0 -march=native", output))


def test_triton_compilation_error() -> None:
    text = (
        COMPILING
        + '  File "/v/site-packages/torch/_inductor/runtime/triton_heuristics.py", line 1, in _precompile_config\n'
        + '  File "/v/site-packages/triton/compiler/compiler.py", line 273, in compile\n'
        + "torch._inductor.exc.InductorError: CompilationError: at 8:11:\n"
        + "def triton_poi_fused_relu_0(in_ptr0, xnumel):\n    tmp1 = compile_error\n"
        + '           ^\nNameError("compile_error is not defined")\n\nSet TORCHDYNAMO_VERBOSE=1 for more\n'
    )
    signature = judged(text)
    assert (signature.phase, signature.exception[-1]) == (Phase.TRITON_COMPILE, "CompilationError")
    assert signature.message == 'NameError("compile_error is not defined")'


def test_exception_from_a_compile_worker() -> None:
    inner = (
        "Traceback (most recent call last):\n"
        '  File "/v/site-packages/torch/_inductor/compile_worker/subproc_pool.py", line 5, in do_job\n    x()\n'
        '  File "/v/site-packages/triton/compiler/compiler.py", line 3, in compile\n    y()\n'
        "triton.compiler.errors.CompilationError: at 1:2:\n    code\nbad shape\n"
    )
    outer = COMPILING + '  File "/v/site-packages/torch/_inductor/async_compile.py", line 1, in wait\n'
    text = outer + "torch._inductor.exc.InductorError: SubprocException: An exception occurred in a subprocess:\n\nName=triton_0\n" + inner
    signature = judged(text)
    assert signature.exception == ("InductorError", "SubprocException", "CompilationError")
    assert (signature.phase, signature.message) == (Phase.TRITON_COMPILE, "bad shape")


def failing_compile() -> None:
    """Raises as a pass in the compiler does, with a cause."""
    frames = '  File "/v/site-packages/torch/_inductor/fx_passes/post_grad.py", line 1, in post_grad_passes'
    try:
        exec(
            compile(
                "\n" * 6 + "raise ValueError('vendor: no microkernel for aten.sin')", "/v/site-packages/torch/_inductor/graph.py", "exec"
            )
        )
    except ValueError as error:
        raise OSError(f"lost: {frames}") from error


def carried_by(pool: str) -> str:
    """What Python prints of an exception that `pool` brings back from a worker, made by the pool's own classes."""
    module = importlib.import_module(pool)
    wrap = getattr(module, "_ExceptionWithTraceback", None) or module.ExceptionWithTraceback
    try:
        failing_compile()
    except OSError as error:
        rebuild, arguments = wrap(error, error.__traceback__).__reduce__()
    try:
        raise rebuild(*arguments)
    except OSError as error:
        return "".join(traceback.format_exception(error))


@pytest.mark.parametrize("pool", ["concurrent.futures.process", "multiprocessing.pool"])
def test_exception_from_a_worker_process(pool: str) -> None:
    text = carried_by(pool)
    assert "RemoteTraceback" in text
    signature = judged(text)
    assert (signature.exception, signature.message) == (("OSError", "ValueError"), "vendor: no microkernel for aten.sin")
    assert signature.frame == "torch/_inductor/graph.py:<module>"


# as `torch._utils.ExceptionWrapper` of torch 2.13 writes it; a class whose constructor takes more than a text becomes a RuntimeError
WRAPPED = (
    "Traceback (most recent call last):\n"
    '  File "/tmp/a/repro.py", line 40, in <module>\n    for batch in loader:\n'
    '  File "/v/site-packages/torch/utils/data/dataloader.py", line 700, in __next__\n    data = self._next_data()\n'
    '  File "/v/site-packages/torch/_utils.py", line 793, in reraise\n    raise RuntimeError(msg) from None\n'
    "RuntimeError: Caught InductorError in {where}.\n"
    "Original Traceback (most recent call last):\n"
    '  File "/v/site-packages/torch/_inductor/compile_fx.py", line 9, in _recursive_post_grad_passes\n    f()\n'
    '  File "/tmp/a/repro.py", line 20, in __call__\n    raise ValueError("x")\n'
    "ValueError: {said}\n{more}"
)
DIRECT = (
    "\nThe above exception was the direct cause of the following exception:\n\n"
    "Traceback (most recent call last):\n"
    '  File "/tmp/a/repro.py", line 36, in __getitem__\n    return self.transform(self.images[k]), k\n'
    '  File "/v/site-packages/torch/_dynamo/eval_frame.py", line 1, in compile_wrapper\n    f()\n'
    "torch._inductor.exc.InductorError: ValueError: {said}\n"
)


@pytest.mark.parametrize("more", ["", DIRECT])
@pytest.mark.parametrize("where", ["DataLoader worker process 0", "replica 0 on device 0", "pin memory thread for device 0"])
def test_exception_that_torch_carries_between_threads_and_processes(where: str, more: str) -> None:
    said = "vendor: no microkernel for aten.sin.default"
    signature = judged(WRAPPED.format(where=where, said=said, more=more.format(said=said)))
    assert signature.exception[-1] == "ValueError"
    assert (signature.phase, signature.message) == (Phase.POST_GRAD, said)
    other = judged(WRAPPED.format(where=where, said="vendor: table is empty", more=""))
    assert not signature.same_across_forms(other)
    alone = WRAPPED.format(where=where, said=said, more="").partition("Original ")[2]
    assert signature.same_across_forms(judged(alone))


def test_exception_of_a_spawned_process() -> None:
    """As `torch.multiprocessing.spawn` of torch 2.13 says it."""
    inner = WRAPPED.partition("Original ")[2].format(said="no rank", more="")
    text = (
        'Traceback (most recent call last):\n  File "/tmp/a/repro.py", line 5, in <module>\n    spawn(f)\n'
        '  File "/v/site-packages/torch/multiprocessing/spawn.py", line 211, in join\n    raise ProcessRaisedException(msg)\n'
        "torch.multiprocessing.spawn.ProcessRaisedException: \n\n-- Process 0 terminated with the following error:\n" + inner
    )
    signature = judged(text)
    assert signature.exception == ("ProcessRaisedException", "ValueError")
    assert (signature.phase, signature.message) == (Phase.POST_GRAD, "no rank")


COMPARED = (
    "Traceback (most recent call last):\n"
    '  File "{harness}", line 60, in _wrap\n    fn(i, *args)\n'
    '  File "/tmp/a/repro.py", line 9, in check\n    torch.testing.assert_close(actual, expected)\n'
    '  File "/v/site-packages/torch/testing/_comparison.py", line 1631, in assert_close\n    raise error_metas[0].to_error(msg)\n'
    "AssertionError: {said}Tensor-likes are not close!\n\nMismatched elements: 16 / 16 (100.0%)\n"
)


def test_a_comparison_in_another_process_is_one() -> None:
    """As torch 2.13 hands it on, from `multiprocessing.spawn` and from a DataLoader's worker, and as a rank of torchrun prints it."""
    spawned = COMPARED.format(harness="/v/site-packages/torch/multiprocessing/spawn.py", said="")
    carried = (
        'Traceback (most recent call last):\n  File "/tmp/a/repro.py", line 5, in <module>\n    spawn(f)\n'
        '  File "/v/site-packages/torch/multiprocessing/spawn.py", line 211, in join\n    raise ProcessRaisedException(msg)\n'
        "torch.multiprocessing.spawn.ProcessRaisedException: \n\n-- Process 0 terminated with the following error:\n"
    )
    loaded = (
        'Traceback (most recent call last):\n  File "/tmp/a/repro.py", line 18, in <module>\n    for batch in loader:\n'
        '  File "/v/site-packages/torch/_utils.py", line 775, in reraise\n    raise exception\n'
        "AssertionError: Caught AssertionError in DataLoader worker process 0.\nOriginal "
    )
    worker = COMPARED.format(harness="/v/site-packages/torch/utils/data/_utils/worker.py", said="")
    found = [judged(carried + spawned), judged(loaded + worker), judged(spawned)]
    assert [(one.kind, one.exception) for one in found] == [(Kind.ACCURACY, ("AssertionError",))] * 3
    # what the parent makes of it in words of its own is none
    failed = COMPARED.format(harness="/v/site-packages/torch/_inductor/graph.py", said="")
    assert judged(carried + failed).kind is Kind.EXCEPTION


def test_a_rank_s_marks_are_no_part_of_its_error() -> None:
    """As `torch.distributed.init_process_group` of torch 2.13 has `sys.excepthook` print it; empty lines have no mark."""
    text = COMPARED.format(harness="/v/site-packages/torch/_dynamo/eval_frame.py", said="rank 1: ")
    marked = "".join(f"[rank1]: {line}" if line.strip() else line for line in text.splitlines(keepends=True))
    assert judged(marked) == judged(text)
    assert judged(marked).exception == ("AssertionError",)


def test_fake_tensor_message_in_one_line() -> None:
    """So it was before the graph-break format."""
    text = (
        stack("torch/_dynamo/eval_frame.py:compile_wrapper", "torch/_dynamo/utils.py:get_fake_value")
        + "torch._dynamo.exc.TorchRuntimeError: Dynamo failed to run FX node with fake tensors: call_function <built-in function add>"
        + "(*(FakeTensor(..., size=(3,)), FakeTensor(..., size=(4,))), **{}): got RuntimeError('The size of tensor a (3) must match "
        + 'the size of tensor b (4)\')\n\nfrom user code:\n   File "repro.py", line 2, in f\n'
    )
    signature = judged(text)
    assert signature.exception == ("TorchRuntimeError", "RuntimeError")
    assert signature.message == "The size of tensor a (N) must match the size of tensor b (N)"


def test_sizes_names_and_places_are_no_part_of_a_message() -> None:
    one = "buf12 of [2, 8, s77] at 0x7f00 in /tmp/a/b.py:3 (3x4 and 5x6) of cpp_fused_add_relu_3, arg0_1, 1e-05"
    two = "buf3 of [1] at 0x1 in /home/u/c/d.py:77 (1x1 and 2x2) of cpp_fused_add_0, arg17_1, 3"
    assert judged(f"{COMPILING}RuntimeError: {one}\n").message == judged(f"{COMPILING}RuntimeError: {two}\n").message
    assert judged(f"{COMPILING}RuntimeError: {one}\n").message != judged(f"{COMPILING}RuntimeError: {two} twice\n").message


@pytest.mark.parametrize("word", ["float16", "conv2d", "log1p", "int8"])
def test_digits_that_are_part_of_a_word_stay(word: str) -> None:
    assert judged(f"{COMPILING}RuntimeError: not implemented for {word}\n").message == f"not implemented for {word}"


def test_only_the_last_exception_and_its_causes_count() -> None:
    first = stack("torch/_dynamo/variables/base.py:var") + "KeyError: 'a'\n\n{}\n\n"
    last = stack("torch/_dynamo/exc.py:unimplemented") + "torch._dynamo.exc.Unsupported: no\n"
    context = first.format("During handling of the above exception, another exception occurred:")
    cause = first.format("The above exception was the direct cause of the following exception:")
    assert judged(context + last).exception == ("Unsupported",)
    assert judged(cause + last).exception == ("Unsupported", "KeyError")


def test_a_cut_in_the_middle_of_the_frames() -> None:
    lines = text_of("191582_while_alias").split("\n")
    cut = "\n".join([*lines[:12], "[...]", 'n/eval_frame.py", line 3, in torn', *lines[60:]])
    assert judged(cut) == failure("191582_while_alias")


def check(signature: Signature | None) -> None:
    assert signature is not None
    assert len(signature.message) <= 500
    assert len(signature.exception) <= 12
    assert all(len(name) <= 100 for name in signature.exception)
    assert signature.frame is None or len(signature.frame) <= 200
    signature.line()


PIECES = st.sampled_from(
    [
        "Traceback (most recent call last):\n",
        '  File "site-packages/torch/_inductor/graph.py", line 3, in run\n',
        "Fatal Python error: Aborted\n",
        "Current thread 0x1 (most recent call first):\n",
        "torch._inductor.exc.InductorError: ",
        "LoweringException: ",
        "torch._dynamo.exc.BackendCompilerFailed: backend='x' raised:\n",
        "torch._dynamo.exc.TorchRuntimeError: got RuntimeError('",
        "CppCompileError: C++ compile error",
        "TensorBox((((",
        "\nThe above exception was the direct cause of the following exception:\n\n",
        "SubprocException",
        "\x1b[3",
        "[...]\n",
    ]
)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.one_of(PIECES, st.text(max_size=40)), max_size=25).map("".join),
    st.sampled_from(["raised", "timeout", "signal", "memory", "exit"]),
)
def test_any_text_gives_a_bounded_signature(text: str, status: str) -> None:
    check(signature_of(Outcome(status=status, text=text)))


BODIES = [
    "x",
    "TensorBox(", "got RuntimeError(", "a:", "/", "a/", "((", "\n", "Traceback (most recent call last):\n", '  File "a", line 1, in f\n',
    "[1, ",
    "a_1", "error: ", "x: error: y\n", "1", "backend='", "A.", "(unhinted: ", "\x1b[1", " ", "a.b/", "\nCommand:",
]  # fmt: skip


@pytest.mark.parametrize("body", BODIES, ids=repr)
@pytest.mark.parametrize("before", ["", "a.InductorError: LoweringException: ", "a.CppCompileError: ", "a.TorchRuntimeError: "])
def test_ten_megabytes_take_no_time(body: str, before: str) -> None:
    text = COMPILING + before + body * (10_000_000 // len(body)) + "\nRuntimeError: end\n"
    started = time.process_time()
    check(signature_of(Outcome(status="raised", text=text)))
    check(signature_of(Outcome(status="timeout", text=text)))
    assert time.process_time() - started < 5


def test_broken_memory_is_one_crash_whatever_its_signal() -> None:
    one = signature_of(Outcome(status="signal", signal="SIGSEGV", text="Fatal Python error: Segmentation fault"))
    other = signature_of(Outcome(status="signal", signal="SIGABRT", text="malloc_consolidate(): unaligned fastbin chunk detected\nAborted"))
    abort = signature_of(Outcome(status="signal", signal="SIGABRT", text="terminate called after throwing an instance of 'c10::Error'"))
    assert one is not None
    assert other is not None
    assert abort is not None
    assert one.same(other)
    assert one.fingerprint == other.fingerprint
    assert not one.same(abort)
    assert (other.signal, other.message) == ("SIGABRT", "heap corruption")


def test_a_size_of_one_is_another_constant_than_four() -> None:
    def said(size: int) -> str:
        return essence(
            "UserError",
            'Constraints violated (batch)! For more information, run with TORCH_LOGS="+dynamic".\n'
            f"  - You marked batch as dynamic but your code specialized it to be a constant ({size}). If you are using mark_dynamic,",
        )

    assert said(4) == said(17)
    assert said(1) == said(0) != said(4)


@pytest.mark.parametrize(
    ("kind", "message", "words"),
    [
        (Kind.ACCURACY, "int output: aoti tensor(...), eager N", "int output: aoti tensor(...), eager N"),
        (Kind.NO_RAISE, "compiled accepted it", "compiled accepted it"),
        (Kind.ACCURACY, "Tensor-likes are not close!", ""),
        (Kind.ACCURACY, "Arrays are not almost equal to N decimals", ""),
        (Kind.ACCURACY, "Not equal to tolerance rtol=N, atol=N", ""),
        (Kind.ACCURACY, "", ""),
        (Kind.EXCEPTION, "something else", ""),
    ],
)
def test_what_a_programs_own_assert_says(kind: Kind, message: str, words: str) -> None:
    assert own_words(Signature(kind=kind, phase=Phase.RUN, exception=("AssertionError",), message=message)) == words


@pytest.mark.parametrize(
    ("message", "of"),
    [
        ("Tensor-likes are not close! Mismatched elements: N / N (N%)", "numbers"),
        ("Scalars are not equal! Expected N but got N.", "numbers"),
        ("Not equal to tolerance rtol=N, atol=N x and y nan location mismatch:", "numbers"),
        ("Arrays are not almost equal to N decimals Mismatched elements: N / N (N%)", "numbers"),
        ("The values for attribute 'dtype' do not match: torch.float32 != torch.float64.", "dtype"),
        ("The values for attribute 'stride()' do not match: (N, N) != (N, N).", "stride"),
        ("Not equal to tolerance rtol=N, atol=N (shapes (N,), (N,) mismatch)", "shape"),
        ("None mismatch: None is not N", "kind"),
        ("The length of the sequences do not match: N != N", "kind"),
        ("loss is off by N", ""),
        ("", ""),
    ],
)
def test_what_a_comparison_complains_of(message: str, of: str) -> None:
    said = Signature(kind=Kind.ACCURACY, phase=Phase.RUN, exception=("AssertionError",), message=message)
    assert complaint(said) == of
    assert complaint(said.model_copy(update={"kind": Kind.EXCEPTION})) == ""


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("Could not guard on data-dependent expression u0 > 3 (unhinted: u0 > 3).  (Size-like symbols: u0)\n\nconsider", "u0 > 3"),
        ("Could not guard on data-dependent expression Eq(u1, u0)\n", "Eq(u1, u0)"),
        ("something else\n", ""),
    ],
)
def test_the_condition_that_cannot_be_guarded_on(said: str, words: str) -> None:
    failure = Signature(kind=Kind.EXCEPTION, phase=Phase.DYNAMO, exception=("UserError",), message="x")
    assert own_words(failure, f"Traceback (most recent call last):\ntorch._dynamo.exc.UserError: {said}") == words


def test_half_a_character_can_be_written() -> None:
    text = 'Traceback (most recent call last):\n  File "repro.py", line 1, in <module>\nValueError: no \udd74 here\n'
    signature = signature_of(Outcome(status="raised", text=text))
    assert signature is not None
    assert "ValueError" in signature.model_dump_json()


@pytest.mark.parametrize(
    ("frames", "waits"),
    [
        (("torch/_inductor/cpp_builder.py:run_compile_cmd", "subprocess.py:communicate", "selectors.py:select"), True),
        (("triton/backends/nvidia/compiler.py:make_cubin", "subprocess.py:run", "subprocess.py:wait", "subprocess.py:_try_wait"), True),
        ((TRACING,), False),
        (("subprocess.py:run", "a.py:a", "b.py:b", "c.py:c", TRACING), False),
        ((), False),
    ],
)
def test_a_compiler_that_is_waited_for_may_only_be_slow(frames: tuple[str, ...], waits: bool) -> None:
    text = dump(ABORTED, *frames) if frames else "nothing\n"
    assert waits_for_a_program(Outcome(status="timeout", text=text)) is waits
