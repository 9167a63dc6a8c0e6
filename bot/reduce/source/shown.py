"""Protects what a program measures and shows in the message of its own failure.

`differs by {(ref - got).abs().max()}` is a sentence about the failure, and whoever runs the repro reads it. `{ref.max()}` in its place is
shorter, fails in the same way, and makes the sentence false. So a measure may no longer be shown, but there is none that was not there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from bot.reduce.source.kept import Keeps
from bot.reduce.source.text.names import last_name

_SAYING = frozenset({"exit", "_exit", "quit", "fail"})
# Functions that make a number of what they get, by which it is judged.
_NUMBERS = "abs max min amax amin mean sum norm std var numel len count_nonzero any all argmax argmin"
_MEASURES = frozenset(_NUMBERS.split())
_PASS = _MEASURES | {"float", "int", "round", "str", "repr"}
# How many times in a row a name is replaced by its only value.
_DEPTH = 3
_Values = Mapping[str, ast.expr]
_Measure = frozenset[str]


def keeps_shown(text: str) -> Keeps:
    """A check whether the messages with which a candidate raises, exits or fails an assertion show only measures that one of `text` shows.

    A measure is a difference, a quotient, or a function like `max`; what is measured may be written in another way. Raises SyntaxError if
    `text` is not Python.
    """
    said = list(_messages(ast.parse(text)))
    if not any(measure for message in said for measure in message):
        return lambda _text: True

    def keeps(candidate: str) -> bool:
        try:
            there = list(_messages(ast.parse(candidate)))
        except SyntaxError:
            return False
        return all(any(_is_part(message, other) for other in said) for message in there)

    return keeps


def _is_part(message: list[_Measure], other: list[_Measure]) -> bool:
    """Whether each measure in a message stands in another one, in the same order."""
    left = iter(other)
    return all(any(measure == one for one in left) for measure in message)


def _messages(tree: ast.Module) -> Iterator[list[_Measure]]:
    """What each message of a failure shows: for each value in it the operations that make it."""
    values = _values(tree)
    for node in ast.walk(tree):
        said: list[ast.expr] = []
        if isinstance(node, ast.Assert) and node.msg is not None:
            said = [node.msg]
        elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            said = node.exc.args
        elif isinstance(node, ast.Call) and last_name(node.func) in _SAYING:
            said = node.args
        shown = [_measure(value, values) for one in said for value in _shown(one)]
        yield [measure for measure in shown if measure]


def _shown(node: ast.expr) -> Iterator[ast.expr]:
    """The values in a message, in order."""
    if isinstance(node, ast.JoinedStr):
        yield from (part.value for part in node.values if isinstance(part, ast.FormattedValue))
    elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mod, ast.Add)) and _is_text(node.left):
        yield from (*_shown(node.left), *_shown(node.right))
    elif isinstance(node, (ast.Tuple, ast.List)):
        for element in node.elts:
            yield from _shown(element)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        yield from (*node.args, *(word.value for word in node.keywords))
    elif not isinstance(node, ast.Constant):
        yield node


def _is_text(node: ast.expr) -> bool:
    while isinstance(node, ast.BinOp):
        node = node.left
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _values(tree: ast.Module) -> _Values:
    """The values of names that are assigned once."""
    found: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, []).append(node.value)
    return {name: values[0] for name, values in found.items() if len(values) == 1}


def _measure(node: ast.expr, values: _Values, depth: int = _DEPTH) -> _Measure:
    """The operations that measure something in an expression."""
    if isinstance(node, ast.Name):
        return _measure(values[node.id], values, depth - 1) if depth and node.id in values else frozenset()
    if isinstance(node, ast.Call):
        name = last_name(node.func)
        # what another function is given says nothing of what it returns
        inner = [*([node.func.value] if isinstance(node.func, ast.Attribute) else []), *(node.args if name in _PASS else [])]
        here = frozenset({name} & _MEASURES)
        return here.union(*(_measure(one, values, depth) for one in inner))
    if isinstance(node, ast.BinOp):
        sides = (_measure(node.left, values, depth), _measure(node.right, values, depth))
        here = frozenset({type(node.op).__name__}) if isinstance(node.op, (ast.Sub, ast.Div)) else frozenset()
        return here.union(*sides)
    return frozenset().union(*(_measure(one, values, depth) for one in ast.iter_child_nodes(node) if isinstance(one, ast.expr)))
