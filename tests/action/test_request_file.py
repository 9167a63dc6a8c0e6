from __future__ import annotations

from pathlib import Path

import pytest

from bot.action import request_file
from bot.action.console import InputError
from bot.action.request_file import read, read_one
from bot.models.request import Answer, CodeOrigin, Request

REQUESTS = tuple(
    Request(
        id=name,
        script="print(1)",
        repository="o/r",
        code=CodeOrigin(where="comment", author="a", trusted=True),
        asked_by="a",
        answer=Answer(repository="o/r", issue=1, marker="m"),
    )
    for name in "ab"
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "request.json"
    path.write_text(request_file.to_json(REQUESTS))
    return path


def test_what_is_written_is_read(file: Path) -> None:
    assert read(file) == REQUESTS


def test_the_request_with_an_index(file: Path) -> None:
    assert read_one(file, 1).id == "b"
    for index in (-1, 2):
        with pytest.raises(InputError, match=f"2 requests, none with index {index}"):
            read_one(file, index)


@pytest.mark.parametrize("text", ["", "{}", "[]", "[1]", "[" * 100_000])
def test_a_file_that_is_none(file: Path, text: str) -> None:
    file.write_text(text)
    with pytest.raises(InputError, match=r"request\.json") as caught:
        read(file)
    assert len(str(caught.value)) < 500


def test_what_the_gate_wrote_and_is_not_understood_is_of_another_version(file: Path) -> None:
    """As with `image: none`, where torch-minify was installed once, and the workflow has moved on."""
    text = file.read_text().replace('"asked_by"', '"made_up": 1, "asked_by"')
    file.write_text(text)
    with pytest.raises(InputError, match="is not that of the workflow"):
        read(file, request_file.sha256(text))
    with pytest.raises(InputError, match=r"2 fields are wrong or missing$"):
        read(file)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        read_one(tmp_path / "none.json", 0)


def test_both_readers_have_the_limit(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = file.stat().st_size
    monkeypatch.setattr(request_file, "MAX_SIZE", size)
    assert len(read(file)) == 2
    monkeypatch.setattr(request_file, "MAX_SIZE", size - 1)
    for reader in (read, lambda path: read_one(path, 0)):
        with pytest.raises(InputError, match="is larger than"):
            reader(file)
