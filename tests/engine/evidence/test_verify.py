"""Runs in fresh processes: how they end, what they see, what is left of them."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import pytest

from bot.engine.evidence import verify as fresh
from bot.engine.evidence.verify import Expected, NotRun, Verification, difference, run_control_fresh, run_fresh, verify
from bot.engine.target import Launch
from bot.failure.outcome import Outcome
from bot.failure.signature import signature_of
from bot.machine import capacity
from bot.models.failure import Kind, Phase, Signature
from bot.models.result import Rule
from bot.workers import toolchain
from bot.workers.process import KEEP, LIMITS, Interrupted
from tests.processes import ended

OURS = Path(__file__).parents[3]
ENV = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def script(body: str) -> Path:
        path = tmp_path / "repro.py"
        path.write_text(textwrap.dedent(body))
        return path

    return script


def launch(script: Path) -> Launch:
    return Launch(sys.executable, script.parent, ENV)


def run(script: Path, timeout: float = 60, **more: object) -> Outcome:
    return run_fresh(launch(script), script, timeout=timeout, **more)  # type: ignore[arg-type]


def test_an_exception_comes_last_whatever_was_printed(write: Write) -> None:
    outcome = run(write("print('first')\nimport atexit\natexit.register(print, 'late')\nraise ValueError('no 7')\n"))
    assert (outcome.status, outcome.exit) == ("raised", 1)
    assert outcome.text.startswith("first\nlate\nTraceback")
    signature = signature_of(outcome)
    assert signature is not None
    assert (signature.exception, signature.message) == (("ValueError",), "no N")


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ("print(1)", "ok", 0),
        ("raise SystemExit(3)", "exit", 3),
        ("raise SystemExit('words')", "exit", 1),
        ("def f(:", "raised", 1),
        ("import os; os._exit(1)", "exit", 1),
    ],
)
def test_status(write: Write, body: str, status: str, code: int) -> None:
    outcome = run(write(body))
    assert (outcome.status, outcome.exit) == (status, code)


def test_a_signal_with_its_dump(write: Write) -> None:
    outcome = run(write("import os, signal\ndef deep(): os.kill(os.getpid(), signal.SIGSEGV)\ndeep()\n"))
    assert (outcome.status, outcome.signal) == ("signal", "SIGSEGV")
    assert "in deep" in outcome.text


def test_a_hang_shows_its_stack_and_leaves_nobody_behind(write: Write) -> None:
    script = write("""
        import pathlib, subprocess, sys, time
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        pathlib.Path("child").write_text(str(child.pid))
        def stuck():
            time.sleep(600)
        stuck()
    """)
    outcome = run(script, timeout=3)
    assert outcome.status == "timeout"
    assert "in stuck" in outcome.text
    assert ended(int((script.parent / "child").read_text()))


@pytest.mark.parametrize(("seconds", "same"), [(2.0, 0), (600.0, 1)])
def test_starting_is_no_part_of_a_hang(write: Write, monkeypatch: pytest.MonkeyPatch, seconds: float, same: int) -> None:
    monkeypatch.setattr(fresh, "START", 5.0)
    script, hang = write(f"import time\ntime.sleep({seconds})\n"), Signature(kind=Kind.HANG, phase=Phase.RUN)
    assert prove(script, hang, rule=Rule(hang_after=1.0)).same == same


def test_a_flood_of_output_is_drained_and_cut(write: Write) -> None:
    outcome = run(write("import sys\nfor i in range(200): sys.stderr.write('x' * 99_999 + '\\n')\nraise ValueError('end')\n"))
    assert outcome.status == "raised"
    assert len(outcome.text) < 4 * KEEP
    assert outcome.text.rstrip().endswith("ValueError: end")


def test_what_a_run_sees(write: Write, tmp_path: Path) -> None:
    script = write("""
        import json, os, sys
        here = {name: os.environ.get(name) for name in ("PYTHONPATH", "TORCHDYNAMO_VERBOSE", "TORCHINDUCTOR_CACHE_DIR", "SECRET", "GIVEN")}
        print(json.dumps({**here, "argv": sys.argv[1:], "path0": sys.path[0], "cache": os.path.isdir(here["TORCHINDUCTOR_CACHE_DIR"])}))
    """)
    import json

    os.environ["SECRET"] = "x"
    try:
        outcome = run_fresh(
            Launch(sys.executable, tmp_path, {**ENV, "GIVEN": "1", "PYTHONPATH": f"{OURS}{os.pathsep}{tmp_path / 'lib'}"}, ("a", "b")),
            script,
            timeout=60,
        )
    finally:
        del os.environ["SECRET"]
    seen = json.loads(outcome.text)
    assert seen["PYTHONPATH"] == str(tmp_path / "lib"), "our own package is not on the path"
    assert (seen["SECRET"], seen["GIVEN"], seen["TORCHDYNAMO_VERBOSE"]) == (None, "1", "1")
    assert (seen["argv"], seen["path0"]) == (["a", "b"], str(tmp_path))
    assert seen["cache"]
    assert not Path(seen["TORCHINDUCTOR_CACHE_DIR"]).exists(), "a temporary cache is removed"


def test_a_temporary_cache_has_what_is_kept_of_the_toolchain(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What every compile of C++ begins with takes ten seconds in a cold directory."""
    monkeypatch.setenv("TORCH_MINIFY_CACHE_DIR", str(tmp_path / "kept"))
    probe = toolchain.directory() / "ab" / "probe.so"
    probe.parent.mkdir(parents=True)
    for file in (probe, probe.with_suffix(".cpp")):
        file.write_text("here")
    outcome = run(write("import os\nprint(sorted(os.listdir(os.environ['TORCHINDUCTOR_CACHE_DIR'] + '/ab')))\n"))
    assert outcome.text.strip() == "['probe.cpp', 'probe.so']"


