"""Straight-line programs: chains and mixed graphs of a given number of operations, the same for the same seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Union

SIDE = 8
NEAR = 8  # operands are taken from this many values before
MOST = 100.0  # magnitudes stay below this: a graph of infinities would show nothing about accuracy

Shape = tuple[int, ...]
SQUARE, FLAT, COLUMN = (SIDE, SIDE), (SIDE * SIDE,), (SIDE, 1)


@dataclass(frozen=True)
class Value:
    """A variable of the program, and a bound of its magnitude."""

    name: str
    shape: Shape
    bound: float


# an expression with {} for the operand, the shape it gives (None: the operand's), its bound from the operand's
Step = tuple[str, Union[Shape, None], Callable[[float], float]]

CALM: Sequence[Step] = tuple((f"torch.{name}({{}})", None, lambda _: 1.0) for name in ("sin", "cos", "tanh", "sigmoid"))
LINEAR: Sequence[Step] = (
    ("torch.neg({})", None, lambda bound: bound),
    ("torch.abs({})", None, lambda bound: bound),
    ("{} + 0.5", None, lambda bound: bound + 0.5),
    ("{} * 1.5", None, lambda bound: bound * 1.5),
)
RESHAPES: Mapping[Shape, Sequence[Step]] = {
    SQUARE: (
        (f"{{}}.view({SIDE * SIDE})", FLAT, lambda bound: bound),
        ("{}.t().contiguous()", None, lambda bound: bound),
        (f"{{}}.reshape(4, {SIDE * 2}).reshape({SIDE}, {SIDE})", None, lambda bound: bound),
    ),
    FLAT: ((f"{{}}.view({SIDE}, {SIDE})", SQUARE, lambda bound: bound),),
    COLUMN: ((f"{{}}.expand({SIDE}, {SIDE}).contiguous()", SQUARE, lambda bound: bound),),
}
REDUCTIONS: Sequence[Step] = (
    ("{}.mean(1, keepdim=True)", COLUMN, lambda bound: bound),
    ("{}.sum(1, keepdim=True)", COLUMN, lambda bound: bound * SIDE),
    ("{}.amax(1, keepdim=True)", COLUMN, lambda bound: bound),
)
BINARY: Sequence[tuple[str, Callable[[float, float], float]]] = (
    ("torch.add", lambda a, b: a + b),
    ("torch.sub", lambda a, b: a + b),
    ("torch.mul", lambda a, b: a * b),
    ("torch.maximum", max),
)
# needed operations that are more than one call; the others are `torch.NAME(operand)`
SPECIAL = {
    "fractional_max_pool2d": (
        f"{{}} + torch.nn.functional.fractional_max_pool2d({{}}.reshape(1, {SIDE}, -1).repeat(1, 1, 8), 0,"
        " output_size=(2, 3), _random_samples=samples).mean()"
    ),
}


def marked(names: Sequence[str], n: int, rng: random.Random) -> dict[int, str]:
    """At which of the n operations the needed ones stand."""
    return dict(zip(sorted(rng.sample(range(n), len(names))), names, strict=True))


def _needed(name: str, operand: str) -> str:
    return SPECIAL[name].replace("{}", operand) if name in SPECIAL else f"torch.{name}({operand})"


def chain(n: int, needed: Sequence[str], rng: random.Random) -> list[str]:
    """The lines of a function body of one argument x: each operation takes the one before."""
    places, lines, bound, last = marked(needed, n, rng), [], 3.0, "x"
    for i in range(n):
        if i in places:
            expression, bound = _needed(places[i], last), bound + 3
        else:
            expression, _, grow = rng.choice((*CALM, *LINEAR))
            if grow(bound) > MOST:
                expression, _, grow = CALM[2]
            expression, bound = expression.format(last), grow(bound)
        last = f"v{i}"
        lines.append(f"{last} = {expression}")
    return [*lines, f"return {last}"]


def mixed(n: int, needed: Sequence[str], rng: random.Random) -> list[str]:
    """The lines of a function body of two arguments x and y: pointwise operations, products, reshapes and reductions."""
    places, lines = marked(needed, n, rng), []
    values = [Value("x", SQUARE, 3.0), Value("y", SQUARE, 3.0)]
    used: set[str] = set()
    for i in range(n):
        near = values[-NEAR:]
        first = rng.choice(near)
        operands = [first]
        if i in places:
            expression, shape, bound = _needed(places[i], first.name), first.shape, first.bound + 3
        else:
            expression, shape, bound, operands = _step(first, near, rng)
        if bound > MOST:
            operands, shape, bound = [first], first.shape, 1.0
            expression = f"torch.tanh({first.name})"
        used |= {operand.name for operand in operands}
        values.append(Value(f"v{i}", shape, bound))
        lines.append(f"v{i} = {expression}")
    ends = [value.name for value in values[2:] if value.name not in used]
    return [*lines, f"return {', '.join(ends)}"]


def _step(first: Value, near: Sequence[Value], rng: random.Random) -> tuple[str, Shape, float, list[Value]]:
    """One operation on `first`: expression, shape, bound, operands."""
    sort = rng.random()
    if sort < 0.30:
        # whoever can be broadcast against it: the same shape, or a column against a square
        fits = [v for v in near if v.shape == first.shape or {v.shape, first.shape} == {SQUARE, COLUMN}]
        second = rng.choice(fits)
        name, grow = rng.choice(BINARY)
        shape = SQUARE if SQUARE in (first.shape, second.shape) else first.shape
        return f"{name}({first.name}, {second.name})", shape, grow(first.bound, second.bound), [first, second]
    if sort < 0.42 and first.shape == SQUARE:
        second = rng.choice([v for v in near if v.shape in (SQUARE, COLUMN)])
        bound = first.bound * second.bound * SIDE
        return f"torch.mm({first.name}, {second.name})", second.shape, bound, [first, second]
    if sort < 0.56:
        text, given, grown = rng.choice(RESHAPES[first.shape])
    elif sort < 0.64 and first.shape == SQUARE:
        text, given, grown = rng.choice(REDUCTIONS)
    else:
        text, given, grown = rng.choice((*CALM, *LINEAR))
    return text.format(first.name), given or first.shape, grown(first.bound), [first]
