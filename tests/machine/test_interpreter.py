"""What an interpreter says of its torch: one that is made up, so that it needs none."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from bot.machine import interpreter
from bot.sandbox.aside import ask

TORCH = """\
import types, warnings

__version__ = "2.11.0+cu130"
version = types.SimpleNamespace(cuda="13.0")


def is_available():
    warnings.warn("CUDA initialization: made up (Triggered internally at x.cpp:1.)")
    return False


cuda = types.SimpleNamespace(is_available=is_available)
"""


def test_what_torch_warns_of_and_what_hides_a_gpu_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "torch.py").write_text(TORCH, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    found = interpreter.facts_of(sys.executable, interpreter.LIMIT, ask)
    assert found["warned"] == "CUDA initialization: made up (Triggered internally at x.cpp:1.)"
    assert (found["visible"], found["gpus"], found["cuda"]) == ("", [], "13.0")


def test_nothing_is_told_of_what_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "torch.py").write_text(TORCH.replace('    warnings.warn("CUDA', '    str("CUDA'), encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    found = interpreter.facts_of(sys.executable, interpreter.LIMIT, ask)
    assert "warned" not in found
    assert "visible" not in found


def test_a_program_that_repeats_its_arguments_is_no_python() -> None:
    """As `ls` does."""

    def quoting(command: Sequence[str], limit: float) -> subprocess.CompletedProcess[str]:
        said = " ".join(repr(word) for word in command)
        return subprocess.CompletedProcess(command, 2, "", f"ls: cannot access {said}: File name too long\n")

    assert interpreter.facts_of("/bin/ls", 1.0, quoting) == {"error": "/bin/ls is no Python"}


def test_the_last_line_says_why_an_interpreter_does_not_start() -> None:
    said = "Could not find platform libraries\nModuleNotFoundError: No module named 'encodings'\n"

    def broken(command: Sequence[str], limit: float) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, 1, "", said)

    assert interpreter.facts_of("python", 1.0, broken) == {"error": "ModuleNotFoundError: No module named 'encodings'"}
