"""The exceptions that leave the compiler for the user's program, which may catch them and end without any sign of them.

Each is written down as it passes: if a program logs it and calls `os._exit`, there is no other chance.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from types import FrameType, TracebackType
from typing import Any

from ..entry_points import Sort, places
from ..program import shortened
from ..protocol import ESCAPED_FILE, write_json

# No program has longer exception chains.
MOST_LINKS = 50
_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_COMPILER = tuple(os.path.join("torch", name, "") for name in ("_dynamo", "_inductor", "_functorch", "_export", "export"))


class Escaped:
    """Records the exceptions that leave the compiler, and writes the last one into the directory `out`."""

    def __init__(self, out: str) -> None:
        self._path = os.path.join(out, ESCAPED_FILE)
        self._last: BaseException | None = None
        self._text = ""
        self.ended_thread = False  # the last one did
        self.listener: Callable[[BaseException], None] | None = None  # called instead, in a process that the program started
        self.entering: Callable[[], None] = lambda: None  # called before the compiler begins

    def note(self, error: BaseException) -> None:
        """Record `error`, and write its traceback with the frames that led to it."""
        if self.listener is not None:
            self.listener(error)
            return
        if error is self._last:
            return
        self._last, self._text, self.ended_thread = error, whole_text(error), False
        write_json(self._path, {"text": self._text})

    def note_end_of_thread(self, error: BaseException | None) -> None:
        """Record that a thread ended with `error`, if that was the last that left the compiler."""
        self.ended_thread = self.ended_thread or (error is not None and error is self._last)

    def forget(self, error: BaseException) -> bool:
        """Discard what was recorded for `error`. Returns whether it was the last one recorded."""
        if error is not self._last:
            return False
        self._last, self._text = None, ""
        os.unlink(self._path)
        return True

    @contextlib.contextmanager
    def noted(self) -> Iterator[None]:
        """Record an exception that passes."""
        self.entering()
        try:
            yield
        except Exception as error:
            self.note(error)
            raise

    def behind(self, error: BaseException) -> str:
        """The text of the compiler's exception that the program was handling when it ended with its own `error`; empty if there is none,
        or if the error's own traceback shows it."""
        if isinstance(error, AssertionError) or _passes_compiler(error):
            return ""  # a program that asserts something about an error expects one
        shown: BaseException | None = error
        hidden = False
        for _ in range(MOST_LINKS):
            assert shown is not None
            hidden = hidden or shown.__cause__ is None
            shown = shown.__cause__ or shown.__context__
            if shown is None:
                return ""
            if shown is self._last or _passes_compiler(shown):
                return (self._text if shown is self._last else whole_text(shown)) if hidden else ""
        return ""


def install(escaped: Escaped) -> None:
    """Make `escaped` record what leaves the compiler: from Dynamo's callback, from each entry point that compiles immediately, and from a
    backward.

    The hooks of the graphs see what compiled code raises when called, and what is compiled during a backward.
    """
    watch_backward(escaped)
    watch_threads(escaped)
    convert_frame: Any = importlib.import_module("torch._dynamo.convert_frame")
    original = convert_frame.CatchErrorsWrapper.__call__

    @functools.wraps(original)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        with escaped.noted():
            return original(self, *args, **kwargs)

    convert_frame.CatchErrorsWrapper.__call__ = call
    for place in places(Sort.COMPILE_GRAPH, Sort.EXPORT, Sort.COMPILE_LIBRARY, Sort.LOAD_PACKAGE):
        owner, _, name = place.rpartition(".")
        with contextlib.suppress(ImportError, AttributeError):  # entry points come and go between versions
            _watch(importlib.import_module(owner), name, escaped)


def watch_backward(escaped: Escaped) -> None:
    """Make `escaped` record what a backward raises before a graph is called: AOTAutograd rejects double backward, and backward below
    `vmap`."""
    autograd: Any = importlib.import_module("torch.autograd")
    name = "_engine_run_backward"
    original = getattr(autograd.graph, name, None)
    if original is None:
        return

    @functools.wraps(original)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return original(*args, **kwargs)
        except Exception as error:
            if _passes_compiler(error):
                escaped.note(error)
            raise

    for owner in (autograd, autograd.graph):
        setattr(owner, name, run)


def watch_threads(escaped: Escaped) -> None:
    """Make `escaped` record if a thread of the program ends with what left the compiler: Python only prints that."""
    original = threading.excepthook

    @functools.wraps(original)
    def hook(args: threading.ExceptHookArgs, /) -> None:
        escaped.note_end_of_thread(args.exc_value)
        original(args)

    threading.excepthook = hook


def _watch(owner: Any, name: str, escaped: Escaped) -> None:
    original: Callable[..., Any] = getattr(owner, name)

    @functools.wraps(original)
    def entry(*args: Any, **kwargs: Any) -> Any:
        if str(sys._getframe(1).f_globals.get("__name__", "")).partition(".")[0] in ("torch", "functorch"):
            return original(*args, **kwargs)
        with escaped.noted():
            return original(*args, **kwargs)

    setattr(owner, name, entry)


def whole_text(error: BaseException) -> str:
    """The traceback of a propagating `error`, with the frames that it has not passed yet."""
    said = traceback.TracebackException(type(error), error, error.__traceback__)
    first = error.__traceback__.tb_frame if error.__traceback__ else None
    outside = traceback.StackSummary.extract((f, f.f_lineno) for f in _frames_before(first))
    said.stack = traceback.StackSummary.from_list([*outside, *said.stack])
    return shortened("".join(said.format()))


def _frames_before(frame: FrameType | None) -> list[FrameType]:
    """The frames of the running program, outermost first, up to the one before `frame`, where the exception is now; without ours."""
    found: list[FrameType] = []
    here: FrameType | None = frame.f_back if frame is not None else None
    while here is not None:
        if not here.f_code.co_filename.startswith(_OURS):
            found.append(here)
        here = here.f_back
    return found[::-1]


def _passes_compiler(error: BaseException) -> bool:
    """Whether an error's own traceback passes through the compiler."""
    link: TracebackType | None = error.__traceback__
    while link is not None:
        if any(part in link.tb_frame.f_code.co_filename for part in _COMPILER):
            return True
        link = link.tb_next
    return False
