"""Follows a program into the Python processes that it starts.

A directory of ours is put first on PYTHONPATH. Every Python interpreter imports its `sitecustomize` when it starts, however it was started
(multiprocessing, concurrent.futures, DataLoader, subprocess, torchrun). Nothing happens there until torch is imported, and little until it
compiles. Forked processes have the hooks already.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import inspect
import json
import math
import os
import sys
import threading
from collections.abc import Callable, Sequence
from itertools import islice
from types import FrameType, ModuleType, TracebackType
from typing import Any

from .descriptors import listen_on_loopback, pass_without_sockets
from .protocol import CUDA_ARCH, FOLLOW_DIRECTORY, CaptureOrder, decode

# What the processes are to do: a role, and for a capture the file with its order.
_VARIABLE = "TORCH_MINIFY_FOLLOW"
# Called with the error with which a process ends that the program started.
_at_end: list[Callable[[BaseException], None]] = []
# What this process is doing, if multiprocessing started it: see `ChildFacts.call`.
_work: list[str] = []


def follow(role: str, argument: str = "") -> None:
    """Make every Python process that this one starts from now on take part: in the `role` capture, whose `argument` is the file with its
    order, or control."""
    pass_without_sockets()
    if role == "capture":
        # a forked process inherits this
        after("multiprocessing.process", _watch_run)
    os.environ[_VARIABLE] = f"{role}:{argument}"
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [FOLLOW_DIRECTORY, os.environ.get("PYTHONPATH", "")]))


def start() -> None:
    """Take part, in such a process."""
    if CUDA_ARCH in os.environ:
        # before the role's own action: each finder asks those that were there before it
        AfterImport({"torch": lambda: importlib.import_module(f"{__package__}.absent_gpu").put_up()})
    role, _, argument = os.environ.get(_VARIABLE, "").partition(":")
    AfterImport({"multiprocessing.resource_sharer": pass_without_sockets, "multiprocessing.connection": listen_on_loopback})
    if role == "capture":
        after("multiprocessing.process", _watch_run)
        AfterImport({"torch": lambda: _wait_for_compiler(argument)})
    elif role == "control":
        AfterImport({"torch": _control})


def tell_of_end(listener: Callable[[BaseException], None]) -> None:
    """Call the `listener` with the error with which this process ends, if the program started it."""
    _at_end.append(listener)


def _say_end(error: BaseException) -> None:
    for listener in _at_end:
        with contextlib.suppress(Exception):  # a fault of ours must not replace the program's
            listener(error)


def _watch_hook() -> None:
    """Watch `sys.excepthook`: an interpreter that the program started ends with the error passed to it."""
    original = sys.excepthook

    def excepthook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if isinstance(error, Exception):
            _say_end(error)
        original(kind, error, trace)

    sys.excepthook = excepthook


def _watch_run(of_processes: Any) -> None:
    """Watch the processes of multiprocessing, which print their error and exit with a status."""
    process = of_processes.BaseProcess
    original = process._bootstrap

    @functools.wraps(original)
    def bootstrap(self: Any, *args: Any, **kwargs: Any) -> Any:
        self.run = functools.partial(_watched, self.run)
        _work[:] = [""]
        return original(self, *args, **kwargs)

    process._bootstrap = bootstrap


def _watched(run: Callable[[], None]) -> None:
    try:
        run()
    except Exception as error:
        _say_end(error)
        raise


def work() -> str | None:
    """What this process is doing, as in `ChildFacts.call`; None if multiprocessing did not start it.

    A pool process gets one piece of work after the other, so this is read from the stack; if the stack shows none, it is the last one
    seen.
    """
    if _work:
        _work[0] = _call_on_stack() or _work[0]
    return _work[0] if _work else None


def _call_on_stack() -> str:
    """The outermost call, with plain values, of a function in the program's own file, within what this process was started for."""
    found = ""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code is not _watched.__code__:
        if frame.f_globals.get("__name__") in ("__main__", "__mp_main__"):
            found = _call_of(frame) or found
        frame = frame.f_back
    return found


