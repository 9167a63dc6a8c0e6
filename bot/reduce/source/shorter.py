"""Shortens expressions that contain what a preamble itself defines."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from bot.reduce.source.text.blocks import FUNCTIONS
from bot.reduce.source.text.repair import replaced
from bot.reduce.source.text.splice import calls, spliced


def own_names(preamble: str) -> list[str]:
    """The classes and functions that a `preamble` (Python text) defines at its top level, sorted."""
    return sorted({node.name for node in ast.parse(preamble).body if isinstance(node, (ast.ClassDef, *FUNCTIONS))})


def shorter_calls(code: str, own: Sequence[str]) -> list[str]:
    """Variants of `code` in which a call of one of its `own` functions or classes is replaced by one of its arguments, or loses one.

    `Chain(A(), B())` gives `A()`, `B()`, `Chain(B())` and `Chain(A())`. Plain values stay: they may be what is wrong.
    """
    tree, found = ast.parse(code), []
    for call in [call for name in own for call in calls(tree, name)]:
        given = [argument for argument in (*call.args, *(k.value for k in call.keywords)) if isinstance(argument, (ast.Call, ast.Name))]
        without = [
            ast.Call(call.func, [a for a in call.args if a is not argument], [k for k in call.keywords if k.value is not argument])
            for argument in given
        ]
        found += [spliced(code, [(call, ast.unparse(one))]) for one in (*given, *without)]
    return found


def with_shorter_calls(preamble: str) -> list[str]:
    """Variants of the `preamble` in which a top-level call of its own definitions is shorter."""
    own = own_names(preamble)
    return [
        replaced(preamble, {statement: shorter})
        for statement in ast.parse(preamble).body
        if not isinstance(statement, (ast.ClassDef, *FUNCTIONS))
        for shorter in shorter_calls(ast.unparse(statement), own)
    ]


def with_fewer_alternatives(preamble: str) -> list[str]:
    """Variants of the `preamble` without one alternative of a condition that calls a function of the preamble: `if a and (b or f()):`
    gives `if a and b:`. Such a condition holds less often, so what fails under it fails under the whole one too."""
    own = own_names(preamble)
    tests = [node.test for node in ast.walk(ast.parse(preamble)) if isinstance(node, (ast.If, ast.While))]
    return [spliced(preamble, [(test, ast.unparse(shorter))]) for test in tests for shorter in _fewer(test, own)]


def _fewer(test: ast.expr, own: Sequence[str]) -> Iterator[ast.expr]:
    """The condition without one alternative; nothing below a `not` counts as one."""
    if not isinstance(test, ast.BoolOp):
        return
    for i, value in enumerate(test.values):
        before, after = test.values[:i], test.values[i + 1 :]
        if isinstance(test.op, ast.Or) and any(calls(value, name) for name in own):
            rest = [*before, *after]
            yield ast.BoolOp(test.op, rest) if len(rest) > 1 else rest[0]
        for shorter in _fewer(value, own):
            yield ast.BoolOp(test.op, [*before, shorter, *after])
