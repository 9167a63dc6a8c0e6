"""The directories below one: in order, links not followed, however deep they are."""

from __future__ import annotations

import os
from pathlib import Path

from bot.sandbox.files import remove
from bot.sandbox.walk import walk


def test_in_order_with_links_among_the_files(tmp_path: Path) -> None:
    for name in ("b/x", "a/y", "a/deep/z"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("", encoding="utf-8")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    (tmp_path / "0-file").write_text("", encoding="utf-8")
    found = [(os.path.relpath(folder, tmp_path), directories, files) for folder, directories, files in walk(tmp_path)]
    assert found == [
        (".", ["a", "b"], ["0-file", "link"]),
        ("a", ["deep"], ["y"]),
        (os.path.join("a", "deep"), [], ["z"]),
        ("b", [], ["x"]),
    ]


def test_a_link_in_the_place_of_the_directory_is_not_followed(tmp_path: Path) -> None:
    """Who may write to the directory around it may have exchanged it."""
    (tmp_path / "secret" / "deep").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "secret")
    assert list(walk(tmp_path / "link")) == []
    assert [folder for folder, _, _ in walk(tmp_path / "link" / "deep")] == [str(tmp_path / "link" / "deep")]


def test_what_cannot_be_read_is_passed_over(tmp_path: Path) -> None:
    assert list(walk(tmp_path / "none")) == []
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert list(walk(tmp_path / "file")) == []


def test_no_depth_is_too_much(tmp_path: Path) -> None:
    """`os.walk` calls itself before Python 3.12."""
    depth = 1_100
    place = os.open(tmp_path, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=place)
        below = os.open("d", os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = below
    os.close(place)
    assert len(list(walk(tmp_path))) == depth + 1
    remove(tmp_path / "d")  # pytest cannot
