"""The first guess: what the failing frames need, and nothing else.

The traceback names a statement in each user frame. Statements after it in its function have not run, and those before it matter only if
they lead to it. So each frame is cut down to the backward slice of what leads into the next frame (a call, or reading a property), and its
value is simply returned. One question often removes nine tenths of a program.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass

from bot.reduce.source.text.blocks import FUNCTIONS, Function, all_blocks
from bot.reduce.source.text.compiler_calls import ENTRIES, MAKES_CALLABLE, TRACES, entries
from bot.reduce.source.text.names import BUILTINS, bound_by, dotted, last_name, names_of, root
from bot.reduce.source.text.normal_form import MARK, as_far_as_legal
from bot.reduce.source.text.repair import collected, has_mark, missing, repaired, replaced, unused
from bot.reduce.source.text.variables import imported_names, reads, writes

# How certain it is that an expression leads into the next frame.
_KNOWN, _LIKELY, _UNKNOWN, _NOT = 3, 2, 1, 0


def guesses(text: str, check: Callable[[], None] = lambda: None) -> list[str]:
    """Guesses at `text` (in normal form, with marks) to ask before any search, the boldest first; none if nothing is marked.

    `check` is called now and then, and may raise.
    """
    if MARK not in text:
        return []
    found: list[str] = []
    for how in ("shortcut", "lead", "value", "statement"):
        for bold in (True, False):
            check()
            for guess in as_far_as_legal(_guesses(text, how=how, bold=bold)):
                # a slice may lose the compiler; then it cannot be what is wanted
                if guess != text and guess not in found and (entries(guess) or not entries(text)):
                    found.append(guess)
    return found


def _guesses(text: str, *, how: str, bold: bool) -> Iterator[str]:
    """The slice in which each frame returns what `how` says.

    "shortcut": what leads into the next frame, taken directly from the parameters; "lead": the same as written, or the whole value if it
    is uncertain; "value": the whole value; "statement": nothing, the statement stays as it is. With `bold`, functions keep nothing for its
    side effects. In the first form neither does the script, unless it refers to what is needed or to torch.
    """
    before = missing(text)
    keep = frozenset() if bold else unused(text)
    now = text
    tree, functions = _functions(now)
    index = 0
    # inner definitions may contain marks too; one scope at a time, since each edit moves the lines
    while index < len(functions):
        cut = _cut(now, functions[index], tree, how=how, bold=bold, alone=False)
        if cut != now:
            now = cut
            tree, functions = _functions(now)
        index += 1
    fixed = repaired(now if how == "statement" else _ended(now, alone=how == "shortcut"), before)
    if fixed is None:
        return
    now = collected(fixed, keep)
    tree = ast.parse(now)
    for alone in (True, False):
        fixed = repaired(_cut(now, tree, tree, how=how, bold=bold, alone=alone), before)
        if fixed is not None:
            yield collected(fixed, keep)


def _functions(text: str) -> tuple[ast.Module, list[Function]]:
    tree = ast.parse(text)
    return tree, [n for n in ast.walk(tree) if isinstance(n, FUNCTIONS)]


def _cut(text: str, scope: ast.Module | Function, tree: ast.Module, *, how: str, bold: bool, alone: bool) -> str:
    """The text with one scope reduced to what its marked statement needs."""
    path = _path(text, scope.body)
    if not path:
        return text
    changes: dict[ast.stmt, str | None] = {}
    here = path[-1][1]
    own = _own_parameters(scope)
    wanted, needed = (None, reads(here)) if how == "statement" else _wanted(here, text, tree, how=how, scope=scope)
    bold = bold and bool(own)  # what a function without arguments sets up is not only for one caller
    if wanted is not None:
        code = ast.unparse(wanted)
        yields = any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in ast.walk(scope))
        returns = isinstance(scope, FUNCTIONS) and scope.name != "__init__" and not yields
        changes[here] = f"return {code}  {MARK}" if returns else f"{code}  {MARK}"
    module = isinstance(scope, ast.Module)
    for block, statement in reversed(path):
        position = block.index(statement)
        if statement is not here:
            needed |= {n for child in ast.iter_child_nodes(statement) if not isinstance(child, ast.stmt) for n in reads(child)}
        changes.update(dict.fromkeys(s for s in block[position + 1 :] if not (module and _defines(s))))
        if module:
            needed |= _globals_of(tree, needed)
        for earlier in reversed(block[:position]):
            if module and _defines(earlier):
                continue
            if writes(earlier) & needed:
                needed |= reads(earlier)
                if module:
                    needed |= _globals_of(tree, needed)
            elif bold or not _acts(earlier, needed, module=module) or (module and alone and not _concerns(earlier, needed, tree)):
                changes[earlier] = None
            else:
                needed |= reads(earlier)
    return replaced(text, changes)


def _ended(text: str, *, alone: bool) -> str:
    """The text with chains of modules cut off after the one that leads into the next frame; with `alone`, only that one is left."""
    tree = ast.parse(text)
    classes = {n.name for n in ast.walk(tree) if isinstance(n, ast.ClassDef) and has_mark(text, n)}
    changes: dict[ast.stmt, str | None] = {}
    for statement in ast.walk(tree):
        if not isinstance(statement, (ast.Assign, ast.AnnAssign, ast.Expr, ast.Return)):
            continue
        whole = ast.unparse(statement)
        # the frame in between, nn.Sequential's own, does not belong to the program
        for chain in (n for n in ast.walk(statement) if isinstance(n, ast.Call) and last_name(n.func) == "Sequential"):
            leading = [i for i, item in enumerate(chain.args) if reads(item) & classes]
            if leading and not any(isinstance(item, ast.Starred) for item in chain.args):
                chain.args = chain.args[leading[0] : leading[0] + 1] if alone else chain.args[: leading[-1] + 1]
        if (ended := ast.unparse(statement)) != whole:
            changes[statement] = ended + (f"  {MARK}" if has_mark(text, statement) else "")
    return replaced(text, changes)


def _own_parameters(scope: ast.AST) -> list[str]:
    if not isinstance(scope, FUNCTIONS):
        return []
    return [p.arg for p in (*scope.args.posonlyargs, *scope.args.args) if p.arg not in ("self", "cls")]


def _from_parameters(call: ast.Call, own: list[str]) -> tuple[ast.Call, set[str]]:
    """The call with its first argument replaced by the parameter it comes from (or else the first one), and what else it reads."""
    if not call.args or isinstance(call.args[0], (ast.Constant, ast.Starred)):
        return call, reads(call)
    names = [n.id for n in ast.walk(call.args[0]) if isinstance(n, ast.Name)]
    name = next((n for n in names if n in own), own[0])
    rest = ast.Call(call.func, call.args[1:], call.keywords)
    return ast.Call(call.func, [ast.Name(name, ast.Load()), *call.args[1:]], call.keywords), reads(rest)


def _path(text: str, body: list[ast.stmt]) -> list[tuple[list[ast.stmt], ast.stmt]]:
    """The blocks and statements that lead to the last marked statement of a scope, outermost first; definitions are skipped."""
    last = next((s for s in reversed(body) if not _defines(s) and has_mark(text, s)), None)
    if last is None:
        return []
    return [(body, last), *next(filter(None, (_path(text, block) for block in all_blocks(last))), [])]


def _defines(node: ast.stmt) -> bool:
    return isinstance(node, (*FUNCTIONS, ast.ClassDef, ast.Import, ast.ImportFrom))


def _globals_of(tree: ast.Module, needed: set[str]) -> set[str]:
    """What the needed definitions read, transitively."""
    definitions = {s.name: s for s in tree.body if isinstance(s, (*FUNCTIONS, ast.ClassDef))}
    out: set[str] = set()
    todo = needed & definitions.keys()
    while todo:
        uses = names_of(definitions.pop(todo.pop())).uses
        out |= uses
        todo = (todo | uses) & definitions.keys()
    return out


def _acts(node: ast.stmt, needed: set[str], *, module: bool) -> bool:
    """Whether a statement that binds nothing needed may still change something needed."""
    if isinstance(node, (ast.Global, ast.Nonlocal)):
        return True
    if isinstance(node, ast.Assign):
        return module and all(isinstance(t, (ast.Attribute, ast.Subscript)) for t in node.targets)
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        call = node.value
        # a call may write the file, or fill the list, that a needed statement reads
        touched = {n for n in reads(call) & needed if n[0] != "."} - {"self", "torch"}
        return root(call.func) != "print" and (module or last_name(call.func) in ENTRIES or bool(touched))
    return isinstance(node, (ast.For, ast.While, ast.With, ast.If)) and bool(reads(node) & needed)


def _concerns(node: ast.stmt, needed: set[str], tree: ast.Module) -> bool:
    """Whether a statement of the script sets or calls something of torch, or refers to a needed name of the script's own."""
    target = node.targets[0] if isinstance(node, ast.Assign) else node.value if isinstance(node, ast.Expr) else None
    if isinstance(target, (ast.Attribute, ast.Call)) and root(target.func if isinstance(target, ast.Call) else target) == "torch":
        return True
    return bool({name for name in reads(node) & needed if not name.startswith(".")} - imported_names(tree))


