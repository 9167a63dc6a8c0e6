"""What a capture and its eager control make of a program."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bot.engine import reproduce
from bot.engine.capture.region import Capture, Region, RegionRecipe
from bot.engine.capture.run import Watch
from bot.engine.eager_controls import judge_compiled_branch
from bot.engine.evidence import verify
from bot.engine.options import Ended, Options
from bot.engine.progress import Progress
from bot.engine.reproduce import Intake
from bot.engine.target import Target
from bot.engine.workspace import Workspace
from bot.failure.outcome import Outcome
from bot.failure.signature import is_of_own_code, is_own_verdict, signature_of
from bot.machine import gpu
from bot.models.failure import Kind, Phase, Signature
from bot.oracle.budget import Budget
from bot.workers.process import LIMITS, NOT_RUNNING, START, Patience
from bot.workers.toolchain import Maker

FAILED = 'Traceback (most recent call last):\n  File "/a/fail.py", line 5, in <module>\nInternalTorchDynamoError: no'
WAITS = """\
Timeout (0:00:05)!
Thread 0x00007f (most recent call first):
  File "/usr/lib/python3.12/subprocess.py", line 9 in communicate
  File "/x/site-packages/torch/_inductor/cpp_builder.py", line 9 in run_compile_cmd
  File "/a/fail.py", line 1 in <module>
