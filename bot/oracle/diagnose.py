"""Where it goes wrong, asked of a worker once, before a search: wrong numbers begin at a value, refused code is of a kernel,
a failing line is of a function that is called somehow."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from bot.failure.outcome import Outcome
from bot.inside.protocol import RETURNED, Facts, Question
from bot.reduce.graph.form import Program, refs
from bot.reduce.source.passes.inner_call import InnerCall


@dataclass(frozen=True)
class Localised:
    """Names of values: where an error begins, in program order, and wrong ones that reach no output of the program."""

    first: tuple[str, ...] = ()
    harmless: frozenset[str] = frozenset()
    all: frozenset[str] = frozenset()

    @property
    def exposable(self) -> frozenset[str] | None:
        """The names that may become outputs: a harmless difference upstream must not become the bug. None: any."""
        return self.all - self.harmless if self.harmless else None

    def guesses(self, strict: bool) -> list[frozenset[str]]:
        """Operations to ask alone, before any search."""
        return [frozenset({name}) for name in self.first if strict or name not in self.harmless]


def localise(answer: Callable[[Question], tuple[Outcome, Facts]], text: str, program: Program, limit: float) -> Localised:
    """Ask a worker to compare the script's values one by one; empty where it cannot be done."""
    outcome, facts = answer(Question(text, "localize", limit, strict=program.recipe.strict, tolerance=program.recipe.tolerance))
    if outcome.status != "ok":
        return Localised()
    # the last operation stands in the return statement
    returned = next(refs(program.graph.output), RETURNED)
    first = tuple(returned if name == RETURNED else name for name in facts.get("first", []))
    return Localised(first, frozenset(facts.get("harmless", [])), frozenset(node.name for node in program.graph.nodes))


def operations(values: Iterable[Iterable[str]], program: Program) -> list[frozenset[str]]:
    """Sets of operations from sets of the values of a script, where the last operation stands in the return statement."""
    returned = next(refs(program.graph.output), RETURNED)
    return [frozenset(returned if name == RETURNED else name for name in names) for names in values]


def inner_calls(answer: Callable[[Question], tuple[Outcome, Facts]], text: str, lines: tuple[int, ...], limit: float) -> list[InnerCall]:
    """How the functions that hold the lines (1-based) are called by what is compiled, the innermost first."""
    _, facts = answer(Question(text, "frames", limit, lines=lines))
    return [InnerCall(f["name"], f["callee"], tuple(f["arguments"]), tuple(f["contexts"])) for f in facts.get("frames", [])]
