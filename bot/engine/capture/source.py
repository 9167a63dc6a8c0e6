"""The program as one text: the user's script, or a script that calls the failing test."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from bot.engine.capture.fixtures import Fixtures
from bot.engine.capture.local_modules import INSTALLED, read_source
from bot.engine.capture.region import Capture, ChildMain
from bot.engine.target import Target
from bot.reduce.source.environ import with_surroundings
from bot.reduce.source.text.normal_form import parsed

_CODING = re.compile(r"^[ \t\f]*#.*?coding[:=][ \t]*[-\w.]+.*$", re.M)
_NODE_ID = re.compile(r"(?P<file>[^:\[]+\.py)(?:::(?P<names>[\w:]+?))?(?:\[(?P<case>.*)\])?$", re.S)
_UNITTEST_ID = re.compile(r"(?:\w+\.)*(?P<file>\w+)\.(?P<owner>\w+)\.(?P<test>\w+)")
# The most rows of a `range` that are looked at.
_MOST_ROWS = 1000
# The most cases of one test that are tried.
_MOST_CASES = 16
_LISTS = (ast.Tuple, ast.List)

# A row of a mark: its pytest id, None if a function makes it, and its values.
_Row = tuple[str | None, list[ast.expr]]


@dataclass(frozen=True)
class Source:
    """A script's text, and the file that most of it comes from. `others` are tried, in order, if `text` does not fail.

    `package` is the full name of the package that the file's relative imports start from, if it runs as a module of one.
    """

    text: str
    file: Path
    others: tuple[str, ...] = ()
    package: str = ""

    @property
    def name(self) -> str:
        """What the file's path in tracebacks ends with."""
        return "/".join([*self.package.split("."), self.file.name]) if self.package else self.file.name


def source_of(target: Target, directory: Path, failed: str = "", places: Sequence[Path] = ()) -> Source | None:
    """The program that `target` runs, as one text. None if it is none of the following, or if the test takes a fixture from elsewhere:

    - a script: its text;
    - `python -m MODULE`: the module's text, if it lies in one of the `places`;
    - `pytest FILE::TEST`, also by `python -m unittest`: the text of the file (below `directory`) with a call of the test at its end;
    - a launcher of several ranks: the text of what a rank runs.

    `failed` names the test that failed (see `Capture.test`). It selects the case of a parametrized test, and, in a script that runs its own
    tests, the only one that is called. Fixtures that the test takes and that are functions of its file are called before it. The file's
    autouse fixtures are called only in alternatives, tried after the test alone.
    """
    if target.script is not None:
        text = _text(target.script)
        alone = [found] if (found := _with_one_test(text, failed)) else _with_one_of_pytest(text, failed, target.script)
        return Source(alone[0], target.script, (*alone[1:], text)) if alone else Source(text, target.script)
    if target.starts_ranks:
        file = directory / target.file if target.file is not None else None
        return Source(_text(file), file) if file is not None and file.is_file() else None
    if target.tests is None:
        return _of_module(target.module or "", places)
    dotted = target.module == "unittest"
    ids = [m for m in map(_NODE_ID.match, target.tests) if m and os.path.isfile(directory / m["file"])]
    if len(ids) != 1:
        return None
    file = directory / ids[0]["file"]
    text = _imported(_text(file))
    # the values of a subtest follow its name
    known = _NODE_ID.match(_UNITTEST_ID.sub(r"\g<file>.py::\g<owner>::\g<test>", failed.partition(" (")[0]) if dotted else failed)
    # a test of another file is not in this text
    wanted = [known, ids[0]] if known and Path(known["file"]).name == file.name else ids
    try:
        call = _Call(parsed(text))
    except SyntaxError:
        return None
    fixtures = Fixtures(text, call.tree)
    for node in wanted:
        names = node["names"].split("::") if node["names"] else []
        texts = [*_calls(call, names, node["case"], fixtures, ())] if names else []
        if texts:
            given = _calls(call, names, node["case"], fixtures, fixtures.automatic) if fixtures.automatic else ()
            # only with relative imports: otherwise, modules next to the file may be imported directly, as pytest can be set up to do
            relative = any(isinstance(one, ast.ImportFrom) and one.level for one in ast.walk(call.tree))
            others = tuple(dict.fromkeys([*texts[1:], *given]))
            return Source(texts[0], file, others, _package_of(file, directory) if relative else "")
    return None


