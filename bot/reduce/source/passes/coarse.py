"""Large texts: removes whole statements first, by their names alone.

Elsewhere each candidate is parsed, repaired and printed as a whole, which takes seconds for a text of ten thousand lines. Here a candidate
is a selection of the statements of one block, and what has to go with a statement follows from the names that it binds and reads.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from bot.reduce.halving import adaptive
from bot.reduce.source.text.blocks import blocks
from bot.reduce.source.text.compiler_calls import ENTRIES, entries_in
from bot.reduce.source.text.names import names_of
from bot.reduce.source.text.normal_form import MARK, end_line, parsed, start_line

# A text is large from this many lines or characters on.
LINES, CHARACTERS = 1_500, 100_000
# The maximum number of runs into which the statements of a block are divided before these are halved.
RUNS = 128
_Ask = Callable[[Sequence["str | None"]], "int | None"]


@dataclass(frozen=True)
class _Part:
    """A statement, or several that share a line."""

    text: str
    binds: frozenset[str]
    uses: frozenset[str]
    acts: bool  # it has an effect besides binding names
    compiles: bool  # it mentions the compiler

    @property
    def marked(self) -> bool:
        return MARK in self.text


def thinned(text: str, ask: _Ask, check: Callable[[], None] = lambda: None) -> str:
    """The `text` reduced to the statements (marks kept) that `ask` needs: in the script, then in its largest block, and so on as long as
    it is large.

    `ask` takes candidates, best first, and returns the index of the first that works; `check` is called now and then, and may raise.
    Raises SyntaxError if `text` is not Python.
    """
    depth = 0
    while text.count("\n") >= LINES or len(text) >= CHARACTERS:
        block = _block(text, depth)
        if not block:
            break
        text = _thinned(_Block(text, block, check), text, ask)
        depth += 1
    return text


def _thinned(block: _Block, text: str, ask: _Ask) -> str:
    everything = list(range(len(block.parts)))
    starts = [block.needed(lambda part: part.marked), block.needed(lambda part: part.marked or part.acts)]
    found = ask([block.text(start) for start in starts])
    now = everything if found is None else starts[found]
    while True:
        before = now
        size = -(-len(now) // RUNS)
        runs = [now[at : at + size] for at in range(0, len(now), size)][::-1]
        gone = adaptive(runs, lambda alternatives: ask([block.text(block.without(before, chain(*some))) for some in alternatives]))  # noqa: B023
        now = block.without(before, chain(*gone)) or before
        # runs that cannot go are left to the finer search; if some could, shorter ones may go as well
        if now == before or size == 1:
            return text if now == everything else block.text(now) or text


class _Block:
    """The statements of one block of a text, by position, and what is known of their names."""

    def __init__(self, text: str, body: Sequence[ast.stmt], check: Callable[[], None]) -> None:
        lines = text.split("\n")
        self._before, self._behind = lines[: start_line(body[0]) - 1], lines[end_line(body[-1]) :]
        self.parts: list[_Part] = []
        self._check = check
        self._binders: dict[str, list[int]] = {}
        self._readers: dict[str, list[int]] = {}
        for place, part in enumerate(_parts(lines, body)):
            check()
            self.parts.append(part)
            for name in part.binds:
                self._binders.setdefault(name, []).append(place)
            for name in part.uses:
                self._readers.setdefault(name, []).append(place)
        outside = "\n".join([*self._before, *self._behind])
        self._compiles = any(part.compiles for part in self.parts) and not any(entry in outside for entry in ENTRIES)
        # statements whose names nothing reads even at the start may be there for their effects
        self._read = frozenset(name for part in self.parts for name in part.uses)

    def text(self, places: Sequence[int] | None) -> str | None:
        """The text with some of the statements; None if they do not make a program to ask about."""
        if not places or (self._compiles and not any(self.parts[place].compiles for place in places)):
            return None
        return "\n".join([*self._before, *(self.parts[place].text for place in places), *self._behind])

    def needed(self, wanted: Callable[[_Part], bool]) -> list[int]:
        """The wanted statements and those that they need, transitively; none if none is wanted."""
        found = {place for place, part in enumerate(self.parts) if wanted(part)}
        todo = list(found)
        while todo:
            for name in self.parts[todo.pop()].uses:
                new = set(self._binders.get(name, ())) - found
                found |= new
                todo += new
        return sorted(found)

    def without(self, places: Sequence[int], gone: Iterable[int]) -> list[int] | None:
        """The statements without some of them, without those that read what is gone, and without those that only they needed.

        None if a marked statement would go with them.
        """
        self._check()
        kept = set(places)
        binders = Counter(name for place in kept for name in self.parts[place].binds)
        readers = Counter(name for place in kept for name in self.parts[place].uses)
        todo = list(gone)
        while todo:
            place = todo.pop()
            if place not in kept:
                continue
            kept.remove(place)
            binders.subtract(self.parts[place].binds)
            readers.subtract(self.parts[place].uses)
            broken = {r for name in self.parts[place].binds if not binders[name] for r in self._readers.get(name, ())} & kept
            if any(self.parts[r].marked for r in broken):
                return None
            unread = {b for name in self.parts[place].uses if not readers[name] for b in self._binders.get(name, ())} & kept
            todo += broken
            todo += (b for b in unread if self._only_for_others(self.parts[b]) and not any(readers[n] for n in self.parts[b].binds))
        return sorted(kept)

    def _only_for_others(self, part: _Part) -> bool:
        return not part.acts and not part.marked and bool(part.binds & self._read)


def _block(text: str, depth: int) -> list[ast.stmt]:
    """The statements of the largest block at the given depth of nesting; empty if there is none that has lines of its own."""
    block = parsed(text).body
    lines = text.split("\n")
    for _ in range(depth):
        own = [b for s in block for b in blocks(s) if not lines[b[0].lineno - 1][: b[0].col_offset].strip()]
        block = max(own, key=lambda b: end_line(b[-1]) - start_line(b[0]), default=[])
    return block


def _parts(lines: Sequence[str], body: Sequence[ast.stmt]) -> Iterator[_Part]:
    for group in _by_lines(body):
        names = [names_of(statement) for statement in group]
        own = "\n".join(lines[start_line(group[0]) - 1 : end_line(group[-1])])
        binds, uses = frozenset[str]().union(*(n.binds for n in names)), frozenset[str]().union(*(n.uses for n in names))
        yield _Part(own, binds, uses, any(map(_acts, group)), any(map(entries_in, group)))


def _by_lines(body: Sequence[ast.stmt]) -> Iterator[list[ast.stmt]]:
    """The statements in groups that own whole lines."""
    group: list[ast.stmt] = []
    for statement in body:
        if group and start_line(statement) > end_line(group[-1]):
            yield group
            group = []
        group.append(statement)
    if group:
        yield group


def _acts(statement: ast.stmt) -> bool:
    if isinstance(statement, (ast.Assign, ast.AnnAssign)):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        return not all(isinstance(target, (ast.Name, ast.Tuple)) for target in targets)
    return not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom))
