"""Verdicts, memo, order and deadline of the oracle, over a pool that costs nothing."""

from __future__ import annotations

import dataclasses
import itertools
import json
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.failure.outcome import Outcome
from bot.failure.signature import signature_of
from bot.inside.protocol import Question
from bot.inside.traits import Traits
from bot.models.failure import Kind, Phase, Signature, Verdict
from bot.oracle.budget import Budget
from bot.oracle.criterion import Criterion
from bot.oracle.dispatch import RETRIES
from bot.oracle.judge import CHECKS, EAGER_TIMES, EXPENSIVE_RUN_SECONDS, Judge
from bot.oracle.memo import Ledger
from bot.oracle.oracle import FAR_LONGER, ScriptOracle
from bot.oracle.run_plan import TRIES, Limits, RunPlan, exit_after
from bot.reduce.candidate import BudgetSpent, Candidate
from bot.workers.pool import PoolError
from tests.clock import Clock
from tests.oracle.fakes import CONTROL, FAILS, OTHER, PASSES, Answer, FakePool, sleep_until

shown = signature_of(Outcome(**FAILS))
assert shown is not None
REFERENCE: Signature = shown
WRONG = Signature(kind=Kind.ACCURACY, phase=Phase.RUN, exception=("AssertionError",))
WRONG_TEXT = {
    "status": "raised",
    "text": 'Traceback (most recent call last):\n  File "repro.py", line 9, in <module>\n    assert_close(a, b)\n'
    '  File "/x/torch/testing/_comparison.py", line 1, in assert_close\n    raise error\nAssertionError: Tensor-likes are not close!\n',
}

OWN_ERROR = {"status": "raised", "text": 'Traceback (most recent call last):\n  File "repro.py", line 9, in <module>\nRuntimeError: NaN\n'}
INFRA = {"status": "infra"}
TIMED_OUT = {"status": "timeout"}
KILLED = {"status": "memory", "signal": "SIGKILL"}
DISK_FULL = {"status": "exit", "exit": 70, "text": "OSError: [Errno 28] No space left on device: '/x'"}

Make = Callable[..., tuple[ScriptOracle, FakePool]]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def oracle(
        answer: Answer, *, reference: Signature = REFERENCE, budget: Budget | None = None, wait: Any = lambda _: 0.0, **more: Any
    ) -> Any:
        pool = FakePool(answer, wait)
        ledger = more.pop("ledger", None) or Ledger(tmp_path / "reduction.jsonl", resume=False)
        criterion = Criterion(reference, **_taken(more, Criterion))
        limits = Limits(**_taken(more, Limits))
        full = more.pop("full_pipeline", False)
        plan = RunPlan(None if full else exit_after(reference, Traits(differentiates=True)), **_taken(more, RunPlan))
        judge = Judge(pool, budget or Budget(60.0), limits)  # type: ignore[arg-type]
        return ScriptOracle(judge, ledger, criterion, plan, **more), pool

    return oracle


def _taken(given: dict[str, Any], kind: Any) -> dict[str, Any]:
    return {field.name: given.pop(field.name) for field in dataclasses.fields(kind) if field.name in given}


def candidate(text: str = "script", size: int = 1) -> Candidate:
    return Candidate(text, "a pass", (size,))


def by_task(**answers: dict[str, Any]) -> Answer:
    return lambda question: answers[question.task]


RUNS: list[tuple[dict[str, Any], dict[str, Any], Verdict, int]] = [
    (FAILS, CONTROL, Verdict.SAME, 2),
    (FAILS, {"status": "ok", "calls": 0}, Verdict.INVALID, 2),
    (FAILS, {"status": "raised", "text": "eager fails", "calls": 1}, Verdict.INVALID, 2),
    (FAILS, {"status": "timeout", "calls": 1}, Verdict.INVALID, 3),
    (FAILS, {"status": "infra"}, Verdict.INFRA, 2 + RETRIES),
    (OTHER, CONTROL, Verdict.DIFFERENT, 1),
    (PASSES, CONTROL, Verdict.PASSES, 1),
    ({"status": "stopped"}, CONTROL, Verdict.PASSES, 1),
    ({"status": "timeout"}, CONTROL, Verdict.TIMEOUT, 2),
    ({"status": "memory"}, CONTROL, Verdict.INFRA, 1),
    (KILLED, CONTROL, Verdict.INFRA, 1 + RETRIES),
    (DISK_FULL, CONTROL, Verdict.INFRA, 1 + RETRIES),
    (FAILS, KILLED, Verdict.INFRA, 2 + RETRIES),
    ({"status": "infra"}, CONTROL, Verdict.INFRA, 1 + RETRIES),
    ({"status": "signal", "signal": "SIGSEGV"}, CONTROL, Verdict.DIFFERENT, 1),
    ({"status": "exit", "exit": 3}, CONTROL, Verdict.DIFFERENT, 1),
]


@pytest.mark.parametrize(("run", "control", "verdict", "questions"), RUNS)
def test_verdicts(make: Make, run: dict[str, Any], control: dict[str, Any], verdict: Verdict, questions: int) -> None:
    oracle, pool = make(by_task(run=run, control=control))
    assert oracle.ask(candidate()) is verdict
    assert len(pool.asked) == questions


@pytest.mark.parametrize("fault", [INFRA, KILLED, DISK_FULL])
def test_a_fault_that_is_not_the_candidates_is_asked_again(make: Make, fault: dict[str, Any]) -> None:
    answers = iter([fault, FAILS, fault, CONTROL])
    oracle, pool = make(lambda _: next(answers))
    assert oracle.ask(candidate()) is Verdict.SAME
    assert pool.tasks == ["run", "run", "control", "control"]


