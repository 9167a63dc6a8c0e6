"""What an input is taken for."""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path

import pytest

from bot.engine.taken import taken, unreadable
from bot.engine.target import Target


@pytest.mark.parametrize(
    ("text", "argv", "detail"),
    [
        ("import torch\n" * 27, (), "a Python script of 27 lines, run with /usr/bin/python3"),
        ("pass", (), "a Python script of one line, run with /usr/bin/python3"),
        ("pass\n" * 1200, ("--width", "3 4"), "a Python script of 1,200 lines, run with /usr/bin/python3 with the arguments --width '3 4'"),
    ],
)
def test_a_script(tmp_path: Path, text: str, argv: tuple[str, ...], detail: str) -> None:
    script = tmp_path / "fail.py"
    script.write_text(text)
    found = taken(Target(script, None, argv), "/usr/bin/python3")
    assert (found.taken_as, found.detail) == ("script", detail)


def test_what_cannot_be_one_is_not_called_a_script(tmp_path: Path) -> None:
    script = tmp_path / "fail.py"
    script.write_bytes(b"\x00\x01\n\x02")
    assert taken(Target(script, None, ()), "python3").detail == "a binary file, run with python3"


def test_a_command() -> None:
    found = taken(Target(None, "pytest", ("test_x.py::test_y", "-k", "a b")), "python3")
    assert (found.taken_as, found.detail) == ("command", "the command python -m pytest test_x.py::test_y -k 'a b', run with python3")


def archive(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("archive_format", "pt2")


# what torch writes for TORCH_TRACE (torch/_logging/_internal.py, TorchLogsFormatter): a glog prefix, then JSON
TRACE = 'V1123 06:12:01.123456 4711 torch/_logging/structured.py:28] {"str": ["/a/fail.py", 0]}\n\tindented payload\n'


@pytest.mark.parametrize(
    ("content", "looks"),
    [
        (archive, r"fail.py looks like a zip archive \(an exported program"),
        (TRACE, "looks like a log that TORCH_TRACE wrote"),
        (json.dumps({"cells": [], "metadata": {"x": None}, "nbformat": 4}), "looks like a notebook"),
        (json.dumps([{"a": None}]), "looks like JSON"),
        ('{"cells": [1,\n', r"is no Python script: SyntaxError: .* \(line 1\)"),
        ("import torch\ndef f(:\n", r"is no Python script: SyntaxError: .* \(line 2\)"),
        ("\x00\x01\x02", "looks like a binary file"),
    ],
)
def test_what_is_no_script(tmp_path: Path, content: object, looks: str) -> None:
    script = tmp_path / "fail.py"
    if callable(content):
        content(script)
    else:
        script.write_text(str(content))
    with pytest.raises(AssertionError, match=looks):
        raise AssertionError(unreadable(script, sys.executable))


def test_a_script_is_readable(tmp_path: Path) -> None:
    script = tmp_path / "fail.py"
    script.write_text("import nothing_that_is_there\n")
    assert unreadable(script, sys.executable) is None
    script.write_text("[print(x) for x in range(3)]\n")
    assert unreadable(script, sys.executable) is None


def test_syntax_that_only_the_users_interpreter_knows(tmp_path: Path) -> None:
    script, python = tmp_path / "fail.py", tmp_path / "python"
    script.write_text("from __future__ import what_comes_next\n")
    python.write_text("#!/bin/sh\nexit 0\n")
    python.chmod(0o755)
    assert unreadable(script, str(python)) is None
    assert unreadable(script, sys.executable) is not None
    assert unreadable(script, str(tmp_path / "none")) is None  # that it cannot be run is said later