def test_a_given_cache_is_kept(write: Write, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    outcome = run(write("import os\nopen(os.environ['TORCHINDUCTOR_CACHE_DIR'] + '/kernel', 'w').close()\n"), cache_dir=cache)
    assert outcome.status == "ok"
    assert (cache / "kernel").exists()


def test_an_interpreter_that_is_not_there(write: Write) -> None:
    script = write("")
    assert run_fresh(Launch("/no/such/python", script.parent, ENV), script, timeout=5).status == "infra"


def signature(**fields: object) -> Signature:
    return Signature.model_validate(
        {"kind": Kind.EXCEPTION, "phase": Phase.PRE_GRAD, "exception": ("ValueError",), "message": "no", **fields}
    )


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (None, "did not fail"),
        (signature(), ""),
        (signature(exception=("BackendCompilerFailed", "ValueError")), ""),
        (signature(message="yes"), "message 'yes', not 'no'"),
        (signature(phase=Phase.RUN, exception=()), "phase run, not pre_grad; class none, not 'ValueError'"),
        (signature(kind=Kind.CRASH, signal="SIGSEGV"), "kind crash, not exception; signal 'SIGSEGV', not none"),
    ],
)
def test_difference(found: Signature | None, said: str) -> None:
    assert difference(signature(), found) == said


def prove(script: Path, reference: Signature, runs: int = 1, rule: Rule | None = None) -> Verification:
    return verify(launch(script), script, Expected(reference, rule or Rule(), 100.0), runs)


PASS_RAISES = """
    import torch, pathlib, sys
    import torch._inductor.config

    assert not pathlib.Path("mine").exists()  # what another run wrote
    pathlib.Path("mine").touch()
    first = False
    if "torch_minify_inside" not in sys.modules:  # the control may run at the same time
        try:
            pathlib.Path(__file__).parent.with_name("taken").mkdir()
            first = True
        except FileExistsError:
            pass

    def my_pass(graph):
        if first:
            raise ValueError("no")

    torch._inductor.config.pre_grad_custom_pass = my_pass
    torch.compile(torch.relu)(torch.ones(4))
"""


def test_verify_counts_the_runs_that_are_the_same(write: Write) -> None:
    pytest.importorskip("torch")
    verification = prove(write(PASS_RAISES), signature(), 2)
    assert (verification.runs, verification.same, verification.eager) == (2, 1, "passes")
    assert sorted(found is not None for found in verification.signatures) == [False, True]
    assert verification.differences[0] in ("run 1: did not fail", "run 2: did not fail")
    assert not verification.proven
    assert Verification.model_validate_json(verification.model_dump_json(round_trip=True)) == verification


