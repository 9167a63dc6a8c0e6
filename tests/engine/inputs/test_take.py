from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bot.engine.inputs.take import take
from bot.engine.inputs.taken import NotUnderstood, Place
from tests.engine.inputs.test_dump import AOT, AOTI


def place(path: Path, **more: Any) -> Place:
    return Place(path, path.parent, torch="2.13.0+cpu", **more)


def named(tmp_path: Path, name: str, content: str | bytes) -> Path:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize(
    ("name", "content", "taken_as", "detail"),
    [
        ("fail.py", "import torch\nx = 1\n", "script", "a Python script of 2 lines"),
        # running it says what is wrong with it
        ("fail.py", "def f(:\n", "script", "a Python script of one line"),
        ("no_suffix", "import torch\n", "script", "a Python script of one line"),
        ("launcher.py", AOT, "launcher", "a launcher of PyTorch's minifier (level aot) dumped by torch 2.13.0+cpu, one graph, 1 ops"),
        ("x.txt", AOT.replace("'minify'", "'run'"), "runnable", "a repro (level aot) dumped by torch 2.13.0+cpu, one graph, 1 ops"),
    ],
)  # fmt: skip
def test_what_a_file_is_taken_for(tmp_path, name, content, taken_as, detail):
    found = take(place(named(tmp_path, name, content)))
    assert (found.taken_as, found.detail) == (taken_as, detail)


@pytest.mark.parametrize(
    ("name", "content", "looks_like"),
    [
        ("a.out", b"\x7fELF\x02\x01", "a compiled program"),
        ("model.bin", b"\x00\x01\x02", "a binary file"),
        ("shot.png", b"\x89PNG\r\n", "a picture"),
        ("data.pkl", b"\x80\x04\x95", "a pickle"),
        ("err.txt", 'Traceback (most recent call last):\n  File "x.py"\nValueError: x\n', "a traceback, or a log with one"),
        ("job.log", "2026-07-02T10:00:00.1234567Z Run pytest\nFAILED x\n", r"a log of a CI job.*torch-minify candidates --log FILE"),
        ("empty.log", "\n", "an empty file"),
        ("notes.md", "# Failing: see *below*\n", "a text that is no Python"),
        ("bad.ipynb", "{}", "holds no cells"),
        ("bad.pt2", "no zip", "a .pt2 file that is no archive"),
    ],
)
def test_what_is_not_understood_is_named(tmp_path, name, content, looks_like):
    with pytest.raises(NotUnderstood, match=looks_like):
        take(place(named(tmp_path, name, content)))


def test_a_launcher_of_aot_inductor_needs_its_program(tmp_path):
    launcher = named(tmp_path, "minifier_launcher.py", AOTI)
    with pytest.raises(NotUnderstood, match=r"loads exported_program\.pt2, which is neither beside it nor where it was"):
        take(place(launcher))
    (tmp_path / "checkpoints").mkdir()
    there = named(tmp_path / "checkpoints", "exported_program.pt2", "")
    text = take(place(launcher)).text
    assert text is not None
    assert f"torch.export.load({str(there.resolve())!r})" in text
