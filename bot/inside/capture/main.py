"""The rerun of the user's program with the seams in place.

Reads a JSON file: `{"script" or "module", "file", "argv", "out", "check", "strict", "beforehand", "dump"}`. Writes into `out`:
`region-*.json` for each graph that failed, and `run.json` with how the program ended.
"""

from __future__ import annotations

import contextlib
import faulthandler
import functools
import importlib
import json
import os
import signal
import sys
from typing import Any

from .. import environment
from ..program import flush, format_error, listen_to_unittest, read_source, run_as_main, run_module

# The oldest torch whose seams this package knows.
OLDEST = (2, 9)


def main(arguments: list[str]) -> None:
    """Run the program and write what was seen. Leaves as the program would have left."""
    with open(arguments[0], encoding="utf-8") as file:
        order: dict[str, Any] = json.load(file)
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=False, chain=False)
    if order["file"]:
        # it sets them before it imports torch, and so have we to
        with contextlib.suppress(OSError, SyntaxError, ValueError):
            environment.state(read_source(order["file"]))
    try:
        import torch  # noqa: F401
    except ImportError as error:
        _write(order, {"status": "infra", "text": f"no torch here: {error}", "calls": 0, "versions": {}})
        return
    if _too_old(sys.modules["torch"]):
        found = getattr(sys.modules["torch"], "__version__", "of no version")
        _write(order, {"status": "infra", "text": f"torch {found} is too old: 2.9 or later is needed", "calls": 0, "versions": {}})
        return
    from .. import warm
    from ..eager import accuracy
    from . import hooks

    tolerance = None if order["tolerance"] is None else tuple(order["tolerance"])
    rule = accuracy.Rule(order["strict"], tolerance)
    tracker = hooks.Tracker(out=order["out"], check=order["check"], rule=rule, beforehand=order["beforehand"], dump=order["dump"])
    comparison = None
    facts: dict[str, Any] = {"versions": warm.versions(sys.modules["torch"])}
    errors: list[tuple[str, str]] = []  # that a test runner catches, each with the name of its test
    try:
        comparison = Comparison()
        hooks.install(tracker)
        if order["check"]:
            # Inductor's own random numbers differ from eager's, and that is no bug
            inductor: Any = importlib.import_module("torch._inductor.config")
            inductor.fallback_random = True

        def on_error(error: BaseException, test: str) -> None:
            errors.append((format_error(error), test))

        listen_to_unittest(on_error)
        if order.get("module"):
            facts.update(run_module(order["module"], order["argv"], on_error))
        else:
            facts.update(run_as_main(order["script"], order["argv"]))
        if errors and facts["status"] == "exit":
            text, test = errors[0]
            facts.update(status="raised", text=text, test=test)
    finally:
        facts["calls"] = tracker.calls
        facts["tolerance"] = comparison.tolerance if comparison else None
        facts.setdefault("status", "infra")
        _write(order, facts)
    flush()
    if facts["status"] == "raised":
        with contextlib.suppress(OSError):  # the program may have closed it
            os.write(2, facts["text"].encode("utf-8"))
    os._exit(int(facts.get("exit") or 0) if facts["status"] in ("ok", "exit") else 1)


def _too_old(torch: Any) -> bool:
    parts = str(getattr(torch, "__version__", "")).split("+")[0].split(".")
    try:
        return (int(parts[0]), int(parts[1])) < OLDEST
    except (ValueError, IndexError):
        return True


class Comparison:
    """Listens to the program's own comparisons: the tolerance of the last one is the one under which it fails."""

    def __init__(self) -> None:
        self.tolerance: list[float] | None = None
        torch: Any = sys.modules["torch"]
        testing = importlib.import_module("torch.testing")
        self._listen(testing, "assert_close", ())
        self._listen(torch, "allclose", (1e-5, 1e-8))

    def _listen(self, owner: Any, name: str, defaults: tuple[float, ...]) -> None:
        original = getattr(owner, name)

        @functools.wraps(original)
        def compare(*args: Any, **kwargs: Any) -> Any:
            usual = defaults or (0.0, 0.0)
            # allclose takes them in this order behind the two tensors, assert_close by name alone
            given = [kwargs.get(word, args[place] if len(args) > place else None) for word, place in (("rtol", 2), ("atol", 3))]
            if given == [None, None]:
                self.tolerance = list(defaults)
            else:
                self.tolerance = [float(otherwise if value is None else value) for value, otherwise in zip(given, usual, strict=True)]
            return original(*args, **kwargs)

        setattr(owner, name, compare)


def _write(order: dict[str, Any], facts: dict[str, Any]) -> None:
    path = os.path.join(order["out"], "run.json")
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(facts, file)
    os.replace(path + ".new", path)
