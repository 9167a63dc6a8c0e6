"""Embeds the content of files that a script reads, so that a repro stands alone."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from bot.reduce.source.environ import top
from bot.reduce.source.text.normal_form import legal, parsed
from bot.reduce.source.text.splice import spliced

# Methods of a path that return the content of a file.
_READS: dict[str, Callable[[str], str]] = {"read_text": repr, "read_bytes": lambda content: repr(content.encode())}


def with_content(text: str, line: int, content: str) -> Iterator[str]:
    """The script `text` with the `content` of a file in place of each call in its `line` (from 1) that may read it, the innermost first.

    `path.read_text()` becomes the content itself; `open(path)`, or a path that is passed on, becomes a file object to read it from. Yields
    nothing if `text` is not Python.
    """
    try:
        tree = parsed(text)
    except SyntaxError:
        return
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and n.lineno <= line <= (n.end_lineno or n.lineno)]
    for call in sorted(calls, key=lambda n: len(ast.unparse(n))):
        for changed, code in _instead(call, content):
            made = spliced(text, [(changed, code)])
            found = _importing_io(made) if code.startswith("io.") else made
            if legal(found):
                yield found


def _instead(call: ast.Call, content: str) -> Iterator[tuple[ast.expr, str]]:
    """The parts of the call that may be replaced, each with its replacement."""
    name = call.func.id if isinstance(call.func, ast.Name) else call.func.attr if isinstance(call.func, ast.Attribute) else ""
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    if name == "open":
        modes = {one.value for one in given if isinstance(one, ast.Constant)}
        yield call, _object(content, binary=not modes.isdisjoint({"rb", "br", "r+b", "rb+"}))
    elif name in _READS:
        yield call, _READS[name](content)
    else:
        for one in given:
            yield one, _object(content, binary=False)


def _object(content: str, *, binary: bool) -> str:
    return f"io.BytesIO({content.encode()!r})" if binary else f"io.StringIO({content!r})"


def _importing_io(text: str) -> str:
    rows, place = text.split("\n"), top(parsed(text))
    return text if "import io" in rows[place : place + 1] else "\n".join([*rows[:place], "import io", *rows[place:]])