"""
KEY_ERROR = "Traceback (most recent call last):\nKeyError: 7"
Judge = Callable[..., Signature]


@pytest.fixture
def judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Judge:
    def run(kind: Kind, **control: Any) -> Signature:
        signature = Signature(kind=kind, phase=Phase.DYNAMO)
        outcome = Outcome(status="timeout" if kind is Kind.HANG else "raised", text=FAILED)
        found = Capture(outcome=outcome, signature=signature, regions=(), versions={}, log=tmp_path / "log")
        eager = Outcome(**{"status": "ok", "calls": 1, "seconds": 2.0, **control})
        monkeypatch.setattr("bot.engine.reproduce.capture", lambda *_: found)
        monkeypatch.setattr(verify, "run_fresh", lambda *_, **__: outcome)
        monkeypatch.setattr(verify, "run_control_fresh", lambda *_, **__: eager)
        script = tmp_path / "fail.py"
        script.write_text("pass\n")
        found.log.write_text("")
        options = Options(Target(script, None, ()), "python", tmp_path / "out", hang_after=60.0)
        space, cache = Workspace(options.out), tmp_path / "compiled"
        space.original.mkdir(parents=True, exist_ok=True)
        cache.mkdir(exist_ok=True)
        return Intake(options, space, Progress(), cache, Budget(60.0)).run().failure

    return run


def test_a_failure_that_eager_does_not_have(judge: Judge) -> None:
    assert judge(Kind.EXCEPTION).kind is Kind.EXCEPTION


def test_what_is_no_failure_of_the_compiler(judge: Judge) -> None:
    with pytest.raises(Ended, match=r"fails in eager as well: KeyError: 7$") as ended:
        judge(Kind.EXCEPTION, status="raised", text="Traceback (most recent call last):\nKeyError: 7\n")
    assert (ended.value.status, ended.value.code) == ("not_reproduced", "fails_in_eager")


@pytest.mark.parametrize(("line", "fails"), [(9, False), (3, True)])
def test_a_control_that_ends_behind_the_failure(judge: Judge, line: int, fails: bool) -> None:
    """The script looks at what only the compiler makes."""
    control = {
        "status": "raised",
        "text": f'Traceback (most recent call last):\n  File "/a/fail.py", line {line}, in <module>\nAttributeError: graph',
    }
    if not fails:
        assert judge(Kind.EXCEPTION, **control).kind is Kind.EXCEPTION
        return
    with pytest.raises(Ended, match="AttributeError: graph"):
        judge(Kind.EXCEPTION, **control)


def test_an_error_that_only_eager_raises(judge: Judge) -> None:
    assert judge(Kind.ACCURACY, raised=1).kind is Kind.NO_RAISE
    assert judge(Kind.ACCURACY, raised=0).kind is Kind.ACCURACY


def test_a_hang_is_fast_in_eager(judge: Judge) -> None:
    assert judge(Kind.HANG, seconds=START).kind is Kind.HANG


@pytest.mark.parametrize(("budget", "longest"), [(1800.0, 70.0), (120.0, 40.0)])
def test_a_slow_program_is_given_the_time_that_it_needs(
    intake: Callable[..., Intake], timeouts: list[float], budget: float, longest: float
) -> None:
    """On a busy machine a large program compiles for longer than a hang is waited for."""
    slow = PASSED.model_copy(update={"seconds": START + 7})
    made = intake([Outcome(status="timeout"), RAISED], [slow], budget=budget, hang_after=30.0)
    assert made.run().failure.exception == ("InternalTorchDynamoError",)
    assert timeouts == [30.0 + START, longest + START]


@pytest.mark.parametrize("ago", [10.0, 100.0])
def test_a_program_that_waited_for_a_compiler_before_its_headers_were_made_runs_again(intake: Callable[..., Intake], ago: float) -> None:
    class Made(Maker):
        def __init__(self) -> None:
            pass

        def worked_within(self, seconds: float) -> bool:
            return ago < seconds

    waits = Outcome(status="timeout", seconds=25.0, elapsed=60.0, text=WAITS)
    made = intake([waits, RAISED, waits], [PASSED], hang_after=10.0)
    made.made = Made()
    assert (made.run().failure.kind is Kind.EXCEPTION) is (ago < waits.elapsed)


@pytest.mark.parametrize(
    ("control", "budget", "said"),
    [
        (Outcome(status="timeout", seconds=300.0), 1800.0, "does not end within 300 s"),
        (
            Outcome(status="raised", text="Traceback (most recent call last):\nKeyError: 7", seconds=50.0),
            1800.0,
            "fails in eager as well: KeyError: 7",
        ),
        # a third of it is less than what was waited for already
        (Outcome(status="ok", calls=1, seconds=START + 7), 120.0, "no hang by that limit"),
    ],
)
def test_no_longer_time_where_it_can_change_nothing(intake: Callable[..., Intake], control: Outcome, budget: float, said: str) -> None:
    made = intake([Outcome(status="timeout")], [control] * 3, budget=budget, hang_after=60.0)
    with pytest.raises(Ended, match=said):
        made.run()  # there is no second capture


def test_a_slow_program_that_hangs_hangs_by_a_longer_limit(intake: Callable[..., Intake]) -> None:
    late = Outcome(status="timeout")
    slow = PASSED.model_copy(update={"seconds": START + 7})
    found = intake([late, late, late], [slow], hang_after=30.0).run()
    assert found.failure.kind is Kind.HANG
    assert found.hang_after == 70.0
    with pytest.raises(Ended, match="takes 22 s: no hang by that limit; --hang-after sets a longer one"):
        intake([late, late], [slow], hang_after=30.0, budget=120.0).run()


PASSED = Outcome(status="ok", calls=1)


@pytest.fixture
def timeouts() -> list[float]:
    """Of the captures, in seconds."""
    return []


@pytest.fixture
def intake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, timeouts: list[float]) -> Callable[..., Intake]:
    """An intake whose captures and controls end as they are given, one after the other."""

    def made(
        captures: list[Outcome],
        controls: list[Outcome],
        errors: Any = None,
        alone: Outcome | None = None,
        wrong: tuple[Region, ...] = (),
        later: tuple[Region, ...] | None = None,
        strictly: tuple[Region, ...] = (),
        synchronous: tuple[Region, ...] = (),
        lives: Outcome | None = None,
        **options: Any,
    ) -> Intake:
        script = tmp_path / "fail.py"
        script.write_text("pass\n")

        ended: list[Outcome] = []

        def captured(target: Target, python: str, cwd: Path, watch: Watch, patience: Patience, budget: Budget) -> Capture:
            timeouts.append(patience.own)
            outcome = captures.pop(0)
            ended.append(outcome)
            signature = signature_of(outcome)
            own = signature is not None and is_own_verdict(signature, outcome, script=script.name)
            code = signature is not None and not own and is_of_own_code(signature, outcome, script=script.name)
            regions = (later or ()) if watch.later_calls else wrong if watch.compare is not None else ()
            regions = regions or (strictly if watch.compare is not None and watch.compare.strict else ())
            regions = regions or (synchronous if watch.synchronous else ())
            return Capture(
                outcome=outcome, signature=signature, own_verdict=own, own_code=code, regions=regions, versions={}, log=script,
                errors=errors, again=later is not None, ended=lives if signature else None, prints=(outcome.stdout,),
            )  # fmt: skip

        monkeypatch.setattr("bot.engine.reproduce.capture", captured)
        monkeypatch.setattr(verify, "run_control_fresh", lambda *_, **__: controls.pop(0))
        monkeypatch.setattr(verify, "run_fresh", lambda *_, **__: alone or ended[-1])
        given = Options(Target(script, None, ()), "python", tmp_path / "out", **{"hang_after": 60.0, **options})
        space = Workspace(given.out)
        space.work.mkdir(parents=True, exist_ok=True)
        cache = tmp_path / "compiled"
        cache.mkdir(exist_ok=True)
        return Intake(given, space, Progress(), cache, Budget(given.budget))

    return made


NOT_CLOSE = 'Traceback (most recent call last):\n  File "<string>", line 9, in <module>\nAssertionError: Tensor-likes are not close!\n'
RAISED = Outcome(status="raised", text=FAILED)
TAKEN = Outcome(status="raised", text="Traceback (most recent call last):\nRuntimeError: address already in use")


def test_what_a_killed_compiler_left_is_not_used(intake: Callable[..., Intake]) -> None:
    """Half a library loads as another failure: "file too short"."""
    slow = PASSED.model_copy(update={"seconds": START + 7})
    for first, kept in ((Outcome(status="timeout"), False), (RAISED, True)):
        made = intake([first, RAISED], [slow], hang_after=30.0)
        (made.cache / "half.so").write_bytes(b"")
        mounted = os.open(made.cache, os.O_RDONLY)
        assert made.run().failure.exception == ("InternalTorchDynamoError",)
        assert (made.cache / "half.so").exists() is kept
        assert os.fstat(mounted).st_nlink, "a worker that waits already has a directory that is gone"
        os.close(mounted)


KILLED = Outcome(status="signal", signal="SIGKILL")
NO_MEMORY = Outcome(
    status="raised", text="CppCompileError: C++ compile error\nc++: fatal error: Killed signal terminated program cc1plus\n"
)


NOT_RUN = Outcome(status="infra", text=NOT_RUNNING)
REFUSED = Outcome(status="raised", text='Traceback (most recent call last):\n  File "fail.py", line 1, in <module>\nMemoryError\n')
REFUSED_US = REFUSED.model_copy(update={"status": "infra"})


@pytest.mark.parametrize(
    "first", [KILLED, NO_MEMORY, REFUSED, REFUSED_US, NOT_RUN], ids=["killed", "its compiler was", "refused", "so are we", "stopped"]
)
def test_a_program_that_the_kernel_killed_is_run_once_more(intake: Callable[..., Intake], first: Outcome) -> None:
    """The kernel takes the largest process, whoever filled the memory."""
    made = intake([first, RAISED], [PASSED])
    (made.cache / "half.so").write_bytes(b"")
    assert made.run().failure.exception == ("InternalTorchDynamoError",)
    assert not (made.cache / "half.so").exists()


def test_one_that_it_kills_each_time_is_one_that_dies_of_it(intake: Callable[..., Intake]) -> None:
    failure = intake([KILLED, KILLED, KILLED, KILLED], [PASSED]).run().failure
    assert (failure.kind, failure.signal) == (Kind.CRASH, "SIGKILL")
    with pytest.raises(Ended, match="ran out of memory") as ended:
        intake([NO_MEMORY, NO_MEMORY], [PASSED]).run()
    assert ended.value.code == "machine_fault"


def test_a_program_that_a_signal_stops_each_time_is_not_said_to_hang(intake: Callable[..., Intake]) -> None:
    with pytest.raises(Ended, match=r"^the machine is at fault: a signal has stopped a process \(the program did not end: .*\)$") as ended:
        intake([NOT_RUN, NOT_RUN], [PASSED]).run()
    assert (ended.value.status, ended.value.code) == ("error", "machine_fault")


def test_a_control_that_a_signal_stopped_is_run_once_more(intake: Callable[..., Intake]) -> None:
    assert intake([RAISED], [NOT_RUN, PASSED]).run().failure.exception == ("InternalTorchDynamoError",)
    with pytest.raises(Ended, match=r"by a fault of the machine: the program did not end: a signal, such as SIGSTOP, has ") as ended:
        intake([RAISED], [NOT_RUN, NOT_RUN]).run()
    assert (ended.value.status, ended.value.code) == ("error", "machine_fault")


@pytest.mark.parametrize(
    ("text", "helps"), [(LIMITS["disk"], False), ("no torch here: No module named 'torch'", True), ("torch 2.1 is too old", True)]
)
def test_another_interpreter_is_named_where_that_would_help(intake: Callable[..., Intake], text: str, helps: bool) -> None:
    with pytest.raises(Ended, match="the machine is at fault: ") as ended:
        intake([Outcome(status="infra", text=text)], [PASSED]).run()
    assert ended.value.reason.endswith("; --python names another one") is helps


@pytest.mark.parametrize(
    ("right", "errors", "said"),
    [
        (
            Outcome(status="raised", text=NOT_CLOSE),
            (1.5e-3, 1.4e-3),
            r"as near to float64 as eager \(root mean square error 1.5e-03, eager 1.4e-03\)$",
        ),
        (
            Outcome(status="raised", text=NOT_CLOSE),
            (4.3e-1, 1.5e-1),
            r"compiled is no farther from float64 than rounding may take it \(root mean square error 4.3e-01, eager 1.5e-01\)$",
        ),
        (Outcome(status="raised", text=NOT_CLOSE), None, "eager misses it as well$"),
        (PASSED, (1.5e-3, 1.4e-3), None),
        (Outcome(status="raised", text="Traceback (most recent call last):\nFp64Impossible: random numbers"), None, None),
    ],
)
def test_a_tolerance_that_eager_misses_as_well(intake: Callable[..., Intake], right: Outcome, errors: Any, said: str | None) -> None:
    """By its own words the program is wrong; but nothing that was compiled is farther from float64 than eager is."""
    wrong = Outcome(status="raised", text=NOT_CLOSE)
    begun = intake([wrong, wrong], [PASSED, right, right, PASSED], errors=errors)
    if said is None:
        assert begun.run().failure.kind is Kind.ACCURACY
        return
    with pytest.raises(Ended, match=said) as ended:
        begun.run()
    assert (ended.value.status, ended.value.code) == ("not_reproduced", "fails_in_eager")


def test_the_error_of_a_refusal_is_the_program_s_own(intake: Callable[..., Intake]) -> None:
    """A library may refuse what stands in for the module in other words than the module."""
    fails = Outcome(status="raised", text=KEY_ERROR, calls=1)
    around = Outcome(status="raised", text=KEY_ERROR.replace("7", "8"), calls=1)
    with pytest.raises(Ended, match=r"; the error: KeyError: 7; around eager: KeyError: 8$"):
        intake([fails], [around, around, PASSED]).run()


@pytest.mark.parametrize(
    ("bare", "said"),
    [
        (PASSED, "compiled code is not to blame: torch.compile returns a module around the program's own"),
        (None, "fails in eager as well: KeyError: 7$"),
    ],
)
def test_a_program_that_fails_by_the_module_around_its_own(intake: Callable[..., Intake], bare: Outcome | None, said: str) -> None:
    """It looks for a parameter under its plain name, say."""
    fails = Outcome(status="raised", text=KEY_ERROR, calls=1)
    controls = [fails, fails, bare or fails]
    with pytest.raises(Ended, match=said) as ended:
        intake([fails], controls).run()
    assert (ended.value.code, ended.value.reason.endswith("KeyError: 7")) == ("fails_in_eager", True)
    assert controls == []


def test_whether_a_program_fails_in_eager_is_not_said_before_it_was_seen(intake: Callable[..., Intake]) -> None:
    fails = Outcome(status="raised", text=KEY_ERROR, calls=1)
    with pytest.raises(Ended, match=r"no time to see whether .*; a longer --budget gives it more$") as ended:
        intake([fails], [fails, fails, Outcome(status="timeout", cut=True)]).run()
    assert (ended.value.status, ended.value.code) == ("error", "budget")


def test_whole_numbers_that_rounding_decides(intake: Callable[..., Intake]) -> None:
    """Float64 gives them as eager does; eager moved by its rounding does not."""
    wrong = Outcome(status="raised", text=NOT_CLOSE)
    with pytest.raises(Ended, match="it also fails without the compiler if the integers that rounding decides are changed") as ended:
        intake([wrong, wrong], [PASSED, wrong, PASSED]).run()
    assert (ended.value.status, ended.value.code) == ("not_reproduced", "fails_in_eager")


def test_what_a_copy_lacks_is_not_said_to_be_wrong_in_eager(intake: Callable[..., Intake]) -> None:
    """The program may look at the class of a result, say, or at whether it is a leaf: float64 cannot show who is right."""
    wrong = Outcome(status="raised", text=NOT_CLOSE)
    with pytest.raises(Ended, match="if the results are copies of eager's: it looks at something other than their numbers") as ended:
        intake([wrong, wrong], [PASSED, wrong, wrong, wrong]).run()
    assert (ended.value.status, ended.value.code) == ("error", "not_understood")


@pytest.mark.parametrize(("untold", "said"), [(PASSED, "it asks whether it is being compiled"), (None, "eager misses it as well$")])
def test_what_a_program_does_only_when_it_is_compiled(intake: Callable[..., Intake], untold: Outcome | None, said: str) -> None:
    """Who asks may do the same: then it is no reason."""
    wrong = Outcome(status="raised", text=NOT_CLOSE)
    controls = [PASSED, Outcome(status="raised", text=NOT_CLOSE, asked=1), wrong, *([untold] if untold else [wrong, PASSED])]
    with pytest.raises(Ended, match=said) as ended:
        intake([wrong, wrong], controls).run()
    assert ended.value.code == "fails_in_eager"
    assert controls == []


NO_DOUBLE = Outcome(status="raised", text="Traceback (most recent call last):\nFp64Impossible: no kernel", asked=1)


@pytest.mark.parametrize(
    ("moved", "untold", "said"),
    [
        (None, PASSED, "it asks whether it is being compiled"),
        (None, None, "moved by a unit in its last place in place of the compiled results: eager misses it as well$"),
        (PASSED, None, ""),
    ],
)
def test_where_float64_cannot_be_had_eager_moved_is_asked(
    intake: Callable[..., Intake], moved: Outcome | None, untold: Outcome | None, said: str
) -> None:
    """Once a program that was wrong without the compiler was minimized, since its kernel has no double."""
    wrong = Outcome(status="raised", text=NOT_CLOSE, asked=1)
    controls = [PASSED, NO_DOUBLE, moved or wrong, *([untold] if untold else [wrong, PASSED])]
    if not said:
        assert intake([wrong, wrong], controls).run().right_numbers
        return
    with pytest.raises(Ended, match=said) as ended:
        intake([wrong, wrong], controls).run()
    assert ended.value.code == "fails_in_eager"
    assert controls == []


BRANCH = 'Traceback (most recent call last):\n  File "/a/fail.py", line 4, in f\n    {}\nKeyError: 7\n'
BY_ITSELF = Outcome(status="raised", text=BRANCH.format("raise KeyError(7)"))
BY_ANOTHER = Outcome(status="raised", text=BRANCH.format("launch(x)"))


@pytest.mark.parametrize(
    ("asked", "told", "refused"),
    [(1, BY_ITSELF, True), (1, PASSED, False), (0, BY_ITSELF, False), (1, BY_ANOTHER, False), (1, RAISED, False)],
)
def test_what_a_program_does_only_when_it_is_compiled_may_raise(asked: int, told: Outcome, refused: bool) -> None:
    """What a kernel does that compiled code alone launches is a failure of compiled code; a `raise` of the program's own is none."""
    failure = signature_of(BY_ITSELF)
    assert failure is not None
    options: list[str] = []

    def control(option: str) -> Outcome:
        options.append(option)
        return told

    expected = pytest.raises(Ended, match=r"is_compiling\), and what it does then fails in the same way without the compiler: ")
    with expected if refused else contextlib.nullcontext() as ended:
        judge_compiled_branch(failure, "fail.py", PASSED.model_copy(update={"asked": asked}), control)
    assert options == (["--eager"] if asked else [])
    if ended is not None:
        assert (ended.value.status, ended.value.code) == ("not_reproduced", "fails_in_eager")


