"""The preamble of a repro: the user's own definitions that a graph alone does not carry.

A faulty custom pass, a backend function, a registered operator: they are in the user's script, often next to much that is not needed.
`preambles` guesses by reading which statements matter, `drop_statements` shrinks a guess by asking.
"""

from __future__ import annotations

import ast
import sys
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bot.reduce.source.delete import Ask, shrink
from bot.reduce.source.kept import returned
from bot.reduce.source.results import keeps_results
from bot.reduce.source.shorter import with_fewer_alternatives, with_shorter_calls
from bot.reduce.source.text.blocks import FUNCTIONS, Function, all_blocks
from bot.reduce.source.text.compiler_calls import is_compiler
from bot.reduce.source.text.names import BUILTINS, Names, dotted, global_names, names_of, root, trimmed
from bot.reduce.source.text.normal_form import end_line, is_code_of, legal, normal, parsed, start_line
from bot.reduce.source.text.splice import calls, defaults

_NOISE = ("print", "warnings.filterwarnings", "logging.basicConfig")


@dataclass(frozen=True)
class _Item:
    """A statement as it would appear at the top level of the preamble."""

    node: ast.stmt
    text: str
    names: Names

    @property
    def imports(self) -> bool:
        return isinstance(self.node, (ast.Import, ast.ImportFrom))


def preambles(source: str, wanted: Sequence[str], mentions: Sequence[str] = (), failing_line: int | None = None) -> list[str]:
    """Candidate preambles from the user's main script (`source`), smallest first; each compiles.

    `wanted` are names (the first part of dotted ones) that the preamble must define, `mentions` strings or attributes (the namespace of a
    custom operator) whose statements it must contain. `failing_line` is the line of the script (1-based) whose call failed: nothing from
    there on is taken; None takes the whole script. Empty if nothing was found. Raises SyntaxError if the source is not Python.
    """
    items = _without_compiled_calls([i for i in _flatten(parsed(source).body, source, failing_line) if not _unusable(i.node)])
    start = {w.split(".")[0] for w in wanted}
    found: list[str] = []
    for chosen, everything in (
        (_closure(items, start, mentions, mutations=False), False),
        (_closure(items, start, mentions, mutations=True), False),
        ([i for i in items if not _noise(i.node) and not (_now_compiles(i.node) and not i.names.binds & start)], True),
    ):
        text = _text(items, chosen, start, keep_foreign=everything)
        if text and text not in found and legal(text):
            found.append(text)
    return sorted(found, key=lambda t: (len(t), t))


def drop_statements(preamble: str, ask: Ask, *, returning: bool = False) -> str:
    """The `preamble` without any statement, at the top level or inside bodies, that `ask` does not need.

    `ask` takes candidate preambles, best first, and returns the index of the first that still works, or None. It may raise (no time left);
    the exception is passed on. The result is a fixed point: no single statement can be removed, and no argument of the calls that the
    preamble makes at its top level to its own definitions.
    With `returning`, functions keep returning everything that they return, or go as a whole, and operators, decompositions and lowerings
    keep what that depends on. Nothing that binds a name still in use is
    removed: a function may be called only when someone runs the script with other settings, such as the `uuid` of a pass for torch's
    caches. Without `returning`, alternatives in conditions that call a function of the preamble may go.
    """
    before, unknown, keeps = returned(ast.parse(preamble)), _unbound(preamble), keeps_results(preamble)

    def is_whole(text: str) -> bool:
        return _unbound(text) <= unknown and (not returning or (returned(ast.parse(text)).items() <= before.items() and keeps(text)))

    def ask_whole(texts: Sequence[str]) -> int | None:
        kept = [i for i, text in enumerate(texts) if is_whole(text)]
        found = ask([texts[i] for i in kept]) if kept else None
        return None if found is None else kept[found]

    if not preamble.strip():
        return preamble
    shrunk = normal(preamble)
    while texts := [text for text in with_shorter_calls(shrunk) if legal(text)]:
        found = ask_whole(texts)
        if found is None:
            break
        shrunk = texts[found]
    shrunk = shrink(shrunk, ask_whole)
    # a function that only a condition calls cannot go before that call does
    while not returning and (texts := with_fewer_alternatives(shrunk)) and (found := ask_whole(texts)) is not None:
        shrunk = shrink(normal(texts[found]), ask_whole)
    joined = _with_imports_joined(shrunk)
    return joined if joined != shrunk and ask_whole([joined]) == 0 else shrunk


