"""Where a program goes wrong, asked of a worker once before a search: at which values wrong numbers begin, from which operations rejected
code was made, and how the function that holds a failing line is called."""

from __future__ import annotations

import concurrent.futures
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from bot.failure.outcome import Outcome
from bot.inside.protocol import FEW_VALUES, MORE_VALUES, RETURNED, Facts, Question
from bot.oracle.judge import CPUS
from bot.reduce.graph.form import Program, refs
from bot.reduce.source.passes.inner_call import InnerCall


@dataclass(frozen=True)
class Localized:
    """Names of values: where an error begins (`first`, in program order), those that are `wrong`, and the `harmless` ones, which are wrong
    but reach no output."""

    first: tuple[str, ...] = ()
    wrong: frozenset[str] = frozenset()
    harmless: frozenset[str] = frozenset()
    all: frozenset[str] = frozenset()

    @property
    def exposable(self) -> frozenset[str] | None:
        """The names that may become outputs: a harmless difference upstream must not become the bug. None for any."""
        return self.all - self.harmless if self.harmless else None

    @property
    def chain(self) -> frozenset[str] | None:
        """The path of the error through the program: a smaller program without any of it shows something else. None if it is not known."""
        return self.wrong or None

    def guesses(self, strict: bool) -> list[frozenset[str]]:
        """Operations to ask about alone, before any search; unless `strict`, those that reach no output are left out."""
        return [frozenset({name}) for name in self.first if strict or name not in self.harmless]


# The number of windows that are searched for the beginning of an error at a time: each is compiled on its own.
WIDTH = max(1, min(4, CPUS // 4))
# Asks a worker, unless nobody needs the answer any more.
Answers = Callable[..., tuple[Outcome, Facts]]


def localize(answer: Answers, text: str, program: Program, limit: float, *, beginning: bool = False, width: int | None = None) -> Localized:
    """Ask a worker to compare the values of the script `text` one by one; empty if that cannot be done.

    `answer` asks, with a `limit` in seconds; `program` is what the script was rendered from. With `beginning`, only as many values are
    compared as it takes to see where the error begins first, by `width` workers at a time (None: as many as the machine has room for).
    """
    recipe = program.recipe
    question = Question(text, "localize", limit, strict=recipe.strict, tolerance=recipe.tolerance, beginning=beginning)
    most = WIDTH if width is None else width
    found = _beginning(answer, question, len(program.graph.nodes) + 1, most) if beginning and most > 1 else None
    if found is None:
        outcome, found = answer(question)
        if outcome.status != "ok":
            return Localized()
    facts = found
    # the last operation is in the return statement
    returned = next(refs(program.graph.output), RETURNED)
    first = tuple(returned if name == RETURNED else name for name in facts.get("first", []))
    wrong = frozenset(returned if name == RETURNED else name for name in facts.get("wrong", []))
    nodes = frozenset(node.name for node in program.graph.nodes)
    return Localized(first, wrong & nodes, frozenset(facts.get("harmless", [])), nodes)


def _beginning(answer: Answers, question: Question, values: int, width: int) -> Facts | None:
    """The facts of the first window of all these `values` that has a wrong one; None if an earlier window could not be compared."""
    windows = [(0, FEW_VALUES)]
    while windows[-1][1] < values:
        start = windows[-1][1]
        windows.append((start, start + min(2 * (start - windows[-1][0]), MORE_VALUES)))
    settled = threading.Event()
    with concurrent.futures.ThreadPoolExecutor(width) as executor:
        asked = [executor.submit(answer, replace(question, window=window), settled.is_set) for window in windows]
        try:
            facts: Facts = {"status": "ok"}
            for future in asked:
                outcome, facts = future.result()
                if outcome.status != "ok":
                    return None
                if facts.get("first"):
                    break
            return facts
        finally:
            # nobody waits for the windows after it
            settled.set()
            for future in asked:
                future.cancel()


def operations(values: Iterable[Iterable[str]], program: Program) -> list[frozenset[str]]:
    """Sets of operations of `program` from sets of `values` of its script, whose return statement holds the last operation."""
    returned = next(refs(program.graph.output), RETURNED)
    return [frozenset(returned if name == RETURNED else name for name in names) for names in values]


def inner_calls(answer: Callable[[Question], tuple[Outcome, Facts]], text: str, lines: tuple[int, ...], limit: float) -> list[InnerCall]:
    """How compiled code calls the functions that hold the `lines` (from 1) of the script `text`, the innermost first.

    `answer` asks a worker, with a `limit` in seconds.
    """
    _, facts = answer(Question(text, "frames", limit, lines=lines))
    return [
        InnerCall(f["name"], f["callee"], tuple(f["arguments"]), tuple(f["contexts"]), tuple(f["reads"])) for f in facts.get("frames", [])
    ]