def _package_of(file: Path, directory: Path) -> str:
    """The package that a test's `file` is imported as a module of, if that is inside the `directory` of the run; else empty."""
    parents = [parent for parent in file.parents if parent != directory and parent.is_relative_to(directory)]
    return ".".join(parent.name for parent in reversed(parents)) if all((one / "__init__.py").is_file() for one in parents) else ""


def _calls(call: _Call, names: list[str], case: str | None, fixtures: Fixtures, automatic: Sequence[str]) -> Iterator[str]:
    """The file with a call of its test for each case, after the calls of its fixtures and of the `automatic` ones."""
    own = fixtures.needed_by(call.unset(names))
    prepared = fixtures.prepared([*automatic, *own], case or "")
    if prepared is None:
        return
    before = "".join(f"{statement}\n" for statement in prepared.statements)
    values = {name: prepared.values[name] for name in own}
    for statement in islice(call.of(names, case, values), _MOST_CASES):
        yield f"{prepared.text.rstrip()}\n\n\n{before}{statement}\n"


def of_child(source: Source | None, child: Capture, places: Sequence[Path]) -> Source | None:
    """The program of `source`, narrowed down to what the child process that failed did, according to the `child`'s capture. The program
    itself is tried after that.

    If all that this process did was one call, it is the file without its main-only code and with that call at its end. Otherwise it is the
    script that the process ran, the same one or another, with its arguments. Modules next to that are read only below one of the `places`.
    """
    if source is not None and child.call and (text := _with_call(source.text, child.call)):
        return replace(source, text=text, others=(source.text, *source.others))
    before = (source.text, *source.others) if source is not None else ()
    started = source if child.main is None else _started(child.main, (*places, source.file.parent) if source is not None else places)
    if started is None or child.argv is None:
        return source
    text, _ = with_surroundings(started.text, (), {}, child.argv)
    return replace(started, text=text, others=tuple(other for other in before if other != text))


def _started(main: ChildMain, places: Sequence[Path]) -> Source | None:
    """What a process ran; None if it was an installed tool."""
    file = Path(os.path.normpath(main.file))
    if any(map(INSTALLED.fullmatch, file.parts)):
        return None
    file = file / "<string>" if file.is_dir() else file
    # a program can name any file, even through a link, and we may read more than it may
    real = os.path.realpath(file)
    known = any(Path(real).is_relative_to(os.path.realpath(place)) for place in places)
    return Source(main.text, file if known else Path.cwd() / file.name, package=main.package if known else "")


def _with_call(text: str, call: str) -> str | None:
    """The script as another process imports it, with a `call` of a function with literals at its end; None if it is not such a call."""
    try:
        parsed(text)
        made = ast.parse(call, mode="eval").body
        if not isinstance(made, ast.Call) or not isinstance(made.func, ast.Name):
            return None
        for value in (*made.args, *(keyword.value for keyword in made.keywords)):
            ast.literal_eval(value)
    except (SyntaxError, ValueError):
        return None
    return f"{_imported(text).rstrip()}\n\n\n{ast.unparse(made)}\n"


def _of_module(name: str, places: Sequence[Path]) -> Source | None:
    """What `python -m NAME` runs: the module's own file, or the package's `__main__.py`."""
    parts = name.split(".")
    for place in places:
        file, main = place.joinpath(*parts[:-1], f"{parts[-1]}.py"), place.joinpath(*parts, "__main__.py")
        if file.is_file():
            return Source(_text(file), file, package=name.rpartition(".")[0])
        if main.is_file():
            return Source(_text(main), main, package=name)
    return None


def _with_one_test(text: str, failed: str) -> str | None:
    """A script that ends in `unittest.main()`, or PyTorch's `run_tests()`, with a call of the failing test in its place."""
    test = _UNITTEST_ID.fullmatch(failed)
    try:
        body = parsed(text).body
    except SyntaxError:
        return None
    last = body[-1] if body else None
    if isinstance(last, ast.If) and ast.unparse(last.test) == "__name__ == '__main__'":
        last = last.body[-1]
    if test is None or test["file"] != "__main__" or not isinstance(last, ast.Expr) or not isinstance(last.value, ast.Call):
        return None
    if ast.unparse(last.value.func).rpartition(".")[2] not in ("main", "run_tests"):
        return None
    lines = text.split("\n")
    line = lines[last.lineno - 1].encode()
    before = line[: last.col_offset].decode()
    calls = [f"{test['owner']}.setUpClass()", f"{test['owner']}({test['test']!r}).debug()"]
    # whatever precedes it on its line stays
    lines[last.lineno - 1 : last.end_lineno] = [before + "; ".join(calls)] if before.strip() else [before + call for call in calls]
    return "\n".join(lines)


