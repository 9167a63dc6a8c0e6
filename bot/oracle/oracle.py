"""The oracle: runs a candidate's script in a warm child and says whether it fails as the original did."""

from __future__ import annotations

import concurrent.futures
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from bot.failure.machine_faults import fault_of, may_pass
from bot.failure.outcome import Outcome
from bot.failure.signature import own_words, signature_of
from bot.failure.traceback import failed_later_than
from bot.inside.protocol import SCRIPT, Facts, Fp64Impossible, Question
from bot.models.failure import Kind, Phase, Signature, Verdict
from bot.oracle.budget import Budget
from bot.oracle.dispatch import Cancelled, dispatch, never
from bot.oracle.memo import Ledger, key_of
from bot.reduce.candidate import Candidate
from bot.reduce.graph.codec import meta_from_json
from bot.reduce.graph.form import Meta
from bot.workers.pool import Pool
from bot.workers.process import HANG_RATIO

# CPUs in this process's affinity mask.
CPUS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
# A program that fails is run this many times more, to see whether it always does, unless one run takes this many seconds.
CHECKS, LONG = 4, 5.0
# A script that contains this fixes its random numbers.
_SEEDED = "manual_seed"
# In a script that contains this, compiled code draws the numbers that eager draws.
_AS_EAGER = "fallback_random"
# A script that matches this runs a backward. A backward graph alone is called like any other, and does not.
_DIFFERENTIATES = re.compile(r"\bbackward\b|\bgrad\(|\bgrad_and_value\b|\bvjp\b")
# This many runs miss a failure that shows in one of three in only 2 of 100 cases.
TRIES = 10
# Where a failing run takes longer than this, the control, which takes some hundredths of a second, is asked first.
EXPENSIVE_RUN_SECONDS = 1.0
# Seconds below which nothing is a hang, unless the user says so.
LEAST_HANG = 10.0
# The limit for a run without the compiler: this many times the longest that passed, and at least this many seconds.
EAGER_TIMES, LEAST_EAGER = 20, 6.0
# Phases in which a compiler refuses code that Inductor generated.
BLAMING = (Phase.CPP_COMPILE, Phase.TRITON_COMPILE, Phase.LOAD)
# Phases after which nothing of the compiler is left to skip.
_NO_EARLY_EXIT = (Phase.LOAD, Phase.RUN)


