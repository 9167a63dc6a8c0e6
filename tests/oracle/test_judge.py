"""How one candidate is judged: what is asked, in which order, and which answer decides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bot.failure.outcome import Outcome
from bot.failure.signature import signature_of
from bot.inside.protocol import Question
from bot.models.failure import Kind, Phase, Signature, Verdict
from bot.oracle import judge as judging
from bot.oracle.budget import Budget
from bot.oracle.criterion import Criterion
from bot.oracle.judge import EAGER_TIMES, EXPENSIVE_RUN_SECONDS, HANGS, LEAST_EAGER, Judge, cannot_be_float64
from bot.oracle.run_plan import Limits, RunPlan
from bot.workers.process import HANG_RATIO
from tests.oracle.fakes import CONTROL, FAILS, OTHER, PASSES, FakePool

SHOWN = signature_of(Outcome(**FAILS))
assert SHOWN is not None
CRITERION = Criterion(SHOWN)
WRONG = Criterion(Signature(kind=Kind.ACCURACY, phase=Phase.RUN, exception=("AssertionError",)))
WRONG_RUN: dict[str, Any] = {
    "status": "raised",
    "text": 'Traceback (most recent call last):\n  File "repro.py", line 9, in <module>\n    assert_close(a, b)\n'
    '  File "/x/torch/testing/_comparison.py", line 1, in assert_close\n    raise error\nAssertionError: Tensor-likes are not close!\n',
}
NEVER_ENDS = Criterion(Signature(kind=Kind.HANG, phase=Phase.DYNAMO))
HANG_RUN: dict[str, Any] = {
    "status": "timeout",
    "text": "Timeout (0:00:05)!\nThread 0x00007f (most recent call first):\n"
    '  File "/x/site-packages/torch/_dynamo/symbolic_convert.py", line 9 in run\n  File "repro.py", line 1 in <module>\n',
}
SEEDED = "import torch\ntorch.manual_seed(0)\n"

Answer = Callable[[Question], "dict[str, Any]"]


def judge(answer: Answer | dict[str, dict[str, Any]], **limits: float) -> tuple[Judge, FakePool]:
    pool = FakePool(answer if callable(answer) else lambda question: answer[question.task])
    return Judge(pool, Budget(60.0), Limits(**limits)), pool  # type: ignore[arg-type]


def test_the_control_comes_second() -> None:
    made, pool = judge({"run": {**FAILS, "seconds": 0.25}, "control": CONTROL})
    found = made.judge("script", CRITERION, RunPlan("inductor_lowering"))
    assert (found.is_same, found.signature, found.seconds) == (True, SHOWN, 0.25)
    assert pool.tasks == ["run", "control"]
    assert pool.asked[0].stop_after == "inductor_lowering"
    assert made.usual_seconds == 0.25


def test_a_program_that_passes_needs_no_control() -> None:
    made, pool = judge({"run": PASSES})
    assert made.judge("script", CRITERION, RunPlan()).verdict is Verdict.PASSES
    assert pool.tasks == ["run"]


def test_it_passes_after_all_its_tries_from_one_seed_after_the_other() -> None:
    made, pool = judge({"run": {"status": "stopped"}})
    assert made.judge("script", CRITERION, RunPlan(tries=3)).verdict is Verdict.PASSES
    assert [question.seed for question in pool.asked] == [0, 1, 2]


@pytest.mark.parametrize(
    ("run", "verdict"),
    [
        ({"status": "infra"}, Verdict.INFRA),
        ({"status": "memory"}, Verdict.INFRA),
        (HANG_RUN, Verdict.TIMEOUT),
        (OTHER, Verdict.DIFFERENT),
        ({"status": "raised", "text": "OSError: [Errno 28] No space left on device"}, Verdict.INFRA),
    ],
)
def test_what_is_no_such_failure(run: dict[str, Any], verdict: Verdict) -> None:
    made, pool = judge({"run": run})
    found = made.judge("script", CRITERION, RunPlan())
    assert found.verdict is verdict
    assert (found.signature is not None) is (verdict is Verdict.DIFFERENT)
    assert set(pool.tasks) == {"run"}


@pytest.mark.parametrize(
    ("control", "verdict"),
    [
        (CONTROL, Verdict.SAME),
        ({"status": "ok", "calls": 0}, Verdict.INVALID),  # nothing is compiled any more
        ({**FAILS, "calls": 1}, Verdict.INVALID),
        ({"status": "timeout", "calls": 1}, Verdict.INVALID),
        ({"status": "infra"}, Verdict.INFRA),
    ],
)
def test_eager_has_to_pass(control: dict[str, Any], verdict: Verdict) -> None:
    made, _ = judge({"run": FAILS, "control": control})
    assert made.judge("script", CRITERION, RunPlan()).verdict is verdict


LATER = {
    "status": "raised",
    "calls": 1,
    "text": 'Traceback (most recent call last):\n  File "repro.py", line 7, in <module>\nKeyError: 1\n',
}


@pytest.mark.parametrize(
    ("criterion", "same"),
    [
        (CRITERION, False),
        (Criterion(CRITERION.reference, control_may_end_later=True), True),
        (Criterion(CRITERION.reference, across_forms=True), True),
    ],
)
def test_a_control_may_end_behind_the_failure_where_the_originals_does(criterion: Criterion, same: bool) -> None:
    made, _ = judge({"run": FAILS, "control": LATER})
    found = made.judge("script", criterion, RunPlan())
    assert (found.is_same, found.control_ended_later) == (same, same)
    before = {**LATER, "text": LATER["text"].replace("line 7", "line 1")}
    assert not judge({"run": FAILS, "control": before})[0].judge("script", criterion, RunPlan()).is_same


@pytest.mark.parametrize(("seconds", "first"), [(EXPENSIVE_RUN_SECONDS, "run"), (EXPENSIVE_RUN_SECONDS + 0.1, "control")])
def test_where_a_run_is_expensive_the_control_comes_first(seconds: float, first: str) -> None:
    made, pool = judge({"run": {**FAILS, "seconds": seconds}, "control": CONTROL})
    assert made.judge("script", CRITERION, RunPlan()).is_same
    assert made.judge("another", CRITERION, RunPlan()).is_same
    assert pool.tasks[2:] == (["run", "control"] if first == "run" else ["control", "run"])
    assert len(pool.asked) == 4


def test_a_hang_is_only_waited_for_where_eager_ends() -> None:
    made, pool = judge({"control": {"status": "timeout"}}, hang_after=50.0)
    assert made.judge("script", NEVER_ENDS, RunPlan()).verdict is Verdict.INVALID
    assert [(question.task, question.limit) for question in pool.asked] == [("control", 50.0 / HANG_RATIO)]
    made, pool = judge({"control": CONTROL, "run": HANG_RUN}, hang_after=50.0, patience=0.5)
    assert made.judge("script", NEVER_ENDS, RunPlan()).is_same
    assert pool.asked[1].limit == 25.0


class Hanging:
    """Answers of scripts that hang the first time, or each time if they are named `loop`, at the questions with these `tasks`."""

    def __init__(self, *tasks: str) -> None:
        self.tasks, self.seen = tasks, set[tuple[str, str]]()

    def __call__(self, question: Question) -> dict[str, Any]:
        asked = (question.task, question.text.partition(" ")[0])
        hangs = question.task in self.tasks and (asked[1] == "loop" or asked not in self.seen)
        self.seen.add(asked)
        return {**HANG_RUN, "calls": 1} if hangs else {"run": FAILS, "control": CONTROL}[question.task]


@pytest.mark.parametrize("task", ["run", "control"])
def test_what_hangs_by_chance_is_asked_once_more(task: str) -> None:
    made, pool = judge(Hanging(task))
    assert made.judge("once", CRITERION, RunPlan()).is_same
    assert sorted(pool.tasks) == sorted(["run", "control", task])


def test_a_right_number_that_hangs_by_chance_is_asked_for_once_more() -> None:
    hung: list[Question] = []

    def answer(question: Question) -> dict[str, Any]:
        if question.task == "control_fp64" and not hung:
            hung.append(question)
            return HANG_RUN
        return {"run": WRONG_RUN, "control": CONTROL, "control_fp64": PASSES}[question.task]

    made, pool = judge(answer)
    assert made.judge(SEEDED, Criterion(WRONG.reference, own_comparison=True), RunPlan()).is_same
    assert pool.tasks.count("control_fp64") == 2


def test_where_candidates_hang_each_time_a_hang_is_believed_at_once() -> None:
    made, pool = judge(Hanging("run"))
    found = [made.judge(f"loop {n}", CRITERION, RunPlan()).verdict for n in range(HANGS + 3)]
    assert set(found) == {Verdict.TIMEOUT}
    assert len(pool.asked) == 2 * HANGS + 3
    asked = len(pool.asked)
    assert made.within(Budget(1.0)).judge("once", CRITERION, RunPlan()).verdict is Verdict.TIMEOUT
    assert len(pool.asked) == asked + 1


def test_a_hang_that_is_the_failure_is_not_asked_again() -> None:
    made, pool = judge(Hanging("run"))
    assert made.judge("once", NEVER_ENDS, RunPlan()).is_same
    assert sorted(pool.tasks) == ["control", "run"]


def test_the_limit_of_a_control_follows_those_that_passed() -> None:
    made, _ = judge({"run": FAILS, "control": {**CONTROL, "seconds": 2.0}}, run=300.0)
    assert made.eager_limit == 300.0
    made.judge("script", CRITERION, RunPlan())
    assert made.eager_limit == EAGER_TIMES * 2.0
    quick, _ = judge({"run": FAILS, "control": {**CONTROL, "seconds": 0.01}}, run=300.0)
    quick.judge("script", CRITERION, RunPlan())
    assert quick.eager_limit == LEAST_EAGER
    short, _ = judge({"run": FAILS, "control": {**CONTROL, "seconds": 2.0}}, run=3.0)
    short.judge("script", CRITERION, RunPlan())
    assert short.eager_limit == 3.0


def test_another_budget_knows_what_was_measured() -> None:
    made, _ = judge({"run": {**FAILS, "seconds": 0.5}, "control": CONTROL})
    other = made.within(Budget(1.0))
    made.judge("script", CRITERION, RunPlan())
    assert other.usual_seconds == 0.5
    assert (other.pool, other.limits) == (made.pool, made.limits)


# -- numbers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("criterion", "task"),
    [(WRONG, "control_spread"), (Criterion(WRONG.reference, own_comparison=True), "control_fp64")],
)
def test_right_numbers_have_to_pass(criterion: Criterion, task: str) -> None:
    for right, verdict in ((PASSES, Verdict.SAME), (WRONG_RUN, Verdict.INVALID), ({"status": "infra"}, Verdict.INFRA)):
        made, pool = judge({"run": WRONG_RUN, "control": CONTROL, task: right})
        assert made.judge(SEEDED, criterion, RunPlan()).verdict is verdict
        assert pool.tasks[:3] == ["run", "control", task]
        assert pool.asked[1].repeats


def test_a_program_that_takes_eager_for_right_is_asked_no_more() -> None:
    made, pool = judge({"run": WRONG_RUN, "control": CONTROL})
    assert made.judge(SEEDED, Criterion(WRONG.reference, eager_alone=True), RunPlan()).is_same
    assert pool.tasks == ["run", "control"]


IMPOSSIBLE = {"status": "raised", "text": "Traceback (most recent call last):\nbot.inside.protocol.Fp64Impossible: int8 has no float64\n"}


def test_eager_moved_by_its_rounding_stands_for_a_float64_that_cannot_be() -> None:
    made, pool = judge({"run": WRONG_RUN, "control": CONTROL, "control_spread": IMPOSSIBLE, "control_moved": PASSES})
    found = made.judge(SEEDED, WRONG, RunPlan())
    assert (found.is_same, found.instead_of_float64) == (True, "int8 has no float64")
    assert pool.tasks == ["run", "control", "control_spread", "control_moved"]


# A checkpoint runs its part again in the backward, where nothing is raised to double any more.
BACKWARD = """Traceback (most recent call last):
  File "x.py", line 22, in <module>
    loss.backward()
  File "/lib/torch/_tensor.py", line 625, in backward
    torch.autograd.backward(
  File "/lib/torch/autograd/__init__.py", line 354, in backward
    _engine_run_backward(
  File "/lib/torch/autograd/graph.py", line 841, in _engine_run_backward
    return Variable._execution_engine.run_backward(
{last}
"""
CONV = """  File "x.py", line 5, in forward
    return self.conv(x)
  File "/lib/torch/nn/modules/conv.py", line 370, in _conv_forward
    return F.conv1d(
RuntimeError: Input type (double)"""


@pytest.mark.parametrize(
    ("control", "why"),
    [
        (Outcome(status="ok"), ""),
        (Outcome(status="raised", text="KeyError: 1"), ""),
        (Outcome(status="exit", text="Fp64Impossible: printed by the program"), ""),
        (Outcome(status="memory"), "float64 needs more memory than there is"),
        (Outcome(status="raised", text="Traceback (most recent call last):\nMemoryError\n"), "float64 needs more memory than there is"),
        (Outcome(status="raised", text=IMPOSSIBLE["text"]), "int8 has no float64"),
        (Outcome(status="raised", text="x\nFp64Impossible"), "Fp64Impossible"),
        (Outcome(status="raised", text=f"Fp64Impossible: {'x' * 400}"), "x" * 300),
        (Outcome(status="raised", text=BACKWARD.format(last=CONV)), "exception in run (backward): RuntimeError: Input type (double)"),
        (Outcome(status="raised", text=BACKWARD.format(last='  File "x.py", line 9, in hook\n    assert ok\nAssertionError')), ""),
    ],
)
def test_why_there_is_no_float64(control: Outcome, why: str) -> None:
    assert cannot_be_float64(control) == why


# -- random numbers ---------------------------------------------------------------------------------------------------

DREW = {**WRONG_RUN, "drew": True}
RIGHT = {"control": CONTROL, "control_spread": PASSES}


def drawing(shown: Callable[[Question], bool]) -> Answer:
    return lambda question: RIGHT[question.task] if question.task in RIGHT else DREW if shown(question) else PASSES


@pytest.mark.parametrize("cpus", [1, 64])
def test_a_failure_that_one_seed_shows_is_none(monkeypatch: pytest.MonkeyPatch, cpus: int) -> None:
    monkeypatch.setattr(judging, "CPUS", cpus)
    made, pool = judge(drawing(lambda question: question.seed != 2))
    assert made.judge("import torch\n", WRONG, RunPlan()).verdict is Verdict.PASSES
    # one after the other, the first that does not show it saves the rest
    assert {question.seed for question in pool.asked if question.task == "run"} == ({0, 1, 2} if cpus == 1 else {0, 1, 2, 3})
    made, pool = judge(drawing(lambda _: True))
    assert made.judge("import torch\n", WRONG, RunPlan()).is_same
    assert {question.seed for question in pool.asked if question.task == "run"} == {0, 1, 2, 3}


def test_a_script_that_seeds_needs_no_other_seed() -> None:
    made, pool = judge(drawing(lambda question: question.seed == 0))
    assert made.judge(SEEDED, WRONG, RunPlan(seeded=True)).is_same
    assert pool.tasks.count("run") == 1


def test_a_candidate_of_a_seeded_program_keeps_its_seed() -> None:
    made, pool = judge(drawing(lambda _: True))
    assert made.judge("import torch\n", WRONG, RunPlan(seeded=True)).verdict is Verdict.PASSES
    assert pool.tasks.count("run") == 1


def test_so_does_one_that_is_never_run() -> None:
    made, _ = judge({"run": {**FAILS, "drew": True}, "control": CONTROL})
    assert made.judge("import torch\n", CRITERION, RunPlan(seeded=True)).verdict is Verdict.PASSES
    assert made.judge(SEEDED, CRITERION, RunPlan(seeded=True)).is_same


def test_what_draws_nothing_needs_no_seed() -> None:
    made, pool = judge({"run": WRONG_RUN, **RIGHT})
    assert made.judge("import torch\n", WRONG, RunPlan(seeded=True)).is_same
    assert pool.tasks.count("run") == 1


def test_where_compiled_code_drew_as_eager_other_numbers_alone_are_not_wrong() -> None:
    for also_as_eager in (True, False):
        made, pool = judge(drawing(lambda question, also=also_as_eager: also or not question.as_eager))  # type: ignore[misc]
        found = made.judge(SEEDED, WRONG, RunPlan(seeded=True, draws_as_eager=True))
        assert found.is_same is also_as_eager
        assert [question.as_eager for question in pool.asked if question.task == "run"] == [False, True]


def test_random_numbers_do_not_matter_where_nothing_runs() -> None:
    made, pool = judge({"run": {**FAILS, "drew": True}, "control": CONTROL})
    assert made.judge("import torch\n", CRITERION, RunPlan()).is_same
    assert pool.tasks == ["run", "control"]


def test_what_fails_and_does_not_end_is_no_candidate() -> None:
    made, pool = judge({"run": {**FAILS, "lingers": True}, "control": CONTROL})
    assert made.judge("script", CRITERION, RunPlan()).verdict is Verdict.TIMEOUT
    assert pool.tasks == ["run"]


def test_a_run_notes_what_is_blamed_where_the_plan_says_so() -> None:
    made, pool = judge({"origins": {**FAILS, "guesses": [["a"], ["a", "b"]]}, "control": CONTROL})
    assert made.judge("script", CRITERION, RunPlan(notes_blame=True)).blamed == (("a",), ("a", "b"))
    assert pool.tasks == ["origins", "control"]
