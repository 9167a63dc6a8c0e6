"""Which part of the program is to blame: without it, the failure is gone."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from bot.engine.capture.region import Region
from bot.models.failure import Verdict
from bot.reduce.candidate import Candidate
from bot.reduce.graph.form import Program
from bot.reduce.source.settings import without_setting

# Modules of torch whose entries may be the user's objects.
CONFIGS = ("torch._inductor.config", "torch._dynamo.config", "torch._functorch.config")


@dataclass(frozen=True)
class Suspect:
    """A user's object that takes part in the compile: where it is set, and its name.

    `setting` is the full name of a setting; it is empty for the backend pass of a `device`.
    """

    setting: str
    name: str
    device: str = ""

    @property
    def words(self) -> str:
        """How the report names it."""
        return f"{self.setting.rsplit('.', 1)[-1] or 'backend pass of ' + self.device}: {self.name}"

    def out_of_script(self, text: str) -> str | None:
        """The script `text` without it; None if the script does not set it."""
        return without_setting(text, self.setting.rpartition(".")[2] or "device_custom_pass")

    def as_in(self, text: str) -> Suspect:
        """The suspect as the script `text` names it: of a chain of passes, one may be left."""
        if re.search(rf"\b{re.escape(self.name)}\b", text):
            return self
        place = self.setting.rpartition(".")[2] or "device_custom_pass"
        names = [_made_by(value) for value in _values_at(place, text)]
        return replace(self, name=names[-1]) if names and names[-1] else self

    def out_of(self, program: Program) -> Program:
        """The `program` without it."""
        recipe = program.recipe
        if any(name == self.setting for name, _ in recipe.config):
            return replace(program, recipe=replace(recipe, config=tuple(c for c in recipe.config if c[0] != self.setting)))
        option = self.setting.removeprefix("torch._inductor.config.")
        if any(name == option for name, _ in recipe.options):
            return replace(program, recipe=replace(recipe, options=tuple(o for o in recipe.options if o[0] != option)))
        if self.setting:
            line = f"{self.setting} = None"
        else:
            line = f'torch._inductor.codegen.common.custom_backend_passes["{self.device}"] = None'
        return replace(program, recipe=replace(recipe, setup=(*recipe.setup, line)))


def suspects(regions: Iterable[Region]) -> list[Suspect]:
    """The user's objects that the captured `regions` were compiled with."""
    found: dict[Suspect, None] = {}
    for region in regions:
        recipe = region.recipe
        named = [*recipe.config.items(), *((f"torch._inductor.config.{name}", held) for name, held in recipe.options.items())]
        for name, held in named:
            if held.text is None:
                found[Suspect(name, held.name)] = None
        for device, held in recipe.custom_backend_passes.items():
            found[Suspect("", held.name, device)] = None
    return list(found)


def _values_at(place: str, text: str) -> Iterator[ast.expr]:
    """The values that the script `text` gives to an attribute, a keyword or a key called `place`."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Dict):
            given = zip(node.keys, node.values, strict=True)
            yield from (value for key, value in given if isinstance(key, ast.Constant) and key.value == place)
        elif isinstance(node, ast.keyword):
            yield from [node.value] if node.arg == place else []
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
            yield from [node.value] if node.targets[0].attr == place else []


def _made_by(value: ast.expr) -> str:
    """The name of what is called to make a value, or of the value itself; empty for anything else."""
    made = value.func if isinstance(value, ast.Call) else value
    return ast.unparse(made).rpartition(".")[2] if isinstance(made, (ast.Name, ast.Attribute)) else ""


def script_suspects(text: str) -> list[Suspect]:
    """The objects that the script `text` itself puts into torch's config modules: if no graph failed, nothing else names them."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    modules = _imported(tree)
    found: dict[Suspect, None] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Attribute):
            continue
        place = _full(node.targets[0].value, modules)
        name = _made_by(node.value)
        if place in CONFIGS and name:
            found[Suspect(f"{place}.{node.targets[0].attr}", name)] = None
    return list(found)


def culprit(
    program: Program, suspects: Iterable[Suspect], ask: Callable[[Candidate], Verdict], render: Callable[[Program], str]
) -> str | None:
    """The first of the `suspects` without which the `program` passes; None if there is none.

    `ask` is the oracle's, and `render` gives the script of a program.
    """
    for suspect in suspects:
        if ask(Candidate(render(suspect.out_of(program)), "ablation", ())) is Verdict.PASSES:
            return suspect.as_in(render(program)).words
    return None


