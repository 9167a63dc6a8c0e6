from __future__ import annotations

import os
from pathlib import Path

import pytest

from bot.sandbox import files


def test_what_a_program_left_is_copied_without_following_it(tmp_path: Path) -> None:
    source, target, secret = tmp_path / "source", tmp_path / "target", tmp_path / "secret"
    (source / "deep").mkdir(parents=True)
    secret.mkdir()
    (secret / "key").write_text("secret")
    (source / "deep" / "a.txt").write_text("a")
    (source / "link").symlink_to(secret / "key")
    (source / "folder").symlink_to(secret)
    os.link(secret / "key", source / "second-name")
    os.mkfifo(source / "pipe")
    files.copy_plain_tree(source, target)
    assert {str(path.relative_to(target)) for path in target.rglob("*") if path.is_file()} == {"deep/a.txt"}


def test_no_more_than_so_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for name in "abcd":
        (source / name).write_bytes(bytes(10))
    files.copy_plain_tree(source, tmp_path / "by-size", most=25)
    assert sorted(os.listdir(tmp_path / "by-size")) == ["a", "b"]
    monkeypatch.setattr(files, "MOST_FILES", 3)
    files.copy_plain_tree(source, tmp_path / "by-count")
    assert sorted(os.listdir(tmp_path / "by-count")) == ["a", "b", "c"]


def test_one_file_is_replaced_in_one_step(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("new")
    (tmp_path / "b").write_text("old")
    assert files.copy_plain_file(tmp_path / "a", tmp_path / "b") == 3
    assert (tmp_path / "b").read_text() == "new"
    with pytest.raises(OSError, match="too large"):
        files.copy_plain_file(tmp_path / "a", tmp_path / "b", most=2)
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]
