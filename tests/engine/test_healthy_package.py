"""A healthy AOTInductor package is tried once per boot of the machine."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bot.engine.evidence import verify
from bot.engine.healthy_package import fault_of_package
from bot.engine.target import Launch
from bot.failure.outcome import Outcome
from bot.oracle.budget import Budget
from bot.sandbox.sandbox import Sandbox

CRASHED = Outcome(status="signal", signal="SIGSEGV", text='  File "/a/package.py", line 4 in <module>\n')
WORKS = Outcome(status="ok")
NO_COMPILER = Outcome(status="raised", exit=1, text="Traceback (most recent call last):\nRuntimeError: no compiler\n")
TOO_SLOW = Outcome(status="timeout")


@pytest.fixture
def boot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("TORCH_MINIFY_CACHE_DIR", str(tmp_path / "kept"))
    monkeypatch.setattr(Sandbox, "state_of", lambda _, python: f"the packages of {python}")
    (tmp_path / "boot").write_text("this boot\n")
    return tmp_path / "boot"


def launched(place: Path, **changes: object) -> Launch:
    box = Sandbox(place, sys.executable)
    return replace(Launch(sys.executable, place, {"CUDA_VISIBLE_DEVICES": "0", "GITHUB_RUN_ID": "1"}, box=box), **changes)  # type: ignore[arg-type]


def tries(monkeypatch: pytest.MonkeyPatch, outcome: Outcome) -> list[str]:
    asked: list[str] = []

    def run(launch: Launch, script: Path, **_: object) -> Outcome:
        asked.append(script.read_text())
        return outcome

    monkeypatch.setattr(verify, "run_fresh", run)
    return asked


@pytest.mark.parametrize(
    ("outcome", "fails", "once"), [(CRASHED, True, True), (WORKS, False, True), (NO_COMPILER, True, False), (TOO_SLOW, True, False)]
)
def test_only_what_cannot_pass_is_remembered(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, boot: Path, outcome: Outcome, fails: bool, once: bool
) -> None:
    asked = tries(monkeypatch, outcome)
    found = [fault_of_package(launched(tmp_path), "cuda", Budget(60), boot) for _ in range(2)]
    assert [one is not None for one in found] == [fails, fails]
    assert found[0] == found[1]
    assert len(asked) == (1 if once else 2)


@pytest.mark.parametrize(
    ("changes", "again"),
    [
        ({}, False),
        ({"env": {"CUDA_VISIBLE_DEVICES": "0", "GITHUB_RUN_ID": "2"}}, False),
        ({"argv": ("other.py",)}, False),
        ({"env": {"CUDA_VISIBLE_DEVICES": "1"}}, True),
        ({"python": "/usr/bin/python3"}, True),
    ],
)
def test_another_interpreter_or_gpu_is_tried_anew(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, boot: Path, changes: dict[str, object], again: bool
) -> None:
    asked = tries(monkeypatch, CRASHED)
    fault_of_package(launched(tmp_path), "cuda", Budget(60), boot)
    fault_of_package(launched(tmp_path, **changes), "cuda", Budget(60), boot)
    assert len(asked) == (2 if again else 1)


def test_another_device_or_boot_is_tried_anew(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, boot: Path) -> None:
    asked = tries(monkeypatch, CRASHED)
    for device in ("cuda", "cpu"):
        fault_of_package(launched(tmp_path), device, Budget(60), boot)
    boot.write_text("the next boot\n")
    fault_of_package(launched(tmp_path), "cuda", Budget(60), boot)
    assert ["device='cuda'" in text for text in asked] == [True, False, True]


def test_outside_a_sandbox_nothing_is_remembered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, boot: Path) -> None:
    """There the program runs under our account, and could write it itself."""
    asked = tries(monkeypatch, CRASHED)
    box = Sandbox(tmp_path, sys.executable, on=False)
    for launch in (launched(tmp_path, box=box), launched(tmp_path, box=None)):
        for _ in range(2):
            assert fault_of_package(launch, "cuda", Budget(60), boot) is not None
    assert len(asked) == 4
    assert not (tmp_path / "kept").exists()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"fault": 3}', '{"fault": {"kind": "odd"}}', "[" * 100_000])
def test_what_cannot_be_read_is_tried_anew(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, boot: Path, text: str) -> None:
    asked = tries(monkeypatch, CRASHED)
    first = fault_of_package(launched(tmp_path), "cuda", Budget(60), boot)
    (kept,) = (tmp_path / "kept" / "packages").iterdir()
    kept.write_text(text)
    assert fault_of_package(launched(tmp_path), "cuda", Budget(60), boot) == first
    assert len(asked) == 2


def test_a_directory_that_cannot_be_written_is_no_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, boot: Path) -> None:
    asked = tries(monkeypatch, WORKS)
    (tmp_path / "kept").write_text("a file\n")
    for _ in range(2):
        assert fault_of_package(launched(tmp_path), "cuda", Budget(60), boot) is None
    assert len(asked) == 2


@pytest.mark.e2e
@pytest.mark.timeout(400)
def test_a_package_that_works_is_made_once(tmp_path: Path) -> None:
    for name in ("boxes", "here"):
        (tmp_path / name).mkdir()
    (tmp_path / "boot").write_text(f"this boot, {time.time_ns()}\n")
    launch = Launch(sys.executable, tmp_path / "here", dict(os.environ), box=Sandbox(tmp_path / "boxes", sys.executable))
    assert fault_of_package(launch, "cpu", Budget(300), tmp_path / "boot") is None
    started = time.monotonic()
    assert fault_of_package(launch, "cpu", Budget(300), tmp_path / "boot") is None
    assert time.monotonic() - started < 1
