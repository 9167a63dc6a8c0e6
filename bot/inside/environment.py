"""Settings from environment variables, which torch reads once, when one of its config modules is imported.

A script that sets them at its top, before it imports torch, comes too late here: a worker imported all of torch long ago. So they are read
from its text, and the config modules are updated as if they had been imported afterwards.
"""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.util
import os
import sys
import warnings
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from . import variables

# What imports the config modules, which `import torch` alone does not.
_READERS = {"compile", "compiler", "export", "_dynamo", "_export", "_functorch", "_inductor"}
_for_children: set[str] = set()  # variables that no config module of this process reads


def state(text: str) -> list[str]:
    """Set the variables that a script (`text`) sets at its top; returns the names of those that changed."""
    changed = []
    for name, value, stays in _stated(text):
        if os.environ.get(name) != value and not (stays and name in os.environ):
            os.environ[name] = value
            changed.append(name)
    return changed


def state_before_torch(text: str) -> None:
    """Set the variables that a script (`text`) sets at its top, as if torch had not been imported yet."""
    changed = state(text)
    if not changed:
        return
    config_module: type = importlib.import_module("torch.utils._config_module").ConfigModule
    for module in list(sys.modules.values()):
        if issubclass(type(module), config_module) and _mentions(module, changed):
            _replace(module, _read_again(module))


def leave_to_children(name: str, module: ModuleType) -> None:
    """Update a config `module` as if the variable `name` were not set; the variable stays set for the processes that this one starts."""
    _for_children.add(name)
    _replace(module, _read_again(module))


def defaults(module: ModuleType) -> dict[str, Any]:
    """The entries of a config `module` as they would be without the settings in the environment."""
    settings = variables.settings_of(os.environ)
    entries: dict[str, Any] = vars(module)["_config"]
    return {**entries, **_plain(module, tuple(settings.items()))} if _mentions(module, list(settings)) else entries


@functools.cache
def _plain(module: ModuleType, settings: tuple[tuple[str, str], ...]) -> dict[str, Any]:
    """The entries that these settings in the environment change, as they would be without them."""
    given: dict[str, Any] = vars(_read_again(module))["_config"]
    for name, _ in settings:
        del os.environ[name]
    try:
        without: dict[str, Any] = vars(_read_again(module))["_config"]
    finally:
        os.environ.update(settings)
    # both were read now: an entry may also depend on the working directory
    return {name: entry for name, entry in without.items() if name in given and unassigned(given[name]) != unassigned(entry)}


def _read_again(module: ModuleType) -> ModuleType:
    """A config module newly created from the current environment, without what is for children; the one in use is not changed."""
    name = f"{module.__name__}_again"
    spec = importlib.util.spec_from_file_location(name, module.__file__)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot read {module.__name__} again")
    again = importlib.util.module_from_spec(spec)
    sys.modules[name] = again  # where the module looks for itself
    hidden = {one: os.environ.pop(one) for one in _for_children & set(os.environ)}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            spec.loader.exec_module(again)
    finally:
        del sys.modules[name]
        os.environ.update(hidden)
    return again


def _replace(module: ModuleType, again: ModuleType) -> None:
    """Give a config module the entries that differ in another reading of it."""
    entries: dict[str, Any] = vars(module)["_config"]
    for name, entry in vars(again)["_config"].items():
        if name in entries and unassigned(entries[name]) != unassigned(entry):
            module.__delattr__(name)  # the only way, in all versions, to drop what was computed from the old one
            entries[name] = entry


def unassigned(entry: Any) -> tuple[Any, ...]:
    """The values that a config `entry` may have without an assignment."""
    return entry.default, entry.env_value_default, entry.env_value_force


def _mentions(module: ModuleType, names: list[str]) -> bool:
    if not names or not module.__file__:
        return False
    with open(module.__file__, encoding="utf-8") as file:
        text = file.read()
    return any(name in text for name in names)


def _stated(text: str) -> Iterator[tuple[str, str, bool]]:
    """Name and value of each setting that a script puts into `os.environ` at its top, before anything imports the compiler, and whether an
    existing value takes precedence."""
    if "environ" not in text:
        return
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return  # running it will report that
    for statement in tree.body:
        if _imports_compiler(statement):
            return
        for name, value, stays in _assigned(statement):
            if isinstance(name, str) and isinstance(value, str) and variables.is_setting(name):
                yield name, value, stays


def _assigned(statement: ast.stmt) -> Iterator[tuple[Any, Any, bool]]:
    if isinstance(statement, ast.Assign):
        for target in statement.targets:
            if isinstance(target, ast.Subscript) and _is_environ(target.value):
                yield _constant(target.slice), _constant(statement.value), False
    elif isinstance(statement, ast.AugAssign) and _is_environ(statement.target) and isinstance(statement.op, ast.BitOr):
        yield from _items(statement.value)
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call = statement.value
        if not isinstance(call.func, ast.Attribute) or not _is_environ(call.func.value):
            return
        if call.func.attr == "setdefault" and len(call.args) == 2:
            yield _constant(call.args[0]), _constant(call.args[1]), True
        elif call.func.attr == "update":
            for mapping in call.args:
                yield from _items(mapping)
            for keyword in call.keywords:
                yield keyword.arg, _constant(keyword.value), False


def _items(mapping: ast.expr) -> Iterator[tuple[Any, Any, bool]]:
    if isinstance(mapping, ast.Dict):
        for key, value in zip(mapping.keys, mapping.values, strict=True):
            yield _constant(key), _constant(value), False


def _constant(node: ast.expr | None) -> Any:
    return node.value if isinstance(node, ast.Constant) else None


def _is_environ(node: ast.expr) -> bool:
    return (isinstance(node, ast.Attribute) and node.attr == "environ") or (isinstance(node, ast.Name) and node.id == "environ")


def _imports_compiler(statement: ast.stmt) -> bool:
    """Whether running this statement imports the compiler, judging by its own text."""
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        named: list[str] = []
        if isinstance(node, ast.Import):
            named = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            named = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            named = [f"{node.value.id}.{node.attr}"]
        if any(name.startswith("torch.") and name.split(".")[1] in _READERS for name in named):
            return True
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            waiting += node.decorator_list  # its body does not run yet
        elif not isinstance(node, ast.Lambda):
            waiting += ast.iter_child_nodes(node)
    return False
