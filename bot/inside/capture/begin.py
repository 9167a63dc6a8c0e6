"""Starts watching the compiler in a process: the program's own, or one that it started."""

from __future__ import annotations

import importlib
from typing import Any

from .. import children, graph_keys
from ..eager import accuracy
from ..protocol import CaptureOrder
from ..shortcuts import shortcut
from . import comparison, escaped, falling_back, hooks
from .afterwards import Afterwards
from .tracker import Tracker


def tracker_for(order: CaptureOrder) -> Tracker:
    """The tracker that hooks report to, configured by `order`. Nothing is watched yet."""
    return Tracker(
        out=order.out,
        check=order.check,
        as_eager=order.check or order.as_eager,
        rule=accuracy.ComparisonRule(order.strict, order.tolerance),
        beforehand=order.beforehand,
        dump=order.dump,
        escaped=escaped.Escaped(order.out),
        synchronous=order.synchronous,
        later=Afterwards() if order.afterwards else None,
        later_calls=order.later_calls,
        fall_back=order.fall_back,
    )


def watch(tracker: Tracker) -> None:
    """Install the hooks of the `tracker` in this process."""
    if tracker.as_eager:
        # Inductor's own random numbers differ from eager's, which is not a bug
        inductor: Any = importlib.import_module("torch._inductor.config")
        inductor.fallback_random = True
    with shortcut("keys of graphs"):
        graph_keys.make_keys()
    if not tracker.check:
        tracker.blame.install()
    comparison.listen(tracker.child.compared)
    children.tell_of_end(tracker.child.ended)
    hooks.install(tracker)
    escaped.install(tracker.escaped)
    if tracker.fall_back:
        falling_back.install(tracker.escaped)