def _with_imports_joined(text: str) -> str:
    """The text with neighboring imports from the same module merged into one statement."""
    tree = ast.parse(text)
    body: list[ast.stmt] = []
    for node in tree.body:
        last = body[-1] if body else None
        if isinstance(node, ast.ImportFrom) and isinstance(last, ast.ImportFrom) and (node.module, node.level) == (last.module, last.level):
            last.names += node.names
        else:
            body.append(node)
    return text if len(body) == len(tree.body) else normal(ast.unparse(ast.Module(body, [])))


def _unbound(text: str) -> set[str]:
    binds, uses = global_names(text)
    return uses - binds - BUILTINS


# --- flattening: the statements that have run, in order, when the failing line is reached


def _flatten(body: Sequence[ast.stmt], source: str, line: int | None) -> list[_Item]:
    """Top-level statements before the failing one; the body around the failing line is flattened."""
    path = _path(body, line) if line is not None else []
    if not path:
        # a line outside all statements (a blank line, another file's line): take everything before it
        before = [s for s in body if line is None or end_line(s) < line]
        return _plain(before, source)
    here, inner = path[0], path[1:]
    if isinstance(here, FUNCTIONS):
        beside = _around(body, here, source)
        return [*beside, *_parameters(here, _call_of(here.name, body)), *_flatten(here.body, source, line)]
    if isinstance(here, ast.ClassDef):
        method = next((s for s in inner if isinstance(s, FUNCTIONS)), None)
        beside = _around(body, here, source)
        return beside if method is None else [*beside, *_parameters(method, None), *_flatten(method.body, source, line)]
    ran = _plain([s for s in body if end_line(s) < start_line(here)], source)
    return [*ran, *_entered(here, source, line)]


def _plain(body: Iterable[ast.stmt], source: str) -> list[_Item]:
    """Statements as they are, with main guards resolved."""
    out: list[_Item] = []
    for statement in body:
        guard = _guard(statement)
        out += [_item(statement, source)] if guard is None else _plain(guard, source)
    return out


def _guard(node: ast.stmt) -> list[ast.stmt] | None:
    """The body of `if __name__ == "__main__"`, if it is one."""
    sides = [node.test.left, *node.test.comparators] if isinstance(node, ast.If) and isinstance(node.test, ast.Compare) else []
    named = any(isinstance(s, ast.Name) and s.id == "__name__" for s in sides)
    main = any(isinstance(s, ast.Constant) and s.value == "__main__" for s in sides)
    return node.body if isinstance(node, ast.If) and named and main else None


def _entered(here: ast.stmt, source: str, line: int | None) -> list[_Item]:
    """What has run inside the statement that contains the failing line."""
    bound: list[tuple[ast.expr, ast.expr]] = []
    if isinstance(here, (ast.With, ast.AsyncWith)):
        for item in here.items:
            if item.optional_vars is not None:
                bound.append((item.optional_vars, ast.Call(ast.Attribute(item.context_expr, "__enter__", ast.Load()), [], [])))
    elif isinstance(here, (ast.For, ast.AsyncFor)):
        iterator = ast.Call(ast.Name("iter", ast.Load()), [here.iter], [])
        bound.append((here.target, ast.Call(ast.Name("next", ast.Load()), [iterator], [])))
    held = next((b for b in all_blocks(here) if start_line(b[0]) <= (line or 0) <= end_line(b[-1])), [])
    return [*_assigned(bound), *_flatten(held, source, line)]


def _assigned(bound: Iterable[tuple[ast.expr, ast.expr]]) -> list[_Item]:
    """Assignments of values to targets."""
    return [_made(ast.Assign([target], value)) for target, value in bound]


def _path(body: Sequence[ast.stmt], line: int | None) -> list[ast.stmt]:
    """The statements that contain the line, outermost first."""
    holder = next((s for s in body if line is not None and start_line(s) <= line <= end_line(s)), None)
    return [holder, *next(filter(None, (_path(block, line) for block in all_blocks(holder))), [])] if holder is not None else []