MINE = 'Traceback (most recent call last):\n  File "/a/fail.py", line 9, in <module>\n    raise ValueError(said)\nValueError: they differ\n'
OWN = [Outcome(status="exit", exit=1), Outcome(status="raised", text=MINE)]


@pytest.mark.parametrize("own", OWN)
def test_a_comparison_that_ends_otherwise_is_one_as_well(intake: Callable[..., Intake], own: Outcome) -> None:
    """With a status, or an error of its own, the program may say that a result is wrong: right numbers have to pass that."""
    with pytest.raises(Ended, match=r"eager misses it as well$") as ended:
        intake([own, own], [PASSED, own, own, PASSED]).run()
    assert ended.value.code == "fails_in_eager"
    found = intake([own, own], [PASSED, PASSED]).run()
    assert (found.failure, found.right_numbers, found.own_end) == (signature_of(own), True, None)
    found = intake([own, own], [PASSED, RAISED]).run()
    assert (found.failure, found.right_numbers) == (signature_of(own), False)


@pytest.mark.parametrize("own", OWN)
def test_wrong_numbers_are_the_failure_however_the_program_says_so(intake: Callable[..., Intake], own: Outcome, tmp_path: Path) -> None:
    wrong = Region(hook="aot", failed="accuracy", backward=False, recipe=RegionRecipe(), graph=None, reason=None, blobs=tmp_path)
    found = intake([own, own], [PASSED], wrong=(wrong,)).run()
    assert (found.failure.kind, found.own_end, found.capture.regions) == (Kind.ACCURACY, signature_of(own), (wrong,))