def test_verify_refuses_what_fails_without_the_compiler(write: Write) -> None:
    pytest.importorskip("torch")
    script = write("import torch\ntorch.compile(torch.relu, backend='eager')\nraise ValueError('no')\n")
    verification = prove(script, signature(phase=Phase.RUN))
    assert (verification.same, verification.eager, verification.proven) == (1, "fails", False)
    assert verification.differences == ("eager control: exception in run: ValueError: no",)


def test_verify_refuses_a_script_without_a_compiler(write: Write) -> None:
    pytest.importorskip("torch")
    # fails where it is run plainly, passes as a control: nothing of it is about the compiler
    script = write("import sys, torch\nif 'torch_minify_inside' not in sys.modules: raise ValueError('no')\n")
    verification = prove(script, signature(phase=Phase.RUN))
    assert (verification.same, verification.eager) == (1, "fails")
    assert verification.differences == ("eager control: the script calls no compiler",)


def test_verify_refuses_a_tolerance_that_eager_does_not_meet(write: Write) -> None:
    pytest.importorskip("torch")
    script = write("""
        import torch

        def backend(gm, inputs):
            return lambda x: [x]

        def f(x):
            return (x + 1e8) - 1e8

        x = torch.ones(3)
        torch.testing.assert_close(torch.compile(f, backend=backend)(x), f(x))
    """)
    verification = prove(script, signature(kind=Kind.ACCURACY, phase=Phase.RUN))
    assert (verification.same, verification.eager) == (1, "fails")
    assert verification.differences[0].startswith("eager control: eager is wrong as well, against float64")


@pytest.mark.parametrize(("own", "eager"), [(True, "fails"), (False, "passes")])
def test_a_status_by_which_the_program_says_that_it_is_wrong_is_one_that_right_numbers_pass(write: Write, own: bool, eager: str) -> None:
    pytest.importorskip("torch")
    script = write("""
        import sys, torch

        def f(x):
            return (x + 1e8) - 1e8

        x = torch.ones(3)
        sys.exit(not torch.equal(torch.compile(f, backend=lambda gm, inputs: lambda x: [x])(x), f(x)))
    """)
    failed = signature(phase=Phase.RUN, exception=("SystemExit",), message="1")
    verification = prove(script, failed, rule=Rule(own_verdict=own))
    assert (verification.same, verification.eager) == (1, eager)


@pytest.mark.parametrize("noisy", [False, pytest.param(True, marks=pytest.mark.all)])
def test_without_float64_compiled_has_to_be_outside_of_eagers_own_noise(write: Write, noisy: bool) -> None:
    pytest.importorskip("torch")
    script = write(f"""
        import torch

        def backend(gm, inputs):
            return lambda x: [torch.full_like(x, 4.0)]

        def f(x):
            return (x.view(torch.int32).view(torch.float32) + {"1e8) - 1e8" if noisy else "1) * 1"}

        x = torch.rand(64)
        torch.testing.assert_close(torch.compile(f, backend=backend)(x), f(x), rtol=1e-3, atol=1e-3)
    """)
    verification = prove(script, signature(kind=Kind.ACCURACY, phase=Phase.RUN))
    assert (verification.same, verification.eager) == (1, "fails" if noisy else "passes")
    assert verification.instead_of_float64 == "the bits of a tensor are read as another type"
    if noisy:
        assert verification.differences[0].startswith("eager control: eager is wrong as well, moved by its own rounding")


@pytest.mark.parametrize(("numbers", "eager"), [pytest.param("fp64", "passes", marks=pytest.mark.all), ("spread", "fails")])
def test_a_tolerance_that_eager_only_just_meets(write: Write, numbers: Literal["fp64", "spread"], eager: str) -> None:
    """As the program's own it stands; as ours it would take rounding for a bug."""
    pytest.importorskip("torch")
    script = write("""
        import torch

        def backend(gm, inputs):
            return lambda x: [x + 9]

        def f(x):
            return (x + 10_000.0) - 10_000.0

        x = torch.linspace(0, 1, 64)
        torch.testing.assert_close(torch.compile(f, backend=backend)(x), f(x), rtol=0, atol=8e-4)
    """)
    found = prove(script, signature(kind=Kind.ACCURACY, phase=Phase.RUN), rule=Rule(numbers=numbers))
    assert (found.same, found.eager) == (1, eager), found.differences


