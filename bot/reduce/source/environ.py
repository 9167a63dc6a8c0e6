"""Makes a script set the environment variables and arguments that its caller set, or act as one rank of several."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bot.reduce.source.text.normal_form import parsed

# Seconds that a rank waits for the other. Every candidate in which the other rank never comes costs this much.
_PATIENCE = 20
_IMPORT = "from torch import distributed"
# The group exists already, so the program's own call does nothing.
_HAS_GROUP = "distributed.init_process_group = lambda *args, **kwargs: None"


@dataclass(frozen=True)
class Rank:
    """One process of a distributed program: its number, and the size of the group that the script makes.

    `alone`: the other processes are not needed, since the group is fake and returns this rank's own data.
    """

    number: int
    world: int
    alone: bool = True

    def forms(self) -> Iterator[Rank]:
        """This rank alone, then as one of two that communicate."""
        yield self
        if self.world > 1:
            yield Rank(min(self.number, 1), 2, alone=False)

    def statements(self) -> list[str]:
        """The statements that make its group and set its rank in the environment, where programs look for it."""
        size = f'WORLD_SIZE="{self.world}", LOCAL_WORLD_SIZE="{self.world}"'
        if self.alone:
            return [
                "import os",
                _IMPORT,
                "from torch.testing._internal.distributed.fake_pg import FakeStore",
                f'os.environ.update(RANK="{self.number}", LOCAL_RANK="{self.number}", {size})',
                f'distributed.init_process_group("fake", rank={self.number}, world_size={self.world}, store=FakeStore())',
                _HAS_GROUP,
            ]
        return [
            "import os",
            "import sys",
            "import tempfile",
            "from datetime import timedelta",
            _IMPORT,
            f'rank, store = {self.number}, f"file://{{tempfile.mkdtemp()}}/store"',
            "if os.fork() == 0:",
            # the other rank's own failure must not appear in the output
            f'    rank, sys.stderr = {1 - self.number}, open(os.devnull, "w")',
            f"os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), {size})",
            f'distributed.init_process_group("gloo", init_method=store, timeout=timedelta(seconds={_PATIENCE}), rank=rank, world_size=2)',
            _HAS_GROUP,
        ]


def with_surroundings(
    text: str, lines: Sequence[int], variables: Mapping[str, str], arguments: Sequence[str] = (), rank: Rank | None = None
) -> tuple[str, tuple[int, ...]]:
    """The script `text` with these environment `variables` and its `arguments` set at the top, and the new positions of its `lines`
    (1-based). With a `rank` it also makes its own process group.

    Unchanged if there is nothing to set, or if it is not Python.
    """
    if not variables and not arguments and rank is None:
        return text, tuple(lines)
    try:
        place = top(parsed(text))
    except SyntaxError:
        return text, tuple(lines)
    added = [f"os.environ[{_quoted(name)}] = {_quoted(value)}" for name, value in variables.items()]
    added = ["import os", *added] if added else []
    if arguments:
        added += ["import sys", f"sys.argv[1:] = [{', '.join(map(_quoted, arguments))}]"]
    added += rank.statements() if rank is not None else []
    rows = text.split("\n")
    moved = tuple(number if number <= place else number + len(added) for number in lines)
    return "\n".join([*rows[:place], *added, *rows[place:]]), moved


def top(tree: ast.Module) -> int:
    """Number of lines of the script `tree` before the first place for a new statement: after the docstring and `__future__` imports."""
    place = 0
    for number, statement in enumerate(tree.body):
        docstring = number == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if not docstring and not (isinstance(statement, ast.ImportFrom) and statement.module == "__future__"):
            break
        place = statement.end_lineno or place
    return place


def _quoted(value: str) -> str:
    return f'"{value}"' if repr(value) == f"'{value}'" and '"' not in value else repr(value)