def _with_one_of_pytest(text: str, failed: str, script: Path) -> list[str]:
    """A script that runs its own tests by `pytest.main()`, with calls of the failing one in its place; empty if it has no such test."""
    known = _NODE_ID.match(failed)
    if known is None or not known["names"] or Path(known["file"]).name != script.name:
        return []
    try:
        tree = parsed(text)
    except SyntaxError:
        return []
    runs = [one for one in tree.body if not isinstance(one, (ast.FunctionDef, ast.ClassDef)) and "pytest.main(" in ast.unparse(one)]
    alone = _blanked(_imported(text), runs)
    tree = parsed(alone)
    return list(_calls(_Call(tree), known["names"].split("::"), known["case"], Fixtures(alone, tree), ()))


def _imported(text: str) -> str:
    """The text of a script without what it does only as the main module, such as running its own tests."""
    try:
        body = parsed(text).body
    except SyntaxError:
        return text
    return _blanked(
        text, [one for one in body if isinstance(one, ast.If) and not one.orelse and ast.unparse(one.test) == "__name__ == '__main__'"]
    )


def _blanked(text: str, statements: Iterable[ast.stmt]) -> str:
    """The text with these `statements` blanked out: a failure refers to the others by line number."""
    lines = text.split("\n")
    for statement in statements:
        end = statement.end_lineno or statement.lineno
        lines[statement.lineno - 1 : end] = [""] * (end - statement.lineno + 1)
    return "\n".join(lines)