def culprit_of_script(text: str, suspects: Iterable[Suspect], ask: Callable[[Candidate], Verdict]) -> str | None:
    """The same for a script that is not a graph: the first of the `suspects`, and of those that the script `text` itself sets, without
    which it passes. `ask` is the oracle's."""
    known = {suspect.setting: suspect.as_in(text) for suspect in reversed([*suspects, *script_suspects(text)])}
    for suspect in reversed(known.values()):
        without = suspect.out_of_script(text)
        if without is not None and ask(Candidate(without, "ablation", ())) is Verdict.PASSES:
            return suspect.words
    return None


def culprit_installed(text: str, ask: Callable[[Candidate], Verdict]) -> str | None:
    """The first function that the script `text` installs in one of torch's tables, such as a lowering, and without which it passes with all
    others in place; None if there is none. `ask` is the oracle's."""
    for words, without in _installed(text):
        if ask(Candidate(without, "ablation", ())) is Verdict.PASSES:
            return words
    return None


def _installed(text: str) -> Iterator[tuple[str, str]]:
    """For each statement that installs or registers a function in torch's tables or classes: what is installed where, and the text without
    it.

    A function that the program calls by name is left out. It may be an operator, or have a context around it: eager runs it too, and
    without the decorator the compiler is given another program.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    modules = _imported(tree)

    def is_of_torch(expression: ast.expr) -> bool:
        return _full(expression, modules).startswith("torch.")

    own = {one.name for one in tree.body if isinstance(one, (ast.FunctionDef, ast.ClassDef))}
    tables = _tables(tree, modules)

    def holds(target: ast.Subscript | ast.Attribute, value: ast.expr) -> bool:
        entry = isinstance(target, ast.Subscript) and isinstance(value, ast.Name)
        return is_of_torch(target.value) or (entry and isinstance(target.value, ast.Name) and target.value.id in tables)

    puts = {
        place: statement.targets[0]
        for place, statement in enumerate(tree.body)
        if isinstance(statement, ast.Assign)
        and isinstance(statement.targets[0], (ast.Subscript, ast.Attribute))
        and holds(statement.targets[0], statement.value)
        and not own.isdisjoint(_names(statement.value))
    }
    called = {
        name
        for place, statement in enumerate(tree.body)
        if place not in puts
        for name in _names(statement) - {getattr(statement, "name", "")}
    }
    for place, statement in enumerate(tree.body):
        if isinstance(statement, ast.Assign):
            if (put := puts.get(place)) is not None:
                key = f"[{ast.unparse(put.slice)}]" if isinstance(put, ast.Subscript) else f".{put.attr}"
                yield f"{_last(put.value, modules)}{key}: {ast.unparse(statement.value)}", _with(tree, place, ast.Pass())
        elif isinstance(statement, ast.FunctionDef) and statement.name not in called:
            for decorator in statement.decorator_list:
                if isinstance(decorator, ast.Call) and decorator.args and is_of_torch(decorator.func):
                    bare = copy.copy(statement)
                    bare.decorator_list = [one for one in statement.decorator_list if one is not decorator]
                    words = f"{_last(decorator.func, modules)}({ast.unparse(decorator.args[0])}): {statement.name}"
                    yield words, _with(tree, place, bare)


def _tables(tree: ast.Module, modules: Mapping[str, str]) -> set[str]:
    """The variables that hold what a function of torch returned, such as the table for `run_decompositions`."""
    made = [(one.targets, one.value.func) for one in tree.body if isinstance(one, ast.Assign) and isinstance(one.value, ast.Call)]
    given = [targets for targets, function in made if _full(function, modules).startswith("torch.")]
    return {target.id for targets in given for target in targets if isinstance(target, ast.Name)}


def _names(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _last(expression: ast.expr, modules: Mapping[str, str]) -> str:
    return _full(expression, modules).rpartition(".")[2]


def _with(tree: ast.Module, place: int, other: ast.stmt) -> str:
    """The script with the `other` statement instead of the one at `place`."""
    body = [*tree.body[:place], other, *tree.body[place + 1 :]]
    return ast.unparse(ast.fix_missing_locations(ast.Module(body, []))) + "\n"


def _full(expression: ast.expr, modules: Mapping[str, str]) -> str:
    """The full dotted name of an imported expression; any other expression as it is written."""
    first, _, rest = ast.unparse(expression).partition(".")
    return ".".join(filter(None, (modules.get(first, first), rest)))


def _imported(tree: ast.Module) -> dict[str, str]:
    """Maps each imported name to what it stands for, if that is another name."""
    plain = {alias.asname: alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names if alias.asname}
    return plain | {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }
