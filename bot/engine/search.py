"""The search: which form of the program still fails, and the smallest one that does."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from bot.engine.capture.hints import failing_line, named_nodes, script_lines
from bot.engine.capture.local_modules import local_modules, module_lines, search_path
from bot.engine.capture.source import Source
from bot.engine.capture.starts import Start, starts
from bot.engine.evidence.confirmer import Slipped
from bot.engine.evidence.passing_edit import edit_between
from bot.engine.options import Ended, Options
from bot.engine.progress import Progress
from bot.engine.state import Findings
from bot.failure.machine_faults import missing
from bot.inside.variables import settings_of
from bot.models.failure import Kind, Stage, Verdict
from bot.oracle.deadline import Deadline
from bot.oracle.diagnose import inner_calls, localise, operations
from bot.oracle.memo import Ledger
from bot.oracle.oracle import TRIES, ScriptOracle
from bot.reduce.candidate import BudgetSpent, Candidate
from bot.reduce.graph.form import Program
from bot.reduce.graph.passes.dynamic import explained
from bot.reduce.graph.printer.script import embed_blobs, lines, render
from bot.reduce.graph.reducer import Reduced, reduce_program
from bot.reduce.graph.size import size_key
from bot.reduce.source.environ import with_surroundings
from bot.reduce.source.join_modules import joined
from bot.reduce.source.passes import coarse
from bot.reduce.source.passes.inner_call import rerooted
from bot.reduce.source.preamble import drop_statements
from bot.reduce.source.reducer import ReducedSource, reduce_source
from bot.workers.pool import Pool

# A hang costs its time in every accepted step: the search waits for this share of --hang-after, the proof for all of it.
PATIENCE = 1 / 3
# A graph of so few operations is the form that a maintainer wants, however short the script was.
FEW_OPS = 4
# Candidates for leaving out statements of the user's own definitions: most of them were sliced away before.
MOST_LEFTOVERS = 40
# Of a script of so many lines only few are made, since each takes seconds.
LARGE, MOST_INNER_OF_LARGE = coarse.LINES, 2
# So often a search goes back behind a step that did not fail alone.
MOST_SLIPS = 3

Reduction = TypeVar("Reduction")
Step = tuple[Program | None, str]


def final(program: Program | None, text: str) -> str:
    """The script as it would be posted: with its recorded inputs inside."""
    return render(embed_blobs(program)) if program is not None else text


@dataclass
class Search:
    """Fills in the findings: stage, program, text, reference.

    `offer` is told each accepted script, and its place in the history; it raises `Slipped` where an earlier one does not fail alone.
    `latest` says which of some scripts is the last that does.
    """

    options: Options
    source: Source | None
    found: Findings
    deadline: Deadline
    progress: Progress
    pool: Pool
    ledger: Ledger
    offer: Callable[[str, int], object] = lambda _text, _position: None
    latest: Callable[[Sequence[str]], int | None] = lambda _texts: None

    def __post_init__(self) -> None:
        self.oracle = self._oracle()  # the one that knows the script that is reduced, and at the end the one that was found
        self.start: Start | None = None
        self.slips = 0
        self.goes_back = False  # a step that did not fail alone can be gone back behind at this point
        self.since = 0  # the steps before this one in the history are left behind

    def begin(self) -> None:
        """Find the form to start from; none: the script itself."""
        self.start = self._started()

    def run(self) -> None:
        """Reduce it, to a fixed point or until the budget is spent.

        Raises:
            Ended: there is nothing that can be reduced.
            BudgetSpent: before the first candidate could be judged.
        """
        if self.start is None:
            self._reduce_source()
            return
        self._reduce_graph(self.start)
        if self._wordy():
            self._reduce_source_instead()
            if self.found.stage is Stage.SOURCE:
                self.start = None

    def _oracle(self) -> ScriptOracle:
        """One that compares with the original program's failure, whatever the form of a script."""
        assert self.found.failure is not None
        return ScriptOracle(
            self.pool,
            self.ledger,
            self.deadline,
            self.found.failure,
            limit=self.found.limit(),
            hang_after=self.options.hang_after,
            patience=PATIENCE,
            across_forms=True,
            error=self.found.eager_error(),
        )

    def _started(self) -> Start | None:
        """The first form of the program, smallest first, that fails as the original did."""
        found = self.found.capture
        failure = self.found.failure
        assert found is not None
        assert failure is not None
        self.progress.step("looking for the smallest form that fails in the same way")
        line = failing_line(found.outcome.text, self.source.name) if self.source else None
        for start in starts(found.regions, failure, self.source.text if self.source else None, line, seed=self.options.seed):
            if self.options.stage not in (None, start.stage):
                continue
            text = render(start.program)
            if self.oracle.begins(Candidate(text, f"start:{start.stage.value}", size_key(start.program, text)[0])):
                self.found.stage, self.found.program, self.found.start, self.found.text = start.stage, start.program, start.program, text
                self.found.reference = self.oracle.shown(text)
                return start
        return None

    def _begin_graph(self, start: Start) -> tuple[Sequence[frozenset[str]], frozenset[str] | None]:
        """What the failure names, to be asked first, and the values that may become outputs (None: any)."""
        assert self.found.reference is not None
        assert self.found.capture is not None
        self._accepted(start.program, render(start.program))
        self._narrow()
        self.progress.step(f"reducing the {start.stage.value} graph: {start.program.graph.ops} ops")
        if self.found.reference.kind is not Kind.ACCURACY:
            return named_nodes(self.found.capture.outcome.text, start) or operations(self.oracle.blamed, start.program), None
        found = localise(self.oracle.answer, render(start.program), start.program, self.found.limit())
        strict = self.options.accuracy == "strict"
        return found.guesses(strict), None if strict else found.exposable

    def _reduce_graph(self, start: Start) -> None:
        guesses, exposable = self._begin_graph(start)
        oracle = self.oracle

        def reduce(step: Step) -> Reduced:
            assert step[0] is not None
            return reduce_program(
                step[0],
                oracle,
                render,
                guesses=guesses if step[0] is start.program else (),
                settle=oracle.settle,
                exposable=exposable,
                keep_seed=self.found.reference is not None and self.found.reference.kind is Kind.ACCURACY,
                on_accept=lambda smaller, candidate: self._accepted(smaller, candidate.text),
                ends_well=oracle.passes,
            )

        reduced = self._past_slips(reduce, (start.program, ""))
        self.found.fixed_point = reduced.fixed_point
        smallest = self._without_leftovers(reduced.program, oracle)
        self.found.program, self.found.text = smallest, render(smallest)
        if reduced.nearest_passing is not None:
            self.found.neighbours = (reduced.candidate.text, reduced.nearest_passing.text)

    def _without_leftovers(self, program: Program, oracle: ScriptOracle) -> Program:
        """The program with only those of the user's own statements that the failure needs."""
        if not program.preamble:
            return program

        asked = 0

        def ask(preambles: Sequence[str]) -> int | None:
            nonlocal asked
            asked += len(preambles)
            if asked > MOST_LEFTOVERS:
                return None
            programs = [replace(program, preamble=preamble) for preamble in preambles]
            texts = [render(smaller) for smaller in programs]
            sizes = [size_key(smaller, text)[0] for smaller, text in zip(programs, texts, strict=True)]
            index = oracle.first([Candidate(text, "preamble", size) for text, size in zip(texts, sizes, strict=True)])
            if index is not None:
                self._accepted(programs[index], texts[index])
            return index

        try:
            smaller = replace(program, preamble=drop_statements(program.preamble, ask))
            if smaller.preamble == program.preamble:
                return program
            said = explained(smaller, oracle, render, oracle.passes)
            if said != smaller:
                self._accepted(said, render(said))
            return said
        except BudgetSpent:
            self.found.fixed_point = False
            return self.found.program or program

    def _reduce_source(self) -> None:
        oracle = self.oracle
        if self.source is None:
            raise Ended(
                "error", "no graph of this command fails alone, and only a script, or a test without fixtures, can be reduced as source"
            )
        if self.options.stage not in (None, Stage.SOURCE):
            raise Ended("error", f"no program of the stage {self.options.stage.value} fails in the same way here")
        self.found.stage = Stage.SOURCE
        begun = self._begin_source(self.source)
        if begun is None:
            return
        text, failing = begun
        self.found.reference = oracle.shown(text)
        self._accepted(None, text)
        oracle.words = oracle.said  # an assert, or a condition, that says something else is another finding
        self._narrow()
        self.progress.step(f"reducing the script: {lines(text)} lines")

        inner = self._inner(text, failing)

        def reduce(step: Step) -> ReducedSource:
            return reduce_source(
                step[1],
                oracle,
                failing_lines=failing if step[1] == text else (),
                starts=inner if step[1] == text else (),
                settle=oracle.settle,
                on_accept=lambda smaller: self._accepted(None, smaller),
                check=self.deadline.check,
            )

        try:
            reduced = self._past_slips(reduce, (None, text))
        except SyntaxError as error:  # Python takes it, but not the library that takes it apart
            self.progress.say(f"the script cannot be taken apart: {error}")
            self.found.fixed_point = True
            return
        self.found.text, self.found.fixed_point = reduced.text, reduced.fixed_point
        self.found.neighbours = self._nearest_passing(reduced)

    def _nearest_passing(self, reduced: ReducedSource) -> tuple[str, str] | None:
        """The end and what is most like it, of what passed: all of it was asked, so this is no query."""
        with suppress(BudgetSpent):
            for text in reduced.refused:
                if self.oracle.ask(Candidate(text, "nearest", ())) is Verdict.PASSES and edit_between(reduced.text, text):
                    return reduced.text, text
        return None

    def _inner(self, text: str, failing: tuple[int, ...]) -> list[str]:
        """Programs that compile one inner function of a script alone."""
        found: list[str] = []
        if not failing:
            return found
        calls = inner_calls(self.oracle.answer, text, failing, self.found.limit())
        most = MOST_INNER_OF_LARGE if lines(text) >= LARGE else len(calls)
        with suppress(SyntaxError):
            for program in rerooted(text, failing, calls[:most]):
                self.deadline.check()
                found.append(program)
        return found

    def _begin_source(self, source: Source) -> tuple[str, tuple[int, ...]] | None:
        """The first of the source's texts that fails, and its lines that the failure names; None where none does."""
        assert self.found.capture is not None
        said = self.found.capture.outcome.text
        # a module of the project that is only looked up there may be one that Python finds elsewhere
        known = local_modules(source.file, search_path(Path.cwd(), os.environ)), local_modules(source.file)

        def whole(text: str, modules: dict[str, str]) -> tuple[str, tuple[int, ...]]:
            return joined(text, script_lines(said, source.name), modules, module_lines(said, modules))

        texts = (source.text, *source.others)
        begun = dict.fromkeys(self._surrounded(*whole(text, modules)) for text in texts for modules in known)
        for complete, failing in begun:
            self.found.text = self.found.text or complete
            candidate = Candidate(complete, "start:source", (lines(complete), len(complete)))
            if self.oracle.begins(candidate, max(1, TRIES // len(begun))):
                return complete, failing
        first = whole(source.text, known[0])
        if known[1] and first[0] == source.text:
            names = ", ".join(sorted(known[1]))
            raise Ended("error", f"a repro stands alone, but these modules of the program cannot be written into it: {names}")
        needs = missing(self.oracle.observe(self._surrounded(*first)[0])[0])
        if needs:
            raise Ended("error", f"a repro stands alone, but where it is run the program needs {needs}")
        # it may fail only now and then, or need what a worker does not have: fresh runs of the script itself say
        self.oracle.partial = self.found.capture.partial
        self.found.text, self.found.fixed_point = self._surrounded(*first)[0], True
        return None

    def _surrounded(self, text: str, failing: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
        """The script with what its caller gave it: a repro is run without."""
        target = self.options.target
        return with_surroundings(text, failing, settings_of(os.environ), target.argv if target.script else ())

    def _wordy(self) -> bool:
        """Whether the graph did not become small, and the user's script is shorter than the repro that came of it."""
        program = self.found.program
        if self.options.stage is not None or self.source is None or program is None or not self.found.fixed_point:
            return False
        large = program.graph.ops > FEW_OPS or bool(program.graph.bodies) or not self.found.smaller()
        return large and lines(self.found.text or "") > lines(self.source.text)

    def _reduce_source_instead(self) -> None:
        """Reduce the script as well and keep the shorter of both; `oracle` is the one that knows the one that is kept."""
        self.progress.step("the script is shorter than what came of its graph: reducing it as well")
        of_graph, oracle = replace(self.found), self.oracle
        asked = oracle.ledger.queries
        self.oracle = self._oracle()
        self.found.start = self.found.program = None
        try:
            self._reduce_source()
        except Ended:
            self.found.reference = of_graph.reference  # what came of the graph stands
        finally:
            oracle.ledger.queries += asked
            shorter = self.found.reference is not of_graph.reference and lines(self.found.text or "") < lines(of_graph.text or "")
            if not shorter:
                self.oracle = oracle
                for name in ("start", "program", "text", "stage", "reference", "fixed_point", "neighbours"):
                    setattr(self.found, name, getattr(of_graph, name))
                self._accepted(of_graph.program, of_graph.text or "")

    def _past_slips(self, reduce: Callable[[Step], Reduction], step: Step) -> Reduction:
        """Reduce, from before the step that did not fail alone where there was one."""
        while True:
            try:
                self.goes_back = True
                return reduce(step)
            except Slipped as slip:
                self.goes_back = False
                step = self._back(slip.position)
            finally:
                self.goes_back = False

    def _back(self, position: int) -> Step:
        """The last step that fails alone; the one after it is never taken again."""
        self.progress.say("the warm workers slipped: going back to the last program that fails alone")
        self.slips += 1
        steps = self.found.history[max(self.found.confirmed_at, self.since) : position + 1]
        good = self.latest([final(*step) for step in steps])
        if good is None or good + 1 == len(steps):
            return self.found.history[-1]  # nothing that could be said: the proof decides
        self.oracle.reject(steps[good + 1][1])
        self.found.confirmed_at = self.since = len(self.found.history)
        self._accepted(*steps[good])
        return steps[good]

    def _narrow(self) -> None:
        """From here on scripts of one form are compared."""
        assert self.found.reference is not None
        assert self.found.failure is not None
        if self.found.failure.kind is Kind.NO_RAISE:
            self.found.reference = self.found.failure  # what is shown is an assertion; that eager raises is not in its text
        oracle = self.oracle
        oracle.reference, oracle.across_forms = self.found.reference, False
        oracle.jobs = self.options.jobs
        ledger = oracle.ledger
        ledger.queries = ledger.memo_hits = 0
        oracle.on_answer = lambda candidate, verdict: self.progress.update(
            f"{candidate.origin}: {verdict.value}; {ledger.queries} queries, {lines(self.found.text or '')} lines"
        )

    def _accepted(self, program: Program | None, text: str) -> None:
        self.found.program, self.found.text = program or self.found.program, text
        self.found.history.append((program, text))
        try:
            self.offer(final(program, text), len(self.found.history) - 1)
        except Slipped as slip:
            # what shows only now and then does not show in each confirmation
            if self.goes_back and self.oracle.tries == 1 and slip.position >= self.since and self.slips < MOST_SLIPS:
                raise
