"""Inputs that hold dumped graphs: one of them, or all, as one script."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bot.engine.inputs import dump, unused
from bot.engine.inputs.taken import DumpedGraph, NotUnderstood, Place, Taken
from bot.models.result import TakenAs

# The most graphs that are compiled in turn if nothing says which one failed, and the most that are listed by name.
MOST_TOGETHER, MOST_LISTED = 64, 12
_STORAGES = "storages"


@dataclass(frozen=True)
class Held:
    """The graphs that an input holds: `what` it is, in words, and `notes` on what was left out."""

    taken_as: TakenAs
    what: str
    graphs: tuple[DumpedGraph, ...]
    notes: tuple[str, ...] = ()


def taken(held: Held, place: Place) -> Taken:
    """One script of the graphs in `held`, from `place`: the one that was asked for, else the first that failed, else all. Raises
    NotUnderstood if there is no such graph, or none that can be read."""
    wanted = chosen(held.graphs, place.graph)
    if not wanted:
        raise NotUnderstood(f"{held.what} without a graph {place.graph!r}; it has {_listed(held.graphs)}")
    notes = list(held.notes)
    together: list[tuple[str, dump.Dump, Path | None]] = []
    unreadable = ""
    for graph in wanted[:MOST_TOGETHER]:
        try:
            found = dump.read(graph.text)
            together.append((graph.name, found, _beside(found, graph)))
        except NotUnderstood as error:
            unreadable = unreadable or str(error)
            notes.append(f"graph {graph.name} was left out: {error}")
    if not together:
        raise NotUnderstood(unreadable)
    if len(wanted) > MOST_TOGETHER:
        notes.append(f"only the first {MOST_TOGETHER} of {len(wanted)} graphs are run; --graph chooses another one")
    found = together[0][1]
    dumped = f" dumped by torch {found.torch}" if found.torch else ""
    ops = sum(d.ops for _, d, _ in together)
    # the operations of an exported program are in its own file
    size = f", {ops} ops" if ops else ""
    detail = f"{held.what}{dumped}, {_counted(held.graphs)}{_which(wanted, held.graphs)}{size}"
    if len(held.graphs) > 1:
        notes.append(f"its graphs: {_listed(held.graphs)}; --graph chooses one")
    notes += _elsewhere(found, place.torch)
    if any(saved is None for _, _, saved in together):
        notes.append("its inputs were not saved: random ones of the same shapes are used")
    read = tuple(saved for _, _, saved in together if saved is not None)
    wrong = all(d.how.get("accuracy") for _, d, _ in together)
    text = dump.script(together, place.torch)
    whole = dump.script([(name, unused.returned(graph), saved) for name, graph, saved in together], place.torch)
    return Taken(held.taken_as, detail, text, tuple(notes), read, wrong, then=whole if whole != text else "")


def chosen(graphs: Sequence[DumpedGraph], wanted: str | None) -> list[DumpedGraph]:
    """The graphs to run: the one that is `wanted`, else the first that failed, else the first that did not end, else all."""
    if wanted is not None:
        return [graph for graph in graphs if wanted in (graph.name, graph.of)][-1:]
    failed = [graph for graph in graphs if graph.failed] or [graph for graph in graphs if graph.unfinished]
    return failed[:1] or list(graphs)


def _which(wanted: Sequence[DumpedGraph], graphs: Sequence[DumpedGraph]) -> str:
    if len(graphs) == 1 or len(wanted) != 1:
        return f": {graphs[0].failed}" if len(graphs) == 1 and graphs[0].failed else ""
    graph = wanted[0]
    said = f" ({graph.failed})" if graph.failed else ""
    return f": {graph.name} {graph.said}{said}"


def _counted(graphs: Sequence[DumpedGraph]) -> str:
    return "one graph" if len(graphs) == 1 else f"{len(graphs)} graphs"


def _listed(graphs: Sequence[DumpedGraph]) -> str:
    more = f" and {len(graphs) - MOST_LISTED} more" if len(graphs) > MOST_LISTED else ""
    return ", ".join(f"{graph.name} ({graph.said})" for graph in graphs[:MOST_LISTED]) + more


def _beside(found: dump.Dump, graph: DumpedGraph) -> Path | None:
    """Where the files of a dump are: the directory of its recorded inputs, or the file of its exported program. Raises NotUnderstood if the
    exported program is missing."""
    around = [graph.beside, graph.beside / "checkpoints", graph.beside.parent] if graph.beside else []
    if found.level == "aot_inductor":
        named = Path(found.program)
        places = [named, *(near / named.name for near in around), *(near / "exported_program.pt2" for near in around)]
        there = next((path for path in places if os.path.isfile(path)), None)
        if there is None:
            raise NotUnderstood(f"a script dumped by PyTorch that loads {named.name}, which is neither beside it nor where it was")
        return there.resolve()
    saved = found.how.get("save_dir")
    places = ([Path(saved)] if isinstance(saved, str) else []) + around
    return next((path.resolve() for path in places if os.path.isdir(path / _STORAGES)), None)


def _elsewhere(found: dump.Dump, torch: str) -> list[str]:
    """Notes on where it was dumped, if that differs from here."""
    notes = []
    if found.torch and torch and found.torch.partition("+")[0] != torch.partition("+")[0]:
        notes.append(f"it was dumped by torch {found.torch}, and here is torch {torch}: it may fail in another way, or not at all")
    if found.devices:
        notes.append(f"its tensors are on {', '.join(sorted(found.devices))}")
    return notes