def _wanted(node: ast.stmt, text: str, tree: ast.Module, *, how: str, scope: ast.AST) -> tuple[ast.expr | None, set[str]]:
    """The part of a marked statement that its function should return (None: the statement stays as it is), and what it reads."""
    if not isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return)) or node.value is None:
        return None, reads(node)
    part, sure = _Leads.of(text, tree).part(node.value)
    # the last frame leads nowhere, and nothing uses the value of a script
    if part is not None and how != "value" and (sure > _UNKNOWN or how == "shortcut" or isinstance(scope, ast.Module)):
        own = _own_parameters(scope)
        return _from_parameters(part, own) if how == "shortcut" and own and isinstance(part, ast.Call) else (part, reads(part))
    targets = node.targets if isinstance(node, ast.Assign) else [] if isinstance(node, (ast.Expr, ast.Return)) else [node.target]
    if all(isinstance(t, (ast.Name, ast.Tuple)) for t in targets):
        return node.value, reads(node.value)
    return None, reads(node)  # setting an attribute or an element may be what fails


@dataclass(frozen=True)
class _Leads:
    """What leads from one frame into the next in a text with marks."""

    functions: frozenset[str]  # marked ones; a class stands for its marked constructor
    read: frozenset[str]  # attributes that call something marked when read
    classes: frozenset[str]
    holders: frozenset[str]  # attributes that hold objects of marked classes, and names of compiled or exported objects
    imported: frozenset[str]

    @staticmethod
    def of(text: str, tree: ast.Module) -> _Leads:
        nodes = list(ast.walk(tree))
        functions = [n for n in nodes if isinstance(n, FUNCTIONS) and has_mark(text, n)]
        classes = {n.name: n for n in nodes if isinstance(n, ast.ClassDef) and has_mark(text, n)}
        constructors = {f for f in functions if f.name in ("__init__", "__new__", "__post_init__")}
        built = {c.name for c in classes.values() if constructors.intersection(c.body)}
        read = {f.name for f in functions if any(_is_property(d, classes) for d in f.decorator_list)}
        assigned = [n for n in nodes if isinstance(n, ast.Assign)]
        in_classes = {s for n in nodes if isinstance(n, ast.ClassDef) for s in n.body}
        read |= {last_name(n.targets[0]) for n in assigned if n in in_classes and reads(n.value) & set(classes)}
        holders = {
            last_name(n.targets[0])
            for n in assigned
            if (isinstance(n.targets[0], ast.Attribute) and reads(n.value) & set(classes)) or _makes(n.value)
        }
        imported = {bound_by(a) for n in nodes if isinstance(n, (ast.Import, ast.ImportFrom)) for a in n.names}
        named = {f.name for f in functions} | built
        return _Leads(frozenset(named), frozenset(read), frozenset(classes), frozenset(holders - {""}), frozenset(imported))

    def part(self, value: ast.expr) -> tuple[ast.expr | None, int]:
        """The part of a statement's value that most likely leads into the next frame, and how certain that is."""
        callees = {n.func for n in ast.walk(value) if isinstance(n, ast.Call)}
        best: ast.expr | None = None
        most = _NOT
        for node in ast.walk(value):
            if not isinstance(node, (ast.Call, ast.Attribute)) or node in callees:
                continue
            sure = self._sure(node)
            # of two, the inner one runs first; if neither is known, an outer one still has the inner one as its argument
            within = best.func if sure == _UNKNOWN and isinstance(best, ast.Call) else best
            if sure > most or (sure == most and within is not None and node in ast.walk(within)):
                best, most = node, sure
        return best, most

    def _sure(self, node: ast.Call | ast.Attribute) -> int:
        """How certain it is that an expression leads into the next frame."""
        if isinstance(node, ast.Attribute):
            return _KNOWN if node.attr in self.read else _NOT
        last = last_name(node.func)
        name = root(node.func)
        if last in self.functions or (isinstance(node.func, ast.Attribute) and dotted(node.func.value) in self.classes):
            return _KNOWN  # `Class.apply(...)` too
        if isinstance(node.func, ast.Call) and (_makes(node.func) or last_name(node.func.func) in self.classes):
            return _LIKELY
        if last in self.holders or last in TRACES:
            return _LIKELY
        return _NOT if name in self.imported or name in BUILTINS else _UNKNOWN


def _makes(value: ast.expr) -> bool:
    """Whether an expression makes something compiled or exported that can be called."""
    return isinstance(value, ast.Call) and last_name(value.func) in MAKES_CALLABLE


def _is_property(decorator: ast.expr, classes: Container[str]) -> bool:
    """Whether the decorated function runs when an attribute is read: `property`, `cached_property`, a descriptor in the text."""
    name = last_name(decorator.func if isinstance(decorator, ast.Call) else decorator)
    return "property" in name or name in classes