@pytest.mark.parametrize("own", OWN)
def test_a_program_that_asserts_what_is_wrong(intake: Callable[..., Intake], own: Outcome, tmp_path: Path) -> None:
    """One that ends well only where compiled numbers are wrong fails with right ones, as eager's are. That is what it says, no error."""
    wrong = Region(hook="aot", failed="accuracy", backward=False, recipe=RegionRecipe(), graph=None, reason=None, blobs=tmp_path)
    judged = own.model_copy(update={"calls": 1})
    found = intake([PASSED, PASSED], [judged, judged], wrong=(wrong,)).run()
    assert (found.failure.kind, found.capture.regions, found.capture.partial) == (Kind.ACCURACY, (wrong,), False)
    with pytest.raises(Ended) as ended:
        intake([PASSED, PASSED], [RAISED, RAISED, RAISED], wrong=(wrong,)).run()
    assert ended.value.code == "fails_in_eager"
    # alone it fails as well: a graph that torch kept was taken for another, say
    with pytest.raises(Ended, match="fails in eager as well") as ended:
        intake([PASSED, PASSED], [judged] * 3, wrong=(wrong,), alone=judged).run()
    assert ended.value.code == "fails_in_eager"


@pytest.mark.parametrize("own", OWN)
def test_where_it_asserts_that_results_differ_whole_numbers_count(intake: Callable[..., Intake], own: Outcome, tmp_path: Path) -> None:
    """As they do where it asserts that results are equal. Where they are right too, it passes, by what rounding does for one."""
    wrong = Region(hook="aot", failed="accuracy", backward=False, recipe=RegionRecipe(), graph=None, reason=None, blobs=tmp_path)
    judged = own.model_copy(update={"calls": 1})
    found = intake([PASSED, PASSED, PASSED], [judged, judged], strictly=(wrong,)).run()
    assert (found.failure.kind, found.capture.regions) == (Kind.ACCURACY, (wrong,))
    with pytest.raises(Ended, match="passes here, but not without the compiler: "):
        intake([PASSED, PASSED, PASSED], [judged]).run()


NO_KEY = 'Traceback (most recent call last):\n  File "/a/fail.py", line 9, in name\n    return NAMES[int(v)]\nKeyError: {}\n'
MISSED, OTHERWISE = (Outcome(status="raised", text=NO_KEY.format(key)) for key in (22, 4194283))


