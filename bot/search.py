"""The search: which form of the program still fails, and the smallest one that does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from bot.capture.forms import Start, starts
from bot.capture.modules import local_modules, module_lines
from bot.capture.named import failing_line, named_nodes, script_lines
from bot.capture.source import Source
from bot.findings import Findings
from bot.models import Kind, Stage
from bot.options import Ended, Options
from bot.oracle.deadline import Deadline
from bot.oracle.ledger import Ledger
from bot.oracle.localised import localise, operations
from bot.oracle.pool import Pool
from bot.oracle.script_oracle import ScriptOracle
from bot.progress import Progress
from bot.reduce.candidate import BudgetSpent, Candidate
from bot.reduce.graph import Program
from bot.reduce.passes.size import size_key
from bot.reduce.script import embed_blobs, lines, render
from bot.reduce.search import reduce_program
from bot.reduce.source.modules import joined
from bot.reduce.source.reduce import reduce_source
from bot.reduce.source.slice import drop_statements

# A hang costs its time in every accepted step: the search waits for this share of --hang-after, the proof for all of it.
PATIENCE = 1 / 3
# A graph of so few operations is the form that a maintainer wants, however short the script was.
FEW_OPS = 4
# Candidates for leaving out statements of the user's own definitions: most of them were sliced away before.
MOST_LEFTOVERS = 40


def final(program: Program | None, text: str) -> str:
    """The script as it would be posted: with its recorded inputs inside."""
    return render(embed_blobs(program)) if program is not None else text


@dataclass
class Search:
    """Fills in the findings: stage, program, text, reference. `offer` is told each accepted script, and its place in the history."""

    options: Options
    source: Source | None
    found: Findings
    deadline: Deadline
    progress: Progress
    pool: Pool
    ledger: Ledger
    offer: Callable[[str, int], object] = lambda _text, _position: None

    def __post_init__(self) -> None:
        self.oracle = self._oracle()  # the one that knows the script that was found
        self.start: Start | None = None

    def begin(self) -> None:
        """Find the form to start from; none: the script itself."""
        self.start = self._started(self.oracle)

    def run(self) -> None:
        """Reduce it, to a fixed point or until the budget is spent.

        Raises:
            Ended: there is nothing that can be reduced.
            BudgetSpent: before the first candidate could be judged.
        """
        if self.start is None:
            self._reduce_source(self.oracle)
            return
        self._reduce_graph(self.oracle, self.start)
        if self._wordy():
            self.oracle = self._reduce_source_instead(self.oracle)
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
            form="start",
            across_forms=True,
            error=self.found.eager_error(),
        )

    def _started(self, oracle: ScriptOracle) -> Start | None:
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
            if oracle.begins(Candidate(text, f"start:{start.stage.value}", size_key(start.program, text)[0])):
                self.found.stage, self.found.program, self.found.start, self.found.text = start.stage, start.program, start.program, text
                self.found.reference = oracle.shown(text)
                return start
        return None

    def _reduce_graph(self, oracle: ScriptOracle, start: Start) -> None:
        assert self.found.reference is not None
        assert self.found.capture is not None
        self._accepted(start.program, render(start.program))
        self._narrow(oracle, f"graph:{start.stage.value}")
        self.progress.step(f"reducing the {start.stage.value} graph: {start.program.graph.ops} ops")
        accuracy = self.found.reference.kind is Kind.ACCURACY
        guesses, exposable = named_nodes(self.found.capture.outcome.text, start), None
        if not guesses:
            guesses = operations(oracle.blamed, start.program)
        if accuracy:
            found = localise(oracle.answer, render(start.program), start.program, self.found.limit())
            strict = self.options.accuracy == "strict"
            guesses, exposable = found.guesses(strict), None if strict else found.exposable
        reduced = reduce_program(
            start.program,
            oracle,
            render,
            guesses=guesses,
            settle=oracle.settle,
            exposable=exposable,
            keep_seed=accuracy,
            on_accept=lambda program, candidate: self._accepted(program, candidate.text),
        )
        self.found.fixed_point = reduced.fixed_point
        program = self._without_leftovers(reduced.program, oracle)
        self.found.program, self.found.text = program, render(program)
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
            return replace(program, preamble=drop_statements(program.preamble, ask))
        except BudgetSpent:
            self.found.fixed_point = False
            return self.found.program or program

    def _reduce_source(self, oracle: ScriptOracle) -> None:
        if self.source is None:
            raise Ended(
                "error", "no graph of this command fails alone, and only a script, or a test without fixtures, can be reduced as source"
            )
        if self.options.stage not in (None, Stage.SOURCE):
            raise Ended("error", f"no program of the stage {self.options.stage.value} fails in the same way here")
        self.found.stage = Stage.SOURCE
        assert self.found.capture is not None
        said = self.found.capture.outcome.text
        modules = local_modules(self.source.file)
        text, failing = joined(self.source.text, script_lines(said, self.source.name), modules, module_lines(said, modules))
        self.found.text = self.found.text or text
        if not oracle.begins(Candidate(text, "start:source", (lines(text), len(text)))):
            if modules and text == self.source.text:
                names = ", ".join(sorted(modules))
                raise Ended("error", f"a repro stands alone, but these modules beside the script cannot be written into it: {names}")
            # it may fail only now and then, or need what a worker does not have: fresh runs of the script itself say
            self.found.text, self.found.fixed_point = text, True
            return
        self.found.reference = oracle.shown(text)
        self._accepted(None, text)
        oracle.words = oracle.said  # an assert, or a condition, that says something else is another finding
        self._narrow(oracle, "source")
        self.progress.step(f"reducing the script: {lines(text)} lines")
        reduced = reduce_source(
            text,
            oracle,
            failing_lines=failing,
            settle=oracle.settle,
            on_accept=lambda smaller: self._accepted(None, smaller),
        )
        self.found.text, self.found.fixed_point = reduced.text, reduced.fixed_point

    def _wordy(self) -> bool:
        """Whether the graph did not become small, and the user's script is shorter than the repro that came of it."""
        program = self.found.program
        if self.options.stage is not None or self.source is None or program is None or not self.found.fixed_point:
            return False
        large = program.graph.ops > FEW_OPS or bool(program.graph.bodies) or not self.found.smaller()
        return large and lines(self.found.text or "") > lines(self.source.text)

    def _reduce_source_instead(self, oracle: ScriptOracle) -> ScriptOracle:
        """Reduce the script as well and keep the shorter of both; the oracle that knows the one that is kept."""
        self.progress.step("the script is shorter than what came of its graph: reducing it as well")
        of_graph, asked = replace(self.found), oracle.ledger.queries
        other = self._oracle()
        self.found.start = self.found.program = None
        try:
            self._reduce_source(other)
        except Ended:
            self.found.reference = of_graph.reference  # what came of the graph stands
        finally:
            oracle.ledger.queries += asked
            shorter = self.found.reference is not of_graph.reference and lines(self.found.text or "") < lines(of_graph.text or "")
            if not shorter:
                for name in ("start", "program", "text", "stage", "reference", "fixed_point", "neighbours"):
                    setattr(self.found, name, getattr(of_graph, name))
                self._accepted(of_graph.program, of_graph.text or "")
        return other if shorter else oracle

    def _narrow(self, oracle: ScriptOracle, form: str) -> None:
        """From here on scripts of one form are compared."""
        assert self.found.reference is not None
        assert self.found.failure is not None
        if self.found.failure.kind is Kind.NO_RAISE:
            self.found.reference = self.found.failure  # what is shown is an assertion; that eager raises is not in its text
        oracle.reference, oracle.form, oracle.across_forms = self.found.reference, form, False
        oracle.jobs = self.options.jobs
        ledger = oracle.ledger
        ledger.queries = ledger.memo_hits = 0
        oracle.on_answer = lambda candidate, verdict: self.progress.update(
            f"{candidate.origin}: {verdict.value}; {ledger.queries} queries, {lines(self.found.text or '')} lines"
        )

    def _accepted(self, program: Program | None, text: str) -> None:
        self.found.program, self.found.text = program or self.found.program, text
        self.found.history.append((program, text))
        self.offer(final(program, text), len(self.found.history) - 1)
