"""Shrinks dimensions.

All dimensions of one size change together, in inputs and in the sizes that operations name (`view`, `expand`, `full`, ...); if a view
splits or joins dimensions, the composed size follows its parts. The metadata of every node is propagated again, so inconsistent sizes cost
no query.

Proposes, in order: every size 1 (asked with the whole batch first); every size 2 (else divided by a common factor, else 4; the first that
is legal goes into the batch); then sizes one by one, to 2 and to 1, adaptively; for a size that has to be large, bisection finds the
smallest; last, single dimensions that an equal one held back. Never 0. Cost: nothing of its own if sizes do not matter (the batch made
them all 1), about 2 log2 of the number of sizes for each that does, plus log2 of its size. Changing equal sizes together is a cheap form
of circt-reduce's width adaption.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice

from bot.reduce.graph.edits import by_halves
from bot.reduce.graph.form import Program
from bot.reduce.graph.incumbent import Incumbent
from bot.reduce.graph.passes.resize import closed, composed, free_sizes, ints, is_view, resized, sizes_of, with_dim, with_parts
from bot.reduce.graph.rewrite import find_input

_FACTORS = (256, 128, 64, 32, 16, 8, 4, 2)
_MOST_BISECTED = 12
_MOST_DIMS = 12
_MOST_JOINT = 7
_MOST_ASKED = 4
_MOST_ILLEGAL = 3
# Integers from here on are not sizes, such as the end of an open-ended slice.
_NO_SIZE = 2**31


def legal(incumbent: Incumbent, changed: Program) -> Program | None:
    """`changed`, a resized program of `incumbent`, with its actual metadata, and with numbers where a view's size was left open."""
    checked = incumbent.legal(changed)
    if checked is None or all(-1 not in ints(n) for n in checked.graph.nodes if is_view(n)):
        return checked
    before = {n.name: n for n in incumbent.program.graph.nodes}
    nodes = tuple(closed(n) if is_view(n) and -1 not in ints(before[n.name]) else n for n in checked.graph.nodes)
    return checked.with_graph(replace(checked.graph, nodes=nodes))


def everything_small(incumbent: Incumbent, program: Program) -> Program | None:
    """The `program` with all sizes as small as is legal at once, or None; `incumbent` is asked for shapes, which costs no query."""
    for mapping in _joint_mappings(program):
        for everywhere in (False, True):
            changed = legal(incumbent, resized(program, mapping, everywhere=everywhere))
            if changed is not None and changed.graph.input_elements < program.graph.input_elements:
                return changed
    return None


def everything_one(incumbent: Incumbent, program: Program) -> Program | None:
    """The `program` with all sizes 1, or None if that is not legal; `incumbent` is asked for shapes, which costs no query."""
    return next(iter(with_sizes(incumbent, program, dict.fromkeys(free_sizes(program), 1))), None)


