"""What a program writes into our pipe is not taken for an answer."""

from __future__ import annotations

import json
import tempfile
from concurrent.futures import Future
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from bot.inside.protocol import Facts, Reply
from bot.workers import pool
from bot.workers.declared import misfit

META = {"kind": "tuple", "items": [{"kind": "tensor", "shape": [2, 3], "symbols": ["s0", None]}]}
CALL = {"name": "f", "reads": ["y = 1"], "callee": "f", "arguments": ["x"], "contexts": []}
WHOLE: dict[str, Any] = {
    "status": "ok", "text": "", "exit": 1, "signal": "SIGSEGV", "seconds": 1, "printed": "", "drew": True, "device": False,
    "lingers": False, "calls": 1, "raised": 0, "asked": 0, "unmade": 0, "error": "", "values": {"x": META},
    "first": ["a"], "wrong": [], "harmless": [], "guesses": [["a", "b"], []], "frames": [CALL],
}  # fmt: skip
FORGED: list[tuple[str, Any]] = [
    ("status", "fine"), ("text", None), ("exit", True), ("exit", "0"), ("seconds", True), ("seconds", "1"), ("drew", 1), ("calls", 1.5),
    ("values", []), ("values", {"x": {"kind": 1}}), ("values", {"x": {"items": [{"shape": ["2"]}]}}), ("values", {"x": {"symbols": [2]}}),
    ("first", 5), ("first", "abc"), ("first", [["a"]]), ("guesses", [["a"], None]), ("frames", [{}]), ("frames", [{**CALL, "reads": None}]),
]  # fmt: skip


def test_what_is_declared_fits() -> None:
    assert misfit(WHOLE, Facts) is None
    assert misfit({**WHOLE, "more": object()}, Facts) is None
    assert misfit({"id": 1, "outcome": WHOLE}, Reply) is None
    assert WHOLE.keys() == get_type_hints(Facts).keys()


@pytest.mark.parametrize(("key", "value"), FORGED)
def test_another_type_is_found_by_its_key(key: str, value: Any) -> None:
    assert misfit({**WHOLE, key: value}, Facts) == key


@pytest.mark.parametrize(("key", "value"), FORGED)
def test_a_forged_answer_is_none(tmp_path: Path, key: str, value: Any) -> None:
    """It ended a search in our own TypeError."""
    asked = pool.Asked(Future(), 1, tempfile.TemporaryDirectory(dir=tmp_path))
    asked.answer(json.loads(json.dumps({**WHOLE, key: value})))
    outcome, facts = asked.future.result(timeout=0)
    assert outcome.status == "infra"
    assert "unreadable answer" in outcome.text
    assert facts == {"status": "infra"}


@pytest.mark.parametrize("number", [10**400, True, "1", None])
def test_what_no_float_can_hold_is_no_number(number: Any) -> None:
    assert misfit({**WHOLE, "seconds": number}, Facts) == "seconds"
