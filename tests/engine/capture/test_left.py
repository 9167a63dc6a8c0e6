"""A program writes what it likes into the directory of its capture: nothing of that is followed, waited for or taken for ours."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bot.engine.capture import children
from bot.engine.capture import run as room
from bot.engine.capture.left import LONGEST, read_facts
from bot.engine.capture.region import Capture
from bot.engine.capture.run import Watch, capture
from bot.engine.target import Target
from bot.failure.outcome import Outcome
from bot.inside.protocol import ChildFacts, ErrorsFile, EscapedFile, RunFacts
from bot.workers.process import Patience

ERROR = {"text": "Traceback", "said": "KeyError: 1", "time": 1.0, "ended": False}


def pipe(path: Path) -> None:
    os.mkfifo(path)


def link(path: Path) -> None:
    (path.parent / "kept").write_text('{"text": "kept"}')
    path.symlink_to(path.parent / "kept")


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def second_name(path: Path) -> None:
    (path.parent / "own").write_text('{"text": "own"}')
    os.link(path.parent / "own", path)


def sparse(path: Path) -> None:
    path.touch()
    os.truncate(path, LONGEST + 1)


def directory(path: Path) -> None:
    path.mkdir()


TEXTS = ("", "[]", "null", "7", "{}", '{"text": 7}', '{"text": null}', "[" * 200_000, '{"text": "x"', '{"text": "\xff"}')


def written(text: str) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_bytes(text.encode("latin-1"))

    write.__name__ = text[:20]
    return write


FORGED = [pipe, link, endless, second_name, sparse, directory, *map(written, TEXTS)]


def in_time(read: Callable[[], Any]) -> Any:
    """What `read` gives; an open that waits for a writer would never come back."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(read()), daemon=True)
    thread.start()
    thread.join(10)
    assert found, "it is still waiting"
    return found[0]


@pytest.mark.parametrize("forge", FORGED, ids=lambda forge: forge.__name__)
def test_what_is_no_plain_file_of_that_form_is_none(tmp_path: Path, forge: Callable[[Path], None]) -> None:
    path = tmp_path / "escaped.json"
    assert read_facts(path, EscapedFile) is None
    forge(path)
    assert in_time(lambda: read_facts(path, EscapedFile)) is None


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        (RunFacts, {"status": "raised", "text": ""}),
        (RunFacts, {"status": "ok", "compared": None, "tolerance": [1, 0.5], "versions": {"torch": "2"}}),
        (EscapedFile, {"text": ""}),
        (ErrorsFile, {"errors": []}),
        (ErrorsFile, {"errors": [ERROR]}),
        (ChildFacts, {"rank": "0", "world": "1", "tolerance": None, "call": "", "file": "", "argv": None, "text": "", "package": ""}),
    ],
)
def test_what_is_of_that_form_comes_as_it_is(tmp_path: Path, kind: Any, found: dict[str, Any]) -> None:
    path = tmp_path / "found.json"
    path.write_text(json.dumps(found))
    assert read_facts(path, kind) == found


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        (RunFacts, {"text": "no status"}),
        (RunFacts, {"status": "fine"}),
        (RunFacts, {"status": "ok", "tolerance": [10**400, 1]}),
        (RunFacts, {"status": "ok", "installed": "12"}),
        (RunFacts, {"status": "ok", "versions": {"torch": 2}}),
        (ErrorsFile, {"errors": [{**ERROR, "text": None}]}),
        (ErrorsFile, {"errors": [{"text": "", "said": "", "time": 1.0}]}),
        (ErrorsFile, {"errors": {"0": ERROR}}),
        (ChildFacts, {"rank": "0", "world": "1", "tolerance": [10**400], "call": "", "file": "", "argv": None, "text": "", "package": ""}),
    ],
)
def test_what_is_of_another_form_is_none(tmp_path: Path, kind: Any, found: dict[str, Any]) -> None:
    path = tmp_path / "found.json"
    path.write_text(json.dumps(found))
    assert read_facts(path, kind) is None


def test_the_half_of_a_character_is_spelled_out(tmp_path: Path) -> None:
    """What is written from it could not be encoded; a whole one, and what only looks like it, stay."""
    path = tmp_path / "escaped.json"
    path.write_text(json.dumps({"text": "na\udcffme \U0001f600 \\udcff"}))
    assert read_facts(path, EscapedFile) == {"text": "na\\udcffme \U0001f600 \\udcff"}


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[], Capture]:
    """A capture of a program that leaves with status 3."""
    monkeypatch.setattr(room, "run_process", lambda *_, **__: Outcome(status="exit", text="KeyError: 1", exit=3))
    (tmp_path / "out").mkdir()

    def capture_it() -> Capture:
        return capture(Target(Path("fail.py"), None, ()), "python", tmp_path, Watch(tmp_path / "out", tmp_path / "cache"), Patience(9.0))

    return capture_it


@pytest.mark.parametrize(
    "name",
    [
        "run.json",
        "escaped.json",
        "region-001.json",
        *(f"child-7/{name}" for name in ("errors.json", "process.json", "death.txt", "region-001.json")),
    ],
)
@pytest.mark.parametrize("forge", FORGED, ids=lambda forge: forge.__name__)
def test_the_capture_ends_whatever_lies_there(tmp_path: Path, run: Callable[[], Capture], name: str, forge: Callable[[Path], None]) -> None:
    place = tmp_path / "out" / name
    place.parent.mkdir(exist_ok=True)
    forge(place)
    found = in_time(run)
    assert (found.outcome.status, found.outcome.exit, found.regions, found.child) == ("exit", 3, (), "")


def test_errors_of_numbers_are_two(tmp_path: Path, run: Callable[[], Capture]) -> None:
    (tmp_path / "out" / "run.json").write_text('{"status": "exit", "exit": 3, "errors": [1.0]}')
    assert run().errors is None


def test_a_link_to_a_directory_is_no_child(tmp_path: Path, run: Callable[[], Capture]) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "errors.json").write_text(json.dumps({"errors": [ERROR]}))
    (tmp_path / "elsewhere" / "death.txt").write_text('Fatal Python error: Aborted\n\nThread 0x01:\n  File "/x.py", line 1 in f\n')
    (tmp_path / "out" / "child-8").symlink_to(tmp_path / "elsewhere")
    assert children.directories(tmp_path / "out") == []
    assert (run().child, children.dead(tmp_path / "out")) == ("", None)
