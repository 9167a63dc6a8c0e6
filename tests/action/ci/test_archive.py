"""The files in an artifact: what is wanted of it, also out of zip files in it, within bounds, whatever else is there."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable

import pytest

from bot.action.ci import archive
from tests.action.gate.memory import zipped


def names(packed: bytes, wanted: Callable[[str], bool] = lambda name: name.endswith(".txt")) -> list[str]:
    return [name for name, _ in archive.members(packed, wanted)]


def test_what_is_wanted_with_its_content() -> None:
    packed = zipped({"a.txt": b"one", "b.log": b"two", "dir/c.txt": b"three"})
    assert list(archive.members(packed, lambda name: name.endswith(".txt"))) == [("a.txt", b"one"), ("dir/c.txt", b"three")]


def test_nothing_is_wanted() -> None:
    assert names(zipped({"a.log": b"x"})) == []
    assert names(zipped({})) == []


@pytest.mark.parametrize("spoil", [lambda data: b"", lambda data: b"made up", lambda data: data[:-4], lambda data: data[: len(data) // 2]])
def test_what_is_no_zip_file_holds_nothing(spoil: Callable[[bytes], bytes]) -> None:
    assert names(spoil(zipped({"a.txt": b"one"}))) == []


def test_a_file_with_wrong_content_is_skipped_alone() -> None:
    packed = bytearray(zipped({"a.txt": b"one" * 100, "b.txt": b"two"}))
    # the first byte behind the header and the name of the first
    packed[30 + len("a.txt")] ^= 0xFF
    assert names(bytes(packed)) == ["b.txt"]


def test_a_file_that_is_locked_is_skipped_alone() -> None:
    packed = bytearray(zipped({"a.txt": b"one", "b.txt": b"two"}))
    at = packed.index(b"PK\x01\x02")
    packed[6] |= 1
    packed[at + 8] |= 1
    assert names(bytes(packed)) == ["b.txt"]


def test_a_compression_without_bounds_is_not_read() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as opened:
        opened.writestr("a.txt", b"one", compress_type=zipfile.ZIP_BZIP2)
        opened.writestr("b.txt", b"two", compress_type=zipfile.ZIP_STORED)
    assert names(buffer.getvalue()) == ["b.txt"]


def test_zip_files_in_it_come_last_with_their_names() -> None:
    inner = zipped({"a.txt": b"inner", "b.log": b"x"})
    packed = zipped({"one.zip": inner, "dir/TWO.ZIP": inner, "z.txt": b"outer"})
    assert list(archive.members(packed, lambda name: name.endswith(".txt"))) == [
        ("z.txt", b"outer"),
        ("one.zip/a.txt", b"inner"),
        ("dir/TWO.ZIP/a.txt", b"inner"),
    ]


def test_those_in_them_are_not_opened() -> None:
    deep = zipped({"deep.zip": zipped({"a.txt": b"x"}), "b.txt": b"y"})
    assert names(zipped({"inner.zip": deep})) == ["inner.zip/b.txt"]


def test_a_zip_file_that_is_none_takes_nothing_else_with_it() -> None:
    assert names(zipped({"broken.zip": b"made up", "whole.zip": zipped({"a.txt": b"x"})})) == ["whole.zip/a.txt"]


def test_files_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_FILES", 3)
    assert len(names(zipped({f"{i}.txt": b"x" for i in range(10)}))) == 3
    # what is not wanted does not count
    assert len(names(zipped({f"{i}.log": b"x" for i in range(10)} | {"a.txt": b"x"}))) == 1


def test_bytes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_FILE", 10)
    assert names(zipped({"a.txt": b"x" * 11, "b.txt": b"x" * 10})) == ["b.txt"]
    monkeypatch.setattr(archive, "MAX_ALL", 25)
    assert names(zipped({f"{i}.txt": b"x" * 10 for i in range(5)} | {"small.txt": b"x" * 5})) == ["0.txt", "1.txt", "small.txt"]


def test_zip_files_in_it_are_bounded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    inner = zipped({"a.txt": b"x"})
    monkeypatch.setattr(archive, "MAX_PACKED", len(inner) + 1)
    assert names(zipped({"one.zip": inner, "two.zip": inner, "b.txt": b"x"})) == ["b.txt", "one.zip/a.txt"]


def test_reading_ends_when_it_is_late() -> None:
    packed = zipped({f"{i}.txt": b"x" for i in range(10)})
    left = iter([False, False, True])
    assert len(list(archive.members(packed, lambda name: True, lambda: next(left)))) == 2
    assert not archive.never()
