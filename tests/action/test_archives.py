from __future__ import annotations

import base64
import io
import random
import struct
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path

import pytest

from bot.action import archives
from bot.action.archives import MOST_PACKED, holds_secret, packed
from bot.action.ci import archive as artifact
from bot.action.gate import attachments
from bot.action.github.resources import Gist
from tests.action import canaries

RESULTS = Path(__file__).resolve().parents[1] / "fixtures" / "results"


def archive(text: str, name: str = "model.json", *, comment: str = "", compressed: bool = False) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED) as opened:
        opened.writestr("weights/0", bytes(range(256)) * 8)
        opened.writestr(name, text)
        opened.comment = comment.encode()
    return buffer.getvalue()


def beyond_all_files(name: bytes = b"report.xml") -> bytes:
    """An archive whose one member begins where no file can reach."""
    extra = struct.pack("<HHQ", 1, 8, (1 << 64) - 1)
    entry = struct.pack("<4s4B4H3I5H2I", b"PK\1\2", 45, 3, 45, 0, 0, 0, 0, 0, 0, 2, 2, len(name), len(extra), 0, 0, 0, 0, 0xFFFFFFFF)
    entry += name + extra
    return entry + struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 1, 1, len(entry), 0, 0)


@pytest.mark.parametrize("name", ["lowering", "custom_pass", "flaky"])
def test_a_recorded_program_fits_and_comes_back(name: str) -> None:
    content = (RESULTS / name / "exported_program.pt2").read_bytes()
    text = packed(content)
    assert text is not None
    assert len(text) <= MOST_PACKED
    assert zlib.decompress(base64.b64decode(text)) == content


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("secret", [*canaries.TOKENS.values(), canaries.KEY, "/home/carol/x.py"])
def test_what_packing_would_hide_is_not_packed(secret: str, compressed: bool) -> None:
    for content in (archive(f'{{"a": "{secret}"}}', compressed=compressed), archive("{}", comment=secret), archive("{}", secret)):
        assert holds_secret(io.BytesIO(content))
        assert packed(content) is None


def described(text: bytes, *, extra: bool) -> bytes:
    """An archive with `text` in what describes its only member."""
    member = zipfile.ZipInfo("weights/0")
    member.comment = b"" if extra else text
    member.extra = struct.pack("<HH", 0x6375, len(text)) + text if extra else b""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as opened:
        opened.writestr(member, b"x")
    return buffer.getvalue()


@pytest.mark.parametrize("secret", [canaries.TOKENS["GitHub, classic"], "/home/carol/model.py"])
def test_a_secret_anywhere_in_an_archive_is_found(secret: str) -> None:
    text, plain = secret.encode(), archive("x")
    assert not holds_secret(io.BytesIO(plain))
    for held in (text + b" " + plain, plain + b" " + text, described(text, extra=False), described(text, extra=True)):
        assert zipfile.ZipFile(io.BytesIO(held)).namelist()
        assert holds_secret(io.BytesIO(held))


def test_an_archive_with_too_much_around_its_members_counts_as_one_with_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.action.archives.MOST_AROUND", 2000)
    assert not holds_secret(io.BytesIO(archive("x")))
    assert holds_secret(io.BytesIO(b"x" * 2000 + archive("x")))


def test_a_directory_of_members_that_is_too_long_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of its entries is 46 bytes, and takes ten times as many in memory."""
    monkeypatch.setattr("bot.action.archives._LARGEST", 1000)
    monkeypatch.setattr("bot.action.archives.MOST_AROUND", 1000)
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as made:
        for number in range(1000):
            made.writestr(str(number), b"")
    taken: list[int] = []

    class Read(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            taken.append(len(found := super().read(size)))
            return found

    assert holds_secret(Read(written.getvalue()))
    assert max(taken) <= 2000


def test_what_is_no_archive_is_not_packed() -> None:
    good = archive("{}")
    assert packed(good) is not None
    for content in (b"", b"PK", good[:-30], b"\x80\x04}." * 20):
        assert packed(content) is None


def test_a_member_beyond_all_files_is_unreadable_and_no_more() -> None:
    content = beyond_all_files()
    assert zipfile.ZipFile(io.BytesIO(content)).namelist() == ["report.xml"]
    assert packed(content) is None
    assert holds_secret(io.BytesIO(content))
    assert list(artifact.members(content, lambda name: name.endswith(".xml"))) == []


def test_a_program_whose_text_looks_like_a_secret_is_not_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is packed is noise, in which anything may stand by chance: a report would take that out, and the program be none."""
    token = "LT" + "AI" + "a1B2" * 5
    programs = []
    for before in range(3):  # of which one begins where four digits do
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as opened:
            noise = random.Random(0)
            opened.writestr("weights/0", noise.randbytes(1500 + before) + base64.b64decode("////" + token) + noise.randbytes(1500))
        programs.append(buffer.getvalue())
    given = [packed(program) for program in programs]
    monkeypatch.setattr(archives, "redact", str)
    assert [text is None for text in given] == [token in (packed(program) or "") for program in programs]
    assert given.count(None) == 1