@pytest.mark.parametrize("fault", [INFRA, KILLED, DISK_FULL])
def test_so_is_one_in_what_is_asked_beside_the_search(make: Make, fault: dict[str, Any]) -> None:
    """A legal program would be taken for an illegal one, and a failure that always shows for one that shows now and then."""
    answers = iter([fault, {"status": "ok", "values": {}}])
    oracle, _ = make(lambda _: next(answers))
    assert oracle.shapes("legal") == {}
    turns = iter([FAILS, fault, *[FAILS] * CHECKS])
    oracle, pool = make(lambda _: next(turns))
    assert oracle.settle("start")()
    assert sorted(question.seed for question in pool.asked) == sorted([*range(CHECKS), 1])


def test_by_products_are_kept_with_the_script_that_shows_them(make: Make) -> None:
    oracle, _ = make(by_task(run=OTHER, control=CONTROL))
    for text in ("first", "second"):
        oracle.ask(candidate(text))
    ((signature, text),) = oracle.seen.by_products.values()
    assert (signature.exception, text) == (("ValueError",), "first")


def test_other_failures_are_those_of_programs_that_eager_runs(make: Make) -> None:
    def answer(question: Question) -> dict[str, Any]:
        if question.task == "run":
            return {**OTHER, "text": OTHER["text"].replace("ValueError", f"{question.text}Error")}
        return {"Broken": {"status": "raised", "text": "", "calls": 1}, "Idle": PASSES}.get(question.text, CONTROL)

    oracle, _ = make(answer)
    # what lacks a name is a pass or a backend that the search cut, which eager never calls
    for text in ("Name", "UnboundLocal", "Broken", "First", "Idle", "Second"):
        assert oracle.ask(candidate(text)) is Verdict.DIFFERENT
    assert [signature.exception[-1] for signature in oracle.other_failures()] == ["FirstError", "SecondError"]
    assert [signature.exception[-1] for signature in oracle.other_failures(most=2)] == ["FirstError"]


@pytest.mark.parametrize(("run", "passes"), [(PASSES, True), (FAILS, False), ({"status": "timeout"}, False)])
def test_whether_a_script_passes_all_the_way(make: Make, run: dict[str, Any], passes: bool) -> None:
    oracle, pool = make(by_task(run=run, control=CONTROL))
    assert oracle.passes("text") is passes
    assert pool.asked[0].stop_after is None


def test_a_script_that_never_calls_the_compiler_passes_nothing(make: Make) -> None:
    oracle, _ = make(by_task(run=PASSES, control=PASSES))
    assert not oracle.passes("text")


def test_what_a_script_shows_is_found_out_in_the_full_pipeline(make: Make) -> None:
    oracle, pool = make(by_task(run=FAILS, control=CONTROL))
    assert oracle.observe("script")[1] == REFERENCE
    assert pool.asked[0].stop_after is None
    quiet, _ = make(by_task(run=PASSES))
    assert quiet.observe("passes")[1] is None


IMPOSSIBLE = {"status": "raised", "text": "torch_minify_inside.protocol.Fp64Impossible: random numbers"}
MISSES = {"status": "raised", "text": "AssertionError: Tensor-likes are not close"}


@pytest.mark.parametrize("across_forms", [False, True])
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize(
    ("right", "moved", "verdict"),
    [
        ({"status": "ok"}, MISSES, Verdict.SAME),
        (MISSES, {"status": "ok"}, Verdict.INVALID),
        ({"status": "timeout"}, {"status": "ok"}, Verdict.INVALID),
        (INFRA, {"status": "ok"}, Verdict.INFRA),
        (DISK_FULL, {"status": "ok"}, Verdict.INFRA),
        (IMPOSSIBLE, {"status": "ok"}, Verdict.SAME),
        (IMPOSSIBLE, MISSES, Verdict.INVALID),
        (IMPOSSIBLE, INFRA, Verdict.INFRA),
        (KILLED, {"status": "ok"}, Verdict.SAME),
        (KILLED, MISSES, Verdict.INVALID),
    ],
)
def test_wrong_numbers_need_an_eager_run_that_is_right(
    make: Make, across_forms: bool, own: bool, right: Any, moved: Any, verdict: Verdict
) -> None:
    """Whatever the original did: the rule is never relaxed for a candidate."""
    task = "control_fp64" if own else "control_spread"
    answers = {"run": WRONG_TEXT, "control": CONTROL, task: right, "control_moved": moved}
    oracle, pool = make(by_task(**answers), reference=WRONG, across_forms=across_forms, own_comparison=own)
    assert oracle.ask(candidate()) is verdict
    assert pool.tasks[:3] == ["run", "control", task]
    assert ("control_moved" in pool.tasks) is (right in (IMPOSSIBLE, KILLED))


def test_a_program_that_takes_eager_for_right_is_taken_at_its_word(make: Make) -> None:
    oracle, pool = make(by_task(run=WRONG_TEXT, control=CONTROL), reference=WRONG, eager_alone=True)
    assert oracle.ask(candidate()) is Verdict.SAME
    assert not [task for task in pool.tasks if task.startswith("control_")]


def test_what_stood_for_float64_is_said(make: Make) -> None:
    answers = {"run": WRONG_TEXT, "control": CONTROL, "control_spread": IMPOSSIBLE, "control_moved": {"status": "ok"}}
    oracle, _ = make(by_task(**answers), reference=WRONG)
    begun = oracle.begins(candidate())
    assert begun is not None
    assert begun.answer.instead_of_float64 == "random numbers"


def test_wrong_numbers_alone_need_an_eager_run_that_repeats_itself(make: Make) -> None:
    wrong, pool = make(by_task(run=WRONG_TEXT, control=CONTROL, control_spread={"status": "ok"}), reference=WRONG)
    wrong.ask(candidate())
    raised, others = make(by_task(run=FAILS, control=CONTROL))
    raised.ask(candidate())
    assert [question.repeats for question in (*pool.asked, *others.asked) if question.task == "control"] == [True, False]


