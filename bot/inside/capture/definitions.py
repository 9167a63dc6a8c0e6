"""The source of a user's object that no top-level name of the script leads to: made inside a function, or in a local module.

A function that closes over values becomes top-level statements: first its free variables, then the function itself.
"""

from __future__ import annotations

import ast
import enum
import functools
import inspect
import re
import symtable
import sys
import textwrap
import types
from collections.abc import Iterator
from typing import Any

from .literals import NoText, container, installed, is_at, text_of


def of(value: Any) -> dict[str, Any] | None:
    """`{"statements": [text, ...], "expression": text}` for a `value`; None if its source is not available."""
    source = _Source()
    try:
        expression = source.express(value)
    except (NoText, RecursionError):
        return None
    return {"statements": source.statements, "expression": expression}


class _Source:
    """Statements for the top level of a script, in the order of their dependencies."""

    def __init__(self) -> None:
        self.statements: list[str] = []
        self.bound: dict[str, Any] = {}  # what each top-level name stands for

    def express(self, value: Any) -> str:
        """An expression for a value; adds the statements that it needs. Raises NoText if there is none."""
        imported = _imported(value)
        if imported is not None:
            module, name = imported
            first = name.split(".")[0]
            self._claim(first, getattr(sys.modules[module], first))
            self._add(f"from {module} import {first}")
            return name
        text = text_of(value) or _operator(value)
        if text is not None:
            return text
        if isinstance(value, types.ModuleType):
            if not installed(value.__name__):
                raise NoText
            self._add(f"import {value.__name__}")
            return value.__name__
        if type(value) is functools.partial:
            self._add("import functools")
            given = [self.express(item) for item in (value.func, *value.args)]
            given += [f"{name}={self.express(item)}" for name, item in value.keywords.items()]
            return f"functools.partial({', '.join(given)})"
        if isinstance(value, types.MethodType):
            return f"{self.express(value.__self__)}.{value.__func__.__name__}"
        if isinstance(value, enum.Enum):
            return f"{self.express(type(value))}.{value.name}"
        text = container(value, self.express)
        if text is not None:
            return text
        if isinstance(value, (types.FunctionType, type)):
            return self._define(value)
        if not hasattr(value, "__dict__"):
            raise NoText
        return f"{self.express(type(value))}({self._arguments(value)})"

    def _add(self, statement: str) -> None:
        if statement not in self.statements:
            self.statements.append(statement)

    def _claim(self, name: str, value: Any) -> bool:
        """Reserve a top-level name; returns whether it was free. Two things with the same name cannot both be at the top level."""
        if name not in self.bound:
            self.bound[name] = value
            return True
        held = self.bound[name]
        if held is not value and (text_of(held) is None or text_of(held) != text_of(value)):
            raise NoText
        return False

    def _bind(self, name: str, value: Any) -> None:
        """Add statements that bind a name to a value."""
        if name in self.bound:
            self._claim(name, value)
            return
        if isinstance(value, types.ModuleType) and installed(value.__name__):
            self._claim(name, value)
            self._add(f"import {value.__name__}" + ("" if name == value.__name__ else f" as {name}"))
            return
        imported = _imported(value)
        if imported is not None and "." not in imported[1]:
            self._claim(name, value)
            self._add(f"from {imported[0]} import {imported[1]}" + ("" if name == imported[1] else f" as {name}"))
            return
        expression = self.express(value)
        if self._claim(name, value):
            self._add(f"{name} = {expression}")

    def _arguments(self, value: Any) -> str:
        # The usual __init__ stores a parameter in an attribute of the same name, or with an underscore before it.
        kind: Any = type(value)
        if kind.__new__ is not object.__new__:
            raise NoText
        if kind.__init__ is object.__init__:
            return ""
        try:
            parameters = list(inspect.signature(kind.__init__).parameters.items())[1:]
        except (TypeError, ValueError) as error:
            raise NoText from error
        parts = []
        for name, parameter in parameters:
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                continue
            held = next((vars(value)[n] for n in (name, f"_{name}") if n in vars(value)), parameter.default)
            if held is parameter.default and parameter.default is not parameter.empty:
                continue
            if held is parameter.empty:
                raise NoText
            parts.append(self.express(held) if parameter.kind is parameter.POSITIONAL_ONLY else f"{name}={self.express(held)}")
        return ", ".join(parts)

    def _define(self, value: Any) -> str:
        """Add the definition of a function or class, after everything that it names."""
        name: str = value.__name__
        if not self._claim(name, value):
            return name
        functions = [inspect.unwrap(value)] if isinstance(value, types.FunctionType) else list(_functions(value))
        known: dict[str, Any] = dict(vars(sys.modules[value.__module__])) if value.__module__ in sys.modules else {}
        free: set[str] = set()
        for function in functions:
            known.update(function.__globals__)
        for function in functions:
            for variable, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
                free.add(variable)
                try:
                    known[variable] = cell.cell_contents
                except ValueError as error:
                    raise NoText from error
        try:
            source = _as_global(textwrap.dedent(inspect.getsource(value)).rstrip(), free)
            definition = ast.parse(source).body[0]
            names = _names(source)
        except (OSError, TypeError, SyntaxError) as error:
            raise NoText from error
        if getattr(definition, "name", None) != name:
            raise NoText  # a lambda, or a name that was assigned later
        for used in names:
            if used != name and used in known and not used.startswith("__"):
                self._bind(used, known[used])
        self._add(source)
        return name