@pytest.mark.parametrize(("numbers", "eager"), [("fp64", "fails"), ("eager", "passes")])
def test_eager_that_misses_its_own_tolerance_is_right_where_the_program_says_so(
    write: Write, numbers: Literal["fp64", "eager"], eager: str
) -> None:
    pytest.importorskip("torch")
    script = write("""
        import torch

        def backend(gm, inputs):
            return lambda x: [x]

        def f(x):
            return (x + 10_000.0) - 10_000.0

        x = torch.linspace(0, 1, 64)
        torch.testing.assert_close(torch.compile(f, backend=backend)(x), f(x), rtol=0, atol=1e-5)
    """)
    found = prove(script, signature(kind=Kind.ACCURACY, phase=Phase.RUN), rule=Rule(numbers=numbers))
    assert (found.same, found.eager) == (1, eager), found.differences


@pytest.mark.parametrize("filled", [pytest.param(False, marks=pytest.mark.all), True])
def test_verify_refuses_what_reads_uninitialized_memory(write: Write, filled: bool) -> None:
    pytest.importorskip("torch")
    script = write(f"""
        import torch

        def backend(gm, inputs):
            return lambda x: [x + 1000]

        def f(x):
            return x + torch.empty_like(x){".fill_(1)" if filled else ""}

        x = torch.ones(3)
        # eager agrees with itself: the allocator gives the same block twice
        torch.testing.assert_close(f(x), f(x), equal_nan=True)
        torch.testing.assert_close(torch.compile(f, backend=backend)(x), f(x))
    """)
    found = prove(script, signature(kind=Kind.ACCURACY, phase=Phase.RUN))
    assert (found.same, found.eager) == (1, "passes" if filled else "fails")
    if not filled:
        (said,) = found.differences
        assert said.startswith("eager control: ")


@pytest.mark.parametrize("partial", [True, pytest.param(False, marks=pytest.mark.all)])
def test_a_control_that_ends_behind_the_failure_passes_where_the_programs_own_did(write: Write, partial: bool) -> None:
    script = write("""
        import torch

        def backend(graph, inputs):
            raise KeyError("of the compiler")

        torch.compile(torch.sin, backend=backend)(torch.ones(3))
        raise ValueError("behind it")
    """)
    reference = signature(phase=Phase.DYNAMO, exception=("BackendCompilerFailed", "KeyError"), message="'of the compiler'")
    found = prove(script, reference, rule=Rule(partial=partial))
    assert found.eager == ("passes" if partial else "fails")


def test_the_marks_of_all_processes_of_a_control_are_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    said = (
        "[compiler-out] reached: 2 raised: 1 asked: 4 unmade: 5 KeyError\n"
        + "x\n" * 3000
        + "[compiler-out] reached: 0 raised: 0 asked: 0 unmade: 0\n"
    )
    monkeypatch.setattr(fresh, "run_process", lambda *_, **__: Outcome(status="ok", text=said))
    control = run_control_fresh(Launch("python", tmp_path, {}), "-m", timeout=1)
    assert (control.calls, control.raised, control.asked, control.unmade, control.error) == (2, 1, 4, 5, "KeyError")


def test_a_control_tells_how_often_the_compiler_was_called(write: Write) -> None:
    pytest.importorskip("torch")
    script = write("import torch\nf = torch.compile(torch.sin)\nf(torch.ones(1))\nf(torch.ones(1))\nprint('[compiler-out] reached: 99')\n")
    outcome = run_control_fresh(launch(script), script, timeout=100)
    assert (outcome.status, outcome.calls) == ("ok", 3)
    assert "reached: 3" not in outcome.text