def test_an_error_in_what_is_done_with_results_may_come_of_rounding(intake: Callable[..., Intake], tmp_path: Path) -> None:
    """A table that rounding leads out of is no failure of the compiler's; it is none of numbers either, for all that is known."""
    with pytest.raises(
        Ended, match=r"fails in its own code .*KeyError: 22\), but it also fails with float64 in place of the compiled"
    ) as ended:
        intake([MISSED, MISSED], [PASSED, OTHERWISE, OTHERWISE, OTHERWISE, PASSED]).run()
    assert (ended.value.status, ended.value.code) == ("not_reproduced", "fails_in_eager")
    # right numbers pass: they have to pass in each candidate as well
    controls = [PASSED, PASSED]
    found = intake([MISSED, MISSED], controls, errors=(1e-8, 1e-8)).run()
    assert (found.failure, found.right_numbers, found.nearness, controls) == (signature_of(MISSED), True, "", [])
    # it is another type that does not
    controls = [PASSED, OTHERWISE, PASSED]
    assert not intake([MISSED, MISSED], controls).run().right_numbers
    assert controls == []
    # wrong numbers beside it are not taken for its cause
    wrong = Region(hook="aot", failed="accuracy", backward=False, recipe=RegionRecipe(), graph=None, reason=None, blobs=tmp_path)
    for right, passes in ((PASSED, True), (RAISED, False)):
        found = intake([MISSED, MISSED], [PASSED, right], wrong=(wrong,)).run()
        assert (found.failure, found.capture.regions, found.right_numbers) == (signature_of(MISSED), (), passes)
    # but are what is shown where right ones lead to the same error
    found = intake([MISSED, MISSED], [PASSED, OTHERWISE, OTHERWISE], wrong=(wrong,)).run()
    assert (found.failure.kind, found.capture.regions, found.right_numbers) == (Kind.ACCURACY, (wrong,), False)


def test_an_error_in_what_is_done_with_results_may_come_of_random_numbers(intake: Callable[..., Intake]) -> None:
    with pytest.raises(Ended, match=r"fails in its own code .*, but only since compiled code draws other random numbers than eager"):
        intake([MISSED, PASSED, PASSED, MISSED], [PASSED]).run()


def late(message: str) -> Outcome:
    """An error of a kernel, raised by what waits next."""
    frames = (
        '  File "fail.py", line 7, in <module>\n    torch.cuda.synchronize()\n'
        '  File "/s/site-packages/torch/cuda/__init__.py", line 1162, in synchronize\n    return torch._C._cuda_synchronize()\n'
    )
    text = f"Traceback (most recent call last):\n{frames}torch.AcceleratorError: CUDA error: {message}\n"
    return Outcome(status="raised", text=text)


def test_an_error_that_shows_late_is_led_back_to_its_graph(intake: Callable[..., Intake], tmp_path: Path) -> None:
    """By a second run, in which one kernel ends before the next begins."""
    failing = Region(hook="aot", failed="run", backward=False, recipe=RegionRecipe(), graph=None, reason=None, blobs=tmp_path)
    shown = late("an illegal memory access was encountered")
    captures = [shown, shown]
    found = intake(captures, [PASSED, PASSED], synchronous=(failing,)).run()
    assert captures == []
    assert (found.capture.regions, found.capture.outcome, found.failure.message) == (
        (failing,), shown, "CUDA error: an illegal memory access was encountered",
    )  # fmt: skip
    # another error there, or none: the graph of that is not the one, and the script is reduced
    for again in (late("misaligned address"), PASSED, RAISED):
        found = intake([shown, again], [PASSED, PASSED], synchronous=(failing,)).run()
        assert (found.capture.regions, found.capture.outcome) == ((), shown)
    # what is raised where it belongs needs no second run
    captures = [RAISED, shown]
    assert intake(captures, [PASSED, PASSED], synchronous=(failing,)).run().capture.regions == ()
    assert captures == [shown]


def test_later_calls_are_compared_where_first_ones_are_right(intake: Callable[..., Intake], tmp_path: Path) -> None:
    wrong = Region(hook="dynamo", failed="accuracy", backward=False, recipe=RegionRecipe(), graph=None, reason=None, blobs=tmp_path)
    own = OWN[1]
    found = intake([own, own, own], [PASSED, PASSED], later=(wrong,)).run()
    assert (found.failure.kind, found.own_end, found.capture.regions) == (Kind.ACCURACY, signature_of(own), (wrong,))
    found = intake([own, own, own], [PASSED, PASSED], later=()).run()
    assert (found.failure, found.own_end, found.capture.regions) == (signature_of(own), None, ())
    # one that does not compare by itself, and passes
    found = intake([PASSED, PASSED, PASSED], [PASSED], later=(wrong,)).run()
    assert (found.failure.kind, found.capture.regions, found.capture.runs) == (Kind.ACCURACY, (wrong,), 2)
    with pytest.raises(Ended, match="passes here"):
        intake([PASSED] * 7, [PASSED], later=()).run()


@pytest.mark.parametrize(
    ("later", "refused"),
    [
        ([PASSED, PASSED, OWN[0]], True),  # compared, with eager's random numbers, and once more as it is
        ([PASSED, PASSED, PASSED], False),  # it fails only now and then
        ([PASSED, OWN[0]], False),  # comparing alone made it pass
        ([OWN[0]], False),
    ],
)
def test_other_random_numbers_alone_are_not_wrong(intake: Callable[..., Intake], later: list[Outcome], refused: bool) -> None:
    begun = intake([OWN[0], *later], [PASSED, PASSED])
    if not refused:
        assert begun.run().failure == signature_of(OWN[0])
        return
    with pytest.raises(Ended, match=r"other random numbers than eager: with torch\._inductor\.config\.fallback_random = True") as ended:
        begun.run()
    assert (ended.value.status, ended.value.code) == ("not_reproduced", "passes")


def test_a_control_that_met_the_program_is_run_again_alone(intake: Callable[..., Intake]) -> None:
    assert intake([RAISED], [TAKEN, PASSED]).run().failure.exception == ("InternalTorchDynamoError",)
    with pytest.raises(Ended, match="before it comes to the compiler: RuntimeError: address already in use"):
        intake([RAISED], [TAKEN, TAKEN]).run()