def test_a_missing_error_needs_an_eager_run_that_raises(make: Make) -> None:
    reference = Signature(kind=Kind.NO_RAISE, phase=Phase.RUN)
    for raised, verdict in ((0, Verdict.INVALID), (1, Verdict.SAME)):
        oracle, _ = make(by_task(run=WRONG_TEXT, control={**CONTROL, "raised": raised}), reference=reference)
        assert oracle.ask(candidate()) is verdict


def test_the_error_that_is_missing_is_the_original_one(make: Make) -> None:
    reference = Signature(kind=Kind.NO_RAISE, phase=Phase.RUN)
    for error, verdict in (("ValueError: 0 is too large", Verdict.SAME), ("TypeError: 0", Verdict.INVALID)):
        control = {**CONTROL, "raised": 1, "error": error}
        oracle, _ = make(by_task(run=WRONG_TEXT, control=control), reference=reference, eager_error="ValueError: 0 is too large")
        assert oracle.ask(candidate()) is verdict


def test_the_error_that_a_program_misses_by_its_own_status_is_the_original_one(make: Make) -> None:
    reference = Signature(kind=Kind.EXCEPTION, phase=Phase.RUN, exception=("SystemExit",), message="1")
    for error, verdict in (("ValueError: 0 is too large", Verdict.SAME), ("TypeError: 0", Verdict.INVALID), ("", Verdict.INVALID)):
        control = {**CONTROL, "raised": int(bool(error)), "error": error}
        answers = by_task(run={"status": "exit", "exit": 1}, control=control)
        oracle, _ = make(answers, reference=reference, eager_error="ValueError: 0 is too large")
        assert oracle.ask(candidate()) is verdict


BEHIND = {
    **CONTROL,
    "status": "raised",
    "text": 'Traceback (most recent call last):\n  File "/w/repro.py", line 99, in <module>\nAttributeError: a',
}
BEFORE = {**BEHIND, "text": BEHIND["text"].replace("99", "1")}


def test_a_control_may_end_behind_the_failure_where_the_original_does(make: Make) -> None:
    answer: Answer = lambda q: FAILS if q.task == "run" else BEFORE if "before" in q.text else BEHIND  # noqa: E731
    for terms in ({"across_forms": True}, {"control_may_end_later": True}):
        oracle, _ = make(answer, **terms)
        assert oracle.ask(candidate("a candidate")) is Verdict.SAME
        assert oracle.ask(candidate("one that fails before")) is Verdict.INVALID


@pytest.mark.parametrize(("right", "verdict"), [(BEHIND, Verdict.SAME), (BEFORE, Verdict.INVALID), (PASSES, Verdict.SAME)])
def test_so_may_right_numbers_in_place_of_wrong_ones(make: Make, right: dict[str, Any], verdict: Verdict) -> None:
    """What only the compiler makes is looked at behind the comparison; before it nothing may fail."""
    answers = {"run": WRONG_TEXT, "control": BEHIND, "control_spread": right}
    oracle, _ = make(by_task(**answers), reference=WRONG, control_may_end_later=True)
    assert oracle.ask(candidate()) is verdict
    strict, _ = make(by_task(**{**answers, "control": CONTROL}), reference=WRONG, control_may_end_later=True)
    assert strict.ask(candidate()) is (Verdict.SAME if right is PASSES else Verdict.INVALID), "its control did not end there"


def test_where_the_original_passes_its_control_so_must_every_candidate(make: Make) -> None:
    oracle, _ = make(by_task(run=FAILS, control=BEHIND))
    assert oracle.ask(candidate()) is Verdict.INVALID


def test_a_hang_is_the_same_when_its_phase_is(make: Make) -> None:
    stack = 'Current thread 0x1 (most recent call first):\n  File "/x/torch/_inductor/scheduler.py", line 1 in fuse\n'
    hang = {"status": "timeout", "text": stack}
    reference = signature_of(Outcome(**hang))
    oracle, pool = make(by_task(run=hang, control=CONTROL), reference=reference, hang_after=30.0, run=5.0)
    assert oracle.ask(candidate()) is Verdict.SAME
    assert [(question.task, question.limit) for question in pool.asked] == [("control", 3.0), ("run", 30.0)]


@pytest.mark.parametrize(("hang_after", "limit"), [(60.0, 20.0), (12.0, 10.0), (5.0, 5.0)])
def test_the_search_waits_less_for_a_hang_than_the_proof(make: Make, hang_after: float, limit: float) -> None:
    reference = Signature(kind=Kind.HANG, phase=Phase.INDUCTOR_LOWERING)
    oracle, pool = make(by_task(run={"status": "ok"}, control=CONTROL), reference=reference, hang_after=hang_after, patience=1 / 3)
    assert oracle.ask(candidate()) is Verdict.PASSES
    assert pool.asked[1].limit == pytest.approx(limit)


def test_a_failure_that_shows_now_and_then_is_asked_for_many_times(make: Make) -> None:
    turns = itertools.cycle([FAILS, PASSES, PASSES])
    oracle, pool = make(lambda question: CONTROL if question.task == "control" else PASSES if "healthy" in question.text else next(turns))
    assert oracle.ask(candidate("the original")) is Verdict.SAME
    oracle.settle("the original")()
    assert oracle.plan.tries == TRIES
    assert oracle.ask(candidate("smaller")) is Verdict.SAME
    asked = len(pool.asked)
    assert oracle.ask(candidate("healthy")) is Verdict.PASSES
    assert len(pool.asked) - asked == TRIES
    assert oracle.ledger.queries == 3, "runs of one question are one query"


