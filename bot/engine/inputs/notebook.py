"""Notebooks: the code cells, in order, as one script."""

from __future__ import annotations

import ast
import dis
import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from types import CodeType
from typing import Any

from bot.engine.inputs.taken import NotUnderstood, Taken, json_of

# A magic that runs its own line or cell as Python, with the indentation before it and the code.
_TIMED = re.compile(r"^(?P<indent>\s*)%{1,2}(?:time|timeit|prun|capture)\b(?P<code>.*)$")
_MAGIC = re.compile(r"^\s*(?:[%!]|\w+\s*=\s*[!%]|\?|[\w.]+\?+\s*$)")
# What IPython provides to every cell: itself, and a function that shows results.
_IPYTHON, _SHOWS = "get_ipython()", "display"
# How a saved error names the compiler: in its frames, or in the module of its class.
_OF_COMPILER = re.compile(r"\btorch[./\\]_(?:dynamo|inductor|functorch|export|higher_order_ops)\b|\btorch[./\\]export\b")
_COLORS = re.compile(r"\x1b\[[0-9;]*m")
# Cell magics whose cell is not Python for this process.
_OTHER_CELL = re.compile(r"\A\s*%%(?!time\b|timeit\b|prun\b|capture\b)(\w+)")

# IPython always has an event loop running, and accepts `await` outside functions. A task gets a copy of the context variables, and since
# torch 2.15 PyTorch's settings are context variables: what a cell sets is passed on to the cells after it.
_RUN = "_run_cell"
_BEGIN_LOOP = f"""\
import asyncio
import contextvars as _contextvars

_loop = asyncio.new_event_loop()
asyncio.set_event_loop(_loop)


async def _and_context(cell):
    await cell
    return _contextvars.copy_context()


def {_RUN}(cell):
    for variable, value in _loop.run_until_complete(_and_context(cell)).items():
        variable.set(value)
"""
_DEFINES = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Pass)


@dataclass
class _Cells:
    texts: list[str]
    dropped: list[str]


def read(raw: str) -> Taken:
    """The notebook in the JSON text `raw` as a script: the cells up to the one whose saved output is an error, else all cells. Raises
    NotUnderstood if it is not a Python notebook, or holds no code."""
    try:
        held = json_of(raw)
        language = str(((held.get("metadata") or {}).get("kernelspec") or {}).get("language") or "python").lower()
        sheets = held["cells"] if "cells" in held else [cell for sheet in held["worksheets"] for cell in sheet["cells"]]
        cells = [cell for cell in sheets if cell["cell_type"] == "code"]
        sources = [_joined(cell["source"] if "source" in cell else cell["input"]) for cell in cells]
        errors = {index: said for index, cell in enumerate(cells) if (said := _error(cell)) is not None}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise NotUnderstood("a file that is called a notebook, but holds no cells in the notebook format") from error
    if language != "python":
        raise NotUnderstood(f"a notebook of {language[:40]}: only Python is understood")
    last = _failing(errors)
    found = _Cells([], [])
    for number, source in enumerate(sources if last is None else sources[: last + 1], 1):
        text = _plain(source, found.dropped)
        if number - 1 in errors and number - 1 != last:
            text = _let_fail(text)
            found.dropped.append(f"the error of cell {number}, after which the notebook went on")
        if text.strip():
            found.texts.append(f"# cell {number}\n{text.rstrip()}\n")
    if not found.texts:
        raise NotUnderstood("a notebook without any code")
    if any(code is not None and _awaits(code) for code in map(_compiled, found.texts)):
        found.texts = [_BEGIN_LOOP, *map(_in_loop, found.texts)]
    if _shows("\n".join(found.texts)):
        found.texts.insert(0, f"{_SHOWS} = print\n")
    until = f", up to the one that failed ({last + 1} of {len(sources)})" if last is not None else ""
    notes = [f"left out of the notebook: {line}" for line in found.dropped[:10]]
    if len(found.dropped) > 10:
        notes.append(f"left out of the notebook: {len(found.dropped) - 10} more lines")
    cells_of = sum(text.startswith("# cell ") for text in found.texts)
    detail = f"a notebook: {cells_of} code cells{until}"
    return Taken("notebook", detail, "\n".join(found.texts), tuple(notes))


def _error(cell: dict[str, Any]) -> str | None:
    """The error in the saved output of a cell; None if there is none."""
    kept = [output for output in cell.get("outputs", ()) if output.get("output_type") in ("error", "pyerr")]
    if not kept:
        return None
    lines = kept[-1].get("traceback")
    said = [kept[-1].get("ename", ""), kept[-1].get("evalue", ""), *(lines if isinstance(lines, list) else ())]
    return _COLORS.sub("", "\n".join(map(str, said)))


def _failing(errors: Mapping[int, str]) -> int | None:
    """The cell that the notebook is about: the first whose error comes from the compiler, else the last with an error. People who run cells
    by hand leave errors behind and go on."""
    of_compiler = (index for index, said in errors.items() if _OF_COMPILER.search(said))
    return next(of_compiler, max(errors, default=None))


