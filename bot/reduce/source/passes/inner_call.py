"""The program rewritten around the call of one inner function: whole programs to ask before any search.

A failure three modules deep rarely needs the two around it. What is known about the call (its object, its arguments and its modes) makes a
program that compiles this function alone; everything that only led there is dropped.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass

from bot.reduce.source.text.compiler_calls import compiles_or_exports, entries
from bot.reduce.source.text.names import dotted
from bot.reduce.source.text.normal_form import MARK, end_line, legal, marked, normal, start_line
from bot.reduce.source.text.repair import collected, missing, repaired
from bot.reduce.source.text.variables import imported_names, module_names

# In a qualified name, comes between a function and one defined inside it.
INSIDE = "<locals>"
# Arguments of an exporter that describe its inputs, which are different here.
_OF_INPUTS = ("args", "kwargs", "dynamic_shapes")


@dataclass(frozen=True)
class InnerCall:
    """How a function of the script is called, as source: what is called, with which arguments, under which modes.

    `reads` are statements that create what a function reads if it is defined inside another one.
    """

    name: str
    callee: str
    arguments: tuple[str, ...]
    contexts: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()


def rerooted(text: str, failing_lines: Iterable[int], calls: Iterable[InnerCall]) -> Iterator[str]:
    """Programs, with marks, that compile what one of the `calls` calls, in the order of the calls.

    `text` is Python; `failing_lines` are its lines (1-based) that the traceback names.
    """
    tree = ast.parse(text)
    compiled = _compiler(tree)
    if compiled is None:
        return
    everything, marks = set(failing_lines), set[int]()
    for call in calls:
        definition = _definition(tree, call.name)
        if definition is None:
            continue
        # what holds a mark is kept, but the functions that lead to this one are not needed
        marks |= everything.intersection(range(start_line(definition), end_line(definition) + 1))
        with_marks = marked(text, marks)
        lines = with_marks.split("\n")
        kept = [s for s in tree.body if _stays(s, everything)]
        statement = _called(tree, compiled, call)
        for context in reversed(call.contexts):
            statement = f"with {context}:\n" + "\n".join(f"    {line}" for line in statement.split("\n"))
        first = [] if "torch" in imported_names(ast.Module(kept, [])) else ["import torch"]
        lifted: list[str] = []
        if INSIDE in call.name:
            # the enclosing function is not needed, so only the copy at the top is marked
            lifted = [*call.reads, textwrap.dedent("\n".join(lines[start_line(definition) - 1 : end_line(definition)]))]
            lines = text.split("\n")
        written = "\n".join([*first, *("\n".join(lines[start_line(s) - 1 : end_line(s)]) for s in kept), *lifted, statement, ""])
        fixed = repaired(normal(written), missing(with_marks)) if legal(written) else None
        if fixed is not None:
            found = normal(collected(fixed, frozenset()))
            if entries(found):
                yield found


def _definition(tree: ast.Module, name: str) -> ast.FunctionDef | None:
    """A function, a method of a class, or a nested function, by its qualified name."""
    outer, inside, last = name.rpartition(f".{INSIDE}.")
    if inside:
        maker = _definition(tree, outer)
        made = ast.walk(maker) if maker is not None else ()
        return next((s for s in made if isinstance(s, ast.FunctionDef) and s.name == last and s is not maker), None)
    *owner, last = name.split(".")
    bodies = [tree.body] if not owner else [s.body for s in tree.body if isinstance(s, ast.ClassDef) and s.name == owner[0]]
    return next((s for body in bodies for s in body if isinstance(s, ast.FunctionDef) and s.name == last), None)


def _called(tree: ast.Module, compiled: ast.Call, call: InnerCall) -> str:
    given = ", ".join(call.arguments)
    if _is_compiled(tree, call.name):
        return f"{call.callee}({given})  {MARK}"
    known = module_names(tree)
    settings = [
        f"{keyword.arg}={ast.unparse(keyword.value)}"
        for keyword in compiled.keywords
        if keyword.arg not in (None, "model", "mod", *_OF_INPUTS)
        and {n.id for n in ast.walk(keyword.value) if isinstance(n, ast.Name)} <= known | {"torch"}
    ]
    name = dotted(compiled.func) or "torch.compile"
    if not name.endswith(".compile"):
        positional = [a for a in call.arguments if not _is_keyword(a)]
        named = [a for a in call.arguments if _is_keyword(a)]
        more = ["kwargs={" + ", ".join(f"{a.split('=', 1)[0]!r}: {a.split('=', 1)[1]}" for a in named) + "}"] if named else []
        args = f"({positional[0]},)" if len(positional) == 1 else f"({', '.join(positional)})"
        return f"{name}({', '.join([call.callee, args, *more, *settings])})  {MARK}"
    name = name if name.startswith("torch") else "torch.compile"
    return f"{name}({', '.join([call.callee, *settings])})({given})  {MARK}"


def _compiler(tree: ast.Module) -> ast.Call | None:
    """The first call of `torch.compile` or an exporter; a decorator counts as one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and compiles_or_exports(node.func):
            return node
    decorated = any(compiles_or_exports(d) for n in ast.walk(tree) for d in getattr(n, "decorator_list", ()))
    return ast.Call(ast.Attribute(ast.Name("torch"), "compile"), [], []) if decorated else None


def _is_compiled(tree: ast.Module, name: str) -> bool:
    """Whether the definition has a decorator that compiles it."""
    found = _definition(tree, name)
    return found is not None and any(compiles_or_exports(d.func if isinstance(d, ast.Call) else d) for d in found.decorator_list)


def _is_keyword(argument: str) -> bool:
    return bool(ast.parse(f"f({argument})", mode="eval").body.keywords)  # type: ignore[attr-defined]


def _stays(statement: ast.stmt, failing: Container[int]) -> bool:
    """Whether a statement of the script defines something or sets something in torch, instead of leading to the failure."""
    if isinstance(statement, (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)):
        return True
    leads = any(line in failing for line in range(start_line(statement), end_line(statement) + 1))
    if isinstance(statement, (ast.Assign, ast.AnnAssign)):
        return not leads
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        name = dotted(statement.value.func) or ""
        return name.startswith("torch.") and not leads
    return False
