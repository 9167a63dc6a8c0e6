"""The rerun of the user's program with the seams in place.

Reads a JSON file: `{"script" or "module", "argv", "out", "check", "strict", "beforehand", "dump"}`. Writes into `out`:
`region-*.json` for each graph that failed, and `run.json` with how the program ended.
"""

from __future__ import annotations

import faulthandler
import functools
import importlib
import json
import os
import runpy
import signal
import sys
from typing import Any


def main(arguments: list[str]) -> None:
    """Run the program and write what was seen. Leaves as the program would have left."""
    with open(arguments[0], encoding="utf-8") as file:
        order: dict[str, Any] = json.load(file)
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=False, chain=False)
    try:
        import torch  # noqa: F401
    except ImportError as error:
        _write(order, {"status": "infra", "text": f"no torch here: {error}", "calls": 0, "versions": {}})
        return
    from . import accuracy, child, seams, warm

    tolerance = None if order["tolerance"] is None else tuple(order["tolerance"])
    rule = accuracy.Rule(order["strict"], tolerance)
    tracker = seams.Tracker(out=order["out"], check=order["check"], rule=rule, beforehand=order["beforehand"], dump=order["dump"])
    comparison = None
    facts: dict[str, Any] = {"versions": warm.versions(sys.modules["torch"])}
    try:
        comparison = Comparison()
        seams.install(tracker)
        if order["check"]:
            # Inductor's own random numbers differ from eager's, and that is no bug
            inductor: Any = importlib.import_module("torch._inductor.config")
            inductor.fallback_random = True
        if order.get("module"):
            facts.update(_module(order, child.format_error))
        else:
            facts.update(child.run_as_main(order["script"], order["argv"]))
    finally:
        facts["calls"] = tracker.calls
        facts["tolerance"] = comparison.tolerance if comparison else None
        facts.setdefault("status", "infra")
        _write(order, facts)
    sys.stdout.flush()
    if facts["status"] == "raised":
        sys.stderr.write(facts["text"])
    sys.stderr.flush()
    os._exit(int(facts.get("exit") or 0) if facts["status"] in ("ok", "exit") else 1)


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
            if kwargs.get("rtol") is not None or kwargs.get("atol") is not None:
                usual = defaults or (0.0, 0.0)
                self.tolerance = [float(kwargs.get("rtol") or usual[0]), float(kwargs.get("atol") or usual[1])]
            else:
                self.tolerance = list(defaults)
            return original(*args, **kwargs)

        setattr(owner, name, compare)


def _module(order: dict[str, Any], format_error: Any) -> dict[str, Any]:
    """`python -m NAME ARGS`; for pytest and unittest the first failing test's own error is the program's."""
    errors: list[str] = []
    sys.argv = [order["module"], *order["argv"]]
    sys.path.insert(0, os.getcwd())
    if order["module"] == "pytest":
        os.environ["PYTEST_PLUGINS"] = ",".join(filter(None, [os.environ.get("PYTEST_PLUGINS"), f"{__package__}.pytest_plugin"]))
        from . import pytest_plugin

        pytest_plugin.on_error = lambda error: errors.append(format_error(error))
    try:
        runpy.run_module(order["module"], run_name="__main__", alter_sys=True)
    except SystemExit as leave:
        code = leave.code if isinstance(leave.code, int) else int(leave.code is not None)
        if errors:
            return {"status": "raised", "exit": code, "text": errors[0]}
        return {"status": "exit" if code else "ok", "exit": code, "text": ""}
    except BaseException as error:
        return {"status": "raised", "text": format_error(error)}
    return {"status": "raised", "text": errors[0]} if errors else {"status": "ok", "exit": 0, "text": ""}


def _write(order: dict[str, Any], facts: dict[str, Any]) -> None:
    path = os.path.join(order["out"], "run.json")
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(facts, file)
    os.replace(path + ".new", path)
