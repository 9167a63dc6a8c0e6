"""What a tracker makes of the comparisons of a program's calls."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")

from bot.inside.capture.escaped import Escaped
from bot.inside.capture.tracker import Tracker
from bot.inside.eager.accuracy import Compared, ComparisonRule


@pytest.fixture
def tracker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tracker:
    monkeypatch.setattr(os, "register_at_fork", lambda **_: None)
    return Tracker(out=str(tmp_path), check=True, rule=ComparisonRule(), beforehand=False, dump=False, escaped=Escaped(str(tmp_path)))


RIGHT, FARTHER, BROKE = Compared(errors=(1e-8, 1e-8)), Compared(errors=(4e-8, 1e-8)), Compared(broke=True)
CAST = Compared(errors=(1e-3, 0.0), unmeasured=True)


@pytest.mark.parametrize(
    ("calls", "errors"),
    [
        ((RIGHT, FARTHER, RIGHT), (4e-8, 1e-8)),
        # the graph of a call that eager refuses may be as wrong as it likes, while what the compiler made of it is right
        ((BROKE, RIGHT), None),
        ((RIGHT, BROKE, RIGHT), None),
        # what a graph casts to fewer bits it casts in float64 as well: then eager is no error away from that
        ((CAST, RIGHT), None),
    ],
)
def test_errors_are_told_where_every_call_was_compared(tracker: Tracker, calls: tuple[Compared, ...], errors: Any) -> None:
    for found in calls:
        tracker.judged(SimpleNamespace(), found)  # type: ignore[arg-type]
    assert tracker.errors == errors
