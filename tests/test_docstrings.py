"""A public docstring names each parameter: who calls a function should not have to read it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MODULES = sorted((ROOT / "bot").rglob("*.py"))
Function = ast.FunctionDef | ast.AsyncFunctionDef


def public(body: list[ast.stmt], owner: str = "", above: str = "") -> Iterator[tuple[str, Function, str]]:
    """Public functions and methods with their docstring; of a method, the class's counts as well."""
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            own = ast.get_docstring(node) or ""
            yield from public(node.body, f"{node.name}.", own)
            for part in node.body:
                if isinstance(part, ast.FunctionDef) and part.name == "__init__":
                    yield f"{owner}{node.name}", part, f"{own}\n{ast.get_docstring(part) or ''}"
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and not node.name.startswith("_"):
            yield owner + node.name, node, f"{above}\n{ast.get_docstring(node) or ''}"


def parameters(function: Function) -> list[str]:
    given = function.args
    names = [argument.arg for argument in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return [name for name in names if name not in ("self", "cls") and not name.startswith("_")]


def unnamed(text: str) -> list[str]:
    """Each parameter that the docstring of its function leaves out, as `function: parameter`. A plural names it too."""
    return [
        f"{name}: {parameter}"
        for name, function, docstring in public(ast.parse(text).body)
        for parameter in parameters(function)
        # what implements a protocol may say where its parameters are described
        if not re.search(rf"\b{parameter}s?\b|See `[\w.]+`", docstring)
    ]


def test_the_modules_are_there() -> None:
    assert len(MODULES) > 100
    assert (
        sum(len(parameters(function)) for path in MODULES for _, function, _ in public(ast.parse(path.read_text(encoding="utf-8")).body))
        > 500
    )


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_each_parameter_is_named(path: Path) -> None:
    assert unnamed(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ('def f(a, *, b):\n    """Of `a`."""', ["f: b"]),
        ('def f(limit):\n    """Its limits."""', []),
        ('def f(limit):\n    """Its limitation."""', ["f: limit"]),
        ("def f(a): ...", ["f: a"]),
        ("def _f(a): ...", []),
        ('class C:\n    """A thing."""\n    def m(self, a):\n        """Does it."""', ["C.m: a"]),
        ('class C:\n    """A thing of `a`."""\n    def __init__(self, a, b): ...', ["C: b"]),
        ("class _C:\n    def m(self, a): ...", []),
    ],
)
def test_what_is_missing_is_seen(text: str, missing: list[str]) -> None:
    assert unnamed(text) == missing
