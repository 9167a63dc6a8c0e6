from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from bot.engine.inputs import archive
from bot.engine.inputs.take import take
from bot.engine.inputs.taken import NotUnderstood, Place
from tests.engine.inputs.test_archive import tarred, zipped
from tests.engine.inputs.test_dump import AOT, AOTI

TRACEBACK = 'Traceback (most recent call last):\n  File "x.py"\nValueError: x\n'


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
        # what is written around a program does not make it something else
        ("fail.txt", "import torch\n# Traceback (most recent call last):\n# ValueError: x\n", "script", "a Python script of 3 lines"),
        ("fail.txt", f'"""\n{TRACEBACK}"""\nimport torch\n', "script", "a Python script of 6 lines"),
        ("fail.ipynb", "import torch\n", "script", "a Python script of one line"),
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
        ("empty.py", " \n\t\n", "an empty file"),
        ("notes.md", "# Failing: see *below*\n", "a text that is no Python"),
        (
            "two.md",
            "```py\nimport torch\n```\nor\n~~~\nfrom torch import nn\n~~~\n",
            "a text with 2 programs in code blocks: give the one that fails",
        ),
        ("fail.ipynb", "<!DOCTYPE html>\n", "a text that is no Python"),
        ("program.pt2", "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 5\n", "a pointer of Git LFS"),
        ("fail.txt", "import torch\n".encode("utf-16"), "a text in UTF-16"),
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


def log_of_a_graph() -> bytes:
    record = '{"artifact": {"name": "fx_graph_runnable", "encoding": "string"}, "frame_id": 0, "frame_compile_id": 0, "has_payload": "x"}'
    lines = [f"V1125 09:00:00.000000 7 torch/_inductor/compile_fx.py:1] {record}", *("\t" + line for line in AOT.splitlines())]
    return "\n".join(lines).encode()


def test_archives_are_found_in_directories_and_in_archives(tmp_path):
    log = log_of_a_graph()
    one = {"logs/rank_0.log": log}
    for number, make in enumerate(
        [
            lambda held: zipped(held / "logs.zip", one),
            lambda held: named(held, "trace.log.gz", gzip.compress(log)),
            lambda held: tarred(held / "outer.tgz", {"inner.zip": zipped(tmp_path / "inner.zip", one).read_bytes(), "READ.me": b"x"}),
        ]
    ):
        held = tmp_path / f"held{number}"
        held.mkdir()
        path = make(held)
        for given in (path, held) if number < 2 else (path,):
            scratch = tmp_path / f"scratch{number}{given is held}"
            scratch.mkdir()
            found = take(Place(given, scratch, torch="2.13.0+cpu"))
            assert (found.taken_as, "one graph" in found.detail, "in an archive" in found.detail) == ("trace", True, True)


def test_archives_in_a_directory_share_one_bound(tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "MOST_UNPACKED", 5000)
    (held := tmp_path / "held").mkdir()
    (scratch := tmp_path / "scratch").mkdir()
    for number in range(3):
        zipped(held / f"{number}.zip", {"x.log": b"x" * 2000})
    with pytest.raises(NotUnderstood, match="unpacks to more"):
        take(Place(held, scratch))


def test_a_directory_of_programs_is_asked_for_one_of_them(tmp_path):
    (held := tmp_path / "held").mkdir()
    named(held, "fail.py", "import torch\n")
    with pytest.raises(NotUnderstood, match=r"it holds files with: \.py\); give the one that fails"):
        take(Place(held, tmp_path / "scratch"))


@pytest.mark.parametrize("beside", [{}, {"README.md": b"x", "__MACOSX/._fail.py": b"\0"}])
def test_the_one_program_of_an_archive(tmp_path, beside):
    (scratch := tmp_path / "scratch").mkdir()
    found = take(Place(zipped(tmp_path / "x.zip", {"repro/fail.py": b"import torch\n", **beside}), scratch))
    assert (found.taken_as, found.detail, found.text) == ("script", "a Python script of one line, in an archive", "import torch\n")


@pytest.mark.parametrize(
    ("name", "content", "taken_as", "read"),
    [
        ("a/fail.ipynb", b'{"nbformat": 4, "cells": [{"cell_type": "code", "source": "import torch"}]}', "notebook", []),
        ("a/program.pt2", {"program/models/model.json": b"{}", "program/archive_format": b"pt2"}, "exported_program", ["program.pt2"]),
    ],
)
def test_an_archive_of_what_is_no_script(tmp_path, name, content, taken_as, read):
    (scratch := tmp_path / "scratch").mkdir()
    raw = content if isinstance(content, bytes) else zipped(tmp_path / "program.pt2", content).read_bytes()
    found = take(Place(zipped(tmp_path / "x.zip", {name: raw}), scratch))
    assert found.taken_as == taken_as
    assert found.detail.endswith(", in an archive")
    assert [path.name for path in found.read] == read
    assert all(path.is_relative_to(scratch) and path.is_file() for path in found.read)


def test_an_archive_of_several_programs(tmp_path):
    (scratch := tmp_path / "scratch").mkdir()
    with pytest.raises(NotUnderstood, match=r"it holds files with: \.py\); give the one that fails"):
        take(Place(zipped(tmp_path / "x.zip", {"a.py": b"import torch\n", "b.py": b"import torch\n"}), scratch))