def test_a_run_that_the_machine_broke_is_made_once_more(write: Write) -> None:
    # the kernel takes the largest process, whoever filled the memory
    reference = signature_of(run(script := write("raise ValueError('no 7')")))
    assert reference is not None
    runs = script.parent / "runs"
    script.write_text(
        f"""
import os, signal
if b"boot.py" not in open("/proc/self/cmdline", "rb").read():
    with open({str(runs)!r}, "a") as file:
        file.write("x")
        if file.tell() == 1:
            os.kill(os.getpid(), signal.SIGKILL)
raise ValueError("no 7")
"""
    )
    assert prove(script, reference).same == 1
    assert runs.read_text() == "xx"


@pytest.mark.parametrize("control", [False, True])
@pytest.mark.parametrize(
    ("broken", "said", "fault"),
    [
        (Outcome(status="infra", text="cannot start python: no room"), "cannot start python: no room", "a process that cannot be run"),
        (Outcome(status="infra", text=LIMITS["processes"]), LIMITS["processes"], "the program started too many processes"),
        (
            Outcome(status="signal", signal="SIGKILL", text="[W] loading"),
            "killed, as for its memory, twice",
            "the program was killed, as for its memory",
        ),
        (
            Outcome(status="raised", text="g++: fatal error: Killed signal terminated program cc1plus"),
            "twice",
            "the machine ran out of memory",
        ),
        (
            Outcome(status="raised", text="Traceback (most recent call last):\nMemoryError\n"),
            "ran out of memory, twice",
            "the machine ran out of memory",
        ),
    ],
)
def test_a_run_that_cannot_be_made_is_no_run_that_passed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, control: bool, broken: Outcome, said: str, fault: str
) -> None:
    """Nor one that failed otherwise, or only now and then."""
    script = tmp_path / "repro.py"
    script.write_text("pass")
    failed = Outcome(status="raised", text="Traceback (most recent call last):\nKeyError: 7\n")
    passed = Outcome(status="ok", text="[compiler-out] reached: 1 raised: 0 asked: 0 unmade: 0")

    def run(words: Sequence[str], *_: object, **__: object) -> Outcome:
        return broken if ("control" in words) is control else failed if control else passed

    monkeypatch.setattr(fresh, "run_process", run)
    reference = signature_of(failed)
    assert reference is not None
    with pytest.raises(NotRun, match=said) as raised:
        verify(launch(script), script, Expected(reference, Rule(), 10.0), 2)
    assert raised.value.fault == fault


@pytest.mark.parametrize("control", [False, True])
def test_what_the_host_refuses_once_is_asked_for_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, control: bool) -> None:
    script = tmp_path / "repro.py"
    script.write_text("pass")
    failed = Outcome(status="raised", text="Traceback (most recent call last):\nKeyError: 7\n")
    passed = Outcome(status="ok", text="[compiler-out] reached: 1 raised: 0 asked: 0 unmade: 0")
    refused = [Outcome(status="raised", text="Traceback (most recent call last):\nMemoryError\n")]

    def run(words: Sequence[str], *_: object, **__: object) -> Outcome:
        if refused and ("control" in words) is control:
            return refused.pop()
        return passed if "control" in words else failed

    monkeypatch.setattr(fresh, "run_process", run)
    reference = signature_of(failed)
    assert reference is not None
    assert verify(launch(script), script, Expected(reference, Rule(), 10.0), 1).proven
    assert not refused


def test_to_be_refused_memory_is_an_answer_where_that_is_the_failure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script = tmp_path / "repro.py"
    script.write_text("pass")
    failed = Outcome(status="raised", text="Traceback (most recent call last):\nMemoryError\n")
    passed = Outcome(status="ok", text="[compiler-out] reached: 1 raised: 0 asked: 0 unmade: 0")
    monkeypatch.setattr(fresh, "run_process", lambda words, *_, **__: passed if "control" in words else failed)
    reference = signature_of(failed)
    assert reference is not None
    assert verify(launch(script), script, Expected(reference, Rule(), 10.0), 2).proven


def test_to_be_killed_is_an_answer_where_that_is_the_failure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script = tmp_path / "repro.py"
    script.write_text("pass")
    killed = Outcome(status="signal", signal="SIGKILL")
    passed = Outcome(status="ok", text="[compiler-out] reached: 1 raised: 0 asked: 0 unmade: 0")
    monkeypatch.setattr(fresh, "run_process", lambda words, *_, **__: passed if "control" in words else killed)
    reference = signature_of(killed)
    assert reference is not None
    assert verify(launch(script), script, Expected(reference, Rule(), 10.0), 2).proven