@dataclass
class ScriptOracle:
    """Answers candidates: one is SAME when its failure matches `reference` and its eager control passes.

    The memo is one for all stages: a text has one answer to one question, whoever asks.
    """

    pool: Pool
    ledger: Ledger
    budget: Budget
    reference: Signature
    limit: float = 60.0
    hang_after: float = 60.0
    patience: float = 1.0  # a hang: the share of `hang_after` after which the search takes it for one; the proof waits it all
    jobs: int = 1
    across_forms: bool = False
    precise: bool = True  # accuracy: eager must be right under the script's tolerance, against float64
    full_pipeline: bool = False  # never leave the compiler early
    partial: bool = False  # the original's control ends behind the failure, at what only the compiler makes: so may a candidate's
    error: str = ""  # no_raise: what the original's eager run raises
    words: str = ""  # what a candidate has to say in the program's own words
    seeded: bool = False  # the program fixes its random numbers
    as_eager: bool = False  # and has compiled code draw the same ones
    differentiates: bool = True  # the program asks for a backward: its forward is compiled and run before that
    tries: int = 1  # runs that have to pass before a candidate does: more for a failure that shows only now and then
    blames: bool = False  # runs note which values are in code that a compiler refuses
    on_answer: Callable[[Candidate, Verdict], None] | None = None
    failures: dict[str, Signature] = field(default_factory=dict)  # of the scripts that were SAME
    by_products: dict[str, tuple[Signature, str]] = field(default_factory=dict)
    said: str = ""  # by the last run that failed as it should, in the program's own words
    blamed: tuple[tuple[str, ...], ...] = ()  # by the last run that failed as it should: sets of values, the narrowest first
    _rejected: set[str] = field(default_factory=set)
    _seconds: float = 0.0  # of the last run that failed as it should
    _eager_seconds: float = 0.0  # of the longest control that passed

    def ask(self, candidate: Candidate) -> Verdict:
        """The verdict on `candidate`; see `bot.reduce.candidate.Oracle`."""
        return self._judge(candidate)

    def first(self, candidates: Sequence[Candidate]) -> int | None:
        """The index of the first of the `candidates` that is SAME; see `bot.reduce.candidate.Oracle`. Up to `jobs` are asked at once."""
        first_of = {candidate.text: index for index, candidate in reversed(list(enumerate(candidates)))}
        if self.jobs == 1 or len(first_of) < 2:
            for index, candidate in enumerate(candidates):
                if self.ask(candidate) is Verdict.SAME:
                    return index
            return None
        settled = len(candidates)  # candidates after this one are not needed

        def is_cancelled(index: int) -> bool:
            return index > settled

        with concurrent.futures.ThreadPoolExecutor(self.jobs) as executor:
            # a text that stands here twice is asked once
            asked = {
                index: executor.submit(self._judge, candidate, partial(is_cancelled, index))
                for index, candidate in enumerate(candidates)
                if first_of[candidate.text] == index
            }
            try:
                for index, future in asked.items():
                    if future.result() is Verdict.SAME:
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
        outcome, facts = self.answer(Question(text, "shapes", self._eager_limit()))
        if outcome.status != "ok":
            return None
        return {name: meta_from_json(value) for name, value in facts.get("values", {}).items()}

    def _judge(self, candidate: Candidate, is_cancelled: Callable[[], bool] = never, *, ignore_memo: bool = False) -> Verdict:
        self.budget.check()
        if is_cancelled():
            return Verdict.INFRA
        if candidate.text in self._rejected:
            return Verdict.DIFFERENT
        key = key_of(candidate.text, self._question())
        verdict = None if ignore_memo else self.ledger.recall(key)
        if verdict is None:
            started = self.budget.clock()
            try:
                verdict, signature = self._verdict(candidate.text, is_cancelled)
            except Cancelled:
                return Verdict.INFRA
            milliseconds = round((self.budget.clock() - started) * 1000)
            if signature is not None and verdict is Verdict.SAME:
                self.failures[candidate.text] = signature
            if signature is not None and verdict is Verdict.DIFFERENT:
                self.by_products.setdefault(signature.fingerprint, (signature, candidate.text))
            self.ledger.record(
                key,
                verdict,
                **{"text": key_of(candidate.text), "pass": candidate.origin, "size": list(candidate.size), "ms": milliseconds},
                **({"tries": self.tries} if self.tries > 1 else {}),
                **({"other": signature.line()} if signature is not None and verdict is Verdict.DIFFERENT else {}),
            )
        if self.on_answer is not None:
            self.on_answer(candidate, verdict)
        return verdict

    def _question(self) -> str:
        """What an answer depends on, beside the text."""
        runs = (self._exit_after() or "", self.tries, self.seeded, self.as_eager)
        compared = (self.reference.fingerprint, self.words, self.across_forms, self.precise, self.partial)
        return "\0".join(map(str, (*runs, *compared)))

    def reject(self, text: str) -> None:
        """Never take `text` again: it fails here, but not alone."""
        self._rejected.add(text)

    def matches(self, signature: Signature, text: str) -> bool:
        """Whether the failure `signature`, with its traceback in `text`, is the one that is minimized."""
        if self.words and own_words(signature, text) != self.words:
            return False
        return self.reference.same_across_forms(signature) if self.across_forms else self.reference.same(signature)

    def shown(self, text: str) -> Signature | None:
        """The signature that the script `text` shows, which was SAME."""
        if text not in self.failures:  # known from a run that is resumed
            signature = self.observe(text)[1]
            if signature is None:
                return None
            self.failures[text] = signature
        return self.failures[text]

    def begins(self, candidate: Candidate, tries: int = 1) -> bool:
        """Whether a search can start from `candidate`, which passes only when it passes `tries` times.

        From here on the compiler is left after the phase of the signature, if the failure shows even then: the run also ends at a healthy
        graph that is compiled before the failing one.
        """
        self.blames, self.blamed = self.reference.phase in BLAMING, ()
        self.seeded, self.as_eager = _SEEDED in candidate.text, _AS_EAGER in candidate.text
        self.differentiates = _DIFFERENTIATES.search(candidate.text) is not None
        try:
            for self.full_pipeline in (False, True):
                if not self.full_pipeline and not self._exit_after():
                    continue
                self.tries = tries if self.full_pipeline else 1
                # never recalled: what such a run shows beside its verdict is needed as well
                verdict = self._judge(candidate, ignore_memo=True)
                if verdict in (Verdict.SAME, Verdict.INVALID, Verdict.TIMEOUT):
                    return verdict is Verdict.SAME
        finally:
            self.blames, self.tries = False, 1
        return False

    def settle(self, text: str) -> Callable[[], bool]:
        """Find out how the script `text`, which is SAME, is best asked, and its candidates after it.

        Where the compiler could not be left early, it may be now. Where the script does not fail every time, a candidate passes only when
        it passes many times. The function that is returned says whether it fails every time, so that what was rejected before counts.
        It waits for runs that go on beside the search meanwhile.
        """
        exit_after = self._exit_after(full_pipeline=False)
        often = CHECKS if self.reference.kind is not Kind.HANG and self._seconds < LONG else 0
        shown = []
        if exit_after and self.full_pipeline:
            # a start that failed only in the full pipeline: whether the next question leaves it early has to be known first
            early = self._shows(text, [exit_after])()[0]
            if not early and often:
                # left too early, or one of the runs in which it does not show
                early = self._shows(text, [exit_after])()[0]
                shown = [not early]
            self.full_pipeline = not early
            often = max(0, often - 1)
        runs = self._shows(text, [None if self.full_pipeline else exit_after] * often, leave=self.jobs)

        def steady() -> bool:
            self.tries = 1 if all([*shown, *runs()]) else TRIES
            return self.tries == 1

        return steady

    def _shows(self, text: str, runs: Sequence[str | None], *, leave: int = 0) -> Callable[[], list[bool]]:
        """Begin runs that leave the compiler after these phases. The function that is returned waits, and says in which it shows.

        As many run at a time as there are CPUs, less the number to `leave` to the search that goes on beside them.
        """
        executor = concurrent.futures.ThreadPoolExecutor(max(1, CPUS - leave))
        asked = [executor.submit(self._run, self._run_of(text, phase, seed)) for seed, phase in enumerate(runs)]
        executor.shutdown(wait=False)
        return lambda: [self._is_same(one.result()) for one in asked]

    def _run_of(self, text: str, stop_after: str | None, seed: int = 0) -> Question:
        return Question(text, "origins" if self.blames else "run", self._limit(), stop_after=stop_after, seed=seed)

    def _is_same(self, outcome: Outcome) -> bool:
        signature = signature_of(outcome)
        return signature is not None and self.matches(signature, outcome.text)

    def answer(self, question: Question) -> tuple[Outcome, Facts]:
        """What a worker makes of a `question` that is not a query of the search.

        Raises:
            BudgetSpent: the time is spent, or the job is interrupted.
        """
        return dispatch(self.pool, self.budget, question)

    def passes(self, text: str) -> bool:
        """Whether the script `text` passes in the full pipeline, and does call the compiler."""
        return self.observe(text)[0].status == "ok" and self._run(Question(text, "control", self.limit)).calls > 0

    def other_failures(self, most: int = 20) -> list[Signature]:
        """The failures beside the one that is minimized, of programs that eager runs: of the compiler, not of broken programs.
        Looks at `most` of those that the search met; one that only used other words of the program's own reads like this one."""
        others = [(signature, text) for signature, text in self.by_products.values() if not self.reference.same(signature)]
        asked = ((signature, self._run(Question(text, "control", self.limit))) for signature, text in others[:most])
        return [signature for signature, control in asked if control.status == "ok" and control.calls]

    def observe(self, text: str) -> tuple[Outcome, Signature | None]:
        """Run the script `text` in the full pipeline, and say what it shows. This is not a query of the search."""
        outcome = self._run(Question(text, "run", self._limit()))
        return outcome, signature_of(outcome)

    def _limit(self) -> float:
        return max(min(LEAST_HANG, self.hang_after), self.hang_after * self.patience) if self.reference.kind is Kind.HANG else self.limit

    def _raises_alike(self, control: Outcome) -> bool:
        """Whether eager raises, and what it raised in the original program where that is known."""
        return control.raised > 0 and self.error in ("", control.error)

    def _eager_limit(self) -> float:
        """Seconds for a control. A loop that lost its end runs for ever in eager too; the controls that passed say how long is usual."""
        return min(self.limit, max(LEAST_EAGER, EAGER_TIMES * self._eager_seconds)) if self._eager_seconds else self.limit

    def _exit_after(self, full_pipeline: bool | None = None) -> str | None:
        """The phase after which the compiler is left; None: it is not. `full_pipeline` stands for the field."""
        reference, full_pipeline = self.reference, self.full_pipeline if full_pipeline is None else full_pipeline
        if full_pipeline or (reference.backward and self.differentiates) or reference.phase in _NO_EARLY_EXIT:
            return None
        if reference.kind is not Kind.EXCEPTION and not (reference.phase is Phase.DYNAMO and reference.kind in (Kind.CRASH, Kind.HANG)):
            return None
        return self.reference.phase.value

    def _verdict(self, text: str, is_cancelled: Callable[[], bool]) -> tuple[Verdict, Signature | None]:
        # Most candidates do not fail, so the control comes second. Where a run is expensive, an illegal program is sorted out first.
        known = self._control(text, is_cancelled) if self._run_is_expensive() and not self.partial else None
        if known is not None and known is not Verdict.SAME:
            return known, None
        for seed in range(self.tries):
            outcome, facts = dispatch(self.pool, self.budget, self._run_of(text, self._exit_after(), seed), is_cancelled)
            if outcome.status not in ("ok", "stopped"):
                break
        else:
            return Verdict.PASSES, None
        if outcome.status in ("infra", "memory"):
            return Verdict.INFRA, None
        if outcome.status == "timeout" and self.reference.kind is not Kind.HANG:
            return Verdict.TIMEOUT, None
        signature = signature_of(outcome)
        if signature is None or not self.matches(signature, outcome.text):
            return (Verdict.INFRA, None) if fault_of(outcome) else (Verdict.DIFFERENT, signature)
        self._seconds, self.said = outcome.seconds, own_words(signature, outcome.text)
        self.blamed = tuple(tuple(names) for names in facts.get("guesses", ()))
        verdict = known or self._control(text, is_cancelled, outcome.text)
        if verdict is Verdict.SAME and facts.get("drew") and not self._fails_for_all_seeds(text, is_cancelled):
            return Verdict.PASSES, None
        return verdict, signature

    def _fails_for_all_seeds(self, text: str, is_cancelled: Callable[[], bool]) -> bool:
        """Whether wrong results are wrong for other random numbers too. A candidate of a seeded program has to keep its seed, as no number
        of draws is a proof. Where compiled code drew what eager draws, the candidate has to be wrong in that mode as well: different
        random numbers alone are no wrong results."""
        if self.across_forms or self.reference.kind is not Kind.ACCURACY:
            return True
        if (
            self.as_eager
            and _AS_EAGER not in text
            and not self._is_same(self._run(replace(self._run_of(text, None), as_eager=True), is_cancelled))
        ):
            return False
        if self.tries > 1 or _SEEDED in text:
            return True
        if self.seeded:
            return False
        others = (self._run(self._run_of(text, None, seed), is_cancelled) for seed in range(1, CHECKS))
        return all(map(self._is_same, others))

    def _run_is_expensive(self) -> bool:
        """Whether running a candidate costs so much more than its control that the control is better asked first."""
        return self.reference.kind is Kind.HANG or self._seconds > EXPENSIVE_RUN_SECONDS

    def _control(self, text: str, is_cancelled: Callable[[], bool], failed: str = "") -> Verdict:
        """SAME where the script passes with the compiler taken out, as it has to. `failed` is what it said with the compiler."""
        limit = self.hang_after / HANG_RATIO if self.reference.kind is Kind.HANG else self._eager_limit()
        # a difference that eager shows as well, where memory holds something else, is no wrong number
        repeats = self.reference.kind is Kind.ACCURACY
        control = self._run(Question(text, "control", limit, repeats=repeats), is_cancelled)
        if may_pass(control):
            return Verdict.INFRA
        if control.status == "ok":
            self._eager_seconds = max(control.seconds, self._eager_seconds)
        elif not ((self.across_forms or self.partial) and control.status == "raised" and failed_later_than(control.text, failed, SCRIPT)):
            return Verdict.INVALID
        else:
            self.partial = True
        if not control.calls or (self.reference.kind is Kind.NO_RAISE and not self._raises_alike(control)):
            return Verdict.INVALID
        if self.reference.kind is Kind.ACCURACY and self.precise:
            precise = self._run(Question(text, "control_fp64", self.limit), is_cancelled)
            if may_pass(precise) and precise.status != "memory":
                return Verdict.INFRA
            # where float64 cannot run, or needs more memory than there is, eager alone is the reference
            if precise.status == "raised" and Fp64Impossible.__name__ not in precise.text:
                if not self.across_forms:
                    return Verdict.INVALID
                # The original's own tolerance is one that its eager run misses: that cannot be asked of a candidate.
                self.precise = False
        return Verdict.SAME

    def _run(self, question: Question, is_cancelled: Callable[[], bool] = never) -> Outcome:
        return dispatch(self.pool, self.budget, question, is_cancelled)[0]