def test_a_failure_that_is_always_there_is_asked_for_once(make: Make) -> None:
    oracle, pool = make(by_task(run=FAILS, control=CONTROL))
    oracle.ask(candidate())
    oracle.settle("script")()
    assert oracle.plan.tries == 1
    assert pool.tasks == ["run", "control", *["run"] * CHECKS]


def test_eager_is_given_many_times_what_it_took(make: Make) -> None:
    oracle, pool = make(by_task(run=FAILS, control={**CONTROL, "seconds": 0.5}), run=60.0)
    oracle.ask(candidate("first"))
    oracle.ask(candidate("second"))
    assert [question.limit for question in pool.asked if question.task == "control"] == [60.0, EAGER_TIMES * 0.5]


def test_where_a_run_is_dear_its_control_comes_first(make: Make) -> None:
    slow = {**FAILS, "seconds": EXPENSIVE_RUN_SECONDS * 2}
    oracle, pool = make(lambda question: CONTROL if question.task == "control" and "legal" in question.text else slow)
    assert oracle.ask(candidate("legal")) is Verdict.SAME
    assert oracle.ask(candidate("not this one")) is Verdict.INVALID
    assert oracle.ask(candidate("legal again")) is Verdict.SAME
    assert pool.tasks == ["run", "control", "control", "control", "run"]


def test_an_assert_of_the_programs_own_has_to_say_the_same(make: Make) -> None:
    def answer(question: Question) -> dict[str, Any]:
        said = {"same": "off by 3", "other": "off by (3, 4)"}.get(question.text, "")
        wrong = {**WRONG_TEXT, "text": WRONG_TEXT["text"].replace("Tensor-likes are not close!", said)}
        return wrong if question.task == "run" else CONTROL

    oracle, _ = make(answer, reference=WRONG, own_words="off by N")
    assert oracle.ask(candidate("same")) is Verdict.SAME
    assert oracle.ask(candidate("other")) is Verdict.DIFFERENT


@pytest.mark.parametrize(
    ("first", "again", "slow", "runs"),
    [((9.0, 2.0), 9.0, True, 3), ((9.0, 2.0), 3.0, False, 3), ((2.9, 2.0), None, False, 2), ((0.9, 0.1), None, False, 2)],
)
def test_what_takes_much_longer(make: Make, first: tuple[float, ...], again: float | None, slow: bool, runs: int) -> None:
    took = {"new": [first[0], again], "old": [first[1]]}
    oracle, pool = make(lambda q: CONTROL if q.task == "control" else {**FAILS, "seconds": took[q.text].pop(0)})
    for name in ("old", "new"):
        oracle.ask(candidate(name))
    assert oracle.is_slow("new", "old") is slow
    assert sum(q.task == "run" for q in pool.asked) == runs


def test_what_is_slow_is_not_waited_for_twice(make: Make) -> None:
    def answer(question: Question) -> dict[str, Any]:
        seconds = {"new": 62.0, "old": 4.0}[question.text]
        return CONTROL if question.task == "control" else TIMED_OUT if seconds > question.limit else {**FAILS, "seconds": seconds}

    oracle, pool = make(answer, run=100.0)
    oracle.ask(candidate("old"))
    assert oracle.ask(candidate("new")) is Verdict.SAME
    assert oracle.is_slow("new", "old")
    again = pool.asked[-1]
    assert (again.text, again.task) == ("new", "run")
    assert again.limit < 10.0


def test_nobody_waits_for_what_is_far_slower_than_what_stands(make: Make) -> None:
    def answer(question: Question) -> dict[str, Any]:
        return CONTROL if question.task == "control" else {**FAILS, "seconds": 5.0}

    oracle, pool = make(answer, run=100.0)
    for name in ("first", "second"):
        oracle.ask(candidate(name))
    assert not oracle.is_slow("second", "first")
    oracle.ask(candidate("third"))
    limits = {question.text: question.limit for question in pool.asked if question.task == "run"}
    assert (limits["second"], limits["third"]) == (100.0, FAR_LONGER * 5.0)


def test_nothing_is_slow_beside_what_was_never_run(make: Make) -> None:
    oracle, _ = make(lambda q: CONTROL if q.task == "control" else {**FAILS, "seconds": 9.0})
    oracle.ask(candidate("new"))
    assert not oracle.is_slow("new", "never asked")


def test_small_steps_do_not_add_up_to_a_slow_one(make: Make) -> None:
    took = {"first": 2.0, "second": 2.9, "third": 4.2, "bare": 9.0, "after": 10.0, "quick": 1.0, "last": 2.8}
    oracle, _ = make(lambda q: CONTROL if q.task == "control" else {**FAILS, "seconds": took[q.text]})
    for name in took:
        oracle.ask(candidate(name))
    assert not oracle.is_slow("second", "first")
    assert oracle.is_slow("third", "second")  # 1.45 times as long as what stands, 2.1 times as long as the first
    assert not oracle.is_slow("after", "bare")  # taken for its lines
    assert oracle.is_slow("after", "quick")
    assert oracle.is_slow("last", "quick")


