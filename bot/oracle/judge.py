"""The judge: runs a candidate's script in a warm child, under a criterion and a plan, and says what it showed."""

from __future__ import annotations

import concurrent.futures
import math
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace

from bot.failure.machine_faults import fault_of, may_pass, refused
from bot.failure.outcome import Outcome
from bot.failure.signature import ended_behind, own_words, raises_by_itself, signature_of
from bot.inside.protocol import SCRIPT, Facts, Fp64Impossible, Precision, Question, Task
from bot.inside.traits import traits_of
from bot.models.failure import Kind, Signature, Verdict
from bot.oracle.budget import Budget
from bot.oracle.criterion import Criterion
from bot.oracle.dispatch import dispatch, never
from bot.oracle.run_plan import Limits, RunPlan
from bot.workers.fresh import FreshProcesses
from bot.workers.pool import Pool
from bot.workers.process import HANG_RATIO

# CPUs in this process's affinity mask.
CPUS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
# A program that fails is run this many times more, to see whether it always does.
CHECKS = 4
# If a failing run takes longer than this, the control, which takes some hundredths of a second, comes first.
EXPENSIVE_RUN_SECONDS = 1.0
# The limit for a run without the compiler: this many times the longest that passed, and at least this many seconds.
EAGER_TIMES, LEAST_EAGER = 20, 6.0
# Once this many candidates did not end when they were asked again either, candidates of this program do hang.
HANGS = 2


@dataclass(frozen=True)
class Judgment:
    """What a candidate showed.

    `signature` is its failure, if it has one. If that is the same: `own_words` are what it says in the program's own words, `blamed` are
    sets of values that the failure names, the narrowest first, `seconds` is the time of its run, `control_ended_later` says whether its
    control ended after the failure, and `instead_of_float64` why eager itself, moved by its rounding, stood in for float64 (empty if it did
    not).
    """

    verdict: Verdict
    signature: Signature | None = None
    own_words: str = ""
    blamed: tuple[tuple[str, ...], ...] = ()
    seconds: float = 0.0
    control_ended_later: bool = False
    instead_of_float64: str = ""

    @property
    def is_same(self) -> bool:
        """Whether the candidate fails as the original does."""
        return self.verdict is Verdict.SAME


def cannot_be_float64(control: Outcome) -> str:
    """Why a script has no float64 form, according to the outcome of its `control` in float64; empty if it has one."""
    if refused(control):
        return "float64 needs more memory than there is"
    if control.status != "raised":
        return ""
    if Fp64Impossible.__name__ not in control.text:
        # the backward comes after the call that was made in float64: what it recomputes, or is the program's own, is as in eager
        failed = signature_of(control)
        alone = failed is not None and failed.backward and not raises_by_itself(control.text, ("raise", "assert"))
        return failed.line()[:300] if failed is not None and alone else ""
    return control.text.strip().rpartition("\n")[2].rpartition(f"{Fp64Impossible.__name__}: ")[2][:300] or Fp64Impossible.__name__


