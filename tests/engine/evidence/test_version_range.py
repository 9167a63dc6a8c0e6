"""`torch-minify range`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.cli import main as command_line
from bot.engine.evidence import verify as fresh
from bot.engine.evidence import version_range
from bot.engine.target import Launch
from tests.engine.evidence.test_recheck import FAILURE, RECORDED, seen

WORDS = {"b": "still", "g": "fixed", "?": "cannot_verify", "c": "changed"}


def found(states: str) -> tuple[tuple[str | None, str | None], list[str]]:
    """The bounds of versions in these states, and which were asked."""
    asked: list[str] = []

    def ask(version: str) -> Any:
        asked.append(version)
        return WORDS[states[int(version)]], ""

    return version_range.bounds([str(number) for number in range(len(states))], ask), list(dict.fromkeys(asked))


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ("gb", ("0", "1")),
        ("ggggbbbb", ("3", "4")),
        ("bbbbgg", ("3", "4")),
        ("g?b", ("0", "2")),
        ("?gcb?", ("1", "3")),
        ("bbb", (None, None)),
        ("gbg", (None, None)),
    ],
)
def test_bounds(states: str, expected: tuple[str | None, str | None]) -> None:
    assert found(states)[0] == expected


@given(st.integers(1, 40), st.integers(1, 40))
def test_bounds_take_a_bisection(good: int, bad: int) -> None:
    bounds, asked = found("g" * good + "b" * bad)
    assert bounds == (str(good - 1), str(good))
    assert len(asked) <= 2 + (good + bad).bit_length()


def test_of_one_version_nothing_is_said() -> None:
    with pytest.raises(version_range.NoVersion):
        found("?b?")


def said(states: str, tmp_path: Path, monkeypatch: Any, capsys: Any, missing: Sequence[str] = ()) -> tuple[int, list[str]]:
    (tmp_path / "repro.py").write_text("pass\n")
    (tmp_path / "result.json").write_text(RECORDED.to_json())
    signatures = {"b": FAILURE, "g": None}

    def verify(launch: Launch, *_: object) -> fresh.Verification:
        return seen(signatures[states[int(launch.python)]]).proof

    def python_of(version: str) -> str:
        if version in missing:
            raise version_range.NoVersion("no matching distribution")
        return version

    monkeypatch.setattr(fresh, "verify", verify)
    ordered = [str(number) for number in range(len(states))]
    status = version_range.main(tmp_path / "repro.py", tmp_path / "result.json", ordered, 1, python_of=python_of)
    return status, capsys.readouterr().out.splitlines()


def test_both_sides_are_shown(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    status, rows = said("ggbb", tmp_path, monkeypatch, capsys)
    assert status == 0
    assert rows[-2:] == ["last good: torch 1", "first bad: torch 2"]
    assert "torch 1: fixed: it passes in 1 of 1 fresh processes, and without the compiler" in rows
    assert "torch 2: still: the same failure in 1 of 1 fresh processes" in rows


def test_what_is_between_is_named(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    status, rows = said("bgg", tmp_path, monkeypatch, capsys, missing=["1"])
    assert status == 0
    assert rows[-3:] == ["last bad: torch 0", "first good: torch 2", "between them nothing can be said of torch 1"]
    assert "torch 1: cannot_verify: no matching distribution" in rows


def test_all_alike(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    status, rows = said("bb", tmp_path, monkeypatch, capsys)
    assert (status, rows[-1]) == (4, "it fails with the first and the last of these versions")
    status, rows = said("bbbb", tmp_path, monkeypatch, capsys, missing=["0"])
    assert (status, rows[-1]) == (
        4,
        "it fails with torch 1 and torch 3, the first and the last of these versions of which anything can be said",
    )
    status, rows = said("bb", tmp_path, monkeypatch, capsys, missing=["0", "1"])
    assert (status, rows[-1]) == (1, "cannot_verify: of fewer than two of these versions anything can be said")


def test_an_environment_is_made_once(tmp_path: Path, monkeypatch: Any) -> None:
    made: list[Sequence[str]] = []

    def run(words: Sequence[str], **_: object) -> subprocess.CompletedProcess[str]:
        made.append(words)
        if words[1:3] == ["-m", "venv"]:
            (Path(words[3]) / "bin").mkdir(parents=True)
        failed = "torch==2.1.0" in words
        return subprocess.CompletedProcess(words, int(failed), "", "ERROR: a\nERROR: No matching distribution found for torch==2.1.0\n")

    monkeypatch.setenv("TORCH_MINIFY_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(subprocess, "run", run)
    python = version_range.interpreter("2.12.0")
    assert Path(python).is_relative_to(tmp_path)
    assert made[0][0] == sys.executable
    assert made[1][-2:] == ["torch==2.12.0", "numpy"]
    assert version_range.interpreter("2.12.0") == python
    assert len(made) == 2
    for _ in range(2):  # what was not complete is made again
        with pytest.raises(version_range.NoVersion, match="No matching distribution found"):
            version_range.interpreter("2.1.0")
    assert len(made) == 6


@pytest.mark.parametrize("text", ["2.12.0", "2.12.0,x", "2.12.0,-r", "2.12.0,2.13.0;x", ""])
def test_versions_that_are_none(text: str, capsys: Any) -> None:
    with pytest.raises(SystemExit) as ended:
        command_line(["range", "repro.py", "--versions", text])
    assert ended.value.code == 2
    assert "--versions" in capsys.readouterr().err


def test_unusable_files(tmp_path: Path, capsys: Any) -> None:
    assert command_line(["range", str(tmp_path / "none.py"), "--versions", "2.12.0,2.13.0"]) == 2
    assert "result.json" in capsys.readouterr().err