@pytest.mark.parametrize(("kind", "limits"), [(Kind.EXCEPTION, [10.0, 30.0]), (Kind.HANG, [])])
def test_a_run_that_does_not_end_is_made_once_more_with_more_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: Kind, limits: list[float]
) -> None:
    """A machine on which several programs wait for one GPU's driver: no failure but a hang is one of time."""
    script = tmp_path / "repro.py"
    script.write_text("pass")
    failed = Outcome(status="raised", text="Traceback (most recent call last):\nKeyError: 7\n")
    asked: dict[bool, list[float]] = {True: [], False: []}

    def run(words: Sequence[str], patience: Any, **_: object) -> Outcome:
        control = "control" in words
        asked[control].append(patience.own)
        if len(asked[control]) == 1:
            return Outcome(status="timeout", seconds=patience.own)
        return Outcome(status="ok", text="[compiler-out] reached: 1 raised: 0 asked: 0 unmade: 0") if control else failed

    monkeypatch.setattr(fresh, "run_process", run)
    reference = signature_of(failed)
    assert reference is not None
    found = verify(launch(script), script, Expected(reference.model_copy(update={"kind": kind}), Rule(), 10.0), 1)
    if limits:
        assert (found.same, found.eager, asked) == (1, "passes", {True: limits, False: limits})
    else:
        assert [len(seconds) for seconds in asked.values()] == [1, 1]


@pytest.mark.parametrize(
    ("signature", "processors", "free", "runs"),
    [
        (Signature(kind=Kind.EXCEPTION, phase=Phase.DYNAMO), 8, 64 << 30, 8),
        (Signature(kind=Kind.EXCEPTION, phase=Phase.DYNAMO), 8, None, 2),
        (Signature(kind=Kind.ACCURACY, phase=Phase.RUN), 8, 100 << 20, 1),
        (Signature(kind=Kind.HANG, phase=Phase.DYNAMO), 8, 64 << 30, 1),
        (Signature(kind=Kind.CRASH, phase=Phase.RUN, signal="MEMORY"), 8, 64 << 30, 1),
        (Signature(kind=Kind.EXCEPTION, phase=Phase.RUN, message="CUDA out of memory. Tried to allocate N"), 8, 64 << 30, 1),
        (Signature(kind=Kind.CRASH, phase=Phase.RUN, signal="SIGSEGV"), 8, 64 << 30, 8),
    ],
)
def test_fresh_processes_run_side_by_side_where_there_is_room(
    monkeypatch: pytest.MonkeyPatch, signature: Signature, processors: int, free: int | None, runs: int
) -> None:
    """What is about time or memory is run one after the other."""
    monkeypatch.setattr(capacity, "processors", lambda: processors)
    monkeypatch.setattr(capacity, "free_memory", lambda: free)
    monkeypatch.setattr(fresh.resource, "getrusage", lambda _: SimpleNamespace(ru_maxrss=1 << 20))
    assert fresh.at_once(signature) == runs


@pytest.mark.parametrize(
    ("kind", "processors", "free", "gpus", "candidates"),
    [
        (Kind.EXCEPTION, 16, 128 << 30, 0, 6),
        (Kind.EXCEPTION, 16, 128 << 30, 2, 8),
        (Kind.EXCEPTION, 64, 512 << 30, 2, 12),
        (Kind.ACCURACY, 16, 12 << 30, 1, 3),
        (Kind.EXCEPTION, 2, 64 << 30, 1, 1),
        (Kind.HANG, 16, 128 << 30, 1, 1),
    ],
)
def test_candidates_are_tried_side_by_side_where_there_is_room(
    monkeypatch: pytest.MonkeyPatch, kind: Kind, processors: int, free: int, gpus: int, candidates: int
) -> None:
    monkeypatch.setattr(capacity, "processors", lambda: processors)
    monkeypatch.setattr(capacity, "free_memory", lambda: free)
    monkeypatch.setattr(capacity, "gpus", lambda: gpus)
    monkeypatch.setattr(fresh.resource, "getrusage", lambda _: SimpleNamespace(ru_maxrss=1 << 20))
    assert fresh.candidates_at_once(Signature(kind=kind, phase=Phase.DYNAMO)) == candidates


