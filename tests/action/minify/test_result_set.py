"""The files of a result are put in their places together, or not at all."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.action.minify.result_set import RESULT, ResultSet, is_waiting, waiting
from bot.models.result import Files
from tests.action.report import reports


@pytest.fixture
def target(tmp_path: Path) -> Iterator[int]:
    held = os.open(tmp_path, os.O_RDONLY)
    yield held
    os.close(held)


def comes(held: ResultSet, at: Path, name: str, content: bytes) -> None:
    (at / waiting(name)).write_bytes(content)
    assert held.takes(name, hashlib.sha256(content).hexdigest(), content) == held.holds(name)


def result(**files: bytes) -> bytes:
    hashes = {name.replace("_py", ".py"): hashlib.sha256(content).hexdigest() for name, content in files.items()}
    return reports.result(files=Files(repro="repro.py", sha256=hashes)).to_json().encode()


def settle(held: ResultSet) -> tuple[bool, list[str]]:
    noted: list[str] = []
    return held.settle(noted.extend), noted


def test_a_name_of_one_that_waits_is_no_other_s() -> None:
    assert is_waiting(waiting("repro.py"))
    assert not any(map(is_waiting, ("repro.py", ".new.py", "repro.py.new", ".repro.py")))


def test_files_that_belong_together_take_their_places(tmp_path: Path, target: int) -> None:
    held = ResultSet(target)
    comes(held, tmp_path, "repro.py", b"one")
    comes(held, tmp_path, RESULT, result(repro_py=b"one"))
    assert not (tmp_path / "repro.py").exists()
    assert settle(held) == (True, ["repro.py", RESULT])
    assert {path.name for path in tmp_path.iterdir()} == {"repro.py", RESULT}


@pytest.mark.parametrize("came", [{}, {"repro.py": b"of another"}], ids=["one is missing", "one is of another result"])
def test_of_files_that_do_not_belong_together_none_stays(tmp_path: Path, target: int, came: dict[str, bytes]) -> None:
    (tmp_path / "repro.py").write_bytes(b"before")
    (tmp_path / RESULT).write_bytes(result(repro_py=b"before"))
    held = ResultSet(target)
    for name, content in came.items():
        comes(held, tmp_path, name, content)
    comes(held, tmp_path, RESULT, result(repro_py=b"one"))
    assert settle(held) == (False, [])
    assert (tmp_path / "repro.py").read_bytes() == b"before"
    assert {path.name for path in tmp_path.iterdir()} == {"repro.py", RESULT}


def test_a_file_that_was_refused_is_not_waited_for(tmp_path: Path, target: int) -> None:
    held = ResultSet(target, refused={"repro.py"})
    comes(held, tmp_path, RESULT, result(repro_py=b"one"))
    assert settle(held) == (True, [RESULT])


def test_what_the_result_before_it_named_goes_and_nothing_else(tmp_path: Path, target: int) -> None:
    for name, content in {"repro.py": b"before", RESULT: result(repro_py=b"before", **{"notes.txt": b"x"}), "notes.txt": b"x"}.items():
        (tmp_path / name).write_bytes(content)
    held = ResultSet(target)
    comes(held, tmp_path, RESULT, result())
    assert settle(held) == (True, [RESULT])
    assert {path.name for path in tmp_path.iterdir()} == {"notes.txt", RESULT}


def test_where_it_cannot_be_noted_nothing_has_changed(tmp_path: Path, target: int) -> None:
    held = ResultSet(target)
    comes(held, tmp_path, RESULT, result())

    def note(_: object) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        held.settle(note)
    assert list(tmp_path.iterdir()) == []


def test_a_link_in_the_place_of_the_result_is_not_followed(tmp_path: Path, target: int) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / RESULT).write_bytes(result(repro_py=b"x"))
    (tmp_path / RESULT).symlink_to(tmp_path / "other" / RESULT)
    (tmp_path / "repro.py").write_bytes(b"x")
    held = ResultSet(target)
    comes(held, tmp_path, RESULT, result())
    assert settle(held)[0]
    assert (tmp_path / "repro.py").exists(), "a result somewhere else named it"
    assert not (tmp_path / RESULT).is_symlink()
    assert (tmp_path / "other" / RESULT).exists()
