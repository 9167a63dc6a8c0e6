"""What a dumped graph computes but does not use.

Inductor compiles a graph as it is dumped, unused operations included: constant folding leaves some. If one of them is what fails, a script
that traces the graph again does not contain it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection
from dataclasses import replace

from bot.engine.inputs.dump import Dump

# An operation that writes to its input returns it.
_WRITES = re.compile(r"_(?:\.\w+)?\Z")


def returned(found: Dump) -> Dump:
    """The graph in `found` that also returns what it computes but does not use; unchanged if there is no such thing."""
    return replace(found, body=tuple(_returned(source) if source.startswith("class Repro") else source for source in found.body))


def _returned(source: str) -> str:
    tree = ast.parse(source)
    changed = False
    for function in (f for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) and f.name == "forward"):
        last = function.body[-1]
        taken = {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
        names = [name for statement in function.body if (name := _computed(statement)) and name not in taken]
        if names and isinstance(last, ast.Return) and isinstance(last.value, (ast.Tuple, ast.List)):
            last.value.elts += [ast.Name(name, ast.Load()) for name in names]
            function.body = [statement for statement in function.body if not _forgets(statement, names)]
            changed = True
    return ast.unparse(tree) if changed else source


def _forgets(statement: ast.stmt, names: Collection[str]) -> bool:
    """Whether a statement is the `name = None` that PyTorch writes after the last use of a name."""
    if not isinstance(statement, ast.Assign) or ast.unparse(statement.value) != "None":
        return False
    return any(isinstance(target, ast.Name) and target.id in names for target in statement.targets)


def _computed(statement: ast.stmt) -> str:
    """The name of what a statement computes by an operation that does nothing else."""
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name) and isinstance(statement.value, ast.Call):
        return "" if _WRITES.search(ast.unparse(statement.value.func)) else statement.targets[0].id
    return ""
