"""Runs the user's program again with the hooks installed.

Reads a `CaptureOrder` from a JSON file. Writes into its directory a region file for each graph that failed, and `RunFacts`: how the
program ended.
"""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import json
import os
import signal
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from .. import children, environment
from ..program import LookedIn, flush, format_error, listen_to_pytest, listen_to_unittest, read_source, run_as_main, run_module
from ..protocol import OLDEST_TORCH, RUN_FILE, CaptureOrder, RunFacts, decode, write_json
from ..shortcuts import shortcut
from .installed import installed

if TYPE_CHECKING:
    from .tracker import Tracker


def main(arguments: list[str]) -> None:
    """Run the program of the order in the file `arguments[0]` and write what was seen. Exits as the program would have."""
    with open(arguments[0], encoding="utf-8") as file:
        order = decode(CaptureOrder, json.load(file))
    run_file = os.path.join(order.out, RUN_FILE)
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=False, chain=False)
    if order.file:
        # the program sets them before it imports torch, so we have to as well
        with contextlib.suppress(OSError, SyntaxError, ValueError):
            environment.state(read_source(order.file))
    unusable = _unusable_torch()
    if unusable:
        write_json(run_file, {"status": "infra", "text": unusable, "calls": 0, "versions": {}})
        return
    from .. import warm
    from . import begin, dumps, kernel_pool

    tracker = begin.tracker_for(order)
    facts: RunFacts = {"status": "infra", "versions": warm.versions(sys.modules["torch"])}
    errors: list[tuple[str, str]] = []  # that a test runner catches, each with the name of its test
    held: tuple[list[int], list[str]] = [], []  # what the compiler held when the first test failed: it may be removed afterwards
    behind = ""  # the compiler's exception that the program was handling when it ended
    looked = LookedIn()
    try:
        begin.watch(tracker)
        children.follow("capture", arguments[0])

        def on_error(error: BaseException, test: str) -> None:
            nonlocal held
            looked.note()  # pytest restores it at its end
            if not errors:
                with shortcut("looking for functions of the program's that the compiler holds"):
                    held = installed(order.file or "", tracker.decompositions)
            errors.append((tracker.escaped.behind(error) or format_error(error), test))

        def on_end(error: BaseException) -> None:
            nonlocal behind
            behind = tracker.escaped.behind(error)

        listen_to_unittest(on_error)
        if _runs_pytest(order.script):
            with contextlib.suppress(ImportError):
                listen_to_pytest(on_error)
        if order.module:
            ended = run_module(order.module, order.argv, on_error, on_end)
        else:
            ended = run_as_main(order.script or "", order.argv, on_end=on_end)
        facts = {**facts, **ended}
        if errors and facts["status"] == "exit":
            facts["status"] = "raised"
            facts["text"], facts["test"] = errors[0]
    finally:
        facts["calls"] = tracker.calls
        facts["behind"] = "" if errors else behind
        facts["threaded"] = tracker.escaped.ended_thread
        facts["tolerance"] = tracker.child.tolerance
        facts["again"] = tracker.again
        facts["pooled"] = kernel_pool.is_in_use()
        with shortcut("looking for functions of the program's that the compiler holds"):
            lines, names = installed(order.file or order.script or "", tracker.decompositions)
            facts["installed"], facts["beside"] = sorted({*held[0], *lines}), list(dict.fromkeys([*held[1], *names]))
        facts["errors"] = list(tracker.errors) if tracker.errors else None
        facts["whole"] = tracker.whole
        facts["off"], facts["swallows"] = _turned_off(), _is_set("suppress_errors")
        facts["looked"] = looked.note()
        write_json(run_file, facts)
    flush()
    if facts["status"] == "raised":
        with contextlib.suppress(OSError):  # the program may have closed it
            os.write(2, facts["text"].encode("utf-8"))
    if tracker.later is not None and _may_be_wrong(facts, tracker):
        _compare(facts, tracker, run_file)
    dumps.finish(tracker.dumping)
    os._exit(int(facts.get("exit") or 0) if facts["status"] in ("ok", "exit") else 1)


def _turned_off() -> str:
    """The setting that turns the compiler off, as it is written; empty if there is none."""
    variables = [f"{name}=1" for name in ("TORCH_COMPILE_DISABLE", "TORCHDYNAMO_DISABLE") if os.environ.get(name) == "1"]
    return next(iter(variables), "torch._dynamo.config.disable" if _is_set("disable") else "")


def _is_set(name: str) -> bool:
    """Whether the program, or its environment, has set a switch of Dynamo's."""
    return getattr(sys.modules.get("torch._dynamo.config"), name, False) is True


def _runs_pytest(script: str | None) -> bool:
    """Whether a script names the function that runs pytest: importing pytest takes a while, and few programs use it."""
    with contextlib.suppress(OSError, SyntaxError, ValueError):
        return script is not None and "pytest.main" in read_source(script)
    return False


def _may_be_wrong(facts: RunFacts, tracker: Tracker) -> bool:
    """Whether the program ended the way one with wrong numbers does: normally, or by its own verdict."""
    if tracker.written or not tracker.calls or facts["behind"]:
        return False
    raised = facts["status"] == "raised" and (facts["tolerance"] is not None or not _raised_by_torch(facts["text"]))
    return facts["status"] in ("ok", "exit") or raised


def _raised_by_torch(text: str) -> bool:
    """Whether the innermost frame of a traceback is torch's, except its testing code."""
    last = text.rpartition('\n  File "')[2].partition('"')[0].replace(os.sep, "/")
    return "/torch/" in last and "/torch/testing/" not in last


def _compare(facts: RunFacts, tracker: Tracker, run_file: str) -> None:
    """Compare the graphs that the program compiled, and write the result into `run_file` together with the `facts`."""
    tolerance = facts["tolerance"] if facts["status"] != "ok" else None
    if facts["status"] != "ok":
        # if the program compares by itself, its own tolerance decides, and integers count
        tracker.rule = replace(tracker.rule, strict=True, tolerance=None if tolerance is None else tuple(tolerance))
    facts = {**facts, "compared": None, "ended": time.monotonic()}
    # what dies from here on is not the program
    write_json(run_file, facts)
    facts["compared"] = False
    if tracker.later is not None:
        with shortcut("comparing numbers at the end"):
            facts["compared"] = tracker.compare_later()
            facts["errors"] = list(tracker.errors) if tracker.errors else None
            facts["whole"] = tracker.whole
    write_json(run_file, facts)


def _unusable_torch() -> str:
    """Why the torch of this interpreter cannot be used; empty if it can."""
    try:
        found = str(getattr(importlib.import_module("torch"), "__version__", "of no version"))
    except ImportError as error:
        return f"no torch here: {error}"
    try:
        major, minor = found.split("+")[0].split(".")[:2]
        too_old = (int(major), int(minor)) < OLDEST_TORCH
    except ValueError:
        too_old = True
    return f"torch {found} is too old: {'.'.join(map(str, OLDEST_TORCH))} or later is needed" if too_old else ""
