"""Drops operations: the main search.

Four steps, each on the result of the one before, repeated until nothing changes:

1. *Halving*: one half of the operations alone, with its operands as inputs. Good for a single operation and for a pattern of neighbors.
   After a first half fails, the two quarters of the second half are asked, so that a single operation costs 1 to 1.5 log2 n queries, on
   programs whose sizes fall geometrically.
2. *Anchors*: the smallest prefix that is SAME ends in an operation that matters (log2 n queries). Operations near the anchors found so far
   are added by distance in the data flow, four times as many each time, until the program is SAME again; bisection then gives the next
   anchor. A compact pattern costs a few queries on small programs, a spread-out one about 1.5 log2 n.
3. *Sweep*: runs of operations are deleted from the end, twice as long after each success, half as long after a failure: about one query
   for each operation that must stay if most must.
4. *Other policies* for operations between two kept ones: cut, or connect across different shapes. An operation on an input with
   special numbers, such as infinities, goes with the input in its place.

Sources: halving and adaptive deletion are from delta debugging and shrinkray; the anchors are QuickXplain's idea (the last element of the
shortest sufficient prefix is necessary) with an order by data flow; the policies are in `keep`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from bot.models.failure import Verdict
from bot.reduce.graph.form import Graph, Program
from bot.reduce.graph.incumbent import Incumbent, structure
from bot.reduce.graph.keep import Policy, units

_FEW = 8  # up to this many, a sweep is as cheap as anything cleverer
_DENSE = 16  # up to this many, anchors that leave most of them do not pay off
_ANCHORS = 4
_DOUBTED = 3
_ORIGIN = "ops"
# How an input is made whose numbers matter: other passes make what they can of random numbers.
_SPECIAL = frozenset({"full", "literal", "expr"})


def run(incumbent: Incumbent) -> bool:
    """Drops operations of `incumbent` until none can go; returns whether any went."""
    start = incumbent.key
    while True:
        before = incumbent.key
        if len(_units(incumbent)) > _FEW:
            _halve(incumbent)
        if len(_units(incumbent)) > _FEW:
            _anchor(incumbent)
        _sweep(incumbent)
        if len(_units(incumbent)) > 2:
            _other_policies(incumbent)
        if len(_units(incumbent)) > 1:
            _on_special_numbers(incumbent)
        if incumbent.key == before or len(_units(incumbent)) <= 1:
            return incumbent.key != start


def _units(incumbent: Incumbent) -> list[str]:
    return units(incumbent.program.graph)


def _first(incumbent: Incumbent, choices: Iterable[Sequence[str]]) -> int | None:
    """Index of the first of these sets of operations (in order) that is SAME."""
    return incumbent.offer_structures((incumbent.keep(names) for names in choices), _ORIGIN)


def _halve(incumbent: Incumbent) -> None:
    """Narrows down to a range of operations as long as one half alone is SAME."""
    names = _units(incumbent)
    while len(names) > 1:
        middle = len(names) // 2
        first, second = names[:middle], names[middle:]
        quarter = len(second) // 2 if len(second) > 3 else 0
        parts = [first, second[:quarter], second[quarter:]] if len(names) > 3 else [[name] for name in names]
        if _first(incumbent, parts) is None:
            return
        names = _units(incumbent)


def _anchor(incumbent: Incumbent) -> None:
    """Finds operations that matter, one after the other, and drops those beyond them."""
    names = _units(incumbent)
    anchors = [names[_fewest(incumbent, [], names, 0, len(names)) - 1]]
    while len(anchors) <= _ANCHORS:
        present = _units(incumbent)
        anchors = [name for name in anchors if name in present]
        rest = [name for name in by_distance(incumbent.program.graph, anchors) if name in set(present)]
        if len(present) <= _FEW // 2 or not anchors:
            return
        high = _fewest(incumbent, anchors, rest, *_grow(incumbent, anchors, rest))
        if high == 0:
            return
        anchors.append(rest[high - 1])
        if len(anchors) > 2 and len(present) <= _DENSE and 4 * len(_units(incumbent)) > 3 * len(present):
            return


def _fewest(incumbent: Incumbent, anchors: list[str], rest: list[str], low: int, high: int) -> int:
    """The number of additional operations from which on it is SAME: more than `low`, at most `high`."""
    while high - low > 1:
        steps = list(_middles(low, high))
        taken = _first(incumbent, (anchors + rest[:step] for step in steps))
        if taken is None:
            break
        low, high = steps[taken - 1] if taken else low, steps[taken]
    return high


def _middles(low: int, high: int) -> Iterator[int]:
    """The steps of a bisection as long as none of them is SAME."""
    while high - low > 1:
        low = (low + high) // 2
        yield low


def _grow(incumbent: Incumbent, anchors: list[str], rest: list[str]) -> tuple[int, int]:
    """Two numbers of additional operations: too few, and enough."""
    tries = [0]
    while tries[-1] < len(rest):
        tries.append(max(2, tries[-1] * 4))
    tries = [t for t in tries if t < len(rest)]
    taken = _first(incumbent, (anchors + rest[:t] for t in tries))
    if taken is None:
        return tries[-1], len(rest)
    return (tries[taken - 1], tries[taken]) if taken else (-1, 0)


def by_distance(graph: Graph, anchors: Iterable[str]) -> list[str]:
    """The operations of `graph` except the `anchors`: nearest in the data flow first (in both directions), then the unconnected ones from
    the end."""
    order = units(graph)
    neighbors: dict[str, list[str]] = {n.name: [] for n in graph.nodes}
    for n in graph.nodes:
        for used in n.uses():
            if used in neighbors:
                neighbors[used].append(n.name)
                neighbors[n.name].append(used)
    seen = dict.fromkeys(anchors)
    queue = deque(seen)
    while queue:
        for name in neighbors.get(queue.popleft(), ()):
            if name not in seen:
                seen[name] = None
                queue.append(name)
    start = set(anchors)
    can = set(order)
    near = [name for name in seen if name in can and name not in start]
    return near + [name for name in reversed(order) if name not in seen]


def _sweep(incumbent: Incumbent) -> None:
    """Deletes runs of operations from the end, adaptively, until a whole sweep changes nothing."""
    while True:
        before = incumbent.key
        names = _units(incumbent)[::-1]
        at, run_length = 0, max(1, len(names) // (2 if len(names) > 4 else 4))
        while at < len(names):
            runs, present = list(_runs(len(names), at, run_length)), _units(incumbent)
            gone = (set(names[start : start + length]) for start, length in runs)
            taken = _first(incumbent, ([name for name in present if name not in run] for run in gone))
            if taken is None:
                break
            at, run_length = runs[taken]
            at, run_length = at + run_length, 2 * run_length
        if incumbent.key == before:
            return


def _runs(count: int, at: int, length: int) -> Iterator[tuple[int, int]]:
    """Where the runs of operations begin and how long they are, as long as none of them can go."""
    while at < count:
        yield at, length
        at, length = (at, length // 2) if length > 1 else (at + 1, 1)


def neighbors(incumbent: Incumbent) -> bool:
    """Asks `incumbent` with single operations dropped until one of these programs passes; returns whether one was SAME.

    This takes at most a few queries. They give the nearest passing program, and check the search where it skipped questions. Nothing is
    asked if a program with other operations was seen to pass since the last step, which shows both, unless the sizes have changed since
    operations were rejected.
    """
    mine = structure(incumbent.program)
    others = [near for near in incumbent.neighbors if structure(near.program) != mine]
    # of two operations, each was asked alone first, and one that fails alone usually fails at any size
    doubtful = incumbent.is_doubtful and len(_units(incumbent)) > 2
    if not doubtful and any(incumbent.oracle.ask(near.candidate) is Verdict.PASSES for near in others):
        return False
    for name in _units(incumbent)[::-1][:_DOUBTED]:
        rest = [other for other in _units(incumbent) if other != name]
        program = incumbent.keep(rest) if rest else None
        if program is None:
            continue
        if incumbent.offer(program, _ORIGIN):
            return True
        if incumbent.neighbors and incumbent.oracle.ask(incumbent.neighbors[-1].candidate) is Verdict.PASSES:
            break
    incumbent.doubted()
    return False


def _other_policies(incumbent: Incumbent) -> None:
    """Deletes single operations between others, with their uses cut or connected across different shapes."""
    names = _units(incumbent)[::-1]
    while names:
        taken = incumbent.offer_structures((_without(incumbent, name) for name in names), _ORIGIN)
        if taken is None:
            return
        names = names[taken + 1 :]


def _without(incumbent: Incumbent, name: str) -> Program | None:
    graph = incumbent.program.graph
    present = set(units(graph))
    node = next((n for n in graph.nodes if n.name == name), None)
    if node is None or name not in present:
        return None
    between = any(u in present for u in node.uses()) and any(name in n.uses() for n in graph.nodes)
    if not between:
        return None
    rest = present - {name}
    connected = incumbent.keep(rest, Policy.ANY)
    legal = incumbent.legal(connected) if connected is not None else None
    # if nothing can be connected, the sweep has tried the cut already
    return legal if legal is not None else incumbent.keep(rest, Policy.CUT)


def _on_special_numbers(incumbent: Incumbent) -> None:
    """Deletes single operations on inputs that do not hold just any numbers, which then go to what used the results."""
    names = _units(incumbent)
    while names:
        # operations that were rejected on random numbers are asked on these
        taken = incumbent.offer_first((_with_input(incumbent, name) for name in names), _ORIGIN)
        if taken is None:
            return
        names = names[taken + 1 :]


def _with_input(incumbent: Incumbent, name: str) -> Program | None:
    graph = incumbent.program.graph
    special = {one.name for one in graph.inputs if one.value.kind in _SPECIAL}
    node = next((n for n in graph.nodes if n.name == name), None)
    rest = [other for other in units(graph) if other != name]
    if node is None or len(rest) == len(units(graph)) or special.isdisjoint(node.uses()):
        return None
    return incumbent.keep(rest, Policy.GIVEN)