class TestSeeds:
    """Random numbers that nobody fixed."""

    @pytest.fixture(autouse=True)
    def few_cpus(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("bot.oracle.judge.CPUS", 2)

    @pytest.mark.parametrize(("least", "verdict"), [(CHECKS, Verdict.SAME), (2, Verdict.PASSES)])
    def test_other_numbers_are_asked_at_once_where_there_are_cpus(
        self, make: Make, monkeypatch: pytest.MonkeyPatch, least: int, verdict: Verdict
    ) -> None:
        monkeypatch.setattr("bot.oracle.judge.CPUS", 16)
        together = threading.Barrier(CHECKS - 1, timeout=10)

        def answer(q: Question) -> dict[str, Any]:
            if q.task.startswith("control"):
                return CONTROL
            if q.seed:
                together.wait()
            return {**(WRONG_TEXT if q.seed < least else PASSES), "drew": True}

        oracle, pool = make(answer, reference=WRONG)
        assert oracle.ask(candidate("never had one")) is verdict
        assert sorted(q.seed for q in pool.asked if q.task == "run") == [*range(CHECKS)]

    @pytest.mark.parametrize(
        ("text", "drew", "seeded", "verdict", "seeds"),
        [
            ("torch.manual_seed(0)", True, True, Verdict.SAME, [0]),
            ("lost its seed", True, True, Verdict.PASSES, [0]),
            ("x = 0  # torch.manual_seed(0) is gone", True, True, Verdict.PASSES, [0]),
            ("needs none", False, True, Verdict.SAME, [0]),
            ("never had one", True, False, Verdict.PASSES, [0, 1, 2]),
        ],
    )
    def test_a_script_that_lost_its_seed(self, make: Make, text: str, drew: bool, seeded: bool, verdict: Verdict, seeds: list[int]) -> None:
        def answer(q: Question) -> dict[str, Any]:
            if q.task.startswith("control"):
                return CONTROL
            return {**(WRONG_TEXT if q.seed < 2 else PASSES), "drew": drew}

        oracle, pool = make(answer, reference=WRONG, seeded=seeded)
        assert oracle.ask(candidate(text)) is verdict
        assert [q.seed for q in pool.asked if q.task == "run"] == seeds

    @pytest.mark.parametrize(
        ("text", "seeded", "verdict", "seeds"),
        [
            ("torch.manual_seed(0)", True, Verdict.SAME, [0]),
            ("lost its seed", True, Verdict.PASSES, [0]),
            ("never had one", False, Verdict.PASSES, [0, 1, 2]),
        ],
    )
    def test_an_error_of_the_programs_own_may_depend_on_numbers(
        self, make: Make, text: str, seeded: bool, verdict: Verdict, seeds: list[int]
    ) -> None:
        """It seeds, and raises its own RuntimeError where it finds a NaN."""

        def answer(q: Question) -> dict[str, Any]:
            if q.task.startswith("control"):
                return CONTROL
            return {**(OWN_ERROR if q.seed < 2 else PASSES), "drew": True}

        own = signature_of(Outcome(**OWN_ERROR))
        assert own is not None
        oracle, pool = make(answer, reference=own, seeded=seeded)
        assert oracle.ask(candidate(text)) is verdict
        assert [q.seed for q in pool.asked if q.task == "run"] == seeds

    @pytest.mark.parametrize(("fails", "seeded"), [(lambda seed: True, False), (lambda seed: seed == 0, True)])
    def test_a_seed_has_to_stay_only_where_it_decides(self, make: Make, fails: Callable[[int], bool], seeded: bool) -> None:
        """A compile that fails whatever the numbers are needs no seed."""

        def answer(q: Question) -> dict[str, Any]:
            if q.task.startswith("control"):
                return CONTROL
            return {**(FAILS if "manual_seed" in q.text or fails(q.seed) else PASSES), "drew": True}

        oracle, _ = make(answer, across_forms=True)
        begun = oracle.begins(candidate("import torch\ntorch.manual_seed(3)\n"))
        assert begun is not None
        assert begun.plan.seeded is seeded

    @pytest.mark.parametrize(("draws_inputs", "runs"), [(True, 1), (False, 2)])
    def test_no_number_decides_how_a_graph_is_compiled(self, make: Make, draws_inputs: bool, runs: int) -> None:
        """Where the program draws its inputs alone; one that draws in a pass of its own, say, may fail by that."""
        oracle, pool = make(lambda q: CONTROL if q.task.startswith("control") else FAILS if q.seed == 0 else PASSES, across_forms=True)
        begun = oracle.begins(candidate("import torch\ntorch.manual_seed(3)\n"), draws_inputs=draws_inputs)
        assert begun is not None
        assert begun.plan.stop_after is not None
        assert begun.plan.seeded is not draws_inputs
        assert pool.tasks.count("run") == runs

    def test_a_graph_that_had_to_be_run_is_asked_for_its_seed(self, make: Make) -> None:
        early = lambda q: {"status": "stopped"} if q.stop_after else FAILS if q.seed == 0 else PASSES  # noqa: E731
        oracle, _ = make(lambda q: CONTROL if q.task.startswith("control") else early(q), across_forms=True)
        begun = oracle.begins(candidate("import torch\ntorch.manual_seed(3)\n"), draws_inputs=True)
        assert begun is not None
        assert begun.plan.seeded

    def test_a_seed_stays_where_the_program_fails_in_its_run(self, make: Make) -> None:
        """Three draws that fail alike are no proof: one in seventy may pass."""
        own = signature_of(Outcome(**OWN_ERROR))
        assert own is not None
        oracle, _ = make(by_task(run={**OWN_ERROR, "drew": True}, control=CONTROL), reference=own, across_forms=True)
        begun = oracle.begins(candidate("import torch\ntorch.manual_seed(3)\n"))
        assert begun is not None
        assert begun.plan.seeded

    @pytest.mark.parametrize(
        ("text", "drew", "still", "verdict", "runs"),
        [
            ("\ntorch._inductor.config.fallback_random = True", True, False, Verdict.SAME, [False]),
            ("draws nothing", False, False, Verdict.SAME, [False]),
            ("wrong either way", True, True, Verdict.SAME, [False, True]),
            ("draws other numbers", True, False, Verdict.PASSES, [False, True]),
        ],
    )
    def test_other_numbers_alone_are_no_wrong_ones(
        self, make: Make, text: str, drew: bool, still: bool, verdict: Verdict, runs: list[bool]
    ) -> None:
        """The program had compiled code draw what eager draws."""

        def answer(q: Question) -> dict[str, Any]:
            if q.task.startswith("control"):
                return CONTROL
            return {**(PASSES if q.as_eager and not still else WRONG_TEXT), "drew": drew}

        oracle, pool = make(answer, reference=WRONG, draws_as_eager=True)
        assert oracle.ask(candidate(f"torch.manual_seed(0)\n# {text}")) is verdict
        assert [q.as_eager for q in pool.asked if q.task == "run"] == runs
        assert {q.seed for q in pool.asked} == {0}, "other numbers would be another question"

    def test_the_runs_of_a_check_draw_other_numbers(self, make: Make) -> None:
        oracle, pool = make(lambda q: CONTROL if q.task.startswith("control") else WRONG_TEXT if q.seed % 2 else PASSES, reference=WRONG)
        assert not oracle.settle("start")()
        assert [q.seed for q in pool.asked] == list(range(CHECKS))
        assert oracle.ask(candidate("no seed")) is Verdict.SAME
        assert [q.seed for q in pool.asked[CHECKS:] if q.task == "run"] == [0, 1]


class TestRungs:
    """When the compiler may be left early."""

    @pytest.mark.parametrize("phase", list(Phase))
    def test_phases(self, make: Make, phase: Phase) -> None:
        reference = REFERENCE.model_copy(update={"phase": phase})
        oracle, pool = make(by_task(run=PASSES), reference=reference)
        oracle.ask(candidate())
        never = phase in (Phase.LOAD, Phase.RUN)
        assert pool.asked[0].stop_after == (None if never else phase.value)

    @pytest.mark.parametrize(
        ("kind", "phase", "early"),
        [
            (Kind.CRASH, Phase.DYNAMO, True),
            (Kind.HANG, Phase.DYNAMO, True),
            (Kind.CRASH, Phase.INDUCTOR_CODEGEN, False),
            (Kind.HANG, Phase.INDUCTOR_CODEGEN, False),
            (Kind.ACCURACY, Phase.DYNAMO, False),
            (Kind.NO_RAISE, Phase.DYNAMO, False),
        ],
    )
    def test_what_does_not_raise_is_left_early_only_by_tracing(self, kind: Kind, phase: Phase, early: bool) -> None:
        """Without an exception nothing but the end of the phase says that it was passed."""
        assert exit_after(Signature(kind=kind, phase=phase), Traits()) == (phase.value if early else None)

    @pytest.mark.parametrize(
        "more",
        [
            {"full_pipeline": True},
            {"reference": REFERENCE.model_copy(update={"backward": True})},
            {"reference": REFERENCE.model_copy(update={"kind": Kind.CRASH})},
            {"reference": REFERENCE.model_copy(update={"kind": Kind.HANG})},
            {"reference": WRONG},
        ],
    )
    def test_never(self, make: Make, more: dict[str, Any]) -> None:
        oracle, pool = make(by_task(run=PASSES, control=CONTROL), **more)
        oracle.ask(candidate())
        assert pool.asked[0].stop_after is None

    def test_the_control_and_what_is_shown_take_the_whole_way(self, make: Make) -> None:
        oracle, pool = make(by_task(run=FAILS, control=CONTROL))
        oracle.ask(candidate())
        oracle.observe("other")
        assert [question.stop_after for question in pool.asked] == [REFERENCE.phase.value, None, None]

    @pytest.mark.parametrize(("early", "full_pipeline"), [(FAILS, False), ({"status": "stopped"}, True), (OTHER, True)])
    def test_only_where_the_program_at_the_start_still_shows_its_failure(
        self, make: Make, early: dict[str, Any], full_pipeline: bool
    ) -> None:
        oracle, pool = make(lambda question: early if question.stop_after else FAILS, full_pipeline=True)
        oracle.settle("start")()
        assert (oracle.plan.stop_after is None, oracle.plan.tries) == (full_pipeline, 1)
        found = None if full_pipeline else REFERENCE.phase.value
        assert [question.stop_after for question in pool.asked] == [*[REFERENCE.phase.value] * (1 + full_pipeline), *[found] * (CHECKS - 1)]
        oracle.ask(candidate())
        assert pool.asked[CHECKS + full_pipeline].stop_after == (None if full_pipeline else REFERENCE.phase.value)

    def test_a_run_that_did_not_show_it_is_not_taken_for_one_that_ended_too_early(self, make: Make) -> None:
        turns = iter([PASSES, *[FAILS] * CHECKS])
        oracle, _ = make(lambda _: next(turns), full_pipeline=True)
        oracle.settle("start")()
        assert (oracle.plan.stop_after is None, oracle.plan.tries) == (False, TRIES)

    def test_without_a_rung_it_is_run_the_whole_way(self, make: Make) -> None:
        oracle, pool = make(by_task(run=WRONG_TEXT), reference=WRONG, full_pipeline=True)
        oracle.settle("start")()
        assert [question.stop_after for question in pool.asked] == [None] * CHECKS
        assert (oracle.plan.stop_after is None, oracle.plan.tries) == (True, 1)

    @pytest.mark.parametrize(
        ("text", "early"),
        [
            ("torch.compile(Repro())(x)", True),
            ("out.sum().backward()", False),
            ("torch.autograd.grad(out, x)", False),
            ("vjp(f, x)", False),
        ],
    )
    def test_a_graph_that_is_a_backward_is_left_early(self, make: Make, text: str, early: bool) -> None:
        """The original fails in its backward; a start that was made of that graph alone compiles nothing else before it."""
        reference = REFERENCE.model_copy(update={"backward": True})
        oracle, pool = make(by_task(run=FAILS, control=CONTROL), reference=reference, across_forms=True)
        assert oracle.begins(candidate(text))
        assert pool.asked[0].stop_after == (REFERENCE.phase.value if early else None)

    @pytest.mark.parametrize("early", [FAILS, {"status": "stopped"}])
    def test_a_start_is_asked_early_first(self, make: Make, early: dict[str, Any]) -> None:
        oracle, pool = make(lambda q: CONTROL if q.task == "control" else early if q.stop_after else FAILS)
        begun = oracle.begins(candidate())
        assert begun is not None
        whole = early is not FAILS
        assert begun.plan.stop_after == (None if whole else REFERENCE.phase.value)
        assert [q.stop_after for q in pool.asked if q.task == "run"] == [REFERENCE.phase.value, *([None] * whole)]

    def test_a_program_that_never_fails_is_no_start(self, make: Make) -> None:
        oracle, pool = make(by_task(run=PASSES))
        assert not oracle.begins(candidate())
        assert len(pool.asked) == 2

    def test_the_last_form_passes_only_when_it_always_passes(self, make: Make) -> None:
        turns = iter([PASSES, PASSES, PASSES, FAILS])
        oracle, pool = make(lambda question: CONTROL if question.task == "control" else next(turns))
        begun = oracle.begins(candidate(), TRIES)
        assert begun is not None
        assert len(pool.asked) == 5
        assert begun.plan.tries == 1

    def test_what_a_compiler_refused_is_noted_at_the_start(self, make: Make) -> None:
        output = "CppCompileError: C++ compile error\n\nCommand:\ng++\n\nOutput:\nk.cpp:3:1: error: no such thing\n"
        refused = {**FAILS, "text": FAILS["text"].replace("AssertionError: no 7\n", output)}
        reference = signature_of(Outcome(**refused))
        assert reference is not None
        assert reference.phase is Phase.CPP_COMPILE
        oracle, pool = make(by_task(origins={**refused, "guesses": [["a"], ["a", "b"]]}, run=refused, control=CONTROL), reference=reference)
        begun = oracle.begins(candidate())
        assert begun is not None
        assert begun.answer.blamed == (("a",), ("a", "b"))
        oracle.narrowed(oracle.criterion, begun.plan).ask(candidate("next"))
        assert pool.tasks == ["origins", "control", "run", "control"]

    def test_a_hang_is_not_waited_for_again(self, make: Make) -> None:
        oracle, pool = make(by_task(), reference=REFERENCE.model_copy(update={"kind": Kind.HANG}))
        oracle.settle("start")()
        assert not pool.asked


class TestMemo:
    """No text is asked twice."""

    def test_within_a_run(self, make: Make) -> None:
        answered: list[Verdict] = []
        oracle, pool = make(by_task(run=OTHER), on_answer=lambda _, verdict: answered.append(verdict))
        assert [oracle.ask(candidate()) for _ in range(3)] == [Verdict.DIFFERENT] * 3 == answered
        assert len(pool.asked) == 1
        assert (oracle.ledger.queries, oracle.ledger.memo_hits) == (1, 2)

    def test_twins_in_one_batch(self, make: Make) -> None:
        oracle, pool = make(by_task(run=OTHER), wait=lambda _: 0.05, jobs=3)
        assert oracle.first([candidate() for _ in range(6)]) is None
        assert oracle.first([candidate(text) for text in "abab"]) is None
        assert sorted(question.text for question in pool.asked) == ["a", "b", "script"]

    @pytest.mark.parametrize(("kind", "name"), [(kind, field.name) for kind in (Criterion, RunPlan) for field in dataclasses.fields(kind)])
    def test_another_question_of_the_same_text(self, make: Make, kind: Any, name: str) -> None:
        """Whatever is ever added to a criterion or a plan is part of the question."""
        values: dict[str, Any] = {"reference": WRONG, "tries": 2, "stop_after": "run", "own_words": "x", "eager_error": "y", "refusal": "z"}
        oracle, _ = make(by_task(run=OTHER, origins=OTHER))
        terms = {Criterion: oracle.criterion, RunPlan: oracle.plan}
        changed = dataclasses.replace(terms[kind], **{name: values.get(name, not getattr(terms[kind], name))})
        terms = {**terms, kind: changed}
        oracle.ask(candidate())
        oracle.narrowed(terms[Criterion], terms[RunPlan]).ask(candidate())
        assert len({entry["key"] for entry in map(json.loads, oracle.ledger.path.read_text().splitlines())}) == 2

    def test_the_terms_of_a_question_cannot_be_changed_from_outside(self, make: Make) -> None:
        oracle, _ = make(by_task())
        for terms, name in ((oracle.criterion, "across_forms"), (oracle.plan, "tries")):
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(terms, name, 7)
        for name in ("criterion", "plan"):
            with pytest.raises(AttributeError):
                setattr(oracle, name, getattr(oracle, name))

    def test_one_memo_for_all_who_ask(self, make: Make) -> None:
        oracle, _ = make(by_task(run=OTHER))
        oracle.ask(candidate())
        other, pool = make(by_task(run=PASSES), ledger=oracle.ledger)
        assert other.ask(candidate()) is Verdict.DIFFERENT
        assert not pool.asked

    def test_across_runs(self, make: Make, tmp_path: Path) -> None:
        oracle, _ = make(by_task(run=FAILS, control=CONTROL))
        oracle.ask(candidate())
        resumed, pool = make(by_task(run=PASSES), ledger=Ledger(tmp_path / "reduction.jsonl", resume=True))
        assert resumed.ask(candidate()) is Verdict.SAME
        assert not pool.asked


class TestFirst:
    """The lowest index that is SAME, whatever the timing."""

    @given(same=st.sets(st.integers(0, 7)), twins=st.booleans(), seed=st.integers(0, 99))
    def test_jobs_make_no_difference(self, tmp_path_factory: pytest.TempPathFactory, same: set[int], twins: bool, seed: int) -> None:
        chance = random.Random(seed)
        delays = [chance.choice((0.0, 0.002, 0.01)) for _ in range(8)]
        texts = [str(index // 2 if twins else index) for index in range(8)]

        def answer(question: Question) -> dict[str, Any]:
            return CONTROL if question.task == "control" else (FAILS if int(question.text) in same else OTHER)

        found = []
        for jobs in (1, 3):
            pool = FakePool(answer, lambda question: delays[int(question.text)])
            ledger = Ledger(tmp_path_factory.mktemp("first") / "reduction.jsonl", resume=False)
            oracle = ScriptOracle(Judge(pool, Budget(60)), ledger, Criterion(REFERENCE), jobs=jobs)  # type: ignore[arg-type]
            found.append(oracle.first([candidate(text) for text in texts]))
        expected = next((index for index, text in enumerate(texts) if int(text) in same), None)
        assert found == [expected, expected]

    def test_what_is_no_longer_needed_is_cancelled(self, make: Make) -> None:
        def answer(question: Question) -> dict[str, Any]:
            return CONTROL if question.task == "control" else (FAILS if question.text == "0" else OTHER)

        oracle, pool = make(answer, wait=lambda question: 0.0 if question.text == "0" else 30.0, jobs=3)
        assert oracle.first([candidate(str(index)) for index in range(9)]) == 0
        assert oracle.ledger.queries == 1, "what was cancelled is no answer"
        assert pool.cancelled == len({question.text for question in pool.asked} - {"0"}), "a worker still runs what nobody needs"

    def test_nothing_to_ask(self, make: Make) -> None:
        oracle, pool = make(by_task())
        assert oracle.first([]) is None
        assert not pool.asked

    def test_a_dead_pool_is_said_at_once(self, make: Make) -> None:
        def answer(question: Question) -> dict[str, Any]:
            if question.text == "0":
                raise PoolError("gone")
            return OTHER

        oracle, _ = make(answer, wait=lambda question: 0.0 if question.text == "0" else 30.0, jobs=3)
        with pytest.raises(PoolError):
            oracle.first([candidate(str(index)) for index in range(3)])


class TestBudget:
    """The end of the time, and Ctrl-C, end a question that is on its way."""

    @pytest.mark.parametrize("jobs", [1, 3])
    def test_the_time_is_over(self, make: Make, jobs: int) -> None:
        clock, begun = Clock(), []

        def wait(question: Question) -> float:
            begun.append(question)
            if len(begun) == jobs:
                clock.now = 2.0  # the time is over when each worker has its question
            return 30.0

        budget = Budget(1.0, clock=clock)
        oracle, pool = make(by_task(run=OTHER), wait=wait, budget=budget, jobs=jobs)
        with pytest.raises(BudgetSpent):
            oracle.first([candidate(text) for text in "abcdef"])
        assert pool.cancelled == jobs
        assert budget.ended_by == "budget"

    @pytest.mark.parametrize("jobs", [1, 3])
    def test_an_interruption(self, make: Make, jobs: int) -> None:
        budget = Budget(1.0, clock=Clock())
        oracle, pool = make(by_task(run=OTHER), wait=lambda _: 30.0, budget=budget, jobs=jobs)
        ended: list[str] = []

        def search() -> None:
            with pytest.raises(BudgetSpent):
                oracle.first([candidate(text) for text in "abcdef"])
            ended.append(budget.ended_by)

        thread = threading.Thread(target=search)
        thread.start()
        sleep_until(lambda: len(pool.asked) >= jobs)
        budget.cancel()
        thread.join(20)
        assert ended == ["interrupted"]
        assert pool.cancelled == jobs

    def test_the_same_oracle_within_another_time(self, make: Make) -> None:
        """It knows what the first one was told, and how long runs take."""
        slow = {**FAILS, "seconds": EXPENSIVE_RUN_SECONDS * 2}
        oracle, pool = make(by_task(run=slow, control=CONTROL))
        assert oracle.ask(candidate("known")) is Verdict.SAME
        later = oracle.within(Budget(60.0, clock=Clock()))
        assert later.ask(candidate("known")) is Verdict.SAME
        assert later.ask(candidate("new")) is Verdict.SAME
        assert pool.tasks == ["run", "control", "control", "run"], "where a run is expensive its control comes first"
        with pytest.raises(BudgetSpent):
            oracle.within(Budget(0.0, clock=Clock())).ask(candidate("known"))

    def test_nothing_is_asked_afterwards(self, make: Make) -> None:
        oracle, pool = make(by_task(run=OTHER), budget=Budget(0.0, clock=Clock()))
        with pytest.raises(BudgetSpent):
            oracle.ask(candidate())
        assert not pool.asked


def test_shapes_are_metas_by_name(make: Make) -> None:
    values = {
        "x": {"kind": "tensor", "shape": [2, 3], "stride": [3, 1], "dtype": "float32", "device": "cpu"},
        "pair": {"kind": "other", "items": [{"kind": "int"}]},
    }
    oracle, _ = make(by_task(shapes={"status": "ok", "values": values}))
    found = oracle.shapes("text")
    assert found is not None
    assert (found["x"].shape, found["x"].stride, found["x"].dtype, found["pair"].items[0].kind) == ((2, 3), (3, 1), "float32", "int")
    assert oracle.ledger.queries == 0
    broken, _ = make(by_task(shapes={"status": "raised", "values": values}))
    assert broken.shapes("text") is None


@pytest.mark.parametrize(
    "value",
    [{"kind": "tensor", "shape": [2], "stride": [], "dtype": "float32"}, {"kind": "tensor", "shape": [-1], "stride": [1]}, {"kind": "x"}],
)
def test_shapes_of_no_possible_value_are_none(make: Make, value: dict[str, Any]) -> None:
    """A script can answer for itself."""
    oracle, _ = make(by_task(shapes={"status": "ok", "values": {"y": value}}))
    assert oracle.shapes("text") is None