FULL = Outcome(
    status="raised", text="Traceback (most recent call last):\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 26.39 GiB."
)


def test_a_gpu_that_the_runs_beside_it_filled_is_no_failure(intake: Callable[..., Intake]) -> None:
    """Once a program that passes alone was posted: its control, and what the capture held, left it no room."""
    assert intake([FULL, FULL], [PASSED], alone=FULL).run().failure.exception == ("OutOfMemoryError",)
    with pytest.raises(Ended, match="the program passes here, but it fills its GPU") as ended:
        intake([FULL, FULL], [PASSED], alone=PASSED).run()
    assert ended.value.code == "passes"
    assert intake([FULL, RAISED], [PASSED]).run().failure.exception == ("InternalTorchDynamoError",)
    assert intake([RAISED], [FULL, PASSED]).run().failure.exception == ("InternalTorchDynamoError",)


@pytest.mark.parametrize("device", [None, "cpu"])
@pytest.mark.parametrize("text", ["device = 'cuda' if torch.cuda.is_available() else 'cpu'", "pass"])
@pytest.mark.parametrize("why", ["no GPU is visible: made up", None])
def test_a_program_that_passes_for_want_of_a_gpu(
    intake: Callable[..., Intake], monkeypatch: pytest.MonkeyPatch, device: str | None, text: str, why: str | None
) -> None:
    """It takes the CPU where there is no GPU, so that it passes there says little."""
    monkeypatch.setattr(gpu, "missing", lambda *_: why)
    begun = intake([PASSED] * 9, [PASSED], alone=PASSED, accuracy="off", device=device)
    begun.options.target.script.write_text(text)
    with pytest.raises(Ended, match="the program passes here in ") as ended:
        begun.run()
    assert (ended.value.status, ended.value.code) == ("not_reproduced", "passes")
    said = "; it names CUDA, but no GPU is visible: made up; torch-minify run --cuda-arch compiles for one that isn't there"
    assert (said in ended.value.reason) is (device is None and "cuda" in text and why is not None)


FULL_OF_OTHERS = Outcome(
    status="raised",
    text="Traceback (most recent call last):\n"
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.00 GiB. GPU 0 has a total capacity of 79.11 GiB of which 2.00 GiB is "
    "free. Of the allocated memory 1.00 GiB is allocated by PyTorch, and 0 bytes is reserved by PyTorch but unallocated.",
)


@pytest.mark.parametrize("without", [PASSED, FULL_OF_OTHERS])
def test_a_gpu_that_others_fill_is_the_machine_s_fault(intake: Callable[..., Intake], without: Outcome) -> None:
    """With the GPU to itself, eager or not, it would have had room for that."""
    begun = intake([FULL_OF_OTHERS, FULL_OF_OTHERS], [without, without], alone=FULL_OF_OTHERS)
    with pytest.raises(Ended, match=r"the GPU is full: other processes hold some 75 GiB of it; free it, or name another one") as ended:
        begun.run()
    assert (ended.value.status, ended.value.code, ended.value.machine_fault) == ("error", "machine_fault", "the GPU is full")


@pytest.mark.parametrize(
    ("text", "again", "refused"),
    [
        ("torch.empty(3)", True, "uninitialized memory, which torch leaves open: filled in otherwise"),
        ("torch.empty(3)", False, ""),
        ("torch.zeros(3)", True, ""),
        (
            "x[i.long()] = y",
            True,
            "numbers that their type cannot hold or places that are written twice in any order, which torch leaves open",
        ),
    ],
)
def test_a_program_that_compares_what_torch_leaves_open(intake: Callable[..., Intake], text: str, again: bool, refused: str) -> None:
    wrong = Outcome(status="raised", text=NOT_CLOSE)
    controls = [PASSED, wrong if again else PASSED]
    begun = intake([wrong], controls, accuracy="off")
    begun.options.target.script.write_text(text)
    if refused:
        with pytest.raises(Ended, match=refused) as ended:
            begun.run()
        assert ended.value.status == "not_reproduced"
    else:
        assert begun.run().failure.kind is Kind.ACCURACY
    assert len(controls) == (1 if "zeros" in text else 0)


def test_a_longer_limit_is_that_of_later_controls_as_well(intake: Callable[..., Intake], monkeypatch: pytest.MonkeyPatch) -> None:
    slow, limits = PASSED.model_copy(update={"seconds": START + 50}), []
    wrong = Outcome(status="raised", text=NOT_CLOSE)
    begun = intake([Outcome(status="timeout"), wrong], [], accuracy="off")
    begun.options.target.script.write_text("torch.empty(3)")

    def control(*_: Any, timeout: float, **__: Any) -> Outcome:
        limits.append(timeout)
        return slow

    monkeypatch.setattr(verify, "run_control_fresh", control)
    assert begun.run().failure.kind is Kind.ACCURACY
    assert limits == [300.0, 500.0]


def test_a_program_that_met_its_control_is_run_again_alone(intake: Callable[..., Intake]) -> None:
    assert intake([TAKEN, RAISED], [PASSED]).run().failure.exception == ("InternalTorchDynamoError",)


def test_the_end_of_the_budget_is_no_hang(intake: Callable[..., Intake]) -> None:
    with pytest.raises(Ended, match="did not end within the budget of 30 s") as ended:
        intake([Outcome(status="timeout", cut=True)], [PASSED], budget=30.0).run()
    assert (ended.value.status, ended.value.code) == ("error", "budget")


def dump(*functions: str) -> str:
    """What faulthandler writes of so many moments, each in one function of the compiler."""
    stack = 'Stack (most recent call first):\n  File "/x/site-packages/torch/{}", line 7 in {}\n  File "/a/fail.py", line 5 in <module>\n'
    return "".join(stack.format(*function.split(":")) for function in functions)


LOWERS, GENERATES = "_inductor/graph.py:run_node", "_inductor/scheduler.py:codegen"


