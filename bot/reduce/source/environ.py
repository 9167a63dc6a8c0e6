"""A script that sets the environment variables and arguments itself which its caller gave it before, or stands for one rank of several."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from bot.reduce.source.text.normal_form import parsed

# What the program asks for itself it has by then.
_GROUP = (
    "from torch import distributed",
    "from torch.testing._internal.distributed.fake_pg import FakeStore",
    'distributed.init_process_group("fake", rank={}, world_size={}, store=FakeStore())',
    "distributed.init_process_group = lambda *args, **kwargs: None",
)


def with_surroundings(
    text: str, lines: Sequence[int], variables: Mapping[str, str], arguments: Sequence[str] = (), rank: tuple[int, int] | None = None
) -> tuple[str, tuple[int, ...]]:
    """The script `text` with these variables and its arguments set at its top, and where `lines` (1-based) of it are then. With a `rank`,
    and how many there are, its process group is one that needs no other process.

    As it is where there are none, or where it is not Python.
    """
    if rank is not None:
        own, world = map(str, rank)
        variables = {**variables, "RANK": own, "LOCAL_RANK": own, "WORLD_SIZE": world, "LOCAL_WORLD_SIZE": world}
    if not variables and not arguments:
        return text, tuple(lines)
    try:
        place = _top(parsed(text))
    except SyntaxError:
        return text, tuple(lines)
    added = [f"os.environ[{_quoted(name)}] = {_quoted(value)}" for name, value in variables.items()]
    added = ["import os", *added] if added else []
    if arguments:
        added += ["import sys", f"sys.argv[1:] = [{', '.join(map(_quoted, arguments))}]"]
    added += [line.format(*rank) for line in _GROUP] if rank is not None else []
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