def _call_of(name: str, body: Sequence[ast.stmt]) -> ast.Call | None:
    """The first call by this name that runs with the statements."""
    running = (s for s in body if not isinstance(s, (*FUNCTIONS, ast.ClassDef)))
    return next((call for statement in running for call in calls(statement, name)), None)


def _around(body: Sequence[ast.stmt], here: ast.stmt, source: str) -> list[_Item]:
    """Statements around a definition whose body is flattened: everything that ran before it was called."""
    name = here.name if isinstance(here, (*FUNCTIONS, ast.ClassDef)) else ""
    out: list[ast.stmt] = []
    for statement in body:
        if statement is here:
            continue
        guard = _guard(statement)
        if guard is not None:
            called = next((i for i, inner in enumerate(guard) if calls(inner, name)), None)
            out += [inner for inner in guard[:called] if not _needs(inner, name)]
            if called is not None:
                break
            continue
        if not isinstance(statement, (*FUNCTIONS, ast.ClassDef)) and calls(statement, name):
            break
        if not _needs(statement, name):
            out.append(statement)
    return _plain(out, source)


def _needs(statement: ast.stmt, name: str) -> bool:
    """Whether a statement needs `name`, whose definition is flattened: `TestX.setUpClass()`."""
    return not isinstance(statement, (*FUNCTIONS, ast.ClassDef)) and name in names_of(statement).uses


def _parameters(node: Function, call: ast.Call | None) -> list[_Item]:
    """Assignments that bind the parameters: to the arguments of the call, if any, otherwise to their defaults."""
    positional = [*node.args.posonlyargs, *node.args.args]
    values = defaults(node)
    if call is not None and not any(isinstance(a, ast.Starred) for a in call.args):
        values.update({p.arg: a for p, a in zip(positional, call.args, strict=False)})
        values.update({k.arg: k.value for k in call.keywords if k.arg is not None})
    order = [a.arg for a in (*positional, *node.args.kwonlyargs)]
    return _assigned((ast.Name(n, ast.Store()), values[n]) for n in order if n in values and ast.unparse(values[n]) != n)


def _item(node: ast.stmt, source: str) -> _Item:
    lines = source.splitlines()[start_line(node) - 1 : end_line(node)]
    text = textwrap.dedent("\n".join(lines))
    # several statements on a line, or multi-line text in an indented body: print it from the tree
    return _Item(node, text, names_of(node)) if is_code_of(ast.Module([node], []), text) else _made(node)


def _made(node: ast.stmt) -> _Item:
    return _Item(node, ast.unparse(ast.fix_missing_locations(node)), names_of(node))


# --- choosing


def _unusable(node: ast.stmt) -> bool:
    """Whether a statement makes no sense at the top level of another script."""
    if isinstance(node, (ast.Return, ast.Break, ast.Continue, ast.Global, ast.Nonlocal, ast.Pass)):
        return True
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"  # only legal at the top of a file


def _noise(node: ast.stmt) -> bool:
    if isinstance(node, ast.Assert):
        return True
    value = node.value if isinstance(node, ast.Expr) else None
    return isinstance(value, ast.Constant) or (isinstance(value, ast.Call) and dotted(value.func) in _NOISE)


def _now_compiles(node: ast.stmt) -> bool:
    return any(_compiles(n) for n in _now(node))


def _compiles(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and is_compiler(node.func)


def _without_compiled_calls(items: Sequence[_Item]) -> list[_Item]:
    """Drops the statements that call what was compiled: they would fail, or compile something else first."""
    compiled: set[str] = set()
    kept: list[_Item] = []
    for item in items:
        node = item.node
        decorators = getattr(node, "decorator_list", [])
        # @torch.compile, @torch.compile(...), @partial(torch.compile, ...)
        heads = [e for d in decorators for e in (d, getattr(d, "func", d), *getattr(d, "args", []))]
        if any(is_compiler(e) for e in heads):
            compiled |= item.names.binds
            kept.append(item)
            continue
        runs = [n for n in _now(node) if isinstance(n, ast.Call)]
        if any(root(n.func) in compiled or _compiles(n.func) for n in runs):
            continue
        if _now_compiles(node):
            compiled |= item.names.binds
            if not (isinstance(node, ast.Assign) and _compiles(node.value)):
                continue
        kept.append(item)
    return kept


def _now(node: ast.AST) -> Iterable[ast.AST]:
    """Nodes that run with the statement, not those in the bodies of functions that it defines."""
    if isinstance(node, FUNCTIONS):
        for inner in (*node.decorator_list, *node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)):
            yield from _now(inner)
        return
    if isinstance(node, ast.Lambda):
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _now(child)


