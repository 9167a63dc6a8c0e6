"""What a run leaves in Python's own state: lists and dicts that it appends to, attributes, globals and closures that it sets.

A function that counts its calls, or keeps what it saw, behaves differently after a run that only had to find out the types of its results.
So everything it can reach is recorded before, and restored after.
"""

from __future__ import annotations

import collections
import functools
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch

# Number of objects examined for one function, and of steps from it to the farthest of them.
MOST, FARTHEST = 20_000, 12
# Their classes hold no state of the program.
_LIBRARIES = frozenset({"torch", "torch_minify_inside", *sys.stdlib_module_names})
# Neither do instances of these: threads and files continue.
_FOREIGN = _LIBRARIES - {"torch", "argparse", "collections", "types"}
_DATA_LESS = (types.FunctionType, types.BuiltinFunctionType, classmethod, staticmethod, property, type, functools.cached_property)

Content = list[tuple[Any, Any]]


class _Holder(NamedTuple):
    """A container: its content by key, in order, and a way to replace it."""

    read: Callable[[], Content]
    write: Callable[[Content], None]


class PythonState:
    """The current state that is reachable from `roots` (functions, modules, other objects)."""

    def __init__(self, *roots: Any) -> None:
        self.tensors: list[torch.Tensor] = []
        self._seen: dict[int, Any] = {}  # keeps the objects, since the id of a freed one may be reused
        self._holders: list[_Holder] = []
        waiting: collections.deque[tuple[Any, int]] = collections.deque((root, 0) for root in roots)
        while waiting and len(self._seen) < MOST:
            value, steps = waiting.popleft()
            if id(value) in self._seen or steps > FARTHEST:
                continue
            self._seen[id(value)] = value
            waiting.extend((other, steps + 1) for other in self._look_at(value))
        self._before = [holder.read() for holder in self._holders]
        self._left: list[Content] = []

    def put_back(self) -> None:
        """Restore everything to its original content. What a run left there is kept for `settle`."""
        self._left = [holder.read() for holder in self._holders]
        for holder, before, left in zip(self._holders, self._before, self._left, strict=True):
            if not _is_same(before, left):
                holder.write(before)

    def settle(self, change: Callable[[Any, Any], Any]) -> None:
        """After another run: replace each thing that was stored somewhere by the result of `change`, which gets what the first run left in
        that place and the thing itself."""
        for holder, before, left in zip(self._holders, self._before, self._left, strict=False):
            now = holder.read()
            if _is_same(before, now):
                continue
            places = {_place(key): value for key, value in left}
            changed = [(key, change(places[_place(key)], value) if _place(key) in places else value) for key, value in now]
            if not _is_same(now, changed):
                holder.write(changed)

    def _look_at(self, value: Any) -> Iterator[Any]:
        """What `value` holds; if its content can be replaced, it is recorded."""
        if isinstance(value, torch.Tensor):
            self.tensors.append(value)
        elif isinstance(value, dict):
            yield from self._holds(lambda: list(value.items()), functools.partial(_fill_dict, value))
        elif isinstance(value, list):
            yield from self._holds(lambda: list(enumerate(value)), functools.partial(_fill_list, value))
        elif isinstance(value, (set, collections.deque)):
            yield from self._holds(lambda: list(enumerate(value)), functools.partial(_fill_other, value))
        elif isinstance(value, (tuple, frozenset)):
            yield from value
        elif isinstance(value, types.CellType):
            yield from self._holds(functools.partial(_in_cell, value), functools.partial(_fill_cell, value))
        elif isinstance(value, (types.FunctionType, types.MethodType, functools.partial)):
            yield from self._of_function(value)
        elif isinstance(value, type):
            if not _is_of_library(value):
                yield from self._holds(functools.partial(_in_class, value), functools.partial(_fill_class, value))
                yield from (getattr(one, "__func__", one) for one in vars(value).values() if callable(getattr(one, "__func__", one)))
                yield from value.__bases__
        elif not isinstance(value, types.ModuleType) and not _is_of_library(type(value), _FOREIGN):
            yield type(value)
            if isinstance(getattr(value, "__dict__", None), dict):
                yield vars(value)

    def _of_function(self, value: Any) -> Iterator[Any]:
        if isinstance(value, types.MethodType):
            yield from (value.__self__, value.__func__)
            return
        if isinstance(value, functools.partial):
            yield from (value.func, value.args, value.keywords)
            return
        yield from (*(value.__closure__ or ()), *(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values())
        yield getattr(value, "__wrapped__", None)
        if not _is_of_library(value):
            yield from self._named(value)

    def _holds(self, read: Callable[[], Content], write: Callable[[Content], None]) -> list[Any]:
        self._holders.append(_Holder(read, write))
        return [one for _, one in read()]

    def _named(self, function: types.FunctionType) -> list[Any]:
        """The values of the globals that a function's code names."""
        names, space = sorted(set(_names(function.__code__))), function.__globals__

        def read() -> Content:
            return [(name, space[name]) for name in names if name in space]

        def write(content: Content) -> None:
            for name in names:
                space.pop(name, None)
            space.update(content)

        return self._holds(read, write)


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _is_of_library(value: Any, libraries: frozenset[str] = _LIBRARIES) -> bool:
    return str(getattr(value, "__module__", "")).partition(".")[0] in libraries


def _is_same(one: Content, other: Content) -> bool:
    return len(one) == len(other) and all(a is b and c is d for (a, c), (b, d) in zip(one, other, strict=True))


def _place(key: Any) -> Any:
    """A key of `read` by which equal places are found again, since numbers for positions are new objects each time."""
    return key if isinstance(key, (int, str)) else id(key)


def _fill_dict(value: dict[Any, Any], content: Content) -> None:
    plain: Any = collections.OrderedDict if isinstance(value, collections.OrderedDict) else dict  # not a subclass's own behavior
    plain.clear(value)
    for key, one in content:
        plain.__setitem__(value, key, one)


def _fill_list(value: list[Any], content: Content) -> None:
    list.__setitem__(value, slice(None), [one for _, one in content])


def _fill_other(value: Any, content: Content) -> None:
    value.clear()
    for _, one in content:
        value.add(one) if isinstance(value, set) else value.append(one)


def _in_cell(cell: types.CellType) -> Content:
    try:
        return [("", cell.cell_contents)]
    except ValueError:
        return []  # still empty


def _fill_cell(cell: types.CellType, content: Content) -> None:
    if content:
        cell.cell_contents = content[0][1]
    else:
        del cell.cell_contents


def _in_class(cls: type) -> Content:
    return [(name, one) for name, one in vars(cls).items() if not name.startswith("__") and not isinstance(one, _DATA_LESS)]


def _fill_class(cls: type, content: Content) -> None:
    kept = dict(content)
    for name, _ in _in_class(cls):
        if name not in kept:
            type.__delattr__(cls, name)
    for name, one in content:
        if vars(cls).get(name) is not one:
            type.__setattr__(cls, name, one)
