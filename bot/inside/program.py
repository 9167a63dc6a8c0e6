"""Runs the user's program as a person would, `python FILE` or `python -m NAME`, and reports how it ended."""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import os
import runpy
import sys
import threading
import tokenize
import traceback
import types
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .descriptors import pass_without_sockets
from .protocol import Facts, PhasePassed

if TYPE_CHECKING:
    import ast

# A traceback can contain megabytes of generated code; the signature needs both ends of it.
HEAD, TAIL = 400_000, 60_000


# Called with an error, and the test that it made fail, as its runner names it.
OnError = Callable[[BaseException, str], None]
# Called with the exception that ended the program.
OnEnd = Callable[[BaseException], object]


def read_source(path: str) -> str:
    """The text of the script at `path` as Python reads it: in its declared encoding, without a byte order mark. Raises SyntaxError if it
    is not in that encoding, or if there is no such encoding."""
    with contextlib.suppress(SyntaxError, UnicodeDecodeError), tokenize.open(path) as file:
        return file.read()
    with open(path, "rb") as raw:
        compile(raw.read(), path, "exec", dont_inherit=True)  # reports it in Python's words
    raise SyntaxError(f"the encoding of {path} cannot be read")


def collect() -> None:
    """Collect garbage from here on, if `boot` has disabled that, with everything that exists counted as old.

    None of the million objects that make up the compiler's modules is garbage; scanning them again and again during the imports takes a
    fifth of their time.
    """
    if not gc.isenabled():
        gc.freeze()
        gc.unfreeze()
        gc.enable()


def execute(path: str, argv: Sequence[str], source: Callable[[str], str | ast.Module] = str) -> None:
    """Execute the script file `path` as `__main__`, with the arguments `argv`; its exceptions propagate.

    `source` returns what to compile for its text.
    """
    pass_without_sockets()
    collect()
    text = read_source(path)
    module = types.ModuleType("__main__")
    module.__file__ = path
    module.__builtins__ = __builtins__  # type: ignore[attr-defined]
    sys.modules["__main__"] = module
    sys.argv = [path, *argv]
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    exec(compile(source(text), path, "exec", dont_inherit=True), module.__dict__)


def run_as_main(
    path: str, argv: Sequence[str], source: Callable[[str], str | ast.Module] = str, on_end: OnEnd = lambda _error: None
) -> Facts:
    """`execute` a script and return the facts of how it ended; `path`, `argv` and `source` are as in `execute`. `on_end` gets the
    exception that ended it."""
    try:
        execute(path, argv, source)
    except BaseException as error:
        on_end(error)
        return ended_by(error)
    return {"status": "ok", "exit": 0, "text": ""}


def run_watched(
    path: str, argv: Sequence[str], watch: Callable[[types.FrameType, str, Any], None], source: Callable[[str], str | ast.Module] = str
) -> Facts:
    """`run_as_main` with all calls passed to `watch` (see `sys.setprofile`), also in threads; `path`, `argv` and `source` are as there."""
    threading.setprofile(watch)
    sys.setprofile(watch)
    try:
        return run_as_main(path, argv, source)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


# What ended a run. Freeing its frames frees the program's tensors, and if the device's context is dead (a failed assert in a kernel), that
# ends the process before the exception is reported.
_HELD: list[BaseException] = []


def ended_by(error: BaseException) -> Facts:
    """The facts of a run that this `error` ended. The error is kept alive from here on."""
    _HELD.append(error)
    if isinstance(error, SystemExit):
        if error.code is None or isinstance(error.code, int):
            return {"status": "exit" if error.code else "ok", "exit": int(error.code or 0), "text": ""}
        return {"status": "exit", "exit": 1, "text": _encodable(str(error.code))}
    if isinstance(error, KeyboardInterrupt):
        return {"status": "infra", "text": "interrupted"}
    if isinstance(error, MemoryError):
        return {"status": "memory", "text": format_error(error)}
    if isinstance(error, PhasePassed):
        return {"status": "stopped"}
    return {"status": "raised", "text": format_error(error)}