def _joint_mappings(program: Program) -> Iterator[dict[int, int]]:
    sizes = sizes_of(program)
    parts = composed(program.graph)
    literals = {leaf for n in program.graph.nodes for leaf in ints(n) if 2 < leaf < _NO_SIZE}
    atoms = {n for n in {*sizes, *(p for many in parts.values() for p in many)} if n > 2}
    tried: list[dict[int, int]] = []
    options = [with_parts(dict.fromkeys(atoms, 2), parts), dict.fromkeys(atoms, 2)]
    for factor in _FACTORS:
        options.append({n: n // factor for n in atoms | literals | set(parts) if n % factor == 0})
    options.append(with_parts({n: 4 for n in atoms if n > 4}, parts))
    for mapping in options:
        changed = {n: m for n, m in mapping.items() if n != m}
        if changed and changed not in tried and len(tried) < _MOST_JOINT:
            tried.append(changed)
            yield changed


def run(incumbent: Incumbent) -> bool:
    """Shrinks the sizes of `incumbent` as far as possible; returns whether anything changed."""
    start = incumbent.key
    if not sizes_of(incumbent.program):
        return False
    _offer(incumbent, dict.fromkeys(free_sizes(incumbent.program), 1))
    _first(incumbent, islice(_joint_mappings(incumbent.program), _MOST_ASKED))
    for target in (2, 1):
        _adaptively(incumbent, [n for n in free_sizes(incumbent.program) if n > target], target)
    for size in free_sizes(incumbent.program):
        _bisect(incumbent, size, lambda old, new: with_sizes(incumbent, incumbent.program, {old: new}))
    _untied(incumbent)
    return incumbent.key != start


def _offer(incumbent: Incumbent, mapping: Mapping[int, int]) -> bool:
    """Offers the changed sizes: with new values, then with the recorded ones."""
    return _first(incumbent, [mapping]) is not None


def _first(incumbent: Incumbent, mappings: Iterable[Mapping[int, int]]) -> int | None:
    """Like `_offer` for several mappings; the index of the first (in order) that was taken."""
    asked: list[int] = []

    def programs() -> Iterator[Program]:
        for number, mapping in enumerate(mappings):
            for program in with_sizes(incumbent, incumbent.program, mapping):
                asked.append(number)
                yield program

    taken = incumbent.offer_first(programs(), "sizes")
    return None if taken is None else asked[taken]


def with_sizes(incumbent: Incumbent, program: Program, mapping: Mapping[int, int]) -> list[Program]:
    """The legal forms of `program`, a program close to that of `incumbent`, with sizes changed by `mapping` (composed ones follow their
    parts if that is legal): with new values, then with the recorded ones."""
    for full in (with_parts(mapping, composed(program.graph)), dict(mapping)):
        for everywhere in (False, True):
            plain = legal(incumbent, resized(program, full, everywhere=everywhere))
            if plain is None:
                continue
            kept = resized(program, full, keep_data=True, everywhere=everywhere)
            found = [plain, legal(incumbent, kept)]
            return [each for each in found if each is not None]
    return []


def _adaptively(incumbent: Incumbent, sizes: list[int], target: int) -> None:
    by_halves(sizes, lambda parts: _first(incumbent, (dict.fromkeys(part, target) for part in parts)))


def _bisect(incumbent: Incumbent, size: int, change: Callable[[int, int], list[Program]]) -> None:
    """Finds the smallest size that is SAME, between 2 (which is not) and the current one; geometric, since bounds are powers of two.

    `change` returns the legal programs with a size changed from one to another.
    """
    low, high = 2, size
    illegal = 0
    for _ in range(_MOST_BISECTED):
        middle = max(low + 1, round(math.sqrt(low * high))) if high > 2 * low else (low + high) // 2
        if not low < middle < high or illegal == _MOST_ILLEGAL:
            return
        programs = change(high, middle)
        illegal = 0 if programs else illegal + 1
        if incumbent.offer_first(programs, "sizes") is not None:
            high = middle
        else:
            low = middle


def _untied(incumbent: Incumbent) -> None:
    """Shrinks single dimensions that others of the same size held back."""
    inputs = [i for i in incumbent.program.graph.sources if i.meta.is_tensor]
    tied = [size for item in inputs for size in item.meta.shape]
    places = [(item.name, dim) for item in inputs for dim, size in enumerate(item.meta.shape) if size > 2 and tied.count(size) > 1]
    for name, dim in places[:_MOST_DIMS]:

        def change(_: int, new: int, name: str = name, dim: int = dim) -> list[Program]:
            plain, kept = (with_dim(incumbent.program, name, dim, new, keep_data=keep) for keep in (False, True))
            made = [plain] if kept == plain else [plain, kept]  # compared, not hashed: arguments may be lists
            return [each for each in (legal(incumbent, one) for one in made) if each is not None]

        small = [each for size in (1, 2) for each in change(0, size)]
        item = find_input(incumbent.program, name)
        if incumbent.offer_first(small, "sizes") is None and small and item is not None:
            _bisect(incumbent, item.meta.shape[dim], change)
