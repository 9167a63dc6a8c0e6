"""Finds which sizes have to be dynamic, once static ones were refused.

If the script says `dynamic=True`, proposes marks instead: on every input dimension that the compiler had a symbol for, and if that is not
SAME, on each of these dimensions alone. Then makes as many single dimensions static as can go together, by halves. At the very end the
program with static sizes is asked once more; if it passes, a comment in the script says so. Cost: nothing if sizes are static already;
otherwise one query for the marks, one for each that stays, and two for the comment. The idea is a maintainer's first question about such a
report: which size, and does it pass with a static one?
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from bot.models.failure import Verdict
from bot.reduce.graph.edits import GraphEdit, apply
from bot.reduce.graph.form import Input, Program
from bot.reduce.graph.incumbent import Incumbent
from bot.reduce.graph.oracle import GraphOracle
from bot.reduce.graph.passes.recipe import static
from bot.reduce.graph.rewrite import map_inputs

_ORIGIN = "dynamic"
_MOST_ALONE = 8
_FIXED = 2  # the compiler specializes on smaller sizes, and marking them is an error

_Dimension = tuple[str, int]
"""An input's name, and one of its dimensions."""


def run(incumbent: Incumbent) -> bool:
    """Marks as few single dimensions of `incumbent` as possible as dynamic, instead of all sizes; returns whether anything changed."""
    start = incumbent.key
    if incumbent.program.recipe.dynamic:
        _mark(incumbent)
    if incumbent.program.recipe.dynamic is None:
        apply(incumbent, [_unmarked(place) for place in _places(incumbent.program)], _ORIGIN)
    return incumbent.key != start


def explain(incumbent: Incumbent, ends_well: Callable[[str], bool] = lambda _text: True) -> bool:
    """Adds a comment to the script of `incumbent` if it passes with static sizes. This is the last step, since each text is asked as it
    is.

    `ends_well`: whether a text that passes runs to its end, since the oracle may stop the compiler early.
    """
    program = incumbent.program
    fixed = static(program) if _is_dynamic(program) else None
    if fixed is None:
        return False
    candidate = incumbent.candidate_of(fixed, _ORIGIN)
    if incumbent.oracle.ask(candidate) is not Verdict.PASSES or not ends_well(candidate.text):
        return False
    return incumbent.offer(replace(program, static_passes=program.preamble), _ORIGIN, any_size=True)


def explained(
    program: Program, oracle: GraphOracle, render: Callable[[Program], str], ends_well: Callable[[str], bool] = lambda _text: True
) -> Program:
    """`program`, which is SAME, with a comment if it passes with static sizes; for a program whose preamble changed after its search.

    `oracle`, `render` and `ends_well` are those of the search.
    """
    incumbent = Incumbent(replace(program, static_passes=None), oracle, render)
    return incumbent.shown if explain(incumbent, ends_well) else replace(program, static_passes=None)


def _is_dynamic(program: Program) -> bool:
    # dynamic=False is printed instead of marks
    return program.recipe.dynamic or (program.recipe.dynamic is None and bool(_places(program)))


def _mark(incumbent: Incumbent) -> None:
    places = [place for place in _places(incumbent.program) if _size(incumbent.program, place) >= _FIXED]
    choices = [places, *([place] for place in places[:_MOST_ALONE] if len(places) > 1)]
    incumbent.offer_first([_marked(incumbent.program, chosen) for chosen in choices if chosen], _ORIGIN)


def _marked(program: Program, places: Iterable[_Dimension]) -> Program:
    """The program with only these dimensions dynamic."""
    return replace(_with_places(program, set(places)), recipe=replace(program.recipe, dynamic=None))


def _unmarked(place: _Dimension) -> GraphEdit:
    return lambda program: _with_places(program, set(_places(program)) - {place})


def _places(program: Program) -> list[_Dimension]:
    return [(item.name, dim) for item in program.graph.inputs if item.meta.is_tensor for dim in item.meta.dynamic]


def _size(program: Program, place: _Dimension) -> int:
    return next(item.meta.shape[place[1]] for item in program.graph.inputs if item.name == place[0])


def _with_places(program: Program, places: set[_Dimension]) -> Program:
    def change(item: Input) -> Input:
        return replace(item, meta=replace(item.meta, dynamic=tuple(dim for dim in item.meta.dynamic if (item.name, dim) in places)))

    return program.with_graph(map_inputs(program.graph, change))
