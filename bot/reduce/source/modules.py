"""One script from a script and the local modules that it imports."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from bot.reduce.source.layout import MARK, legal, marked, normal, unmarked
from bot.reduce.source.names import dotted, names_of
from bot.reduce.source.prune import replaced
from bot.reduce.source.splice import spliced


def inlined(text: str, modules: Mapping[str, str]) -> str | None:
    """The script, in normal form, with the modules' statements in the place of their imports.

    `modules` maps a module's full name to its text. None where nothing of them is imported at the top of the script, or where
    two of the files mean different things by one name. Marks in the texts are kept. Raises SyntaxError where one is not Python.
    """
    joined = _Join(modules)
    whole = joined.file("", normal(text))
    if not joined.done or joined.clash:
        return None
    whole = normal(_without_repeats(whole))
    return whole if legal(whole) else None


def joined(
    text: str, lines: Sequence[int], modules: Mapping[str, str], module_lines: Mapping[str, Sequence[int]]
) -> tuple[str, tuple[int, ...]]:
    """The script with its modules written into it, and where the lines that a traceback names are then.

    `lines` are the script's (1-based) and `module_lines` each module's. The script and its lines as they are where nothing can be
    written in.
    """
    try:
        whole = inlined(marked(text, lines), {name: marked(of, module_lines.get(name, ())) for name, of in modules.items()})
    except SyntaxError:
        whole = None
    if whole is None:
        return text, tuple(lines)
    return unmarked(whole), tuple(number for number, line in enumerate(whole.split("\n"), 1) if line.endswith(MARK))


class _Join:
    def __init__(self, modules: Mapping[str, str]) -> None:
        self._modules = {name: normal(text) for name, text in modules.items()}
        self._owner: dict[str, str] = {}  # name at the top of the result: the file that defines it
        self.done: set[str] = set()
        self.clash = False

    def file(self, name: str, text: str) -> str:
        """A file's text with its imports of modules replaced by their statements, where they are not there yet."""
        tree = ast.parse(text)
        package = name.rpartition(".")[0]
        changes: dict[ast.stmt, str | None] = {}
        prefixes: dict[str, str] = {}  # `m` of `import m`, `import p.q as m`
        for statement in tree.body:
            if isinstance(statement, ast.ImportFrom):
                target = self._target(statement, package)
                if statement.module == "__future__":
                    changes[statement] = None
                elif target in self._modules:
                    lines = [self._module(target)]
                    lines += [f"{a.asname} = {a.name}" for a in statement.names if a.asname is not None and a.asname != a.name]
                    changes[statement] = "\n".join(line for line in lines if line) or None
                elif any(f"{target}.{a.name}" in self._modules for a in statement.names):
                    inner = [f"{target}.{a.name}" for a in statement.names]
                    prefixes.update({a.asname or a.name: m for a, m in zip(statement.names, inner, strict=True)})
                    changes[statement] = "\n".join(t for t in map(self._module, inner) if t) or None
            elif isinstance(statement, ast.Import) and all(a.name in self._modules for a in statement.names):
                prefixes.update({a.asname or a.name: a.name for a in statement.names})
                changes[statement] = "\n".join(t for t in (self._module(a.name) for a in statement.names) if t) or None
            elif name and _is_guard(statement):
                changes[statement] = None
            else:
                self._claim(name, statement)
        inside = [s for s in changes if changes[s] is not None or isinstance(s, (ast.Import, ast.ImportFrom))]
        reads = [
            (n, n.attr)
            for s in tree.body
            if s not in inside
            for n in ast.walk(s)
            if isinstance(n, ast.Attribute) and (dotted(n.value) or "") in prefixes
        ]
        return replaced(spliced(text, reads), _moved(text, spliced(text, reads), changes))

    def _module(self, name: str) -> str:
        if name in self.done:
            return ""
        self.done.add(name)
        return self.file(name, self._modules[name]).strip("\n")

    def _target(self, statement: ast.ImportFrom, package: str) -> str:
        """The full name of the module that a `from` import names."""
        base = package
        for _ in range(statement.level - 1):
            base = base.rpartition(".")[0]
        own = statement.module or ""
        return own if statement.level == 0 else f"{base}.{own}".strip(".")

    def _claim(self, name: str, statement: ast.stmt) -> None:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            code = ast.unparse(statement)
            for bound in names_of(statement).binds:
                if bound != "*" and self._owner.setdefault(bound, code) not in (code, f"import {bound}"):
                    self.clash = True
            return
        for bound in names_of(statement).binds:
            if self._owner.setdefault(bound, name) != name:
                self.clash = True


def _moved(before: str, after: str, changes: Mapping[ast.stmt, str | None]) -> dict[ast.stmt, str | None]:
    """The changes for the same statements of the text after names were replaced in it (lines are where they were)."""
    places = {(s.lineno, s.col_offset): code for s, code in changes.items()}
    assert before.count("\n") == after.count("\n")
    return {s: places[s.lineno, s.col_offset] for s in ast.parse(after).body if (s.lineno, s.col_offset) in places}


def _is_guard(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and "__name__" in {n.id for n in ast.walk(statement.test) if isinstance(n, ast.Name)}


def _without_repeats(text: str) -> str:
    """The text with each import once, all of them first."""
    tree = ast.parse(text)
    found = [s for s in tree.body if isinstance(s, (ast.Import, ast.ImportFrom))]
    code = list(dict.fromkeys(ast.unparse(s) for s in found))
    return "\n".join(code) + "\n" + replaced(text, dict.fromkeys(found))
