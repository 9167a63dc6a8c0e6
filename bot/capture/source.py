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
        call = _call(ast.parse(text), ids[0]["names"].split("::"), ids[0]["case"])
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


def _call(tree: ast.Module, names: list[str], case: str | None) -> str | None:
    """The statement that runs the test."""
    body: list[ast.stmt] = tree.body
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
    values = _case(test, classes, parameters, case)
    if values is None:
        return None
    owner = ".".join(c.name for c in classes) + "()." if classes else ""
    return f"{owner}{names[-1]}({', '.join(f'{name}={value}' for name, value in values.items())})"


def _case(test: ast.FunctionDef, classes: list[ast.ClassDef], parameters: list[str], case: str | None) -> dict[str, str] | None:
    """The parameters' values as code, by the marks whose values make up the case's name; None where one has another source."""
    if not parameters:
        return {}
    marks = list(_parametrized([*test.decorator_list, *(d for c in reversed(classes) for d in c.decorator_list)]))

    def search(left: list[tuple[list[str], list[ast.expr]]], name: str, values: dict[str, str]) -> dict[str, str] | None:
        if not left:
            return values if name == "" and set(values) == set(parameters) else None
        names, rows = left[0]
        for row in rows:
            items = list(row.elts) if len(names) > 1 and isinstance(row, (ast.Tuple, ast.List)) else [row]
            if len(items) != len(names):
                continue
            shown = "-".join(map(_shown, items))
            if name == shown or name.startswith(shown + "-"):
                found = search(left[1:], name[len(shown) + 1 :], {**values, **dict(zip(names, map(ast.unparse, items), strict=True))})
                if found is not None:
                    return found
        return None

    return search(marks, case or "", {})


def _parametrized(decorators: list[ast.expr]) -> Iterator[tuple[list[str], list[ast.expr]]]:
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
        if isinstance(rows, (ast.Tuple, ast.List)):
            yield listed, list(rows.elts)


def _shown(value: ast.expr) -> str:
    """What pytest calls a value in a case's name."""
    if isinstance(value, ast.Constant):
        return str(value.value)
    if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub):
        return f"-{_shown(value.operand)}"
    # functions, classes and dtypes go by their own name
    return ast.unparse(value).rpartition(".")[2] if isinstance(value, ast.Name) else ast.unparse(value)