class LookedIn:
    """The directories that a program adds to Python's module search path after this was made."""

    def __init__(self) -> None:
        self._before = {os.path.abspath(entry) for entry in sys.path}
        self._since: dict[str, None] = {}

    def note(self) -> list[str]:
        """Those seen in all calls of this method so far, in the order of `sys.path`, the earliest first."""
        entries = (os.path.abspath(entry) for entry in sys.path if isinstance(entry, str))
        self._since.update(dict.fromkeys(entry for entry in entries if entry not in self._before))
        return list(self._since)


def threads_outlive(patience: float) -> bool:
    """Whether threads that Python waits for at exit run for more than `patience` seconds: the program's own process would not end."""
    waited_for = [thread for thread in threading.enumerate() if not (thread.daemon or thread is threading.main_thread())]

    def end_them() -> None:
        # as Python does at exit: executors are notified first, and then each thread is joined
        for tell in reversed(getattr(threading, "_threading_atexits", ())):
            tell()
        for thread in waited_for:
            thread.join()

    if not waited_for:
        return False
    end = threading.Thread(target=end_them, daemon=True)
    end.start()
    end.join(patience)
    return end.is_alive()


def format_error(error: BaseException) -> str:
    """The traceback of an `error` as Python prints it, with the middle left out if it is very long."""
    return shortened("".join(traceback.format_exception(type(error), error, error.__traceback__)))


def shortened(text: str) -> str:
    """A printed traceback (`text`) in UTF-8, with the middle left out if it is very long."""
    text = _encodable(text)
    return text if len(text) <= HEAD + TAIL else text[:HEAD] + "\n[...]\n" + text[-TAIL:]


def _encodable(text: str) -> str:
    """The text with lone surrogates (from file names that are not UTF-8) as Python prints them."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def flush() -> None:
    """Flush standard output and error; the program may have closed, replaced or removed them."""
    for name in ("stdout", "stderr"):
        try:
            getattr(sys, name).flush()
        except (AttributeError, ValueError, OSError):
            continue


def listen_to_unittest(on_error: OnError) -> None:
    """Pass the errors that make tests fail to `on_error`, whoever runs the tests, including a script that ends in `unittest.main()`."""
    result: Any = importlib.import_module("unittest.result").TestResult

    def listen(name: str) -> None:
        original = getattr(result, name)

        @functools.wraps(original)
        def add(self: Any, test: Any, *args: Any) -> Any:
            if args[-1] is not None:  # for a subtest: None if it passed
                on_error(args[-1][1], test.id())
            return original(self, test, *args)

        setattr(result, name, add)

    for name in ("addError", "addFailure", "addSubTest"):
        listen(name)


def listen_to_pytest(on_error: OnError) -> None:
    """Pass the errors of failing tests that a script runs with `pytest.main()` to `on_error`. Raises ImportError if there is no pytest."""
    pytest: Any = importlib.import_module("pytest")
    from . import pytest_plugin  # needs pytest, which few programs have

    pytest_plugin.on_error = on_error
    original = pytest.main

    @functools.wraps(original)
    def main(args: Any = None, plugins: Any = None) -> Any:
        return original(args, [*(plugins or ()), pytest_plugin])

    pytest.main = main


def run_module(name: str, argv: Sequence[str], on_error: OnError, on_end: OnEnd = lambda _error: None) -> Facts:
    """Run `python -m` with the module's `name` and `argv`; returns the facts of how it ended. `on_error` gets the errors of failing tests,
    which pytest catches, and `on_end` the exception that ended it."""
    sys.argv = [name, *argv]
    sys.path.insert(0, os.getcwd())
    if name == "pytest":
        os.environ["PYTEST_PLUGINS"] = ",".join(filter(None, [os.environ.get("PYTEST_PLUGINS"), f"{__package__}.pytest_plugin"]))
        from . import pytest_plugin  # needs pytest, which few programs have

        pytest_plugin.on_error = on_error
    collect()
    try:
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    except SystemExit as leave:
        on_end(leave)
        return ended_by(leave)
    except BaseException as error:
        on_end(error)
        return {"status": "raised", "text": format_error(error)}
    return {"status": "ok", "exit": 0, "text": ""}