@pytest.mark.parametrize(("budget", "limit"), [(1800.0, 85.0), (600.0, 20.0), (36000.0, 1985.0)])
def test_a_program_that_stays_in_one_place_for_a_third_of_the_budget_hangs(
    intake: Callable[..., Intake], timeouts: list[float], budget: float, limit: float
) -> None:
    """The proof has to fit into a sixth of it, as many runs as there are one after the other."""
    late = Outcome(status="timeout", text=dump(*[LOWERS] * 6, GENERATES, LOWERS), seconds=budget / 3)
    found = intake([late, late], [PASSED], hang_after=None, budget=budget).run()
    assert (found.failure.kind, found.failure.phase) == (Kind.HANG, Phase.INDUCTOR_LOWERING)
    assert found.hang_after == limit
    assert timeouts[0] == budget / 3


@pytest.mark.parametrize(
    ("late", "control", "said"),
    [
        (
            Outcome(status="timeout", text=dump(LOWERS, LOWERS, LOWERS, GENERATES, GENERATES), seconds=600.0),
            PASSED,
            "still running after 600 s of its own time, each time in another place: it may only be slow; .* --budget 60m gives it 20m",
        ),
        (Outcome(status="timeout", text=dump(LOWERS), seconds=600.0), PASSED.model_copy(update={"seconds": 90.0}), "takes 90 s: no hang"),
        (Outcome(status="timeout", text=dump(LOWERS), seconds=9.0, cut=True), PASSED, "after 9 s of its own time: too little to tell"),
    ],
)
def test_what_may_only_be_slow_is_no_hang(intake: Callable[..., Intake], late: Outcome, control: Outcome, said: str) -> None:
    with pytest.raises(Ended, match=said) as ended:
        intake([late], [control], hang_after=None).run()
    assert (ended.value.status, ended.value.code) == ("error", "budget")


def test_a_slow_compile_is_judged_by_how_it_ended(intake: Callable[..., Intake]) -> None:
    slow = RAISED.model_copy(update={"seconds": 180.0})
    found = intake([slow], [PASSED], hang_after=None).run()
    assert found.failure.exception == ("InternalTorchDynamoError",)
    assert found.limit == 540.0


def test_a_comparison_that_does_not_end_is_no_pass(intake: Callable[..., Intake]) -> None:
    with pytest.raises(Ended, match="ends well, but comparing its numbers did not end within 600 s") as ended:
        intake([PASSED, Outcome(status="timeout", seconds=600.0)], [PASSED]).run()
    assert ended.value.code == "budget"


