"""A compiler that is killed leaves half a library in the directory that all questions share."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from bot.inside.half_written import remove_half_written

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems have other libraries")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    place = tmp_path_factory.mktemp("library")
    (place / "a.c").write_text("int twice(int x) { return 2 * x; }\n")
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", "a.so", "a.c"], cwd=place, check=True)
    return (place / "a.so").read_bytes()


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.999])
def test_half_of_one_is_removed_and_whole_ones_stay(tmp_path: Path, library: bytes, share: float) -> None:
    whole, half, other = tmp_path / "ab" / "whole.so", tmp_path / "ab" / "half.so", tmp_path / "half.txt"
    whole.parent.mkdir()
    whole.write_bytes(library)
    half.write_bytes(library[: int(share * len(library))])
    other.write_bytes(b"")
    remove_half_written(str(tmp_path))
    assert (whole.exists(), half.exists(), other.exists()) == (True, False, True)


def test_one_whose_head_comes_last_is_not_whole_before(tmp_path: Path, library: bytes) -> None:
    half = tmp_path / "half.so"
    half.write_bytes(bytes(4096) + library[4096:])
    remove_half_written(str(tmp_path))
    assert not half.exists()


def test_one_that_is_being_written_stays(tmp_path: Path, library: bytes) -> None:
    path = tmp_path / "new.so"
    path.write_bytes(library[:100])
    ended = threading.Event()

    def write() -> None:
        with path.open("ab") as file:
            for start in range(100, len(library), len(library) // 10):
                file.write(library[start : start + len(library) // 10])
                file.flush()
                time.sleep(0.05)
        ended.set()

    writer = threading.Thread(target=write)
    writer.start()
    remove_half_written(str(tmp_path))
    writer.join()
    assert ended.is_set()
    assert path.read_bytes()[: len(library)] == library


def test_nothing_to_remove(tmp_path: Path) -> None:
    remove_half_written(str(tmp_path / "none"))
