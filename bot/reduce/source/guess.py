"""The first guess: what the failing frames need, and nothing else.

The traceback names a statement in each user frame. What stands behind it in its function has not run, and what stands
before it matters only if it leads to it: so each frame is cut down to the backward slice of its failing call, whose
value is simply returned. One question often takes away nine tenths of a program.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bot.reduce.source.layout import MARK
from bot.reduce.source.names import names_of, root
from bot.reduce.source.prune import collected, has_mark, missing, repaired, replaced, unused

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def guesses(text: str) -> list[str]:
    """Texts in normal form (marks kept) to ask before any search, the boldest first; none where nothing is marked."""
    if MARK not in text:
        return []
    found: list[str] = []
    # how: the call alone and straight from the parameters, the call alone, the statement as it stands
    for how in ("shortcut", "call", "statement"):
        for bold in (True, False):
            for guess in _guesses(text, how=how, bold=bold):
                if guess != text and guess not in found:
                    found.append(guess)
    return found


def _guesses(text: str, *, how: str, bold: bool) -> Iterator[str]:
    """`bold`: functions keep nothing for its side effect. Nor does the script in the first, unless it names what is needed or torch."""
    before = missing(text)
    keep = frozenset() if bold else unused(text)
    now = text
    # innermost definitions last in the text may hold marks too: one scope at a time, since each edit moves the lines
    for index in range(sum(1 for n in ast.walk(ast.parse(text)) if isinstance(n, _FUNCTIONS))):
        tree = ast.parse(now)
        functions = [n for n in ast.walk(tree) if isinstance(n, _FUNCTIONS)]
        if index >= len(functions):
            break
        now = _cut(now, functions[index], tree, how=how, bold=bold, alone=False)
    fixed = repaired(now, before)
    if fixed is None:
        return
    now = collected(fixed, keep)
    tree = ast.parse(now)
    for alone in (True, False):
        fixed = repaired(_cut(now, tree, tree, how=how, bold=bold, alone=alone), before)
        if fixed is not None:
            yield collected(fixed, keep)


def _cut(
    text: str, scope: ast.Module | ast.FunctionDef | ast.AsyncFunctionDef, tree: ast.Module, *, how: str, bold: bool, alone: bool
) -> str:
    """The text with one scope cut down to what its marked statement needs."""
    path = _path(text, scope.body)
    if not path:
        return text
    changes: dict[ast.stmt, str | None] = {}
    here = path[-1][1]
    call = None if how == "statement" else _call_into(here, text, tree)
    needed = _reads(call if call is not None else here)
    own = _own_parameters(scope)
    bold = bold and bool(own)  # what a function without arguments sets up is not for one caller's use
    if call is not None and how == "shortcut" and own:
        call, needed = _from_parameters(call, own)
    if call is not None:
        code = ast.unparse(call)
        returns = isinstance(scope, _FUNCTIONS) and scope.name != "__init__" and not _yields(scope)
        changes[here] = f"return {code}  {MARK}" if returns else f"{code}  {MARK}"
    module = isinstance(scope, ast.Module)
    for block, statement in reversed(path):
        position = block.index(statement)
        if statement is not here:
            needed |= {n for child in ast.iter_child_nodes(statement) if not isinstance(child, ast.stmt) for n in _reads(child)}
        changes.update(dict.fromkeys(s for s in block[position + 1 :] if not (module and _defines(s))))
        if module:
            needed |= _globals_of(tree, needed)
        for earlier in reversed(block[:position]):
            if module and _defines(earlier):
                continue
            if _writes(earlier) & needed:
                needed |= _reads(earlier)
                if module:
                    needed |= _globals_of(tree, needed)
            elif bold or not _acts(earlier, needed, module=module) or (module and alone and not _concerns(earlier, needed, tree)):
                changes[earlier] = None
            else:
                needed |= _reads(earlier)
    return replaced(text, changes)


def _own_parameters(scope: ast.AST) -> list[str]:
    if not isinstance(scope, _FUNCTIONS):
        return []
    return [p.arg for p in (*scope.args.posonlyargs, *scope.args.args) if p.arg not in ("self", "cls")]


def _from_parameters(call: ast.Call, own: list[str]) -> tuple[ast.Call, set[str]]:
    """The call with its first argument replaced by the parameter it comes from, or by the first, and what else it reads."""
    if not call.args or isinstance(call.args[0], (ast.Constant, ast.Starred)):
        return call, _reads(call)
    names = [n.id for n in ast.walk(call.args[0]) if isinstance(n, ast.Name)]
    name = next((n for n in names if n in own), own[0])
    rest = ast.Call(call.func, call.args[1:], call.keywords)
    return ast.Call(call.func, [ast.Name(name, ast.Load()), *call.args[1:]], call.keywords), _reads(rest)


def _path(text: str, body: list[ast.stmt]) -> list[tuple[list[ast.stmt], ast.stmt]]:
    """The blocks and statements that lead to the last marked statement of a scope, outermost first; definitions aside."""
    for statement in reversed(body):
        if _defines(statement) or not has_mark(text, statement):
            continue
        inner: list[tuple[list[ast.stmt], ast.stmt]] = []
        for block in _blocks(statement):
            inner = inner or _path(text, block)
        return [(body, statement), *inner]
    return []


def _blocks(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
            yield block
    for clause in (*getattr(node, "handlers", []), *getattr(node, "cases", [])):
        yield clause.body


def _defines(node: ast.stmt) -> bool:
    return isinstance(node, (*_FUNCTIONS, ast.ClassDef, ast.Import, ast.ImportFrom))


def _yields(scope: ast.AST) -> bool:
    return any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in ast.walk(scope))


def _reads(node: ast.AST) -> set[str]:
    """Names read anywhere below, and attributes read, written `.name`."""
    out = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Store)}
    return out | {"." + n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute) and not isinstance(n.ctx, ast.Store)}


def _writes(node: ast.stmt) -> set[str]:
    """Names and attributes that a statement sets, itself or in its blocks; `x` too for `x[i] = ...` and `x += ...`."""
    out: set[str] = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
            out.add(inner.id)
        elif isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Store):
            out.add("." + inner.attr)
        elif isinstance(inner, ast.Subscript) and isinstance(inner.ctx, ast.Store):
            name = root(inner)
            out |= {name} if name is not None else set()
        elif isinstance(inner, (*_FUNCTIONS, ast.ClassDef)):
            out.add(inner.name)
        elif isinstance(inner, ast.alias):
            out.add((inner.asname or inner.name).split(".")[0])
    return out


def _globals_of(tree: ast.Module, needed: set[str]) -> set[str]:
    """What the needed definitions read, transitively."""
    definitions = {s.name: s for s in tree.body if isinstance(s, (*_FUNCTIONS, ast.ClassDef))}
    out: set[str] = set()
    todo = [n for n in needed if n in definitions]
    seen: set[str] = set()
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        uses = names_of(definitions[name]).uses
        out |= uses
        todo += [u for u in uses if u in definitions]
    return out


def _acts(node: ast.stmt, needed: set[str], *, module: bool) -> bool:
    """Whether a statement that binds nothing needed may change something needed all the same."""
    if isinstance(node, (ast.Global, ast.Nonlocal)):
        return True
    value = node.value if isinstance(node, (ast.Expr, ast.Assign)) else None
    if isinstance(node, ast.Assign):
        return module and all(isinstance(t, (ast.Attribute, ast.Subscript)) for t in node.targets)
    if isinstance(value, ast.Call):
        name = root(value.func)
        if name == "print":
            return False
        return module or name in needed - {"self", "torch"}
    return isinstance(node, (ast.For, ast.While, ast.With, ast.If)) and bool(_reads(node) & needed)


def _concerns(node: ast.stmt, needed: set[str], tree: ast.Module) -> bool:
    """Whether a statement of the script sets or calls something of torch, or speaks of a needed name of the script's own."""
    target = node.targets[0] if isinstance(node, ast.Assign) else node.value if isinstance(node, ast.Expr) else None
    if isinstance(target, (ast.Attribute, ast.Call)) and root(target.func if isinstance(target, ast.Call) else target) == "torch":
        return True
    imported = {(a.asname or a.name).split(".")[0] for n in tree.body if isinstance(n, (ast.Import, ast.ImportFrom)) for a in n.names}
    return bool({name for name in _reads(node) & needed if not name.startswith(".")} - imported)


def _call_into(node: ast.stmt, text: str, tree: ast.Module) -> ast.Call | None:
    """The call in a marked statement that leads to the next frame, as far as reading tells."""
    if not isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return)) or node.value is None:
        return None
    functions = {n.name for n in ast.walk(tree) if isinstance(n, _FUNCTIONS) and has_mark(text, n)}
    classes = {n.name for n in ast.walk(tree) if isinstance(n, ast.ClassDef) and has_mark(text, n)}
    imported = {(a.asname or a.name).split(".")[0] for n in ast.walk(tree) if isinstance(n, (ast.Import, ast.ImportFrom)) for a in n.names}
    holders = {
        n.targets[0].attr
        for n in ast.walk(tree)
        if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Attribute) and _reads(n.value) & classes
    }
    best: tuple[int, ast.Call] | None = None
    for call in (n for n in ast.walk(node.value) if isinstance(n, ast.Call)):
        last = call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id if isinstance(call.func, ast.Name) else ""
        score = 2 if last in functions | classes else 1 if last in holders else 0
        if score == 0 and root(call.func) in imported:
            continue
        if best is None or score > best[0]:
            best = (score, call)
    return best[1] if best is not None else None