def _mentions(node: ast.stmt, mentions: Sequence[str]) -> bool:
    """Whether a statement registers one of these names: in a string, or in an attribute that is evaluated with it."""
    for inner in ast.walk(node):
        value = inner.value if isinstance(inner, ast.Constant) else None
        if isinstance(value, str) and any(value == m or value.startswith((m + "::", m + ".")) for m in mentions):
            return True
    definition = isinstance(node, (*FUNCTIONS, ast.ClassDef))
    reach = (n for d in getattr(node, "decorator_list", []) for n in ast.walk(d)) if definition else _now(node)
    plain = definition or isinstance(node, ast.Expr)
    return plain and any(isinstance(n, ast.Attribute) and n.attr in mentions for n in reach)


def _mutates(item: _Item, needed: set[str]) -> bool:
    """Whether a statement may change what a needed name refers to, or register it somewhere."""
    if not item.names.uses & needed:
        return False
    node = item.node
    if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
        in_decorators = {n.id for d in node.decorator_list for n in ast.walk(d) if isinstance(n, ast.Name)}
        return bool(in_decorators & needed)
    if isinstance(node, ast.Assign) and all(isinstance(t, (ast.Name, ast.Tuple)) for t in node.targets):
        # `handle = my_pass.register(...)` changes my_pass; `y = f(x)` only reads
        return isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute) and root(node.value.func) in needed
    return not isinstance(node, (ast.Assert, ast.Import, ast.ImportFrom)) and not _noise(node)


def _closure(items: Sequence[_Item], start: set[str], mentions: Sequence[str], *, mutations: bool) -> list[_Item]:
    """The statements that the names need, transitively, in their order."""
    needed = set(start)
    chosen: set[int] = set()
    imported = {name for i in items if i.imports for name in i.names.binds}
    while True:
        size = len(chosen)
        for index, item in enumerate(items):
            if index in chosen or item.imports:
                continue
            own = needed - imported
            take = item.names.binds & own or _mentions(item.node, mentions) or (mutations and _mutates(item, own))
            if take:
                chosen.add(index)
                needed |= item.names.uses
                if not isinstance(item.node, (ast.For, ast.While)):
                    needed |= item.names.binds
        if len(chosen) == size:
            return [items[i] for i in sorted(chosen)]


def _text(items: Sequence[_Item], chosen: Sequence[_Item], wanted: set[str], *, keep_foreign: bool) -> str:
    """The chosen statements below the imports that they use."""
    uses = wanted.union(*(item.names.uses for item in chosen))
    open_names = uses - {name for i in chosen if not i.imports for name in i.names.binds}
    out: list[str] = []
    for item in items:
        if item.imports:
            line = item.text if keep_foreign and _foreign(item.node) else _import_line(item.node, uses, open_names)
            if line is not None:
                out.append(line)
        elif item in chosen:
            out.append(item.text)
    return normal("\n".join(out) + "\n") if out else ""


def _import_line(node: ast.stmt, uses: set[str], open_names: set[str]) -> str | None:
    """The import with only the names that are used; None if there are none."""
    assert isinstance(node, (ast.Import, ast.ImportFrom))
    if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
        return ast.unparse(node) if open_names else None
    return trimmed(node, uses.__contains__)


def _foreign(node: ast.stmt) -> bool:
    """Whether it may be an import for its side effects: neither torch nor the standard library."""
    modules = [a.name for a in node.names] if isinstance(node, ast.Import) else [getattr(node, "module", None) or ""]
    return any(m.split(".")[0] not in (*sys.stdlib_module_names, "torch", "numpy", "") for m in modules)