def _call_of(frame: FrameType) -> str:
    """The call that this `frame` belongs to; empty if a script cannot make it."""
    code, values = frame.f_code, frame.f_locals
    named = frame.f_globals.get(code.co_name)
    # a decorated function is called by its name
    if getattr(getattr(named, "__wrapped__", named), "__code__", None) is not code:
        return ""
    names = iter(code.co_varnames)
    given = [values.get(name, ...) for name in islice(names, code.co_argcount)]
    keywords = {name: values.get(name, ...) for name in islice(names, code.co_kwonlyargcount)}
    given += values.get(next(names), (...,)) if code.co_flags & inspect.CO_VARARGS else ()
    keywords |= values.get(next(names), {"": ...}) if code.co_flags & inspect.CO_VARKEYWORDS else {}
    if not all(map(_is_plain, (*given, *keywords.values()))):
        return ""
    return f"{code.co_name}({', '.join([*map(repr, given), *(f'{name}={value!r}' for name, value in keywords.items())])})"


def _is_plain(value: Any) -> bool:
    """Whether `repr` gives the value as Python source."""
    if isinstance(value, (tuple, list)):
        return type(value) in (tuple, list) and all(map(_is_plain, value))
    return value is None or type(value) in (bool, int, str, bytes) or (type(value) is float and math.isfinite(value))


def after(name: str, change: Callable[[Any], None]) -> None:
    """Call `change` with the module `name` once it has been imported, immediately if it is already."""
    if name in sys.modules:
        change(sys.modules[name])
    else:
        AfterImport({name: lambda: change(sys.modules[name])})


class AfterImport(importlib.abc.MetaPathFinder):
    """Calls each of `actions` once, after the module with its name was imported."""

    def __init__(self, actions: dict[str, Callable[[], None]]) -> None:
        self._actions = actions
        sys.meta_path.insert(0, self)

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> importlib.machinery.ModuleSpec | None:
        """The spec of the module `name` from the other finders, which get `path` and `target`, with a loader that also calls the action."""
        action = self._actions.pop(name, None)
        if action is None:
            return None
        for finder in sys.meta_path:
            spec = finder.find_spec(name, path, target) if finder is not self and hasattr(finder, "find_spec") else None
            if spec is not None and spec.loader is not None:
                _call_after(spec.loader, action)
                return spec
        return None


def _call_after(loader: Any, action: Callable[[], None]) -> None:
    original = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        original(module)
        try:
            action()
        except Exception as error:  # a fault of ours must not end somebody's program
            sys.stderr.write(f"torch-minify: cannot follow this process: {type(error).__name__}: {error}\n")

    loader.exec_module = exec_module


def _wait_for_compiler(order_file: str) -> None:
    """Install the hooks when the process first calls the compiler: most children only load data.

    Importing a module of the compiler is not the trigger, since it may be in the middle of importing the others.
    """
    entries = _Entries(lambda: _install(order_file))
    torch: Any = sys.modules["torch"]
    entries.watch(torch, "compile")
    entries.watch(torch.export, "export")
    for module, name in (("torch._dynamo", "optimize"), ("torch._inductor", "aoti_compile_and_package")):
        after(module, functools.partial(entries.watch, name=name))


class _Entries:
    """Entry points of the compiler that call `install` once, before the first of them does anything."""

    def __init__(self, install: Callable[[], None]) -> None:
        self._install = install
        self._watched: list[tuple[Any, str, Any, Any]] = []
        self._lock = threading.RLock()
        self._done = False

    def watch(self, owner: Any, name: str) -> None:
        original = getattr(owner, name, None)
        if original is None or self._done:
            return

        @functools.wraps(original)
        def entry(*args: Any, **kwargs: Any) -> Any:
            self._begin()
            return getattr(owner, name)(*args, **kwargs)

        self._watched.append((owner, name, original, entry))
        setattr(owner, name, entry)

    def _begin(self) -> None:
        with self._lock:
            if self._done:
                return
            self._done = True
            for owner, name, original, entry in self._watched:
                if getattr(owner, name) is entry:
                    setattr(owner, name, original)
            self._install()


def _install(order_file: str) -> None:
    # its imports need torch
    begin = importlib.import_module(f"{__package__}.capture.begin")
    with open(order_file, encoding="utf-8") as file:
        tracker = begin.tracker_for(decode(CaptureOrder, json.load(file)))
    tracker.enter_child()
    begin.watch(tracker)
    _watch_hook()


def _control() -> None:
    importlib.import_module(f"{__package__}.eager.compiler_out").take_out_and_say()