def _let_fail(text: str) -> str:
    """A cell that failed in a notebook that went on after it: what ran before the error keeps its effect."""
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError):
        return ""  # none of it ran
    if not body:
        return ""
    handler = ast.ExceptHandler(type=ast.Name("Exception", ast.Load()), name=None, body=[ast.Pass()])
    held = ast.Try(body=body, handlers=[handler], orelse=[], finalbody=[])
    return ast.unparse(ast.fix_missing_locations(ast.Module([held], [])))


def _compiled(text: str) -> CodeType | None:
    """A cell as IPython compiles it; None if it cannot be compiled."""
    try:
        code: CodeType = compile(text, "cell", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return code


def _awaits(code: CodeType) -> bool:
    return bool(code.co_flags & inspect.CO_COROUTINE)


def _in_loop(text: str) -> str:
    """A cell whose statements are in functions that the loop runs. What it defines stays where it is."""
    if _compiled(text) is None:
        return text
    title = text.partition("\n")[0]
    name = "_" + title.removeprefix("# ").replace(" ", "_")
    parts = [title]
    for plain, body in groupby(ast.parse(text).body, _only_defines):
        statements = list(body)
        parts.append(_text_of(statements) if plain else _coroutine(statements, name))
    return "\n\n".join(parts) + "\n"


def _only_defines(statement: ast.stmt) -> bool:
    code = _compiled(_text_of([statement]))
    return isinstance(statement, _DEFINES) and code is not None and not _awaits(code)


def _coroutine(body: Sequence[ast.stmt], name: str) -> str:
    """Statements of a cell as a function called `name`, with the notebook's variables as its globals, and a call of it."""
    statements = [_Unannotated().visit(statement) for statement in body]
    code = _compiled(_text_of(statements))
    bound = (
        sorted({str(step.argval) for step in dis.get_instructions(code) if step.opname in ("STORE_NAME", "DELETE_NAME")}) if code else []
    )
    lines = ([f"global {', '.join(bound)}"] if bound else []) + [ast.unparse(statement) for statement in statements]
    defined = ast.parse(f"async def {name}():\n    pass")
    function = defined.body[0]
    assert isinstance(function, ast.AsyncFunctionDef)
    function.body = ast.parse("\n".join(lines)).body
    return f"{ast.unparse(defined)}\n\n\n{_RUN}({name}())"


class _Unannotated(ast.NodeTransformer):
    """Removes the annotations of a cell's own variables: a name that is global in a function must not have one."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return ast.copy_location(ast.Assign([node.target], node.value, lineno=node.lineno), node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.stmt:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.stmt:
        return node


def _text_of(body: Sequence[ast.stmt]) -> str:
    return ast.unparse(ast.Module(list(body), []))


def _shows(text: str) -> bool:
    """Whether a script calls IPython's `display` without a definition of its own."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == _SHOWS]
    imported = any(isinstance(node, ast.alias) and (node.asname or node.name) == _SHOWS for node in ast.walk(tree))
    defined = imported or any(isinstance(node, ast.FunctionDef) and node.name == _SHOWS for node in ast.walk(tree))
    return bool(names) and not defined and all(isinstance(node.ctx, ast.Load) for node in names)


def _joined(source: object) -> str:
    return "".join(map(str, source)) if isinstance(source, list) else str(source)


def _plain(cell: str, dropped: list[str]) -> str:
    """A cell without what only IPython understands."""
    if other := _OTHER_CELL.match(cell):
        dropped.append(f"a cell of %%{other[1]}")
        return ""
    try:
        # `%` may begin a line inside brackets or a string
        return _without_ipython(cell, ast.parse(cell), dropped)
    except (SyntaxError, ValueError):
        pass
    lines = []
    for line in cell.split("\n"):
        if timed := _TIMED.match(line):
            code = re.sub(r"^(?:\s+-\w+(?:\s+\d+)?)*\s*", "", timed["code"])
            lines.append(timed["indent"] + (code if code and not line.lstrip().startswith("%%") else "pass"))
            dropped.append(line.strip().split()[0])
        elif _MAGIC.match(line):
            indent = line[: len(line) - len(line.lstrip())]
            lines.append(f"{indent}pass")  # it may be the only statement of its block
            dropped.append(line.strip()[:100])
        else:
            lines.append(line)
    return "\n".join(lines)


def _without_ipython(cell: str, tree: ast.Module, dropped: list[str]) -> str:
    """A cell that is valid Python, without the statements that call IPython; `tree` is its syntax tree."""
    lines = cell.split("\n")
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and ast.unparse(node).startswith(_IPYTHON):
            first, last = node.lineno - 1, node.end_lineno or node.lineno
            dropped.append(lines[first].strip()[:100])
            lines[first:last] = [" " * node.col_offset + "pass", *[""] * (last - first - 1)]
    return "\n".join(lines)