def test_a_comparison_that_breaks_off_is_no_pass(intake: Callable[..., Intake], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It wrote nothing: not even what the first run wrote, the versions."""
    broken = Outcome(status="raised", text="Traceback (most recent call last):\nImportError: no hooks")
    captures = [(PASSED, {"torch": "2"}), (broken, {})]

    def captured(*_: Any) -> Capture:
        outcome, versions = captures.pop(0)
        return Capture(outcome=outcome, signature=signature_of(outcome), regions=(), versions=versions, log=tmp_path / "fail.py")

    begun = intake([], [PASSED])
    monkeypatch.setattr("bot.engine.reproduce.capture", captured)
    with pytest.raises(Ended, match="broke off: ImportError: no hooks") as ended:
        begun.run()
    assert ended.value.code == "internal"


COMPARING = 'Traceback (most recent call last):\n  File "/x/bot/inside/eager/accuracy.py", line 9, in compare\n    near()\n'


def test_an_error_of_what_compares_is_no_pass(intake: Callable[..., Intake]) -> None:
    broken = Outcome(status="raised", text=f"{COMPARING}RuntimeError: Double did not match Float\n")
    with pytest.raises(Ended, match="broke off: RuntimeError: Double did not match Float") as ended:
        intake([PASSED, broken], [PASSED]).run()
    assert ended.value.code == "internal"


def test_a_program_that_cannot_be_compared_passes(intake: Callable[..., Intake]) -> None:
    """It raises where it is run a second time."""
    raised = Outcome(status="raised", text=f'{COMPARING}  File "program.py", line 3, in forward\n    once()\nRuntimeError: only once\n')
    slow = PASSED.model_copy(update={"seconds": 90.0})  # is not run again
    with pytest.raises(Ended, match="passes here"):
        intake([slow, raised], [PASSED], budget=120.0, alone=PASSED).run()


def test_nobody_waits_for_the_control_of_a_program_that_cannot_be_run(
    intake: Callable[..., Intake], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = intake([Outcome(status="memory")], [])
    cancelled: list[bool] = []

    def control(*_: Any, budget: Budget, **__: Any) -> Outcome:
        while budget.should_continue():
            time.sleep(0.01)
        cancelled.append(True)
        return PASSED

    monkeypatch.setattr(verify, "run_control_fresh", control)
    with pytest.raises(Ended, match="out of memory") as ended:
        begun.run()
    assert cancelled
    assert ended.value.code == "machine_fault"
    assert begun.budget.should_continue()


def test_what_only_eager_raises_is_said(intake: Callable[..., Intake]) -> None:
    with pytest.raises(Ended, match="passes here, but not without the compiler: InternalTorchDynamoError: no; a program that asserts"):
        intake([PASSED, PASSED], [RAISED.model_copy(update={"raised": 1})]).run()


def test_a_large_script_is_said(intake: Callable[..., Intake], capsys: pytest.CaptureFixture[str]) -> None:
    made = intake([RAISED], [PASSED])
    assert made.options.target.script is not None
    made.options.target.script.write_text("x = 1\n" * 10_001)
    made.run()
    assert "fail.py has 10,001 lines, 60,006 bytes" in capsys.readouterr().err


def test_a_program_that_passed_is_asked_again(intake: Callable[..., Intake]) -> None:
    """One that fails in one run of three is no program that passes."""
    found = intake([PASSED, PASSED, PASSED, RAISED], [PASSED], accuracy="off").run()
    assert (found.failure.exception, found.capture.runs) == (("InternalTorchDynamoError",), 5)
    with pytest.raises(Ended, match="the program passes here in 5 runs") as ended:
        intake([PASSED] * 5, [PASSED], accuracy="off").run()
    assert ended.value.code == "passes"


def test_of_a_program_that_passed_other_results_are_told_if_each_run_prints_them(intake: Callable[..., Intake]) -> None:
    zero, other = (PASSED.model_copy(update={"stdout": f"sum {number}\n"}) for number in (0, 2.5))
    with pytest.raises(Ended, match=r"passes here in 5 runs; it prints 'sum 0' each time, and 'sum 2.5' without the compiler; ") as ended:
        intake([zero] * 5, [other], accuracy="off").run()
    assert ended.value.code == "passes"
    for captures, alone in (([zero, zero, zero, other], zero), ([zero] * 4, other)):
        with pytest.raises(Ended, match=r"the program passes here in 5 runs$"):
            intake(list(captures), [other], alone=alone, accuracy="off").run()


def test_what_eager_raises_too_is_no_failure_of_a_program_that_lives_on(intake: Callable[..., Intake]) -> None:
    """It loses only a thread to it, with the compiler and without, in each run."""
    control = PASSED.model_copy(update={"raised": 1})
    with pytest.raises(Ended, match="the program passes here in 5 runs") as ended:
        intake([RAISED] * 5, [control], alone=PASSED, lives=PASSED, accuracy="off").run()
    assert ended.value.code == "passes"
    found = intake([RAISED], [PASSED], lives=PASSED, accuracy="off").run()
    assert found.failure.exception == ("InternalTorchDynamoError",)


def test_a_program_that_passed_and_was_then_cut_off_does_not_hang(intake: Callable[..., Intake]) -> None:
    cut = Outcome(status="timeout", text="Current thread 0x1 (most recent call first):\n" * 3, cut=True)
    with pytest.raises(Ended, match=r"the program passes here$"):
        intake([PASSED], [PASSED], alone=cut, accuracy="off").run()
    with pytest.raises(Ended, match="the program passes here in 2 runs"):
        intake([PASSED, cut], [PASSED], accuracy="off").run()


def test_a_run_that_was_not_made_is_none_in_which_the_program_passed(intake: Callable[..., Intake]) -> None:
    not_made = Outcome(status="infra", text="cannot start python: no room")
    with pytest.raises(Ended, match=r"the program passes here$"):
        intake([PASSED], [PASSED], alone=not_made, accuracy="off").run()


@pytest.mark.parametrize("slow", [0.0, 90.0])
def test_a_program_that_passes_with_the_hooks_alone_fails(intake: Callable[..., Intake], slow: float) -> None:
    """They import the compiler before it begins, and keep no compiled graphs: what these change of it does not count any more. It is run
    alone however little time may be spent on further runs, and before later calls are compared."""
    passed = PASSED.model_copy(update={"seconds": slow})
    found = intake([passed], [PASSED], alone=RAISED, budget=500.0, later=(), accuracy="off").run()
    assert (found.failure.exception, found.capture.runs) == (("InternalTorchDynamoError",), 2)


@pytest.mark.parametrize("own", OWN)
def test_what_it_says_of_its_results_alone_is_a_verdict(intake: Callable[..., Intake], own: Outcome) -> None:
    found = intake([PASSED, PASSED], [PASSED, PASSED], alone=own, errors=(1e-9, 1e-9), later=()).run()
    assert (found.capture.own_verdict, found.failure, found.right_numbers) == (True, signature_of(own), True)
    assert not found.nearness, "what was compared with the hooks passed"


@pytest.mark.parametrize(
    ("slow", "control", "said"),
    [
        (PASSED.model_copy(update={"seconds": 90.0}), PASSED, "the program passes here in 2 runs$"),  # a sixth of the budget is less
        (PASSED.model_copy(update={"seconds": 600.0}), PASSED, "the program passes here$"),  # all of it is
        (PASSED, Outcome(status="ok"), "the program ends well, but the compiler runs only where it cannot be taken out"),
        (PASSED, RAISED, "passes here, but not without the compiler"),
    ],
)
def test_a_program_is_not_asked_again_where_that_tells_nothing(
    intake: Callable[..., Intake], slow: Outcome, control: Outcome, said: str
) -> None:
    with pytest.raises(Ended, match=said):
        intake([slow], [control], accuracy="off", budget=500.0).run()


def test_a_warm_control_that_passed_is_the_first_one(intake: Callable[..., Intake]) -> None:
    made = intake([RAISED], [])
    made.warm = lambda seconds, _: PASSED.model_copy(update={"seconds": seconds})
    assert made.run().failure.exception == ("InternalTorchDynamoError",)


def test_a_program_that_fails_only_while_it_is_captured_passes(intake: Callable[..., Intake]) -> None:
    """It needs what torch's caches of graphs hold, which are off in a capture, and which eager has nothing of."""
    control = Outcome(status="raised", text=KEY_ERROR, calls=1)
    with pytest.raises(
        Ended, match=r"^the program passes here, but it fails while its graphs .* and without the compiler: KeyError: 7$"
    ) as ended:
        intake([RAISED], [control] * 3, alone=PASSED).run()
    assert (ended.value.status, ended.value.code) == ("not_reproduced", "passes")


def test_without_one_a_process_of_its_own_is_asked(intake: Callable[..., Intake]) -> None:
    made = intake([RAISED], [Outcome(status="raised", text=KEY_ERROR, calls=1)] * 3)
    made.warm = lambda *_: None
    with pytest.raises(Ended, match="fails in eager as well: KeyError: 7"):
        made.run()


@pytest.mark.parametrize(("wrong_at_once", "captures"), [(True, 1), (False, 2)])
def test_what_was_dumped_for_its_numbers_is_compared_at_once(
    intake: Callable[..., Intake], monkeypatch: pytest.MonkeyPatch, wrong_at_once: bool, captures: int
) -> None:
    """And where they are right here, it is run as any other program: what only comparing shows is no failure."""
    made = intake([PASSED if wrong_at_once else RAISED, RAISED], [PASSED], wrong_numbers=True)
    asked: list[bool] = []
    capture = reproduce.capture
    region = SimpleNamespace(failed="accuracy", graph=None)

    def once(target: Target, python: str, cwd: Path, watch: Watch, *more: Any) -> Capture:
        asked.append(watch.compare is not None)
        found = capture(target, python, cwd, watch, *more)
        return found.model_copy(update={"regions": (region,)}) if wrong_at_once and watch.compare else found

    monkeypatch.setattr(reproduce, "capture", once)
    kind = made.run().failure.kind
    assert asked == [True, False][:captures]
    assert kind is (Kind.ACCURACY if wrong_at_once else Kind.EXCEPTION)
