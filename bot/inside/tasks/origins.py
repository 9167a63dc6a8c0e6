"""Which values of a script went into code that a C++ or Triton compiler rejected."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable
from typing import Any

from .. import blame, early_exit
from ..eager.lifetimes import assigned
from ..program import run_as_main
from ..protocol import RETURNED, Facts, Question
from ..shortcuts import shortcut


def origins(path: str, question: Question) -> Facts:
    """Facts for a `question` about the script at `path`, with `guesses`: lists of names of values, the shortest first; `return` for the
    returned expression."""
    watch = blame.Blame(_values_at(path))
    watch.install()
    early_exit.stop_after(question.stop_after)
    facts = run_as_main(path, question.argv)
    guesses: list[list[str]] = []
    with shortcut("reading an error"):  # how it failed is what counts
        guesses = watch.guesses(facts.get("text", ""))
    return {**facts, "guesses": guesses}


def _values_at(path: str) -> Callable[[Iterable[Any]], frozenset[str]]:
    """A function that returns the values of the script at `path` that graph nodes come from, according to the source lines of the nodes."""
    frame, names = re.compile(r'File "' + re.escape(path) + r'", line (\d+)'), _names_of(path)

    def values(nodes: Iterable[Any]) -> frozenset[str]:
        lines: set[int] = set()
        for node in nodes:
            named = frame.findall(node.meta.get("stack_trace") or "")
            lines.update(int(line) for line in named[-1:])
        return frozenset(names[line] for line in lines if line in names)

    return values


def _names_of(path: str) -> dict[int, str]:
    """For each line of the script's functions, the name that its statement binds."""
    with open(path, encoding="utf-8") as file:
        tree = ast.parse(file.read())
    found: dict[int, str] = {}
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        for statement in function.body:
            name = RETURNED if isinstance(statement, ast.Return) else assigned(statement)
            if name is not None:
                for line in range(statement.lineno, (statement.end_lineno or statement.lineno) + 1):
                    found[line] = name
    return found