def test_a_run_that_the_budget_cuts_off_says_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script = tmp_path / "repro.py"
    script.write_text("pass")
    monkeypatch.setattr(fresh, "run_process", lambda *_, **__: Outcome(status="timeout", cut=True))
    expected = Expected(Signature(kind=Kind.HANG, phase=Phase.DYNAMO), Rule(), 10.0)
    with pytest.raises(Interrupted):
        verify(launch(script), script, expected, 3)


@pytest.mark.parametrize(("width", "cold"), [(4, {0, 1, 2}), (3, {0}), (1, {0})])
def test_where_there_is_room_every_run_starts_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, width: int, cold: set[int]) -> None:
    """Else the first fills a compile directory for the others."""
    script, found = tmp_path / "repro.py", {}
    script.write_text("pass")

    def run(_: Launch, copy: Path, *, cache_dir: Path, **__: object) -> Outcome:
        found[int(copy.parent.name)] = sorted(path.name for path in cache_dir.iterdir())
        (cache_dir / "kernel.so").touch()
        return Outcome(status="raised", text="Traceback (most recent call last):\nKeyError: 7\n")

    monkeypatch.setattr(fresh, "run_fresh", run)
    monkeypatch.setattr(fresh, "run_control_fresh", lambda *_, **__: Outcome(status="ok", calls=1))
    monkeypatch.setattr(fresh, "at_once", lambda _: width)
    expected = Expected(Signature(kind=Kind.EXCEPTION, phase=Phase.RUN, exception=("KeyError",), message="7"), Rule(), 10.0)
    verify(launch(script), script, expected, 3)
    assert {number for number, held in found.items() if "kernel.so" not in held} == cold


@pytest.mark.parametrize("width", [4, 1])
def test_each_run_may_keep_graphs_and_none_sees_any(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, width: int) -> None:
    """As it is for whoever runs a repro: torch asks a pass for its `uuid` there."""
    script, cache = tmp_path / "repro.py", tmp_path / "compiled"
    script.write_text("pass")
    (cache / "fxgraph" / "of_the_program").mkdir(parents=True)
    kept: list[bool] = []

    def run(words: list[str], *_: object, env: dict[str, str], **__: object) -> Outcome:
        if "control" in words:
            return Outcome(status="ok", calls=1)
        kept.append(env.get("TORCHINDUCTOR_FX_GRAPH_CACHE") != "0" != env.get("TORCHINDUCTOR_AUTOGRAD_CACHE"))
        for name in ("fxgraph", "aotautograd"):
            Path(env["TORCHINDUCTOR_CACHE_DIR"], name, "key").mkdir(parents=True)  # fails where there are any
        return Outcome(status="raised", text="Traceback (most recent call last):\nKeyError: 7\n")

    monkeypatch.setattr(fresh, "run_process", run)
    monkeypatch.setattr(fresh, "at_once", lambda _: width)
    expected = Expected(Signature(kind=Kind.EXCEPTION, phase=Phase.RUN, exception=("KeyError",), message="N"), Rule(), 10.0)
    verify(launch(script), script, expected, 3, cache_dir=cache)
    assert kept == [True] * 3
    assert not (cache / "fxgraph").exists()


def test_a_pass_whose_uuid_fails_is_no_repro(write: Write) -> None:
    """A process with the caches of graphs off asks for none."""
    pytest.importorskip("torch")
    script = write("""
        import torch
        from torch._inductor.custom_graph_pass import CustomGraphPass


        class Raises(CustomGraphPass):
            def __call__(self, graph):
                raise KeyError(7)

            def uuid(self):
                return missing


        torch._inductor.config.post_grad_custom_post_pass = Raises()
        torch.compile(torch.relu)(torch.ones(4))
    """)
    expected = Signature(kind=Kind.EXCEPTION, phase=Phase.POST_GRAD, exception=("InductorError", "KeyError"), message="N")
    verification = prove(script, expected, 2)
    assert (verification.runs, verification.same) == (2, 0), verification.differences
    assert "NameError" in verification.differences[0]