def _text(file: Path) -> str:
    try:
        text = read_source(file)
    except SyntaxError:
        return file.read_text(encoding="utf-8", errors="replace")
    # candidates are written as UTF-8, whatever this file is
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

    def of(self, names: list[str], case: str | None, given: Mapping[str, str]) -> Iterator[str]:
        """The statement that calls the test, for each case of that name or, if none is named, for every case, in order. `given` maps other
        parameters to the names of their values."""
        test, classes = self._find(names)
        if len(classes) == 1 and test is not None and any("TestCase" in ast.unparse(base) for base in classes[0].bases):
            # debug() runs the test with its setup and teardown, and lets its error propagate
            above = f"{classes[0].name}.setUpClass()\n" if self._sets_up_a_class() else ""
            yield f"{above}{classes[0].name}({names[-1]!r}).debug()"
            return
        if test is None or test.args.vararg or test.args.kwonlyargs:
            return
        parameters = [name for name in self.parameters(names) if name not in given]
        owner = ".".join(c.name for c in classes) + "()." if classes else ""
        for found in self._values(test, classes, parameters, case):
            values = {**found, **given}
            yield f"{owner}{names[-1]}({', '.join(f'{name}={value}' for name, value in values.items())})"

    def _sets_up_a_class(self) -> bool:
        methods = (one for owner in self.tree.body if isinstance(owner, ast.ClassDef) for one in owner.body)
        return any(isinstance(one, ast.FunctionDef) and one.name == "setUpClass" for one in methods)

    def parameters(self, names: list[str]) -> list[str]:
        """The parameters of the test with that name."""
        test, classes = self._find(names)
        return [argument.arg for argument in test.args.args][1 if classes else 0 :] if test is not None else []

    def unset(self, names: list[str]) -> list[str]:
        """The parameters of the test that no mark sets."""
        test, classes = self._find(names)
        marked = {name for listed, _ in self._marks(test, classes) for name in listed} if test is not None else set()
        return [name for name in self.parameters(names) if name not in marked]

    def _marks(self, test: ast.FunctionDef, classes: list[ast.ClassDef]) -> list[tuple[list[str], list[_Row]]]:
        return list(self._parametrized([*test.decorator_list, *(d for c in reversed(classes) for d in c.decorator_list)]))

    def _find(self, names: list[str]) -> tuple[ast.FunctionDef | None, list[ast.ClassDef]]:
        """The test with that name, and the classes that it is in, outermost first."""
        body: list[ast.stmt] = self.tree.body
        classes: list[ast.ClassDef] = []
        for name in names[:-1]:
            found = next((s for s in body if isinstance(s, ast.ClassDef) and s.name == name), None)
            if found is None:
                return None, []
            classes.append(found)
            body = found.body
        return next((s for s in body if isinstance(s, ast.FunctionDef) and s.name == names[-1]), None), classes

    def _values(
        self, test: ast.FunctionDef, classes: list[ast.ClassDef], parameters: list[str], case: str | None
    ) -> Iterator[dict[str, str]]:
        """The parameters' values as code, from the marks whose values make up the case's name; every combination if no case is named or a
        function makes the names. Nothing if a parameter gets its value elsewhere."""
        if not parameters:
            yield {}
            return
        marks = self._marks(test, classes)

        def search(left: list[tuple[list[str], list[_Row]]], name: str | None, values: dict[str, str]) -> Iterator[dict[str, str]]:
            if not left:
                if not name and set(values) == set(parameters):
                    yield values
                return
            names, rows = left[0]
            for shown, items in rows:
                if len(items) != len(names):
                    continue
                if name is None or shown is None or name == shown or name.startswith(shown + "-"):
                    rest = None if name is None or shown is None else name[len(shown) + 1 :]
                    yield from search(left[1:], rest, {**values, **dict(zip(names, map(ast.unparse, items), strict=True))})

        known = all(shown is not None for _, rows in marks for shown, _ in rows)
        yield from search(marks, case if known else None, {})

    def _row(self, row: ast.expr, count: int, name: ast.expr | None) -> _Row:
        """A row of a mark that sets `count` parameters, and its pytest id: its own, the `name` that the mark gives it, or one made of its
        values."""
        own = isinstance(row, ast.Call) and ast.unparse(row.func).endswith("param")
        listed = row.args if own and isinstance(row, ast.Call) else row.elts if count > 1 and isinstance(row, _LISTS) else [row]
        ids = [keyword.value for keyword in row.keywords if keyword.arg == "id"] if own and isinstance(row, ast.Call) else []
        given = [one for one in (*ids, name) if one is not None and not (isinstance(one, ast.Constant) and one.value is None)]
        if not given:
            return "-".join(map(_shown, listed)), list(listed)
        return (str(given[0].value) if isinstance(given[0], ast.Constant) else None), list(listed)

    def _parametrized(self, decorators: list[ast.expr]) -> Iterator[tuple[list[str], list[_Row]]]:
        """Names and rows of each `pytest.mark.parametrize`, innermost first, which is how pytest names its cases."""
        for mark in reversed(decorators):
            if not (isinstance(mark, ast.Call) and ast.unparse(mark.func).endswith("parametrize") and len(mark.args) >= 2):
                continue
            names, rows = mark.args[0], self._listed(mark.args[1])
            if isinstance(names, ast.Constant) and isinstance(names.value, str):
                listed = [name.strip() for name in names.value.split(",")]
            elif isinstance(names, _LISTS):
                listed = [item.value for item in names.elts if isinstance(item, ast.Constant) and isinstance(item.value, str)]
            else:
                continue
            ids = next((keyword.value for keyword in mark.keywords if keyword.arg == "ids"), None)
            told = self._listed(ids) if ids is not None else []
            called = [ids if told is None else told[place] if place < len(told) else None for place in range(len(rows or ()))]
            if rows is not None:
                yield listed, [self._row(row, len(listed), name) for row, name in zip(rows, called, strict=True)]

    def _listed(self, value: ast.expr) -> list[ast.expr] | None:
        """The items of a list, a tuple or a `range`, also through the name of a constant; None for anything else."""
        if isinstance(value, ast.Name):
            value = self.constants.get(value.id, value)
        if isinstance(value, ast.Call) and ast.unparse(value.func) == "range" and all(isinstance(a, ast.Constant) for a in value.args):
            bounds = [a.value for a in value.args if isinstance(a, ast.Constant) and isinstance(a.value, int)]
            return [ast.Constant(number) for number in list(range(*bounds))[:_MOST_ROWS]]
        return list(value.elts) if isinstance(value, _LISTS) else None


def _shown(value: ast.expr) -> str:
    """How pytest writes a value in a case's name."""
    if isinstance(value, ast.Constant):
        return str(value.value)
    if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub):
        return f"-{_shown(value.operand)}"
    # functions, classes and dtypes go by their own name
    return ast.unparse(value).rpartition(".")[2] if isinstance(value, ast.Name) else ast.unparse(value)
