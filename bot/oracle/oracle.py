"""The oracle of one search: answers its candidates under a criterion and a plan, and remembers every answer."""

from __future__ import annotations

import concurrent.futures
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from bot.failure.outcome import Outcome
from bot.failure.signature import signature_of
from bot.inside.protocol import Facts, Question
from bot.inside.traits import SEEDS, traits_of
from bot.models.failure import Kind, Signature, Verdict
from bot.oracle.budget import Budget
from bot.oracle.criterion import Criterion
from bot.oracle.dispatch import Cancelled, never
from bot.oracle.judge import CHECKS, CPUS, Judge, Judgment
from bot.oracle.memo import Ledger, key_of
from bot.oracle.run_plan import BLAMING, TRIES, RunPlan, exit_after
from bot.reduce.candidate import Candidate
from bot.reduce.graph.codec import meta_from_json
from bot.reduce.graph.form import Meta
from bot.reduce.graph.soundness import fault_of_meta
from bot.reduce.source.settings import without_calls

# A run that takes more seconds than this is not repeated only to see whether the failure always shows.
LONG = 5.0
# A run takes much longer than another if it takes this many times as long, and this many seconds more.
MUCH_LONGER, LEAST_LONGER = 1.5, 1.0
# A candidate gets this many times the seconds of the smallest program so far, and at least this many: a slower one is of no use.
FAR_LONGER, LEAST_GIVEN = 4.0, 10.0


def _much_longer(seconds: float, standing: float) -> bool:
    return standing > 0 and seconds > MUCH_LONGER * standing and seconds > standing + LEAST_LONGER


@dataclass
class Gleaned:
    """What the answers of a job showed in addition to their verdicts."""

    by_products: dict[str, tuple[Signature, str]] = field(default_factory=dict)  # other failures, each with a script that shows it
    slipped: set[str] = field(default_factory=set)  # scripts that fail here, but not alone
    seconds: dict[str, float] = field(default_factory=dict)  # of the runs of scripts that were SAME


@dataclass(frozen=True)
class Begun:
    """A search can start: the `answer` on its first candidate, and the `plan` for those after it."""

    answer: Judgment
    plan: RunPlan


