"""The search: which form of the program still fails, and the smallest one that does."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from bot.engine.capture.hints import launches, named_alone, named_nodes
from bot.engine.capture.local_modules import search_path
from bot.engine.capture.own_files import with_own_files
from bot.engine.capture.source import Source
from bot.engine.capture.starts import Start, flat, parts, starts
from bot.engine.capture.whole import Carried, carried, whole
from bot.engine.evidence.passing_edit import nearest_passing
from bot.engine.leftovers import without_leftovers
from bot.engine.options import Ended, Options
from bot.engine.own_verdict import keeps_of
from bot.engine.progress import Progress
from bot.engine.state import Findings, Reproduction, SearchResult
from bot.engine.trail import Trail
from bot.failure.machine_faults import missing
from bot.inside.variables import settings_of
from bot.models.failure import Kind, Stage, Verdict
from bot.models.result import Rule
from bot.oracle.diagnose import Localized, inner_calls, localize, operations
from bot.oracle.oracle import Begun, ScriptOracle
from bot.oracle.run_plan import TRIES
from bot.reduce.candidate import BudgetSpent, Candidate, Checks
from bot.reduce.graph.printer.script import lines, render, without_call
from bot.reduce.graph.reducer import Numerics, Reduced, reduce_program
from bot.reduce.graph.size import size_key
from bot.reduce.source.environ import Rank, with_surroundings
from bot.reduce.source.let_through import forms
from bot.reduce.source.passes import coarse
from bot.reduce.source.passes.inner_call import rerooted
from bot.reduce.source.reducer import ReducedSource, reduce_source
from bot.reduce.source.text.normal_form import marks, unmarked

# A graph with this few operations is the form that a maintainer wants, however short the script was.
FEW_OPS = 4
# From this many operations on, the search first looks for what is wrong in a graph: that costs less than running the graph.
LARGE_GRAPH = 20
# If no graph is a start: the number of graphs in which single operations are tried, and how many in each.
MOST_PARTED, MOST_PARTS = 2, 3
# From this many lines on, only a few scripts around inner calls are made, since each takes seconds.
LARGE, MOST_INNER_OF_LARGE = coarse.LINES, 2


@dataclass
class Search:
    """Reduces one program that failed.

    Each accepted step goes to `trail`. `new_oracle` makes an oracle that compares with the original program's failure, whatever the form
    of a script.
    """

    options: Options
    reproduction: Reproduction
    trail: Trail
    new_oracle: Callable[[], ScriptOracle]
    progress: Progress

    def __post_init__(self) -> None:
        self.oracle = self.new_oracle()  # knows the script that is being reduced, and in the end the result
        self._start: tuple[Start, Begun] | None = None
        self._errors: dict[tuple[str, bool], Localized] = {}  # by script, and whether only the beginning was wanted

    def begin(self) -> Start | None:
        """Find the form to start from; None for the script itself.

        Raises:
            BudgetSpent: before there was one.
        """
        self._start = self._started()
        return self._start[0] if self._start is not None else None

    def run(self) -> SearchResult:
        """Reduce it, to a fixed point or until the budget is spent.

        Raises:
            Ended: there is nothing that can be reduced.
            BudgetSpent: the job was cancelled, or the time was over before there was a script.
        """
        try:
            if self._start is None:
                return self._reduce_source()
            of_graph = self._reduce_graph(*self._start)
            return self._smaller_of_both(of_graph) if self._is_wordy(of_graph) else of_graph
        except BudgetSpent:
            best = self.trail.best
            if best is None or not self.oracle.budget.should_continue():
                raise
            return best if len(self.trail) else replace(best, rule=self._rule())

    def _started(self) -> tuple[Start, Begun] | None:
        """The first form of the program, smallest first, that fails as the original did."""
        found, source = self.reproduction.capture, self.reproduction.source
        self.progress.step("looking for the smallest form that fails in the same way")
        with_it = carried(source, found, search_path(Path.cwd(), os.environ, found.looked)) if source else Carried()
        text, line = with_it.text, with_it.failing_line
        tried: list[Start] = []
        for start in starts(found.regions, self.reproduction.failure, text, line, seed=self.options.seed, installed=with_it.installed):
            if self.options.stage not in (None, start.stage):
                continue
            known = any(other.program.graph == start.program.graph for other in tried)
            tried.append(start)
            for one in chain(self._alone(start, known), flat(start, self.oracle)):
                begun = self._begins(one)
                if begun is not None:
                    return one, begun
        if self.reproduction.failure.kind is not Kind.ACCURACY:
            return None
        # a whole graph may prove nothing, for want of float64 or because all its errors are rounding, while its one wrong operation does
        for _ in range(MOST_PARTED):
            if not tried:
                break
            graph = tried[0].program.graph
            alike, tried = [s for s in tried if s.program.graph == graph], [s for s in tried if s.program.graph != graph]
            for part in chain.from_iterable(parts(start, self._wrong_parts(alike[0]), upstream=True) for start in alike):
                begun = self._begins(part)
                if begun is not None:
                    return part, begun
        return None

    def _alone(self, start: Start, known: bool) -> Iterator[Start]:
        """The operations of a start that the failure names or, in a large graph that is not `known` yet, at which wrong numbers begin."""
        if self.reproduction.failure.kind is not Kind.ACCURACY:
            yield from named_alone(self.reproduction.capture.outcome.text, start)
        elif not known and start.program.graph.ops >= LARGE_GRAPH:
            yield from parts(start, self._wrong_parts(start, beginning=True))

    def _wrong_parts(self, start: Start, *, beginning: bool = False) -> Sequence[frozenset[str]]:
        """The operations at which wrong numbers begin, or only the first `beginning`, each to be asked alone."""
        return self._localized(start, beginning=beginning).guesses(self.options.accuracy == "strict")[:MOST_PARTS]

    def _begins(self, start: Start) -> Begun | None:
        """How the search can begin at this start; if it can, the oracle for it becomes the search's."""
        text = render(start.program)
        recipe = start.program.recipe
        oracle = self._comparing(own=recipe.tolerance is not None, eager_alone=recipe.eager_alone)
        candidate = Candidate(text, f"start:{start.stage.value}", size_key(start.program, text)[0])
        begun = oracle.begins(candidate, draws_inputs=not (start.program.preamble or recipe.setup))
        if begun is None or not self._calls(start, text):
            return None
        self.oracle = oracle
        return begun

    def _comparing(self, *, own: bool, eager_alone: bool = False) -> ScriptOracle:
        """The oracle for scripts that compare numbers by their `own` tolerance, by PyTorch's rule, or with `eager_alone`."""
        oracle = self.oracle
        return oracle.narrowed(replace(oracle.criterion, own_comparison=own, eager_alone=eager_alone), oracle.plan)

    def _calls(self, start: Start, text: str) -> bool:
        """Whether the script `text` of a start fails where its module is called: what comes before is from the user's program, and may show
        the failure by itself."""
        program = start.program
        return not (program.preamble or program.recipe.setup) or self.oracle.observe(without_call(text))[0].status == "ok"

    def _reduce_graph(self, start: Start, begun: Begun) -> SearchResult:
        first = self._first(SearchResult(start.stage, render(start.program), Rule(), start.whole or start.program, start.program), begun)
        oracle, strict, ops = self.oracle, self.options.accuracy == "strict", start.program.graph.ops
        self.progress.step(f"reducing the {start.stage.value} graph: {ops} {'op' if ops == 1 else 'ops'}")
        accuracy = first.reference is not None and first.reference.kind is Kind.ACCURACY
        error = self._localized(start) if accuracy and ops > 1 else Localized()
        exposable = None if strict else error.exposable
        numerics = Numerics(exposable, error.chain, keep_seed=accuracy, seed_last=oracle.criterion.may_depend_on_numbers)
        guesses = error.guesses(strict) if accuracy else self._named(start, begun)

        def reduce(step: SearchResult) -> Reduced:
            assert step.program is not None
            return reduce_program(
                step.program,
                oracle,
                render,
                guesses=guesses if step.program is start.program else (),
                numerics=numerics,
                allowed=self.reproduction.allowed_memory,
                on_accept=lambda smaller, candidate: self._accept(first.step(candidate.text, smaller)),
                checks=Checks(settle=oracle.settle, ends_well=oracle.passes),
            )

        reduced = self.trail.past_slips(reduce, first, oracle.reject)
        found = first.step(render(reduced.program), reduced.program)
        smallest, finished = without_leftovers(found, oracle, self._accept)
        nearest = reduced.nearest_passing
        neighbors = (reduced.candidate.text, nearest.text) if nearest is not None else None
        return replace(smallest, fixed_point=reduced.fixed_point and finished, neighbors=neighbors)

    def _named(self, start: Start, begun: Begun) -> Sequence[frozenset[str]]:
        """The operations that the failure names, to be asked first."""
        return named_nodes(self.reproduction.capture.outcome.text, start) or operations(begun.answer.blamed, start.program)

    def _localized(self, start: Start, *, beginning: bool = False) -> Localized:
        """Where wrong numbers begin, and the path that they take; only the first `beginning` is found sooner."""
        text = render(start.program)
        if (text, beginning) not in self._errors:
            self._errors[text, beginning] = localize(self.oracle.answer, text, start.program, self.reproduction.limit, beginning=beginning)
        return self._errors[text, beginning]

    def _reduce_source(self) -> SearchResult:
        source = self.reproduction.source
        if source is None:
            said = (
                "no graph of this command fails alone, and as source only a script, a module of this directory (`python -m pkg.mod`) or a"
                " test without fixtures from elsewhere than its file (`pytest FILE::TEST`, or unittest) can be reduced: name one of these"
            )
            raise Ended("error", "not_understood", said)
        if self.options.stage not in (None, Stage.SOURCE):
            raise Ended("error", "not_understood", f"no program of the stage {self.options.stage.value} fails in the same way here")
        self.oracle = self._comparing(own=True)
        text, failing, begun = self._begin_source(source)
        if begun is None:
            rule = self._rule().model_copy(update={"partial": self.reproduction.capture.partial})
            return SearchResult(Stage.SOURCE, text, rule, fixed_point=True)
        # an assert, or a condition, with other words is another finding
        first = self._first(SearchResult(Stage.SOURCE, text, Rule()), begun, own_words=begun.answer.own_words)
        oracle = self.oracle
        self.progress.step(f"reducing the script: {lines(text)} lines")
        inner = self._inner(text, failing)
        keeps = keeps_of(self.reproduction, source.text, text, failing)
        checks = Checks(settle=oracle.settle, slower=oracle.is_slow, keeps=keeps, in_time=oracle.budget.check)

        def reduce(step: SearchResult) -> ReducedSource:
            return reduce_source(
                step.text,
                oracle,
                failing_lines=failing if step.text == text else (),
                starts=inner if step.text == text else (),
                on_accept=lambda smaller: self._accept(first.step(smaller)),
                checks=checks,
            )

        try:
            reduced = self.trail.past_slips(reduce, first, oracle.reject)
        except SyntaxError as error:  # valid Python, but the parsing library rejects it
            said = f"the script cannot be taken apart: {error}"
            self.progress.say(said)
            return replace(self.trail.best or first, fault=said)
        neighbors = nearest_passing(reduced.text, reduced.refused, lambda one: oracle.ask(Candidate(one, "nearest", ())))
        return replace(first.step(reduced.text), fixed_point=reduced.fixed_point, neighbors=neighbors)

    def _inner(self, text: str, failing: tuple[int, ...]) -> list[str]:
        """Programs that compile only one inner function of a script."""
        found: list[str] = []
        if not failing:
            return found
        calls = inner_calls(self.oracle.answer, text, failing, self.reproduction.limit)
        most = MOST_INNER_OF_LARGE if lines(text) >= LARGE else len(calls)
        with suppress(SyntaxError):
            for program in rerooted(text, failing, calls[:most]):
                self.oracle.budget.check()
                found.append(program)
        return found

    def _begin_source(self, source: Source) -> tuple[str, tuple[int, ...], Begun | None]:
        """The first of the source's texts that fails, its lines that the failure names, and how it fails; if none does, the first text, and
        None."""
        capture = self.reproduction.capture
        said = [capture.outcome.text, *launches(capture.regions)]
        # a module that is found on the search path may be one that Python finds elsewhere
        places = search_path(Path.cwd(), os.environ, capture.looked), ()
        found = [whole(source, text, said, where) for text in (source.text, *source.others) for where in places]
        caught, left, raised = capture.ended is not None, capture.outcome.status == "exit", self.reproduction.failure.exception
        programs = (one for program in found for one in forms(program.text, program.lines, caught=caught, left=left, raised=raised))
        begun = dict.fromkeys(form for one in programs for form in self._surrounded(*one))
        first = found[0]
        alone = next(iter(begun))[0]
        if len(self.trail) == 0:
            self.trail.note(SearchResult(Stage.SOURCE, alone, self._rule()))
        for complete, failing in begun:
            begins = self._begins_with(complete, "source", max(1, TRIES // len(begun)))
            if begins is not None:
                return complete, failing, begins
        ended = self.oracle.observe(alone)[0]
        reading = with_own_files(alone, ended, lambda one: self.oracle.observe(one)[0], (source.file.parent, Path.cwd()))
        begins = self._begins_with(reading[0], "own files") if reading is not None else None
        if reading is not None and begins is not None:
            return *reading, begins
        fresh = self._begin_in_fresh_process(alone)
        if fresh is not None:
            return alone, next(iter(begun))[1], fresh
        # an error that a thread or a library catches gets through if the function that fails is called alone
        for program in self._inner(first.text, first.lines) if capture.ended is not None else ():
            complete, failing = next(self._surrounded(unmarked(program), marks(program)))
            begins = self._begins_with(complete, "inner call")
            if begins is not None:
                return complete, failing, begins
        beside = found[1].modules
        if beside and first.text == source.text:
            why = f"a repro stands alone, but these modules of the program cannot be written into it: {', '.join(sorted(beside))}"
            raise Ended("error", "needs_package", why)
        needs = missing(ended)
        if needs:
            raise Ended("error", needs.code, f"a repro stands alone, but the program needs {needs.alone}")
        # it may fail only sometimes, or need what a worker does not have: fresh runs of the script itself tell
        return alone, (), None

    def _begins_with(self, text: str, origin: str, tries: int = 1) -> Begun | None:
        return self.oracle.begins(Candidate(text, f"start:{origin}", (lines(text), len(text))), tries)

    def _begin_in_fresh_process(self, text: str) -> Begun | None:
        """How the script `text` fails if it only does so before the compiler is imported; from then on each question is asked this way."""
        if self.reproduction.failure.kind is Kind.HANG:
            return None  # each question would take too long
        candidate = Candidate(text, "start:fresh process", (lines(text), len(text)))
        for graph_caches in (False, True):
            oracle = self.oracle.in_fresh_processes(graph_caches=graph_caches)
            begun = oracle.begins(candidate)
            if begun is not None and oracle.begins(candidate) is not None:  # once may be chance
                only = "with torch's caches of compiled graphs" if graph_caches else "where nothing was compiled before"
                self.progress.say(f"it fails only {only}: each question gets a fresh process, which takes longer")
                self.oracle = oracle
                return begun
        return None

    def _surrounded(self, text: str, failing: tuple[int, ...]) -> Iterator[tuple[str, tuple[int, ...]]]:
        """The script with what its caller gave it, since a repro runs without that."""
        target, place = self.options.target, self.reproduction.capture.rank
        for rank in Rank(*place).forms() if target.starts_ranks and place is not None else (None,):
            yield with_surroundings(text, failing, settings_of(os.environ), target.arguments, rank)

    def _is_wordy(self, found: SearchResult) -> bool:
        """Whether the graph did not become small, and the user's script is shorter than the repro made from it."""
        program, source = found.program, self.reproduction.source
        if self.options.stage is not None or source is None or program is None or self.reproduction.own_end or not found.fixed_point:
            return False
        if self.reproduction.capture.outcome.status == "ok":
            return False  # its numbers are wrong, but it does not say so: alone it passes
        smaller = Findings(self.reproduction.original, self.reproduction, found).is_smaller()
        large = program.graph.ops > FEW_OPS or bool(program.graph.bodies) or not smaller
        return large and lines(found.text) > lines(self.reproduction.original or source.text)

    def _smaller_of_both(self, of_graph: SearchResult) -> SearchResult:
        """Reduce the script as well; returns the shorter of the two results, and `oracle` is the one that knows it."""
        self.progress.step("the script is shorter than what came of its graph: reducing it as well")
        oracle = self.oracle
        self.oracle = self.new_oracle()
        of_source: SearchResult | None = None
        try:
            of_source = self._reduce_source()
        except Ended:
            pass  # the result of the graph stands
        except BudgetSpent:
            of_source = self.trail.best
            raise
        finally:
            known = [of_graph, *([of_source] if of_source is not None and of_source.reference is not None else [])]
            shorter = min(known, key=lambda result: lines(result.text))
            if shorter is of_graph:
                self.oracle = oracle
                self._accept(of_graph)
        return shorter

    def _first(self, start: SearchResult, begun: Begun, *, own_words: str = "") -> SearchResult:
        """The first step, of a program that fails; from here on scripts of its form are compared, and what they say with `own_words`."""
        oracle, failure, answer = self.oracle, self.reproduction.failure, begun.answer
        # a missing error shows as an assertion, whose text does not say that eager raises
        reference = failure if failure.kind is Kind.NO_RAISE else answer.signature
        assert reference is not None, "a script that was SAME shows a failure"
        criterion = replace(
            oracle.criterion,
            reference=reference,
            across_forms=False,
            own_words=own_words,
            control_may_end_later=answer.control_ended_later,
        )

        def on_answer(candidate: Candidate, verdict: Verdict) -> None:
            best = self.trail.best
            size = lines(best.text) if best is not None else 0
            self.progress.update(f"{candidate.origin}: {verdict.value}; {oracle.ledger.queries} queries, {size} lines")

        self.oracle = oracle.narrowed(criterion, begun.plan, jobs=self.options.jobs or 1, on_answer=on_answer)
        first = replace(start, reference=reference, rule=self._rule())
        self._accept(first)
        return first

    def _rule(self) -> Rule:
        """What fresh runs of a script are compared with, as the oracle knows it now."""
        criterion, reproduction = self.oracle.criterion, self.reproduction
        return Rule(
            hang_after=reproduction.hang_after,
            numbers="eager" if criterion.eager_alone else "spread" if criterion.precision == "spread" else "fp64",
            own_verdict=criterion.own_verdict,
            partial=criterion.control_may_end_later,
            error=criterion.eager_error,
        )

    def _accept(self, step: SearchResult) -> None:
        self.trail.accept(step, steady=self.oracle.is_steady)
