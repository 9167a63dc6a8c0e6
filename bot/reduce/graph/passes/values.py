"""Makes inputs from plain values.

Proposes, for each input made from recorded data (or a literal, or an expression): random normal numbers (integers: 0 and 1; an index: 0).
This is part of the batch, so it usually costs nothing extra. For each input that needs its data: ones, zeros, counting up, each infinity
or NaN of the recorded numbers everywhere, then those numbers written out if they are few: at most four queries, plus three if there are
infinities or NaNs. The idea: issues with attached data files get closed; special values have to be literals, and if they are all alike one
is enough.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bot.reduce.graph.edits import GraphEdit, on_input
from bot.reduce.graph.form import Input, Program, Value
from bot.reduce.graph.incumbent import Incumbent
from bot.reduce.graph.keep import fresh_value
from bot.reduce.graph.printer.expressions import number
from bot.reduce.graph.printer.tensors import nested, recorded
from bot.reduce.graph.rewrite import with_input

MOST_WRITTEN = 64
_PLAIN = ("randn", "rand", "zeros", "ones", "randint")
_SHORT = (*_PLAIN, "arange", "full")  # as plain to a reader


def edits(program: Program) -> list[GraphEdit]:
    """One edit for each input of `program` that is not made from plain values."""
    inputs = program.graph.sources
    return [on_input(i.name, _with_plain_value) for i in inputs if i.meta.is_tensor and i.value.kind not in _PLAIN]


def _with_plain_value(program: Program, item: Input) -> Input:
    return replace(item, value=plain_value(program, item))


def plain_value(program: Program, item: Input) -> Value:
    """Plain values with the dtype of `item` that its users in `program` can take."""
    users = [n for n in program.graph.nodes if item.name in n.uses()]
    return fresh_value(item.meta, "", users, varied=program.recipe.accuracy)


def run(incumbent: Incumbent) -> bool:
    """Simplifies the data of the inputs of `incumbent` that random numbers could not replace; returns whether anything changed."""
    start = incumbent.key
    for item in incumbent.program.graph.sources:
        if not item.meta.is_tensor or item.value.kind in _SHORT:
            continue
        values = [Value("ones"), Value("zeros"), Value("arange"), *_not_finite(item), written(item, item.meta.shape)]
        incumbent.offer_first([None if v is None else with_input(incumbent.program, replace(item, value=v)) for v in values], "values")
    return incumbent.key != start


def special(incumbent: Incumbent) -> None:
    """Fills an input of `incumbent` with an infinity or NaN that it holds, so that it is still there at the smallest size."""
    for item in incumbent.program.graph.sources:
        if item.meta.is_tensor and item.value.kind not in _SHORT:
            incumbent.offer_first([with_input(incumbent.program, replace(item, value=v)) for v in _not_finite(item)], "values")


def written(item: Input, shape: Sequence[int]) -> Value | None:
    """The corner of the given `shape` of the recorded data of `item`, as a literal; None if it is too long or not known."""
    if item.value.kind != "blob" or len(shape) != len(item.meta.shape) or math.prod(shape) > MOST_WRITTEN:
        return None
    data = _read(item)
    return None if data is None else Value("literal", (nested(data, item.meta.shape, shape, item.meta.dtype),))


def _not_finite(item: Input) -> list[Value]:
    """Each infinity and NaN in the recorded data of `item`, as the value of all elements."""
    data = (_read(item) if item.value.kind == "blob" else None) or []
    found = dict.fromkeys(number(one) for one in data if isinstance(one, float) and not math.isfinite(one))
    return [Value("full", (one,)) for one in found]


def _read(item: Input) -> list[Any] | None:
    try:
        data = recorded(item, Path(str(item.value.args[0])).read_bytes())
    except FileNotFoundError:
        return None
    return data if data is not None and len(data) == math.prod(item.meta.shape) and not item.meta.dtype.startswith("complex") else None