class ScriptOracle:
    """Answers candidates: one is SAME if its failure matches the `criterion` and its eager control passes.

    Up to `jobs` questions go to the `judge` at once. `on_answer` is called with each answer. All stages share the memo in `ledger`: a
    question is the text, the criterion and the plan, and it has one answer, whoever asks. `plan` is how the next candidate is run: only
    `settle` finds a better one. `seen` is what the job's other oracles learned.
    """

    def __init__(
        self,
        judge: Judge,
        ledger: Ledger,
        criterion: Criterion,
        plan: RunPlan = RunPlan(),  # noqa: B008 - frozen
        *,
        jobs: int = 1,
        on_answer: Callable[[Candidate, Verdict], None] | None = None,
        seen: Gleaned | None = None,
    ) -> None:
        self.judge, self.ledger, self.jobs = judge, ledger, jobs
        self._criterion, self._plan = criterion, plan
        self._on_answer = on_answer
        self.seen = seen or Gleaned()
        self._pace: str | None = None  # the text that a slow one is compared with

    @property
    def criterion(self) -> Criterion:
        """What counts as the same failure."""
        return self._criterion

    @property
    def plan(self) -> RunPlan:
        """How the next candidate is run."""
        return self._plan

    @property
    def budget(self) -> Budget:
        """How long it may go on."""
        return self.judge.budget

    @property
    def is_steady(self) -> bool:
        """Whether the failure shows in every run, as far as is known."""
        return self._plan.tries == 1

    def narrowed(
        self, criterion: Criterion, plan: RunPlan, *, jobs: int = 1, on_answer: Callable[[Candidate, Verdict], None] | None = None
    ) -> ScriptOracle:
        """An oracle with the same memo for another `criterion` and `plan`; `jobs` and `on_answer` as above."""
        return ScriptOracle(self.judge, self.ledger, criterion, plan, jobs=jobs, on_answer=on_answer, seen=self.seen)

    def within(self, budget: Budget) -> ScriptOracle:
        """The same oracle with another `budget`."""
        judge = self.judge.within(budget)
        return ScriptOracle(judge, self.ledger, self._criterion, self._plan, jobs=self.jobs, on_answer=self._on_answer, seen=self.seen)

    def in_fresh_processes(self, *, graph_caches: bool = False) -> ScriptOracle:
        """The same oracle, which runs each script in a process that has imported nothing; `graph_caches`: see `Judge`."""
        judge = self.judge.in_fresh_processes(graph_caches=graph_caches)
        return ScriptOracle(judge, self.ledger, self._criterion, self._plan, jobs=self.jobs, seen=self.seen)

    def ask(self, candidate: Candidate) -> Verdict:
        """The verdict on `candidate`; see `bot.reduce.candidate.Oracle`."""
        return self._answer(candidate, self._plan).verdict

    def first(self, candidates: Sequence[Candidate]) -> int | None:
        """The index of the first of the `candidates` that is SAME; see `bot.reduce.candidate.Oracle`. Up to `jobs` are asked at once."""
        first_of = {candidate.text: index for index, candidate in reversed(list(enumerate(candidates)))}
        if self.jobs == 1 or len(first_of) < 2:
            for index, candidate in enumerate(candidates):
                if self.ask(candidate) is Verdict.SAME:
                    return index
            return None
        plan = self._plan
        settled = len(candidates)  # candidates after this one are not needed

        def is_cancelled(index: int) -> bool:
            return index > settled

        with concurrent.futures.ThreadPoolExecutor(self.jobs) as executor:
            # a text that occurs twice is asked once
            asked = {
                index: executor.submit(self._answer, candidate, plan, partial(is_cancelled, index))
                for index, candidate in enumerate(candidates)
                if first_of[candidate.text] == index
            }
            try:
                for index, future in asked.items():
                    if future.result().is_same:
                        settled = index
                        return index
                return None
            except BaseException:
                settled = -1  # nobody waits for the others
                raise
            finally:
                for future in asked.values():
                    future.cancel()

    def shapes(self, text: str) -> dict[str, Meta] | None:
        """The metas of the values in the script `text`; see `bot.reduce.graph.oracle.GraphOracle`."""
        outcome, facts = self.judge.ended(Question(text, "shapes", self.judge.eager_limit))
        if outcome.status != "ok":
            return None
        try:
            metas = {name: meta_from_json(value) for name, value in facts.get("values", {}).items()}
        except RecursionError:  # the script may have written the answer itself
            return None
        return None if any(fault_of_meta(meta) for meta in metas.values()) else metas

    def _answer(
        self, candidate: Candidate, plan: RunPlan, is_cancelled: Callable[[], bool] = never, *, ignore_memo: bool = False
    ) -> Judgment:
        self.budget.check()
        if is_cancelled():
            return Judgment(Verdict.INFRA)
        if candidate.text in self.seen.slipped:
            return Judgment(Verdict.DIFFERENT)
        key = key_of(candidate.text, repr(self._criterion), repr(plan), self.judge.isolation)
        known = None if ignore_memo else self.ledger.recall(key)
        answer = Judgment(known) if known is not None else self._asked(candidate, plan, key, is_cancelled)
        if answer is None:
            return Judgment(Verdict.INFRA)
        if self._on_answer is not None:
            self._on_answer(candidate, answer.verdict)
        return answer

    def _asked(self, candidate: Candidate, plan: RunPlan, key: str, is_cancelled: Callable[[], bool]) -> Judgment | None:
        """What a worker showed, which is remembered; None if nobody needs it any more."""
        started = self.budget.clock()
        try:
            answer = self.judge.judge(candidate.text, self._criterion, plan, is_cancelled, most=self._most())
        except Cancelled:
            return None
        milliseconds = round((self.budget.clock() - started) * 1000)
        if answer.is_same:
            self.seen.seconds[candidate.text] = answer.seconds
        other = answer.signature if answer.verdict is Verdict.DIFFERENT else None
        if other is not None:
            self.seen.by_products.setdefault(other.fingerprint, (other, candidate.text))
        self.ledger.record(
            key,
            answer.verdict,
            **{"text": key_of(candidate.text), "pass": candidate.origin, "size": list(candidate.size), "ms": milliseconds},
            **({"tries": plan.tries} if plan.tries > 1 else {}),
            **({"other": other.line()} if other is not None else {}),
        )
        return answer

    def reject(self, text: str) -> None:
        """Never take `text` again: it fails here, but not alone."""
        self.seen.slipped.add(text)

    def begins(self, candidate: Candidate, tries: int = 1, *, draws_inputs: bool = False) -> Begun | None:
        """How a search can start from `candidate`; None if it cannot. A candidate passes only if it passes `tries` times. If it only
        `draws_inputs`, no random number decides how it is compiled.

        The compiler is left after the phase of the signature if the failure still shows then: the run also ends at a healthy graph that is
        compiled before the failing one.
        """
        traits, reference = traits_of(candidate.text), self._criterion.reference
        whole = RunPlan(seeded=traits.seeded, draws_as_eager=traits.draws_as_eager, notes_blame=reference.phase in BLAMING)
        early = replace(whole, stop_after=exit_after(reference, traits))
        for plan in dict.fromkeys((early, whole)):
            asked = replace(plan, tries=tries) if plan == whole else plan
            # not from the memo: what such a run shows in addition to its verdict is needed as well
            answer = self._answer(candidate, asked, ignore_memo=True)
            if answer.verdict in (Verdict.SAME, Verdict.INVALID, Verdict.TIMEOUT):
                if not answer.is_same:
                    return None
                fixed = draws_inputs and plan.stop_after is not None
                seeded = plan.seeded and not fixed and self._needs_seed(candidate.text, plan)
                return Begun(answer, replace(plan, notes_blame=False, seeded=seeded))
        return None

    def _needs_seed(self, text: str, plan: RunPlan) -> bool:
        """Whether the seed that the script `text`, which is SAME, sets may decide that it fails. It may if the script fails in its run: no
        number of draws is a proof."""
        without = without_calls(text, SEEDS)
        if self._criterion.may_depend_on_numbers or without is None:
            return True
        question = self.judge.question(without, self._criterion, replace(plan, notes_blame=False))
        return not self.judge.shows_for_other_seeds(question, self._criterion)

    def settle(self, text: str) -> Callable[[], bool]:
        """Find out how the script `text`, which is SAME, and the candidates after it are best asked.

        If the compiler could not be left early, it may be possible now. If the script does not fail every time, a candidate passes only if
        it passes many times. The function that is returned says whether it fails every time, so that what was rejected before counts. It
        waits for runs that go on meanwhile, alongside the search.
        """
        kind, whole = self._criterion.kind, replace(self._plan, stop_after=None)
        early = replace(whole, stop_after=exit_after(self._criterion.reference, traits_of(text)))
        often = CHECKS if kind is not Kind.HANG and self.judge.usual_seconds < LONG else 0
        shown = []
        if early != whole and self._plan.stop_after is None:
            # a start that failed only in the full pipeline: it has to be known first whether the next question leaves early
            shows = self._shows(text, [early])()[0]
            if not shows and often:
                # left too early, or one of the runs in which it does not show
                shows = self._shows(text, [early])()[0]
                shown = [not shows]
            self._plan = early if shows else whole
            often = max(0, often - 1)
        runs = self._shows(text, [self._plan] * often, leave=self.jobs)

        def steady() -> bool:
            self._plan = replace(self._plan, tries=1 if all([*shown, *runs()]) else TRIES)
            return self.is_steady

        return steady

    def _shows(self, text: str, plans: Sequence[RunPlan], *, leave: int = 0) -> Callable[[], list[bool]]:
        """Begin runs under these plans. The function that is returned waits, and says in which of them the failure shows.

        As many run at a time as there are CPUs, less the number to `leave` to the search that goes on meanwhile.
        """
        executor = concurrent.futures.ThreadPoolExecutor(max(1, CPUS - leave))
        judge, criterion = self.judge, self._criterion
        asked = [
            executor.submit(judge.shows, judge.question(text, criterion, replace(plan, notes_blame=False), seed), criterion)
            for seed, plan in enumerate(plans)
        ]
        executor.shutdown(wait=False)
        return lambda: [one.result() for one in asked]

    def answer(self, question: Question, is_cancelled: Callable[[], bool] = never) -> tuple[Outcome, Facts]:
        """What a worker makes of a `question` that is not a query of the search.

        Raises:
            Cancelled: `is_cancelled` returned True.
            BudgetSpent: the time is spent, or the job is interrupted.
        """
        return self.judge.run(question, self._criterion, is_cancelled)

    def is_slow(self, text: str, standing: str) -> bool:
        """Whether a run of the script `text` takes much longer than one of `standing`, or of the quickest that stood before it: many small
        slowdowns add up to a large one. All are SAME. It is run once more before that is said, since a busy machine makes any run long."""
        seconds, pace = self.seen.seconds, self._pace
        # if a much slower program stands, it was accepted for its fewer lines: it sets the pace from then on
        if standing in seconds and (pace is None or seconds[standing] < seconds[pace] or self._seems_slow(standing, pace)):
            pace = self._pace = standing
        if pace is None:
            return False
        if not self._seems_slow(text, pace):
            return False
        question = self.judge.question(text, self._criterion, replace(self._plan, notes_blame=False))
        # longer than this is slow, however long
        enough = max(MUCH_LONGER * seconds[pace], seconds[pace] + LEAST_LONGER) + LEAST_LONGER
        again, _ = self.judge.answer(replace(question, limit=min(question.limit, enough)))
        if again.status != "timeout":
            seconds[text] = min(again.seconds, seconds[text])
        return self._seems_slow(text, pace)

    def _most(self) -> float:
        """Seconds for a run of the next candidate."""
        pace = self.seen.seconds.get(self._pace, 0.0) if self._pace is not None else 0.0
        return max(LEAST_GIVEN, FAR_LONGER * pace) if pace else math.inf

    def _seems_slow(self, text: str, standing: str) -> bool:
        return _much_longer(*(self.seen.seconds.get(one, 0.0) for one in (text, standing)))

    def passes(self, text: str) -> bool:
        """Whether the script `text` passes in the full pipeline, and does call the compiler."""
        return self.observe(text)[0].status == "ok" and self._control(text).calls > 0

    def other_failures(self, most: int = 20) -> list[Signature]:
        """The failures other than the one that is minimized, of programs that eager runs: the compiler's failures, not those of broken
        programs. A pass or a backend that lacks what it names was broken by the search, and eager never calls it.
        Looks at `most` of those that the search met; one that differs only in the program's own words reads like this one."""
        by_products = self.seen.by_products.values()
        whole = [one for one in by_products if one[0].exception[-1:] not in (("NameError",), ("UnboundLocalError",))]
        others = [(signature, text) for signature, text in whole if not self._criterion.reference.same(signature)]
        asked = ((signature, self._control(text)) for signature, text in others[:most])
        return [signature for signature, control in asked if control.status == "ok" and control.calls]

    def observe(self, text: str) -> tuple[Outcome, Signature | None]:
        """Run the script `text` in the full pipeline, and return what it shows. This is not a query of the search."""
        outcome, _ = self.answer(self.judge.question(text, self._criterion, RunPlan()))
        return outcome, signature_of(outcome)

    def _control(self, text: str) -> Outcome:
        return self.judge.ended(Question(text, "control", self.judge.limits.run))[0]