class _Durations:
    """How long runs take, as measured by several threads, and how many never ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._failing = 0.0  # the last run that failed as it should
        self._control = 0.0  # the longest control that passed
        self._hangs = 0  # candidates that did not end, twice

    def failed(self, seconds: float) -> None:
        with self._lock:
            self._failing = seconds

    def passed_control(self, seconds: float) -> None:
        with self._lock:
            self._control = max(seconds, self._control)

    def hung_twice(self) -> None:
        with self._lock:
            self._hangs += 1

    @property
    def hangs_are_usual(self) -> bool:
        with self._lock:
            return self._hangs >= HANGS

    @property
    def failing(self) -> float:
        with self._lock:
            return self._failing

    @property
    def control(self) -> float:
        with self._lock:
            return self._control


class Judge:
    """Asks the `pool` under `limits`, until the `budget` is spent. Each question brings its own criterion and plan."""

    def __init__(self, pool: Pool | FreshProcesses, budget: Budget, limits: Limits = Limits()) -> None:  # noqa: B008 - frozen
        self.pool, self.budget, self.limits = pool, budget, limits
        self._durations = _Durations()

    def within(self, budget: Budget) -> Judge:
        """The same judge with another `budget`."""
        other = Judge(self.pool, budget, self.limits)
        other._durations = self._durations
        return other

    @property
    def isolation(self) -> str:
        """What else an answer depends on: the sort of process that a script runs in."""
        if isinstance(self.pool, FreshProcesses):
            return "fresh, with caches of graphs" if self.pool.graph_caches else "fresh"
        return "warm"

    def in_fresh_processes(self, *, graph_caches: bool = False) -> Judge:
        """The same judge, which runs each script in a process that has imported nothing; with `graph_caches`, torch's own are on."""
        pool = self.pool.pool if isinstance(self.pool, FreshProcesses) else self.pool
        return Judge(FreshProcesses(pool, graph_caches=graph_caches), self.budget, self.limits)

    def judge(
        self, text: str, criterion: Criterion, plan: RunPlan, is_cancelled: Callable[[], bool] = never, *, most: float = math.inf
    ) -> Judgment:
        """What the script `text` shows, run under the `plan` and compared by the `criterion`; a run has `most` seconds.

        Raises:
            Cancelled: `is_cancelled` returned True.
            BudgetSpent: the time is spent, or the job is interrupted.
        """
        # Most candidates do not fail, so the control comes second. If a run is expensive, invalid programs are sorted out first.
        known = None
        if self._run_is_expensive(criterion) and not criterion.control_may_end_later:
            known = self._control(text, criterion, is_cancelled)
            if not known.is_same:
                return known
        for seed in range(plan.tries):
            question = self.question(text, criterion, plan, seed)
            outcome, facts = self.run(replace(question, limit=min(question.limit, most)), criterion, is_cancelled)
            if outcome.status not in ("ok", "stopped"):
                break
        else:
            return Judgment(Verdict.PASSES)
        if outcome.status in ("infra", "memory"):
            return Judgment(Verdict.INFRA)
        if outcome.status == "timeout" and criterion.kind is not Kind.HANG:
            return Judgment(Verdict.TIMEOUT)
        signature = signature_of(outcome)
        if signature is None or not criterion.matches(signature, outcome.text):
            return Judgment(Verdict.INFRA) if fault_of(outcome) else Judgment(Verdict.DIFFERENT, signature)
        if facts.get("lingers"):  # in a process of its own it would fail and not end
            return Judgment(Verdict.TIMEOUT)
        self._durations.failed(outcome.seconds)
        control = known or self._control(text, criterion, is_cancelled, outcome.text)
        verdict = control.verdict
        if control.is_same and facts.get("drew") and not self._fails_for_all_seeds(text, criterion, plan, is_cancelled):
            return Judgment(Verdict.PASSES)
        return Judgment(
            verdict,
            signature,
            own_words=own_words(signature, outcome.text),
            blamed=tuple(tuple(names) for names in facts.get("guesses", ())),
            seconds=outcome.seconds,
            control_ended_later=control.control_ended_later,
            instead_of_float64=control.instead_of_float64,
        )

    def question(self, text: str, criterion: Criterion, plan: RunPlan, seed: int = 0) -> Question:
        """One run of the script `text` under the `plan`, with the limit for the failure of the `criterion`, from this `seed`."""
        task: Task = "origins" if plan.notes_blame else "run"
        return Question(text, task, self.limits.of(criterion.kind), stop_after=plan.stop_after, seed=seed)

    def shows(self, question: Question, criterion: Criterion, is_cancelled: Callable[[], bool] = never) -> bool:
        """Whether the run that the `question` asks for shows the failure of the `criterion`; `is_cancelled` as for `judge`."""
        return criterion.shows(self.run(question, criterion, is_cancelled)[0])

    def shows_for_other_seeds(self, question: Question, criterion: Criterion, is_cancelled: Callable[[], bool] = never) -> bool:
        """Whether the `question` shows the failure of the `criterion` for each of some other seeds; `is_cancelled` as for `judge`."""
        seeds = [replace(question, seed=seed) for seed in range(1, CHECKS)]
        if 2 * len(seeds) > CPUS:  # the first that does not show it saves the others
            return all(self.shows(one, criterion, is_cancelled) for one in seeds)
        with concurrent.futures.ThreadPoolExecutor(len(seeds)) as executor:
            return all(list(executor.map(lambda one: self.shows(one, criterion, is_cancelled), seeds)))

    def answer(self, question: Question, is_cancelled: Callable[[], bool] = never) -> tuple[Outcome, Facts]:
        """What a worker makes of a `question` that is not a query of a search.

        Raises:
            Cancelled: `is_cancelled` returned True.
            BudgetSpent: the time is spent, or the job is interrupted.
        """
        return dispatch(self.pool, self.budget, question, is_cancelled)

    def ended(self, question: Question, is_cancelled: Callable[[], bool] = never) -> tuple[Outcome, Facts]:
        """Like `answer`, for a `question` that should come to an end: one that does not is asked once more, since any process may hang by
        chance. Each such answer takes the whole limit, so it counts at once where candidates were seen to hang every time. `is_cancelled`
        as for `judge`."""
        found = self.answer(question, is_cancelled)
        if found[0].status != "timeout" or self._durations.hangs_are_usual:
            return found
        again = self.answer(question, is_cancelled)
        if again[0].status == "timeout":
            self._durations.hung_twice()
        return again

    def run(self, question: Question, criterion: Criterion, is_cancelled: Callable[[], bool] = never) -> tuple[Outcome, Facts]:
        """As `ended`, or, if the failure of the `criterion` is that a program does not end, as `answer`; `is_cancelled` as for `judge`."""
        return (self.answer if criterion.kind is Kind.HANG else self.ended)(question, is_cancelled)

    @property
    def usual_seconds(self) -> float:
        """Seconds of the last run that failed as it should; 0 before the first."""
        return self._durations.failing

    @property
    def eager_limit(self) -> float:
        """Seconds for a control. A loop that lost its end runs forever in eager too; the controls that passed show what is usual."""
        usual = self._durations.control
        return min(self.limits.run, max(LEAST_EAGER, EAGER_TIMES * usual)) if usual else self.limits.run

    def _run_is_expensive(self, criterion: Criterion) -> bool:
        """Whether running a candidate costs so much more than its control that the control should come first."""
        return criterion.kind is Kind.HANG or self.usual_seconds > EXPENSIVE_RUN_SECONDS

    def _fails_for_all_seeds(self, text: str, criterion: Criterion, plan: RunPlan, is_cancelled: Callable[[], bool]) -> bool:
        """Whether the failure also shows for other random numbers, if it may depend on them. A candidate of a seeded program then has to
        keep its seed, since no number of draws is a proof. If compiled code drew what eager draws, wrong results have to be wrong in that
        mode as well: different random numbers alone are not wrong results."""
        if criterion.across_forms or not (plan.seeded or criterion.may_depend_on_numbers):
            return True
        traits, whole = traits_of(text), replace(plan, stop_after=None, notes_blame=False)
        question = self.question(text, criterion, whole)
        had = criterion.kind is Kind.ACCURACY and plan.draws_as_eager and not traits.draws_as_eager
        if had and not self.shows(replace(question, as_eager=True), criterion, is_cancelled):
            return False
        if plan.tries > 1 or traits.seeded:
            return True
        if plan.seeded:
            return False
        return self.shows_for_other_seeds(question, criterion, is_cancelled)

    def _control(self, text: str, criterion: Criterion, is_cancelled: Callable[[], bool], failed: str = "") -> Judgment:
        """SAME if the script passes with the compiler taken out, as it has to. `failed` is what it printed with the compiler."""
        limit = self.limits.hang_after / HANG_RATIO if criterion.kind is Kind.HANG else self.eager_limit
        # a difference that eager shows as well, if memory holds something else, is not a wrong number
        repeats = criterion.kind is Kind.ACCURACY
        control, _ = self.run(Question(text, "control", limit, repeats=repeats), criterion, is_cancelled)
        later = False
        if may_pass(control):
            return Judgment(Verdict.INFRA)
        if control.status == "ok":
            self._durations.passed_control(control.seconds)
        else:
            may_end = criterion.across_forms or criterion.control_may_end_later
            later = may_end and ended_behind(control, failed, SCRIPT)
            if not later:
                return Judgment(Verdict.INVALID)
        if not control.calls or (criterion.misses_an_error and not criterion.raises_alike(control)):
            return Judgment(Verdict.INVALID)
        if criterion.precision is not None:
            ends = failed if later else ""
            return replace(self._with_numbers(text, criterion.precision, is_cancelled, ends), control_ended_later=later)
        return Judgment(Verdict.SAME, control_ended_later=later)

    def _with_numbers(self, text: str, precision: Precision, is_cancelled: Callable[[], bool], failed: str) -> Judgment:
        """SAME if the script passes with right numbers in this `precision` in place of the compiled ones. It may end after the point where
        it `failed` (empty: it may not)."""
        task: dict[Precision, Task] = {"fp64": "control_fp64", "spread": "control_spread"}
        right, _ = self.ended(Question(text, task[precision], self.limits.run), is_cancelled)
        instead = cannot_be_float64(right)
        if instead:
            right, _ = self.ended(Question(text, "control_moved", self.limits.run), is_cancelled)
        if may_pass(right):
            return Judgment(Verdict.INFRA)
        later = bool(failed) and ended_behind(right, failed, SCRIPT)
        return Judgment(Verdict.SAME if right.status == "ok" or later else Verdict.INVALID, instead_of_float64=instead)
