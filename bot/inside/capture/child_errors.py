"""Errors that leave the compiler in a process that the watched program started.

The program may hand on another error, in other words, or only an exit status. So each is noted where it leaves the compiler, and the
engine looks for it in what was printed.
"""

from __future__ import annotations

import functools
import importlib
import os
import time
import traceback
from typing import Any

import torch

from ..program import format_error
from ..protocol import CHILD_ERRORS, CHILD_PREFIX, ChildError, write_json


class ChildErrors:
    """What a child has to say. `root` is the directory of the capture; in the program itself nothing is noted."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.directory = ""  # of this process, where the program started it
        self._errors: list[ChildError] = []
        self._last: BaseException | None = None

    def enter(self) -> str:
        """From here on this is a process that the program started. Returns the directory for what it writes."""
        self.directory = os.path.join(self.root, f"{CHILD_PREFIX}{os.getpid()}")
        self._errors, self._last = [], None
        return self.directory

    def reached(self) -> None:
        """Leave a sign that this process called the compiler."""
        if self.directory:
            os.makedirs(self.directory, exist_ok=True)

    def record(self, error: BaseException) -> None:
        """Note an `error`. One that passes several places counts as it leaves the last."""
        if not self.directory:
            return
        if self._errors and self._last is not None and self._last in _chain(error):
            self._errors.pop()
        self._last = error
        said = traceback.format_exception_only(type(error), error)[0].strip().split("\n")[0]
        self._errors.append({"text": format_error(error), "said": said, "time": time.time(), "rank": os.environ.get("RANK", "")})
        self.reached()
        write_json(os.path.join(self.directory, CHILD_ERRORS), {"errors": self._errors})


def watch_exits(errors: ChildErrors) -> None:
    """Tell `errors` of what leaves the compiler without having passed a graph: by Dynamo's outermost callback, or the exporter."""

    def watch(owner: Any, name: str) -> None:
        original = getattr(owner, name)

        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return original(*args, **kwargs)
            except Exception as error:
                errors.record(error)
                raise

        setattr(owner, name, call)

    convert_frame: Any = importlib.import_module("torch._dynamo.convert_frame")
    watch(convert_frame.CatchErrorsWrapper, "__call__")
    watch(torch.export, "export")


def _chain(error: BaseException) -> list[BaseException]:
    """An error, and what it was raised from."""
    found: list[BaseException] = []
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if one is not None and one not in found:
            found.append(one)
            waiting += [one.__cause__, one.__context__, getattr(one, "inner_exception", None)]
    return found
