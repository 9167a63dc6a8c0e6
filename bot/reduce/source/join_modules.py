"""Joins a script and the local modules that it imports into one script."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

import libcst as cst

from bot.reduce.source.text.blocks import FUNCTIONS
from bot.reduce.source.text.names import dotted, names_of
from bot.reduce.source.text.normal_form import legal, marked, marks, normal, unmarked
from bot.reduce.source.text.repair import replaced
from bot.reduce.source.text.splice import spliced


def inlined(text: str, modules: Mapping[str, str], package: str = "") -> str | None:
    """The script `text`, in normal form, with the statements of the modules in place of their imports.

    `modules` maps full module names to their texts; `package` is the full name of the package that the script belongs to. None if the
    script imports none of them, or if two of the files give one name different meanings and it cannot be renamed. Marks in the texts are
    kept. Raises SyntaxError if one of them is not Python.
    """
    joined = _Join(modules, package)
    whole = joined.whole(normal(text))
    if not joined.done or joined.clash:
        return None
    whole = normal(_without_repeats(whole))
    return whole if legal(whole) else None


def joined(
    text: str, lines: Sequence[int], modules: Mapping[str, str], module_lines: Mapping[str, Sequence[int]], package: str = ""
) -> tuple[str, tuple[int, ...]]:
    """The script `text` with its modules inlined, and the new positions of the lines that a traceback names.

    `lines` are the script's (1-based) and `module_lines` those of each module in `modules`; `package` is the full name of the package that
    the script belongs to. The script and its lines are unchanged if nothing can be inlined.
    """
    try:
        whole = inlined(marked(text, lines), {name: marked(of, module_lines.get(name, ())) for name, of in modules.items()}, package)
    except SyntaxError:
        whole = None
    if whole is None:
        return text, tuple(lines)
    return unmarked(whole), marks(whole)


class _Join:
    """Joins files into one. A name to which two files give different meanings is renamed in the modules: `helpers_build`."""

    def __init__(self, modules: Mapping[str, str], package: str = "") -> None:
        self._package = package
        self._known = frozenset(modules)
        self._modules = {name: self._raised(normal(text), name) for name, text in modules.items()}
        self._owner: dict[str, str] = {}  # top-level name in the result: the statement or the file that defines it
        self._renames: dict[str, dict[str, str]] = {}  # by module: its renamed names
        self.done: set[str] = set()
        self.clash = self.future = False

    def whole(self, script: str) -> str:
        """The script with everything inlined."""
        script = self._raised(script, "")
        meanings: defaultdict[str, dict[str, str]] = defaultdict(dict)
        for file, text in {"": script, **self._modules}.items():
            for name, meaning in self._meanings(file, text).items():
                meanings[name][file] = meaning
        for name, files in meanings.items():
            for file, meaning in files.items():
                if len(set(files.values())) > 1 and file and not meaning.startswith(("import ", "from ")):
                    self._renames.setdefault(file, {})[name] = f"{file.rpartition('.')[2]}_{name}"
        for file, names in self._renames.items():
            self._modules[file] = renamed(self._modules[file], names)
        text = self.file("", script)
        return ("from __future__ import annotations\n" if self.future else "") + text

    def file(self, name: str, text: str) -> str:
        """A file's text with each import of a module replaced by the module's statements, unless they are there already."""
        text = renamed(text, self._imported_anew(name, ast.parse(text)))
        tree = ast.parse(text)
        changes: dict[ast.stmt, str | None] = {}
        prefixes: dict[str, str] = {}  # `m` of `import m`, `import p.q as m`
        for statement in tree.body:
            if isinstance(statement, ast.ImportFrom):
                target = self._target(statement, name)
                if statement.module == "__future__":
                    self.future = True
                    changes[statement] = None
                elif self._is_local(statement, name):
                    lines: list[str] = []
                    for alias in statement.names:
                        inner = f"{target}.{alias.name}"
                        if inner in self._modules:
                            prefixes[alias.asname or alias.name] = inner
                            lines.append(self._module(inner))
                        else:
                            lines.append(self._module(target))
                            meant = self._renames.get(target, {}).get(alias.name, alias.name)
                            if alias.asname is not None and alias.asname != meant:
                                lines.append(f"{alias.asname} = {meant}")
                    changes[statement] = "\n".join(filter(None, lines)) or None
            elif isinstance(statement, ast.Import) and self._is_local(statement, name):
                prefixes.update({a.asname or a.name: a.name for a in statement.names})
                changes[statement] = "\n".join(filter(None, (self._module(a.name) for a in statement.names))) or None
            elif name and _is_guard(statement):
                changes[statement] = None
            else:
                self._claim(name, statement, self._imported(name, tree))
        inside = [s for s in changes if changes[s] is not None or isinstance(s, (ast.Import, ast.ImportFrom))]
        reads = [
            (n, self._renames.get(prefixes[prefix], {}).get(n.attr, n.attr))
            for s in tree.body
            if s not in inside
            for n in _attributes(s, frozenset())
            if (prefix := dotted(n.value) or "") in prefixes
        ]
        return replaced(spliced(text, reads), _moved(text, spliced(text, reads), changes))

    def _raised(self, text: str, name: str) -> str:
        """The text with local imports inside functions and blocks moved to the top."""
        tree = ast.parse(text)
        nested = [n for n in ast.walk(tree) if n not in tree.body and isinstance(n, ast.stmt) and self._is_local(n, name)]
        if not nested:
            return text
        first = "".join(f"{code}\n" for code in dict.fromkeys(map(ast.unparse, nested)))
        return normal(first + replaced(text, dict.fromkeys(nested)))

    def _is_local(self, statement: ast.stmt, name: str) -> bool:
        """Whether a statement in the file `name` imports modules that are inlined."""
        if isinstance(statement, ast.ImportFrom):
            target = self._target(statement, name)
            return target in self._known or any(f"{target}.{a.name}" in self._known for a in statement.names)
        return isinstance(statement, ast.Import) and all(a.name in self._known for a in statement.names)

    def _meanings(self, file: str, text: str) -> dict[str, str]:
        """The meaning of each top-level name of a file, except those imported from the other files."""
        found: dict[str, str] = {}
        tree = ast.parse(text)
        imported = self._imported(file, tree)
        for statement in tree.body:
            future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
            if not future and not self._is_local(statement, file) and not (file and _is_guard(statement)):
                found.update({bound: _meaning(file, statement) for bound in names_of(statement).binds - {"*", *imported}})
        return found

    def _imported(self, file: str, tree: ast.Module) -> set[str]:
        """Names that a file imports from the others; its own bindings of them are fallbacks for a missing file."""
        return {
            self._renames.get(self._target(s, file), {}).get(a.name, a.asname or a.name)
            for s in tree.body
            if isinstance(s, ast.ImportFrom) and self._is_local(s, file)
            for a in s.names
        }

    def _imported_anew(self, name: str, tree: ast.Module) -> dict[str, str]:
        """Names that the file imports from a module in which they were renamed."""
        return {
            alias.name: self._renames[self._target(statement, name)][alias.name]
            for statement in tree.body
            if isinstance(statement, ast.ImportFrom)
            for alias in statement.names
            if alias.asname is None and alias.name in self._renames.get(self._target(statement, name), {})
        }

    def _module(self, name: str) -> str:
        if name in self.done:
            return ""
        self.done.add(name)
        return self.file(name, self._modules[name]).strip("\n")

    def _target(self, statement: ast.ImportFrom, name: str) -> str:
        """The full name of the module that a `from` import in the file `name` refers to."""
        # a package's own file is inside the package
        base = name if any(other.startswith(f"{name}.") for other in self._known) else name.rpartition(".")[0]
        base = base if name else self._package
        for _ in range(statement.level - 1):
            base = base.rpartition(".")[0]
        own = statement.module or ""
        return own if statement.level == 0 else f"{base}.{own}".strip(".")

    def _claim(self, name: str, statement: ast.stmt, imported: Collection[str]) -> None:
        meaning = _meaning(name, statement)
        for bound in names_of(statement).binds - {"*", *imported}:
            if self._owner.setdefault(bound, meaning) not in (meaning, f"import {bound}"):
                self.clash = True


def _meaning(file: str, statement: ast.stmt) -> str:
    """Equal imports or assignments in two files have the same meaning; any other definition is the file's own."""
    plain = isinstance(statement, (ast.Import, ast.ImportFrom, ast.Assign))
    return ast.unparse(statement) if plain else f"<{file}>"


