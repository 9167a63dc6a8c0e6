"""Where a program goes wrong, asked of a worker once before a search: at which values wrong numbers begin, from which operations
refused code was made, and how the function that holds a failing line is called."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from bot.failure.outcome import Outcome
from bot.inside.protocol import RETURNED, Facts, Question
from bot.reduce.graph.form import Program, refs
from bot.reduce.source.passes.inner_call import InnerCall


@dataclass(frozen=True)
class Localized:
    """Names of values: where an error begins, in program order, those that are wrong, and wrong ones that reach no output."""

    first: tuple[str, ...] = ()
    wrong: frozenset[str] = frozenset()
    harmless: frozenset[str] = frozenset()
    all: frozenset[str] = frozenset()

    @property
    def exposable(self) -> frozenset[str] | None:
        """The names that may become outputs: a harmless difference upstream must not become the bug. None: any."""
        return self.all - self.harmless if self.harmless else None

    @property
    def chain(self) -> frozenset[str] | None:
        """The way of the error through the program: a smaller one without any of it shows something else. None: it is not known."""
        return self.wrong or None

    def guesses(self, strict: bool) -> list[frozenset[str]]:
        """Operations to ask alone, before any search; without `strict` those that reach no output are left out."""
        return [frozenset({name}) for name in self.first if strict or name not in self.harmless]


def localize(
    answer: Callable[[Question], tuple[Outcome, Facts]], text: str, program: Program, limit: float, *, beginning: bool = False
) -> Localized:
    """Ask a worker to compare the values of the script `text` one by one; empty where it cannot be done.

    `answer` asks, with a `limit` in seconds; `program` is what the script was rendered from. With `beginning` only as many values are
    compared as are needed to see where the error begins first.
    """
    recipe = program.recipe
    question = Question(text, "localize", limit, strict=recipe.strict, tolerance=recipe.tolerance, beginning=beginning)
    outcome, facts = answer(question)
    if outcome.status != "ok":
        return Localized()
    # the last operation is in the return statement
    returned = next(refs(program.graph.output), RETURNED)
    first = tuple(returned if name == RETURNED else name for name in facts.get("first", []))
    wrong = frozenset(returned if name == RETURNED else name for name in facts.get("wrong", []))
    nodes = frozenset(node.name for node in program.graph.nodes)
    return Localized(first, wrong & nodes, frozenset(facts.get("harmless", [])), nodes)


def operations(values: Iterable[Iterable[str]], program: Program) -> list[frozenset[str]]:
    """Sets of operations of `program` from sets of `values` of its script, where the last operation is in the return statement."""
    returned = next(refs(program.graph.output), RETURNED)
    return [frozenset(returned if name == RETURNED else name for name in names) for names in values]


def inner_calls(answer: Callable[[Question], tuple[Outcome, Facts]], text: str, lines: tuple[int, ...], limit: float) -> list[InnerCall]:
    """How the functions that hold the `lines` (1-based) of the script `text` are called by what is compiled, the innermost first.

    `answer` asks a worker, with a `limit` in seconds.
    """
    _, facts = answer(Question(text, "frames", limit, lines=lines))
    return [
        InnerCall(f["name"], f["callee"], tuple(f["arguments"]), tuple(f["contexts"]), tuple(f["reads"])) for f in facts.get("frames", [])
    ]
