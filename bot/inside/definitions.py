"""The source of a user's object that no top-level name of the script leads to: made inside a function, or in a local module.

A function that closes over values becomes top-level statements: its free variables first, then itself.
"""

from __future__ import annotations

import ast
import inspect
import sys
import sysconfig
import textwrap
import types
from typing import Any


def of(value: Any) -> dict[str, Any] | None:
    """`{"statements": [text, ...], "expression": text}`; None where the source cannot be had."""
    statements: list[str] = []
    try:
        expression = _express(value, statements, set())
    except _Unknown:
        return None
    return {"statements": statements, "expression": expression}


class _Unknown(Exception):
    """No source for this object."""


def installed(module: str | None) -> bool:
    """Whether a module comes with the interpreter or its packages, so that an import finds it anywhere."""
    found = sys.modules.get(module or "")
    path = getattr(found, "__file__", None)
    if found is None or module == "__main__":
        return False
    if path is None:
        return True
    roots = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    return any(root and path.startswith(root) for root in roots)


def _express(value: Any, statements: list[str], seen: set[int]) -> str:
    from .recipe import text_of

    text = text_of(value)
    if text is not None:
        return text
    if isinstance(value, types.ModuleType):
        statements.append(f"import {value.__name__}")
        return value.__name__
    if isinstance(value, types.MethodType):
        return f"{_express(value.__self__, statements, seen)}.{value.__func__.__name__}"
    if isinstance(value, (types.FunctionType, type)):
        return _define(value, statements, seen)
    state = getattr(value, "__dict__", None)
    if type(value) in (list, tuple):
        inside = ", ".join(_express(item, statements, seen) for item in value)
        return f"[{inside}]" if isinstance(value, list) else f"({inside},)"
    if state is None:
        raise _Unknown
    name = _express(type(value), statements, seen)
    return f"{name}({_arguments(value, statements, seen)})"


def _arguments(value: Any, statements: list[str], seen: set[int]) -> str:
    # An attribute with the parameter's name (or an underscore before it) is what people write in __init__.
    if type(value).__init__ is object.__init__:
        return ""
    parts = []
    for name, parameter in list(inspect.signature(type(value).__init__).parameters.items())[1:]:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        held = next((vars(value)[n] for n in (name, f"_{name}") if n in vars(value)), parameter.default)
        if held is parameter.default and parameter.default is not parameter.empty:
            continue
        if held is parameter.empty:
            raise _Unknown
        parts.append(f"{name}={_express(held, statements, seen)}")
    return ", ".join(parts)


def _define(value: Any, statements: list[str], seen: set[int]) -> str:
    name: str = value.__name__
    if installed(value.__module__):
        if "<" in value.__qualname__:
            raise _Unknown
        statements.append(f"from {value.__module__} import {value.__qualname__.split('.')[0]}")
        return str(value.__qualname__)
    if id(value) in seen:
        return name
    seen.add(id(value))
    try:
        source = textwrap.dedent(inspect.getsource(value))
    except (OSError, TypeError) as error:
        raise _Unknown from error
    is_lambda = name == "<lambda>"
    if is_lambda:
        raise _Unknown
    functions = [value] if isinstance(value, types.FunctionType) else [f for f in vars(value).values() if isinstance(f, types.FunctionType)]
    known = value.__globals__ if isinstance(value, types.FunctionType) else vars(sys.modules[value.__module__])
    for used in _header_names(source):
        if used in known and used != name:
            line = _bound(used, known[used], statements, seen)
            if line and line not in statements:
                statements.append(line)
    for function in functions:
        _bring(function, statements, seen, own=name)
    statements.append(_global(source.rstrip()))
    return name


def _header_names(source: str) -> list[str]:
    """Names that a definition needs when it is made: bases, decorators, defaults, and the class body outside its methods."""
    definition = ast.parse(source).body[0]
    found: list[str] = []
    waiting: list[ast.AST] = [definition]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            found.append(node.id)
        body = node.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else []
        waiting += [child for child in ast.iter_child_nodes(node) if child not in body]
    return list(dict.fromkeys(reversed(found)))


def _bring(function: types.FunctionType, statements: list[str], seen: set[int], own: str) -> None:
    """Statements for what a function closes over and for the globals it uses."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=False))
    used: dict[str, Any] = {}
    for name, cell in cells.items():
        if name == "__class__":
            continue
        try:
            used[name] = cell.cell_contents
        except ValueError as error:
            raise _Unknown from error
    for name in _names(function.__code__):
        if name in function.__globals__ and name not in used:
            used[name] = function.__globals__[name]
    for name, value in used.items():
        if name == own or (id(value) in seen and getattr(value, "__name__", None) == name):
            continue
        line = _bound(name, value, statements, seen)
        if line and line not in statements:
            statements.append(line)


def _names(code: types.CodeType) -> list[str]:
    found = list(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found += _names(constant)
    return list(dict.fromkeys(found))


def _bound(name: str, value: Any, statements: list[str], seen: set[int]) -> str | None:
    if isinstance(value, types.ModuleType):
        if value.__name__ == name:
            return f"import {name}"
        return f"import {value.__name__} as {name}"
    from .recipe import text_of

    if installed(getattr(value, "__module__", None)) and isinstance(value, (type, types.FunctionType)):
        return f"from {value.__module__} import {value.__qualname__}" + ("" if value.__qualname__ == name else f" as {name}")
    if text_of(value) is None and type(value).__module__.startswith("torch._ops"):
        return f"{name} = {str(value) if str(value).startswith('torch.') else 'torch.ops.' + str(value)}"
    expression = _express(value, statements, seen)
    return None if expression == name else f"{name} = {expression}"


def _global(source: str) -> str:
    # what was a free variable is now a global of the repro
    return "\n".join(
        line.replace("nonlocal ", "global ", 1) if line.strip().startswith("nonlocal ") else line for line in source.split("\n")
    )