def renamed(text: str, names: Mapping[str, str]) -> str:
    """The `text` with its top-level names changed by `names`. Attributes, keywords and a function's own parameters stay."""
    return cst.parse_module(text).visit(_GlobalRenamer(names)).code if names else text


class _GlobalRenamer(cst.CSTTransformer):
    def __init__(self, names: Mapping[str, str]) -> None:
        super().__init__()
        self._names = names

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.Attribute:
        return updated_node.with_changes(attr=original_node.attr)

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        return updated_node.with_changes(keyword=original_node.keyword)

    def on_visit(self, node: cst.CSTNode) -> bool:
        own = isinstance(node, (cst.Lambda, cst.FunctionDef)) and self._own(node.params)
        return not own and not isinstance(node, (cst.Import, cst.ImportFrom))

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.Name:
        return updated_node.with_changes(value=self._names.get(updated_node.value, updated_node.value))

    def _own(self, parameters: cst.Parameters) -> bool:
        """Whether a function has a parameter with such a name, so that the name is local inside it."""
        listed = [*parameters.posonly_params, *parameters.params, *parameters.kwonly_params]
        return any(p.name.value in self._names for p in listed)


def _attributes(node: ast.AST, shadowed: frozenset[str]) -> Iterator[ast.Attribute]:
    """Attributes of names that no enclosing function binds itself."""
    if isinstance(node, (*FUNCTIONS, ast.Lambda)):
        shadowed |= {a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)}
        shadowed |= {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    if isinstance(node, ast.Attribute) and (dotted(node.value) or "").partition(".")[0] not in shadowed:
        yield node
    for child in ast.iter_child_nodes(node):
        yield from _attributes(child, shadowed)


def _moved(before: str, after: str, changes: Mapping[ast.stmt, str | None]) -> dict[ast.stmt, str | None]:
    """The same changes for the text after names were replaced in it (the lines are the same)."""
    places = {(s.lineno, s.col_offset): code for s, code in changes.items()}
    assert before.count("\n") == after.count("\n")
    return {s: places[s.lineno, s.col_offset] for s in ast.parse(after).body if (s.lineno, s.col_offset) in places}


def _is_guard(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and "__name__" in {n.id for n in ast.walk(statement.test) if isinstance(n, ast.Name)}


def _without_repeats(text: str) -> str:
    """The text with each import once, and all imports first."""
    tree = ast.parse(text)
    found = [s for s in tree.body if isinstance(s, (ast.Import, ast.ImportFrom))]
    code = list(dict.fromkeys(ast.unparse(s) for s in found))
    return "\n".join(code) + "\n" + replaced(text, dict.fromkeys(found))
