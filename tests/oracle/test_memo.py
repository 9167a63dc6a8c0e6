"""The memo on disk."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bot.models.failure import Verdict
from bot.oracle.memo import Ledger, key_of


def test_a_line_for_each_query_at_once(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "log", resume=False)
    ledger.record("a", Verdict.SAME, **{"pass": "bypass", "size": [3, 1], "ms": 7})
    ledger.record("b", Verdict.PASSES)
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert lines[0] == {"n": 1, "key": "a", "verdict": "SAME", "pass": "bypass", "size": [3, 1], "ms": 7}
    assert [line["n"] for line in lines] == [1, 2]
    assert (ledger.recall("a"), ledger.recall("c")) == (Verdict.SAME, None)
    assert (ledger.queries, ledger.memo_hits) == (2, 1)


@pytest.mark.parametrize("cut", ['{"n": 9, "key": "c", "verd', '{"n": 9, "key": "c", "verdict": "SAME"}', "\xff"])
def test_resuming_after_a_kill(tmp_path: Path, cut: str) -> None:
    path = tmp_path / "log"
    path.write_text("null\n")  # no entry stands before it
    first = Ledger(path, resume=True)
    for key, verdict in zip("abcde", (Verdict.SAME, Verdict.DIFFERENT, Verdict.INFRA, Verdict.TIMEOUT, Verdict.INVALID), strict=True):
        first.record(key, verdict)
    with open(path, "ab") as file:
        file.write(b'null\n{"verdict": "SAME"}\n{"key": "x", "verdict": "UNHEARD OF"}\n' + cut.encode("latin-1"))
    resumed = Ledger(path, resume=True)
    assert resumed.known == {"a": Verdict.SAME, "b": Verdict.DIFFERENT, "e": Verdict.INVALID}, "our faults are asked again"
    assert resumed.queries == 0
    resumed.record("f", Verdict.PASSES)
    assert Ledger(path, resume=True).known["f"] is Verdict.PASSES
    for line in path.read_text().splitlines():
        json.loads(line)


def test_what_another_torch_answered_is_asked_again(tmp_path: Path) -> None:
    path, versions = tmp_path / "log", {"python": "3.12"}
    first = Ledger(path, resume=False, versions=versions)
    versions["torch"] = "2.12.0"  # as the worker says when it has started
    first.record("a", Verdict.PASSES)
    assert first.recall("a") is Verdict.PASSES
    for torch, known in (("2.12.0", Verdict.PASSES), ("2.13.0", None)):
        assert Ledger(path, resume=True, versions={"torch": torch, "python": "3.12"}).recall("a") is known, torch


def test_without_resuming_it_starts_empty(tmp_path: Path) -> None:
    Ledger(tmp_path / "log", resume=False).record("a", Verdict.SAME)
    assert Ledger(tmp_path / "log", resume=False).recall("a") is None
    assert (tmp_path / "log").read_text() == ""
    assert Ledger(tmp_path / "none", resume=True).known == {}


def test_keys_tell_text_and_context_apart() -> None:
    assert len({key_of("a"), key_of("b"), key_of("a", "x"), key_of("xa"), key_of("a", "xa")}) == 5
