"""Running `python -m NAME`, and hearing of the errors that a test runner catches."""

from __future__ import annotations

import functools
import importlib
import os
import runpy
import sys
from collections.abc import Callable, Sequence
from typing import Any

from . import worker

# Told of an error, and of the test that it made fail, as its runner names it.
OnError = Callable[[BaseException, str], None]


def listen_to_unittest(on_error: OnError) -> None:
    """Hear of the errors that make tests fail, whoever runs them: a script that ends in `unittest.main()` as well."""
    result: Any = importlib.import_module("unittest.result").TestResult

    def listen(name: str) -> None:
        original = getattr(result, name)

        @functools.wraps(original)
        def add(self: Any, test: Any, *args: Any) -> Any:
            if args[-1] is not None:  # of a subtest: None where it passed
                on_error(args[-1][1], test.id())
            return original(self, test, *args)

        setattr(result, name, add)

    for name in ("addError", "addFailure", "addSubTest"):
        listen(name)


def run_module(name: str, argv: Sequence[str], on_error: OnError) -> dict[str, Any]:
    """`python -m NAME ARGS`; the facts of how it ended. Errors of failing tests, which pytest catches, are told to `on_error`."""
    sys.argv = [name, *argv]
    sys.path.insert(0, os.getcwd())
    if name == "pytest":
        os.environ["PYTEST_PLUGINS"] = ",".join(filter(None, [os.environ.get("PYTEST_PLUGINS"), f"{__package__}.pytest_plugin"]))
        from . import pytest_plugin

        pytest_plugin.on_error = on_error
    try:
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    except SystemExit as leave:
        code = leave.code if isinstance(leave.code, int) else int(leave.code is not None)
        return {"status": "exit" if code else "ok", "exit": int(code), "text": ""}
    except BaseException as error:
        return {"status": "raised", "text": worker.format_error(error)}
    return {"status": "ok", "exit": 0, "text": ""}
