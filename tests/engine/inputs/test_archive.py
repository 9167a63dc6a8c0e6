"""Archives of strangers: what they may hold, and how much of it is written."""

from __future__ import annotations

import io
import os
import stat
import tarfile
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from bot.engine.inputs import archive
from bot.engine.inputs.archive import is_archive, is_of_torch, unpack
from bot.engine.inputs.taken import NotUnderstood

Pack = Callable[..., Path]


def zipped(path: Path, files: dict[str, bytes], how: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", how) as out:
        for name, data in files.items():
            out.writestr(name, data)
    return path


def tarred(path: Path, files: dict[str, bytes], mode: str = "w:gz") -> Path:
    with tarfile.open(path, mode) as out:  # type: ignore[call-overload]
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            out.addfile(entry, io.BytesIO(data))
    return path


def plain_tar(path: Path, files: dict[str, bytes]) -> Path:
    return tarred(path, files, "w")


packs = pytest.mark.parametrize("pack", [zipped, tarred, plain_tar])


def files(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.fixture
def into(tmp_path: Path) -> Path:
    place = tmp_path / "into"
    place.mkdir()
    return place


@packs
def test_plain_files_are_unpacked(tmp_path: Path, into: Path, pack: Pack) -> None:
    held = {"a.txt": b"a" * 3_000_000, "deep/er/b.txt": b"", "./c.txt": b"c"}
    path = pack(tmp_path / "held", held)
    assert is_archive(path)
    unpack(path, into)
    assert files(into) == {"a.txt": held["a.txt"], "deep/er/b.txt": b"", "c.txt": b"c"}


@packs
@pytest.mark.parametrize("name", ["/etc/x", "../x", "a/../../x", "c:/x", "c:\\x", "a\\..\\..\\x", ".."])
def test_a_path_that_leads_out_is_refused(tmp_path: Path, into: Path, pack: Pack, name: str) -> None:
    with pytest.raises(NotUnderstood, match="a path that leads out of it"):
        unpack(pack(tmp_path / "held", {"fine": b"", name: b"x"}), into)
    assert not (tmp_path / "x").exists()


@packs
def test_a_name_that_is_there_twice_is_refused(tmp_path: Path, into: Path, pack: Pack) -> None:
    with pytest.raises(NotUnderstood, match="holds 'a' twice"):
        unpack(pack(tmp_path / "held", {"./a": b"1", "a": b"2"}), into)
    assert files(into) == {"a": b"1"}


@packs
def test_so_many_files_are_too_many(tmp_path: Path, into: Path, pack: Pack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MOST_FILES", 3)
    unpack(pack(tmp_path / "three", dict.fromkeys("abc", b"")), into)
    with pytest.raises(NotUnderstood, match="more than 3 files"):
        unpack(pack(tmp_path / "four", dict.fromkeys("defg", b"")), into)


@pytest.mark.parametrize("pack", [zipped, tarred])
def test_what_unpacks_to_far_more_than_it_is_is_refused(tmp_path: Path, into: Path, pack: Pack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "RATIO_FROM", 2**20)
    with pytest.raises(NotUnderstood, match="that unpacks to more than"):
        unpack(pack(tmp_path / "bomb", {"zeros": bytes(8 * 2**20)}), into)
    assert sum(map(len, files(into).values())) <= 4 * 2**20
    # what does not shrink may be as large as anybody sends
    unpack(pack(tmp_path / "noise", {"noise": os.urandom(3 * 2**20)}), into)


def test_the_whole_has_a_bound_however_it_was_packed(tmp_path: Path, into: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MOST_UNPACKED", 1000)
    with pytest.raises(NotUnderstood, match="that unpacks to more than"):
        unpack(zipped(tmp_path / "held", {"a": os.urandom(600), "b": os.urandom(600)}), into)


@pytest.mark.parametrize("name", ["a.zip", "b.zip", "a.tar.bz2", "a.tar.xz"])
def test_what_would_unpack_all_at_once_is_not_opened(tmp_path: Path, into: Path, name: str) -> None:
    """Python's zipfile and tarfile (3.10 to 3.14) give back all that a piece of bzip2 or LZMA holds."""
    content = bytes(2**26)
    if name.endswith(".zip"):
        with zipfile.ZipFile(tmp_path / name, "w", zipfile.ZIP_BZIP2 if name == "a.zip" else zipfile.ZIP_LZMA) as out:
            out.writestr("x.py", content)
    else:
        with tarfile.open(tmp_path / name, "w:bz2" if name.endswith("bz2") else "w:xz") as tar:
            info = tarfile.TarInfo("x.py")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    del content
    tracemalloc.start()
    try:
        with pytest.raises(NotUnderstood):
            unpack(tmp_path / name, into)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 2**23


def test_links_and_devices_are_left_out(tmp_path: Path, into: Path) -> None:
    with tarfile.open(tmp_path / "held", "w:gz") as out:
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE):
            entry = tarfile.TarInfo(f"entry-{kind.decode()}")
            entry.type, entry.linkname = kind, "/etc/passwd"
            out.addfile(entry)
    unpack(tmp_path / "held", into)
    assert list(into.iterdir()) == []
    with zipfile.ZipFile(tmp_path / "zip", "w") as zipped_out:
        link = zipfile.ZipInfo("link")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        zipped_out.writestr(link, "/etc/passwd")
        zipped_out.writestr("folder/", "")
    unpack(tmp_path / "zip", into)
    assert list(into.iterdir()) == []


@packs
def test_a_damaged_one_is_said(tmp_path: Path, into: Path, pack: Pack) -> None:
    path = pack(tmp_path / "held", {"a": os.urandom(50_000)})
    path.write_bytes(path.read_bytes()[:20_000])
    with pytest.raises(NotUnderstood, match="an archive that cannot be unpacked"):
        unpack(path, into)


def test_so_is_one_with_other_bytes_in_its_middle(tmp_path: Path, into: Path) -> None:
    path = zipped(tmp_path / "held", {"t.log": b"words of a log\n" * 500})
    path.write_bytes(path.read_bytes()[:40] + b"\xff" * 20 + path.read_bytes()[60:])
    with pytest.raises(NotUnderstood, match="an archive that cannot be unpacked"):
        unpack(path, into)


@pytest.mark.parametrize("how", ["its mark", "its version", "a name"])
def test_one_with_a_damaged_directory_is_none_of_torch_s_and_is_said_to_be_damaged(tmp_path: Path, into: Path, how: str) -> None:
    path = zipped(tmp_path / "held", {"a": b"words", "b": b"words"})
    whole = bytearray(path.read_bytes())
    at = whole.index(b"PK\x01\x02")
    # APPNOTE.TXT, 4.3.12: the signature, the version that is needed, the length of the name, and the name, which goes on as a field then
    spoiled = {"its mark": (at, b"PK\x09\x09"), "its version": (at + 6, b"\xff\x00"), "a name": (at + 28, b"\0\0\x01\0")}
    place, other = spoiled[how]
    whole[place : place + len(other)] = other
    path.write_bytes(whole)
    assert is_archive(path)
    assert not is_of_torch(path)
    with pytest.raises(NotUnderstood, match="an archive that cannot be unpacked"):
        unpack(path, into)


def test_what_is_no_archive(tmp_path: Path) -> None:
    path = tmp_path / "a"
    for content in (b"", b"import torch\n"):
        path.write_bytes(content)
        assert not is_archive(path)
    cut = tarred(tmp_path / "held", {"a": os.urandom(5_000)})
    cut.write_bytes(cut.read_bytes()[:100])
    assert is_archive(cut)  # to unpack it says what is wrong


@pytest.mark.parametrize(
    ("names", "of_torch"),
    [
        (["program/byteorder", "program/x"], True),
        (["program/archive_format"], True),
        (["archive/version", "archive/data.pkl"], True),
        (["archive/data.pkl"], False),
        (["archive/version"], False),
        (["a/b/c/byteorder"], False),
        (["log.txt"], False),
    ],
)
def test_what_torch_wrote(tmp_path: Path, names: list[str], of_torch: bool) -> None:
    assert is_of_torch(zipped(tmp_path / "held", dict.fromkeys(names, b""))) is of_torch
    assert not is_of_torch(tarred(tmp_path / "tar", dict.fromkeys(names, b"")))
