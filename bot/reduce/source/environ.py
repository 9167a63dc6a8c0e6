"""A script that sets environment variables itself which its caller set before."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence


def with_variables(text: str, lines: Sequence[int], variables: Mapping[str, str]) -> tuple[str, tuple[int, ...]]:
    """The script with these variables set at its top, and where `lines` (1-based) of it are then.

    As it is where there are none, or where it is not Python.
    """
    if not variables:
        return text, tuple(lines)
    try:
        place = _top(ast.parse(text))
    except (SyntaxError, ValueError):
        return text, tuple(lines)
    added = ["import os", *(f"os.environ[{_quoted(name)}] = {_quoted(value)}" for name, value in variables.items())]
    rows = text.split("\n")
    moved = tuple(number if number <= place else number + len(added) for number in lines)
    return "\n".join([*rows[:place], *added, *rows[place:]]), moved


def _top(tree: ast.Module) -> int:
    """The number of lines before the first that may hold a statement: behind the docstring and imports from `__future__`."""
    place = 0
    for number, statement in enumerate(tree.body):
        docstring = number == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if not docstring and not (isinstance(statement, ast.ImportFrom) and statement.module == "__future__"):
            break
        place = statement.end_lineno or place
    return place


def _quoted(value: str) -> str:
    return f'"{value}"' if repr(value) == f"'{value}'" and '"' not in value else repr(value)
