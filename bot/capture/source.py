"""The program as one text: the user's script, or a script that calls the failing test."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bot.capture.modules import read_source
from bot.capture.run import Target

_CODING = re.compile(r"^[ \t\f]*#.*?coding[:=][ \t]*[-\w.]+.*$", re.M)
_NODE_ID = re.compile(r"(?P<file>[^:\[]+\.py)(?:::(?P<names>[\w:]+?))?(?:\[(?P<case>.*)\])?$", re.S)
# Rows of a `range` that are looked at.
_MOST_ROWS = 1000


@dataclass(frozen=True)
class Source:
    """A script's text, and the file that most of it comes from."""

    text: str
    file: Path

    @property
    def name(self) -> str:
        """What tracebacks call the file."""
        return self.file.name


def source_of(target: Target, directory: Path) -> Source | None:
    """The script's text; for `pytest FILE::TEST` the file's with a call of the test at its end.

    None where the command runs something else, or the test takes more than its own parameters (a fixture).
    """
    if target.script is not None:
        return Source(_text(target.script), target.script)
    if target.module != "pytest":
        return None
    ids = [m for m in map(_NODE_ID.match, target.argv) if m and (directory / m["file"]).is_file()]
    if len(ids) != 1 or not ids[0]["names"]:
        return None
    file = directory / ids[0]["file"]
    text = _text(file)
    try:
        call = _Call(ast.parse(text)).of(ids[0]["names"].split("::"), ids[0]["case"])
    except SyntaxError:
        return None
    return Source(f"{text.rstrip()}\n\n\n{call}\n", file) if call else None


def _text(file: Path) -> str:
    try:
        text = read_source(file)
    except (UnicodeError, SyntaxError):
        return file.read_text(encoding="utf-8", errors="replace")
    # candidates are written as UTF-8, whatever this one was
    head, rest = text.split("\n", 2)[:2], text.split("\n", 2)[2:]
    return "\n".join([_CODING.sub("#", line) for line in head] + rest)


class _Call:
    """Finds a test in a file and writes the statement that runs it."""

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.constants = {
            target.id: statement.value
            for statement in tree.body
            if isinstance(statement, ast.Assign)
            for target in statement.targets
            if isinstance(target, ast.Name)
        }

    def of(self, names: list[str], case: str | None) -> str | None:
        body: list[ast.stmt] = self.tree.body
        classes: list[ast.ClassDef] = []
        for name in names[:-1]:
            found = next((s for s in body if isinstance(s, ast.ClassDef) and s.name == name), None)
            if found is None:
                return None
            classes.append(found)
            body = found.body
        test = next((s for s in body if isinstance(s, ast.FunctionDef) and s.name == names[-1]), None)
        if len(classes) == 1 and test is not None and any("TestCase" in ast.unparse(base) for base in classes[0].bases):
            # debug() runs the test with what sets it up and takes it down, and lets its error through
            return f"{classes[0].name}({names[-1]!r}).debug()"
        if test is None or test.args.vararg or test.args.kwonlyargs:
            return None
        parameters = [argument.arg for argument in test.args.args][1 if classes else 0 :]
        values = self._values(test, classes, parameters, case)
        if values is None:
            return None
        owner = ".".join(c.name for c in classes) + "()." if classes else ""
        return f"{owner}{names[-1]}({', '.join(f'{name}={value}' for name, value in values.items())})"

    def _values(self, test: ast.FunctionDef, classes: list[ast.ClassDef], parameters: list[str], case: str | None) -> dict[str, str] | None:
        """The parameters' values as code, by the marks whose values make up the case's name; the first ones where none is named.
        None where one has another source."""
        if not parameters:
            return {}
        marks = list(self._parametrized([*test.decorator_list, *(d for c in reversed(classes) for d in c.decorator_list)]))

        def search(left: list[tuple[list[str], list[ast.expr]]], name: str | None, values: dict[str, str]) -> dict[str, str] | None:
            if not left:
                return values if not name and set(values) == set(parameters) else None
            names, rows = left[0]
            for row in rows:
                items = self._items(row, len(names))
                if len(items) != len(names):
                    continue
                shown = "-".join(map(_shown, items))
                if name is None or name == shown or name.startswith(shown + "-"):
                    rest = None if name is None else name[len(shown) + 1 :]
                    found = search(left[1:], rest, {**values, **dict(zip(names, map(ast.unparse, items), strict=True))})
                    if found is not None:
                        return found
            return None

        return search(marks, case, {})

    def _items(self, row: ast.expr, count: int) -> list[ast.expr]:
        if isinstance(row, ast.Call) and ast.unparse(row.func).endswith("param"):
            return list(row.args)
        return list(row.elts) if count > 1 and isinstance(row, (ast.Tuple, ast.List)) else [row]

    def _parametrized(self, decorators: list[ast.expr]) -> Iterator[tuple[list[str], list[ast.expr]]]:
        """Names and rows of each `pytest.mark.parametrize`, the innermost first, as pytest names its cases."""
        for mark in reversed(decorators):
            if not (isinstance(mark, ast.Call) and ast.unparse(mark.func).endswith("parametrize") and len(mark.args) >= 2):
                continue
            names, rows = mark.args[0], mark.args[1]
            if isinstance(names, ast.Constant) and isinstance(names.value, str):
                listed = [name.strip() for name in names.value.split(",")]
            elif isinstance(names, (ast.Tuple, ast.List)):
                listed = [item.value for item in names.elts if isinstance(item, ast.Constant) and isinstance(item.value, str)]
            else:
                continue
            if isinstance(rows, ast.Name):
                rows = self.constants.get(rows.id, rows)
            if isinstance(rows, ast.Call) and ast.unparse(rows.func) == "range" and all(isinstance(a, ast.Constant) for a in rows.args):
                bounds = [a.value for a in rows.args if isinstance(a, ast.Constant) and isinstance(a.value, int)]
                yield listed, [ast.Constant(number) for number in list(range(*bounds))[:_MOST_ROWS]]
            elif isinstance(rows, (ast.Tuple, ast.List)):
                yield listed, list(rows.elts)


def _shown(value: ast.expr) -> str:
    """What pytest calls a value in a case's name."""
    if isinstance(value, ast.Constant):
        return str(value.value)
    if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub):
        return f"-{_shown(value.operand)}"
    # functions, classes and dtypes go by their own name
    return ast.unparse(value).rpartition(".")[2] if isinstance(value, ast.Name) else ast.unparse(value)
