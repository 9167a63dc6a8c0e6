"""Says which sizes have to be dynamic, once static ones were refused.

Proposes, where the script says `dynamic=True`: marks in its stead, on every dimension of an input that the compiler had a symbol for;
if that is not SAME, on each of these dimensions alone. Then single dimensions that are plain numbers, all that can go together, by
halves. At the very end the program with static sizes is asked once more: if that passes, the script says so in a comment. Cost: nothing
where sizes are static already; else one query for the marks, one for each that stays, and two for the comment. The idea is what a
maintainer asks first of such a report: which size, and does it pass with a static one?
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from bot.models.failure import Verdict
from bot.reduce.graph.edits import Edit, apply
from bot.reduce.graph.form import Input, Program
from bot.reduce.graph.incumbent import Incumbent
from bot.reduce.graph.oracle import GraphOracle
from bot.reduce.graph.passes.recipe import static
from bot.reduce.graph.rewrite import map_inputs

_ORIGIN = "dynamic"
_MOST_ALONE = 8
_FIXED = 2  # smaller sizes are plain numbers to the compiler, and a mark on them is an error

Place = tuple[str, int]
"""An input's name, and one of its dimensions."""


def run(incumbent: Incumbent) -> bool:
    """Marks single dimensions of `incumbent` as dynamic instead of all sizes, as few as will do; says whether anything changed."""
    start = incumbent.key
    if incumbent.program.recipe.dynamic:
        _mark(incumbent)
    if incumbent.program.recipe.dynamic is None:
        apply(incumbent, [_unmarked(place) for place in _places(incumbent.program)], _ORIGIN)
    return incumbent.key != start


def explain(incumbent: Incumbent, ends_well: Callable[[str], bool] = lambda _text: True) -> bool:
    """Lets the script of `incumbent` say that it passes with static sizes, if it does; the last step, since each text is asked as it is.

    `ends_well`: whether a text that passes does so all the way, where the oracle leaves the compiler early.
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
    """`program`, which is SAME, saying whether it passes with static sizes: for one whose preamble changed after its search.

    `oracle`, `render` and `ends_well` are those of the search.
    """
    incumbent = Incumbent(replace(program, static_passes=None), oracle, render)
    return incumbent.shown if explain(incumbent, ends_well) else replace(program, static_passes=None)


def _is_dynamic(program: Program) -> bool:
    # dynamic=False is printed in place of the marks
    return program.recipe.dynamic or (program.recipe.dynamic is None and bool(_places(program)))


def _mark(incumbent: Incumbent) -> None:
    places = [place for place in _places(incumbent.program) if _size(incumbent.program, place) >= _FIXED]
    choices = [places, *([place] for place in places[:_MOST_ALONE] if len(places) > 1)]
    incumbent.offer_first([_marked(incumbent.program, chosen) for chosen in choices if chosen], _ORIGIN)


def _marked(program: Program, places: Iterable[Place]) -> Program:
    """The program with only these dimensions dynamic."""
    return replace(_with_places(program, set(places)), recipe=replace(program.recipe, dynamic=None))


def _unmarked(place: Place) -> Edit:
    return lambda program: _with_places(program, set(_places(program)) - {place})


def _places(program: Program) -> list[Place]:
    return [(item.name, dim) for item in program.graph.inputs if item.meta.is_tensor for dim in item.meta.dynamic]


def _size(program: Program, place: Place) -> int:
    return next(item.meta.shape[place[1]] for item in program.graph.inputs if item.name == place[0])


def _with_places(program: Program, places: set[Place]) -> Program:
    def change(item: Input) -> Input:
        return replace(item, meta=replace(item.meta, dynamic=tuple(dim for dim in item.meta.dynamic if (item.name, dim) in places)))

    return program.with_graph(map_inputs(program.graph, change))