def _operator(value: Any) -> str | None:
    """An operator of `torch.ops`, or one of its namespaces, which are modules that cannot be imported."""
    if isinstance(value, types.ModuleType):
        return value.__name__ if type(value).__module__ == "torch._ops" else None
    module = getattr(value, "__module__", None)
    if not isinstance(module, str) or not module.startswith(("torch._ops.", "torch.ops.")):
        return None
    return f"torch.ops.{module.partition('ops.')[2]}.{value.__name__}"


def _imported(value: Any) -> tuple[str, str] | None:
    """Module and name from which a function, a class or a form like `typing.Any` is imported."""
    if isinstance(value, types.ModuleType):
        return None  # a module is no attribute to import: torch._ops holds torch, and with it torch.ops.aten under its whole name
    module = getattr(value, "__module__", None)
    name = getattr(value, "__qualname__", None) or getattr(value, "_name", None) or getattr(value, "__name__", None)
    if not isinstance(module, str) or not isinstance(name, str) or not installed(module):
        return None
    return (module, name) if is_at(module, name, value) else None


def _functions(value: type) -> Iterator[types.FunctionType]:
    """The functions in a class body."""
    for held in vars(value).values():
        parts = (held.fget, held.fset, held.fdel) if isinstance(held, property) else (getattr(held, "__func__", held),)
        for part in parts:
            function = inspect.unwrap(part) if callable(part) else part
            if isinstance(function, types.FunctionType) and function.__module__ == value.__module__:
                yield function


def _names(source: str) -> list[str]:
    """Names that a definition takes from its surroundings, when it is made or when it is called."""
    found: list[str] = []

    def look(table: symtable.SymbolTable) -> None:
        for symbol in table.get_symbols():
            outer = not symbol.is_assigned() if table.get_type() == "module" else symbol.is_global()
            if outer and (symbol.is_referenced() or symbol.is_declared_global()):
                found.append(symbol.get_name())
        for child in table.get_children():
            look(child)

    look(symtable.symtable(source, "definition", "exec"))
    return list(dict.fromkeys(found))


def _as_global(source: str, free: set[str]) -> str:
    """The source in which former free variables are globals of the script."""

    def say(match: re.Match[str]) -> str:
        own = {name.strip() for name in match[2].split(",")} <= free
        return f"{match[1]}{'global' if own else 'nonlocal'} {match[2]}"

    return re.sub(r"^([ \t]*)nonlocal ([\w, \t]+)", say, source, flags=re.MULTILINE)
