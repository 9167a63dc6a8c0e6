"""Pytest fixtures: those defined in the test's own file become plain function calls in the script."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Prepared:
    """What has to run before a test: the file's `text` with its fixtures as plain functions, the `statements` that call them, in order, and
    `values`, the variable that holds each fixture's value."""

    text: str
    statements: tuple[str, ...]
    values: dict[str, str]


class Fixtures:
    """The fixtures that are functions of the file `text`, parsed as `tree`.

    Asynchronous fixtures are left out, and so are those that need a fixture of another file or one of pytest's own. The exception is
    `request.param`, if the fixture lists its parameters.
    """

    def __init__(self, text: str, tree: ast.Module) -> None:
        self._text = text
        self._marks: dict[str, ast.expr] = {}
        self._functions: dict[str, ast.FunctionDef] = {}
        for function in (s for s in tree.body if isinstance(s, ast.FunctionDef)):
            mark = next((d for d in function.decorator_list if _is_fixture(d)), None)
            if mark is None or len(function.decorator_list) > 1 or not _asks_at_most_for_its_parameter(function, mark):
                continue
            name = _named(mark, "name")
            known = name.value if isinstance(name, ast.Constant) else function.name
            self._functions[str(known)], self._marks[str(known)] = function, mark
        self._taken = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)} | {
            s.name for s in tree.body if isinstance(s, ast.FunctionDef)
        }

    @property
    def automatic(self) -> tuple[str, ...]:
        """Names of the autouse fixtures that can be called."""
        wanted = (name for name, mark in self._marks.items() if isinstance(on := _named(mark, "autouse"), ast.Constant) and on.value)
        return tuple(name for name in wanted if self._order([name]) is not None)

    def needed_by(self, parameters: Iterable[str]) -> list[str]:
        """Those of a test's `parameters` that are fixtures of the file."""
        return [name for name in parameters if name in self._functions]

    def prepared(self, names: Iterable[str], case: str = "") -> Prepared | None:
        """The calls of the fixtures with these `names`, and of those that they need; None if one cannot be called. A fixture with
        parameters gets the one that is in the name of the `case`, else the first."""
        order = self._order(names)
        if order is None:
            return None
        lines = self._text.split("\n")
        values: dict[str, str] = {}
        statements: list[str] = []
        for name in order:
            function, mark = self._functions[name], self._marks[name]
            # blanked, not removed: a failure refers to the other lines by number
            for number in range(mark.lineno - 1, mark.end_lineno or mark.lineno):
                lines[number] = ""
            given = [f"{needed}={values[needed]}" for needed in self._needs(name)]
            if listed := _listed(mark):
                chosen = next((one for one in listed if _shown(one) in case.split("-")), listed[0])
                given.append(f"request=type('Request', (), {{'param': {ast.unparse(chosen)}}})")
            call = f"{function.name}({', '.join(given)})"
            values[name] = self._free(f"{name}_value")
            if _yields(function):
                # kept in a variable: an unreferenced generator is closed at once, which runs its teardown
                generator = self._free(f"{name}_fixture")
                statements.append(f"{generator} = {call}")
                call = f"next({generator})"
            statements.append(f"{values[name]} = {call}")
        return Prepared("\n".join(lines), tuple(statements), values)

    def _order(self, names: Iterable[str]) -> list[str] | None:
        """The fixtures with these names, each after those that it needs; None if one is unknown or needs itself."""
        order: list[str] = []

        def add(name: str, above: tuple[str, ...]) -> bool:
            if name in order:
                return True
            if name in above or name not in self._functions:
                return False
            if not all(add(needed, (*above, name)) for needed in self._needs(name)):
                return False
            order.append(name)
            return True

        return order if all(add(name, ()) for name in names) else None

    def _needs(self, name: str) -> list[str]:
        has_parameter = bool(_listed(self._marks[name]))
        return [needed for needed in _parameters(self._functions[name]) if not has_parameter or needed != "request"]

    def _free(self, name: str) -> str:
        while name in self._taken:
            name += "_"
        return name


def _is_fixture(decorator: ast.expr) -> bool:
    function = decorator.func if isinstance(decorator, ast.Call) else decorator
    return ast.unparse(function) in ("pytest.fixture", "fixture")


def _named(mark: ast.expr, name: str) -> ast.expr | None:
    """The decorator's keyword argument of that name."""
    return next((k.value for k in mark.keywords if k.arg == name), None) if isinstance(mark, ast.Call) else None


def _listed(mark: ast.expr) -> list[ast.expr]:
    """The `params` that the decorator of a fixture lists."""
    params = _named(mark, "params")
    return list(params.elts) if isinstance(params, (ast.List, ast.Tuple)) else []


def _shown(value: ast.expr) -> str:
    return str(value.value) if isinstance(value, ast.Constant) else ast.unparse(value)


def _asks_at_most_for_its_parameter(function: ast.FunctionDef, mark: ast.expr) -> bool:
    if _named(mark, "params") is None:
        return True
    asked = [node for node in ast.walk(function) if isinstance(node, ast.Name) and node.id == "request"]
    of_it = [node for node in ast.walk(function) if isinstance(node, ast.Attribute) and node.attr == "param" and node.value in asked]
    own = any(isinstance(one, ast.Starred) or ast.unparse(one).startswith("pytest.param(") for one in _listed(mark))
    return "request" in _parameters(function) and len(asked) == len(of_it) and bool(_listed(mark)) and not own


def _parameters(function: ast.FunctionDef) -> list[str]:
    given = function.args
    required = given.args[: len(given.args) - len(given.defaults)]
    return [argument.arg for argument in (*given.posonlyargs, *required)] + [
        argument.arg for argument, default in zip(given.kwonlyargs, given.kw_defaults, strict=True) if default is None
    ]


def _yields(function: ast.FunctionDef) -> bool:
    """Whether it is a generator. Functions nested in it do not count."""

    def own(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
        for node in nodes:
            if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
                yield node
                yield from own(ast.iter_child_nodes(node))

    return any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in own(function.body))
