"""The source stage: reduces a whole script."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

import libcst as cst

from bot.reduce.candidate import NO_CHECKS, BudgetSpent, Candidate, Checks, Oracle
from bot.reduce.distance import distance
from bot.reduce.halving import adaptive
from bot.reduce.source.passes import deletions, structure, values
from bot.reduce.source.passes.backward_slice import guesses
from bot.reduce.source.passes.coarse import thinned
from bot.reduce.source.text.candidate import Base, finish
from bot.reduce.source.text.cst_edits import Edit, apply
from bot.reduce.source.text.normal_form import as_far_as_legal, legal, marked, measure, normal, unmarked

Accepted = Callable[[str], None]
# Number of rewritings that are asked together.
_BATCH = 32
_MOST_REFUSED = 40


@dataclass(frozen=True)
class ReducedSource:
    """The result of a reduction.

    `refused` are candidates that were not SAME since the last step, each one edit away; those most like the result first, at most 40.
    `fixed_point` is False if the time ran out first.
    """

    text: str
    refused: tuple[str, ...]
    fixed_point: bool


def reduce_source(
    text: str,
    oracle: Oracle,
    *,
    failing_lines: Sequence[int] = (),
    starts: Sequence[str] = (),
    on_accept: Accepted | None = None,
    checks: Checks = NO_CHECKS,
) -> ReducedSource:
    """The smallest script found that fails like `text`, which is known to be SAME.

    `failing_lines` are the lines of `text` (1-based) that the traceback names in the user's frames; they shorten the search and may be
    left out. `starts` are whole programs to ask first (the program rewritten around an inner frame): the first that is SAME is reduced
    instead. `on_accept` gets the text of each step. Of the `checks`, `ends_well` is not asked; a text that is `slower` is taken only when
    nothing else is left, and only if it saves a line.
    Ends at a fixed point, or with the best text so far if the oracle raises BudgetSpent. Raises SyntaxError if `text` is not Python.
    """
    search = _SourceSearch(text, oracle, on_accept, checks)
    try:
        search.start(failing_lines, starts)
        steady = checks.settle(unmarked(search.text))
        going = search.round()
        if not steady():
            search.forget()
            search.guess()
            going = True
        while going:
            going = search.round() or search.takes_slow_ones()
        fixed_point = True
    except BudgetSpent:
        fixed_point = False
    # if only the layout changed, the user's own is better
    found = min(search.original, unmarked(search.text), key=measure)
    lines = found.splitlines()
    refused = sorted(set(search.refused), key=lambda text: (distance(lines, text), text))
    return ReducedSource(found, tuple(refused[:_MOST_REFUSED]), fixed_point)


class _SourceSearch:
    """The text, in normal form with marks, and what was asked about it."""

    def __init__(self, text: str, oracle: Oracle, on_accept: Accepted | None, checks: Checks) -> None:
        self.text = self.original = text
        self._slow: set[str] = set()  # SAME, but postponed
        self._last_chance = False
        self.refused: list[str] = []
        self._oracle = oracle
        self._on_accept = on_accept
        self._checks = checks
        self._failed: set[str] = set()
        self._sliced = False
        self._laid_out = text

    def start(self, failing_lines: Sequence[int], starts: Sequence[str]) -> None:
        """Asks the inner calls, brings the text into normal form, and makes the first guesses."""
        with_marks = marked(self.text, failing_lines)
        shorter = [s for s in starts if legal(s) and measure(unmarked(s)) < measure(self.text)]
        if self._first(shorter, "inner call", anew=True) is not None:
            with_marks, self.original = self.text, unmarked(self.text)
        self._checks.in_time()
        with_marks = thinned(with_marks, lambda texts: self._first(texts, "statement"), self._checks.in_time)
        self._laid_out = laid_out = normal(with_marks)
        self.guess()
        if not self._sliced:
            if unmarked(laid_out) == unmarked(self.text):
                self.text = laid_out
            else:
                self._first([laid_out], "layout", anew=True)

    def guess(self) -> None:
        """Asks what the failing frames need, unless such a guess was taken already."""
        self._sliced = self._sliced or self._first(self._guessed(), "slice") is not None

    def _guessed(self) -> list[str]:
        found = []
        for guess in guesses(self._laid_out, self._checks.in_time):
            self._checks.in_time()
            found.append(normal(guess))
        return found

    def forget(self) -> None:
        """Allows everything that failed so far to be asked again."""
        self._failed.clear()
        self.refused = []

    def takes_slow_ones(self) -> bool:
        """Allows slow texts that save a line to be taken, once; returns whether there are any."""
        lines = measure(unmarked(self.text))[0]
        worth = {text for text in self._slow if measure(text)[0] < lines}
        again, self._last_chance = bool(worth) and not self._last_chance, True
        self._failed -= worth
        return again

    def round(self) -> bool:
        """Makes one pass over everything; returns whether anything changed."""
        before = self.text
        # the number of questions about arguments and numbers grows with the program, so its levels go first; after a good guess most of it
        # is needed, and restructuring it pays off more than trying to delete it
        if self._sliced:
            self._structure()
        self._levels()
        self._structure()
        for name, propose in (
            ("unwrap", deletions.unwraps),
            ("parameter", deletions.parameters),
            ("value", deletions.plain_values),
            ("operand", deletions.operands),
            ("operand", partial(deletions.operands, which=1)),
            ("argument", deletions.arguments),
            ("annotation", deletions.type_annotations),
            ("unread name", deletions.unread_names),
        ):
            self._delete(name, propose)
        for name, rewrite in values.ALL:
            self._rewrite(name, rewrite)
        return self.text != before

    def _structure(self) -> None:
        for name, rewrite in structure.ALL:
            self._rewrite(name, rewrite)

    def _levels(self) -> None:
        depth = 0
        while deletions.levels(cst.parse_module(self.text), depth):
            self._delete("statement", lambda module, depth=depth: deletions.levels(module, depth))  # type: ignore[misc]
            depth += 1

    def _delete(self, origin: str, propose: Callable[[cst.Module], Sequence[Edit]]) -> None:
        """Makes as many of the edits as possible, all at once if that works."""
        base = Base.of(self.text)
        module = cst.parse_module(self.text)
        atoms = propose(module)

        def works(alternatives: Sequence[Sequence[Edit]]) -> int | None:
            return self._first([self._finished(base, apply(module, edits)) for edits in alternatives], origin)

        adaptive(atoms, works)

    def _rewrite(self, origin: str, propose: Callable[[str], Iterable[str]]) -> None:
        """Takes the first rewriting that works, then continues after it, until none is left."""
        position = 0
        while True:
            base = Base.of(self.text)
            options = islice(as_far_as_legal(propose(self.text)), position, None)
            found = None
            # each step invalidates the remaining rewritings
            while found is None and (batch := list(islice(options, _BATCH))):
                found = self._first([self._finished(base, option) for option in batch], origin)
                position += len(batch) if found is None else found
            if found is None:
                return

    def _finished(self, base: Base, edited: str | None) -> str | None:
        self._checks.in_time()
        return finish(base, edited)

    def _first(self, texts: Sequence[str | None], origin: str, *, anew: bool = False) -> int | None:
        """Takes the first text (marks kept) that is SAME and returns its index; None if none is.

        Only texts smaller than the current one are asked, unless the search starts `anew`.
        """
        now = measure(unmarked(self.text))
        fresh: list[tuple[int, str]] = []
        for index, text in enumerate(texts):
            if text is None or text in texts[:index] or unmarked(text) in self._failed:
                continue
            if (anew or measure(unmarked(text)) < now) and self._checks.keeps(unmarked(text)):
                fresh.append((index, text))
        if not fresh:
            return None
        asked = [Candidate(unmarked(t), origin, measure(unmarked(t))[:2]) for _, t in fresh]
        first, found = 0, self._first_same(asked)
        while found is not None and self._is_put_off(asked[first + found].text):
            first += found + 1
            found = self._first_same(asked[first:])
        failed = [c.text for c in (asked if found is None else asked[: first + found]) if c.text not in self._slow]
        self._failed.update(failed)
        if found is None:
            self.refused += failed
            return None
        self.refused = []
        index, text = fresh[first + found]
        self.text = text
        if self._on_accept is not None:
            self._on_accept(unmarked(text))
        return index

    def _first_same(self, asked: Sequence[Candidate]) -> int | None:
        """Index of the first that is SAME; postponed ones are known to be."""
        known = next((index for index, candidate in enumerate(asked) if candidate.text in self._slow), None)
        found = self._oracle.first(asked[:known]) if asked and known != 0 else None
        return known if found is None else found

    def _is_put_off(self, text: str) -> bool:
        """Whether a text that is SAME is not taken, because it runs too long for what it saves."""
        standing = unmarked(self.text)
        if (self._last_chance and measure(text)[0] < measure(standing)[0]) or not self._checks.slower(text, standing):
            return False
        self._slow.add(text)
        self._failed.add(text)
        return True