def test_a_program_that_is_too_long_is_not_packed() -> None:
    import random

    noise = random.Random(1).randbytes(MOST_PACKED)
    assert packed(archive(base64.b64encode(noise).decode())) is None


def test_a_bomb_is_read_in_part_alone() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as opened:
        for number in range(40):
            opened.writestr(f"{number}", b"\0" * (8 << 20))
    assert not holds_secret(io.BytesIO(buffer.getvalue()))
    many = io.BytesIO()
    with zipfile.ZipFile(many, "w") as opened:
        for number in range(2_001):
            opened.writestr(f"{number}", b"")
    assert holds_secret(many)


def unpacked(content: bytes) -> list[str]:
    """What is read of an attached archive."""

    class Files:
        def attachment(self, url: str, limit: int) -> bytes | None:
            return content

        def gist(self, name: str, revision: str | None = None) -> Gist:
            raise AssertionError

    found = attachments.Attachments(Files(), datetime.now(timezone.utc), "https://github.com").find(
        "https://github.com/user-attachments/files/1/a.zip"
    )
    return [found.text] if found else []


@pytest.mark.parametrize("kind", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_bomb_that_bursts_at_once_is_not_lit(kind: int) -> None:
    """Python's zipfile gives back all that a piece holds (3.10 to 3.14, `ZipExtFile._read1`): of 467 bytes of bzip2 400 MiB."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", kind) as opened, opened.open("a/test.py", "w") as member:
        for _ in range(64):
            member.write(bytes(1 << 20))
    tracemalloc.start()
    try:
        assert packed(buffer.getvalue()) is None
        assert list(artifact.members(buffer.getvalue(), lambda _: True)) == []
        assert unpacked(buffer.getvalue()) == []
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 8 << 20


def locked(content: bytearray, local: int, central: int) -> None:
    content[local + 6] |= 1
    content[central + 8] |= 1


def of_no_known_compression(content: bytearray, local: int, central: int) -> None:
    content[local + 8] = content[central + 10] = 93


def with_a_wrong_sum(content: bytearray, local: int, central: int) -> None:
    content[local + 14] ^= 255
    content[central + 16] ^= 255


def that_lies_elsewhere(content: bytearray, local: int, central: int) -> None:
    content[central + 42 : central + 46] = b"\xff\xff\xff\x7f"


@pytest.mark.parametrize("spoil", [locked, of_no_known_compression, with_a_wrong_sum, that_lies_elsewhere], ids=lambda f: f.__name__)
def test_one_member_that_cannot_be_read_hides_no_other(spoil: Callable[[bytearray, int, int], None]) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as opened:
        opened.writestr("a.py", "import torch\n" * 9)
        opened.writestr("b.py", "import torch\n")
    content = bytearray(buffer.getvalue())
    assert unpacked(bytes(content)) == ["import torch\n" * 9]
    spoil(content, 0, content.index(b"PK\x01\x02"))
    assert list(artifact.members(bytes(content), lambda _: True)) == [("b.py", b"import torch\n")]
    assert unpacked(bytes(content)) == ["import torch\n"]
    assert holds_secret(io.BytesIO(content))


def test_members_that_cannot_be_read_take_no_more_time_than_others(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []

    def torn(archive: zipfile.ZipFile, member: zipfile.ZipInfo, most: int) -> bytes:
        read.append(most - 1)
        raise zipfile.BadZipFile

    monkeypatch.setattr(artifact, "beginning", torn)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as opened:
        for number in range(100):
            opened.writestr(f"{number}", b"")
    assert list(artifact.members(buffer.getvalue(), lambda _: True)) == []
    assert sum(read) <= artifact.MAX_ALL


def test_what_is_torn_in_its_middle_is_passed_over() -> None:
    content = bytearray(archive("import torch\n" * 100, "a.py", compressed=True))
    assert unpacked(bytes(content)) != []
    start = content.index(b"a.py") + 4
    content[start : start + 4] = b"\xff" * 4
    assert holds_secret(io.BytesIO(content))
    assert list(artifact.members(bytes(content), lambda name: name == "a.py")) == []
    assert unpacked(bytes(content)) == []
