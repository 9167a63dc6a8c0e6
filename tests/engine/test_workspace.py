"""The result directory."""

from __future__ import annotations

import contextlib
import errno
import importlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bot.engine.workspace import NotOurs, Workspace, sha256_of
from bot.models.result import Result


def used(root: Path) -> Workspace:
    """What an earlier run left, and a file of the user's beside it."""
    space = Workspace(root)
    space.prepare(resume=False)
    space.save(Result(status="minimized"))
    for path in (space.repro, space.exported, space.ledger, root / "notes.txt", space.original / "log.txt", space.work / "capture"):
        path.write_text("kept")
    return space


def names(root: Path) -> set[str]:
    return {path.name for path in root.iterdir()}


def test_a_new_directory_is_made(tmp_path: Path) -> None:
    space = Workspace(tmp_path / "a" / "b")
    space.prepare(resume=False)
    assert space.work.is_dir()
    assert space.root == (tmp_path / "a" / "b").resolve()
    Workspace(tmp_path / "a" / "b").root.joinpath("x")


def test_an_empty_directory_is_taken(tmp_path: Path) -> None:
    Workspace(tmp_path).prepare(resume=True)
    assert names(tmp_path) == {"original"}


def test_ours_is_cleared_and_what_is_not_ours_stays(tmp_path: Path) -> None:
    used(tmp_path)
    Workspace(tmp_path).prepare(resume=False)
    assert names(tmp_path) == {"original", "notes.txt"}
    assert list((tmp_path / "original").iterdir()) == [tmp_path / "original" / "work"]
    assert list((tmp_path / "original" / "work").iterdir()) == []


def test_resuming_keeps_everything(tmp_path: Path) -> None:
    used(tmp_path)
    Workspace(tmp_path).prepare(resume=True)
    assert {"repro.py", "exported_program.pt2", "reduction.jsonl", "result.json", "notes.txt"} <= names(tmp_path)
    assert (tmp_path / "original" / "work" / "capture").read_text() == "kept"


@pytest.mark.parametrize("resume", [True, False])
@pytest.mark.parametrize(
    "mark", [None, "{", "[]", "3", '"schema"', "{}", '{"schema": 1}', '{"schema": 7, "status": 0, "signature": 0, "files": 0}', b"\xff"]
)
def test_a_directory_that_is_not_ours_is_left_alone(tmp_path: Path, resume: bool, mark: str | bytes | None) -> None:
    (tmp_path / "repro.py").write_text("mine")
    if isinstance(mark, bytes):
        (tmp_path / "result.json").write_bytes(mark)
    elif mark is not None:
        (tmp_path / "result.json").write_text(mark)
    before = names(tmp_path)
    with pytest.raises(NotOurs, match=r"repro\.py"):
        Workspace(tmp_path).prepare(resume=resume)
    assert names(tmp_path) == before
    assert (tmp_path / "repro.py").read_text() == "mine"


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    with pytest.raises(NotOurs, match="is a file"):
        Workspace(tmp_path / "out").prepare(resume=False)


def test_a_file_is_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    space = used(tmp_path)

    def full(*_: object, **__: object) -> int:
        (tmp_path / "repro.py.new").open("w").close()
        raise OSError("No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="No space"):
        space.write(space.repro, "new")
    assert space.repro.read_text() == "kept"
    monkeypatch.undo()
    space.write(space.repro, "new")
    assert space.repro.read_text() == "new"
    assert "repro.py.new" not in names(tmp_path)


def test_only_what_this_job_wrote_is_named(tmp_path: Path) -> None:
    space = used(tmp_path / "out")
    space.publish(exported=False, kernel=None)
    assert not space.kernel.exists()
    space.publish(exported=False, kernel="x = 1\n")
    assert space.kernel.read_text() == "x = 1\n"
    assert space.files(repro=True, exported=False, kernel=True).kernel == "kernel.py"
    assert space.files(repro=True, exported=False, kernel=False).kernel is None


@pytest.mark.parametrize("before", ["published", "brought"])
def test_the_exported_program_of_another_repro_goes(tmp_path: Path, before: str) -> None:
    """An earlier run's, or that of a script that was not proven, where this repro's module cannot be exported."""
    space = used(tmp_path / "out")
    place = tmp_path / "worker"
    place.mkdir()
    for path in (space.exported, space.exported_text):
        (place / path.name).write_text("another")
    space.bring_exported(place)
    if before == "published":
        space.publish(exported=True, kernel="x = 1\n")
        assert {space.exported.read_text(), space.exported_text.read_text()} == {"another"}
    for path in place.iterdir():
        path.unlink()
    space.bring_exported(place)
    space.publish(exported=True, kernel=None)
    found = space.files(repro=True, exported=True, kernel=False)
    assert (found.exported_program, found.exported_text, found.sha256) == (None, None, {"repro.py": sha256_of(space.repro)})
    assert not {"exported_program.pt2", "exported_program.txt", "kernel.py"} & names(space.root)
    assert "notes.txt" in names(space.root)


def test_the_result_is_written_whole(tmp_path: Path) -> None:
    space = used(tmp_path)
    space.save(Result(status="flaky"))
    assert json.loads(space.result.read_text())["status"] == "flaky"


def test_what_the_job_alone_needed_goes_and_pytorchs_dump_stays(tmp_path: Path) -> None:
    space = used(tmp_path)
    space.keep_dump()
    assert not (space.original / "pytorch").exists()
    (space.work / "capture").unlink()
    (space.work / "capture" / "pytorch" / "inner").mkdir(parents=True)
    (space.work / "capture" / "pytorch" / "inner" / "repro.py").write_text("dump")
    space.keep_dump()
    space.keep_dump()
    space.clean()
    space.clean()
    assert not space.work.exists()
    assert (space.original / "pytorch" / "inner" / "repro.py").read_text() == "dump"


@pytest.mark.parametrize("resume", [True, False])
@pytest.mark.parametrize("name", ["repro.py", "original/fail.py"])
def test_a_program_in_the_result_directory_is_not_deleted(tmp_path: Path, name: str, resume: bool) -> None:
    used(tmp_path)
    (tmp_path / name).write_text("mine")
    with pytest.raises(NotOurs, match="lies in the result directory"):
        Workspace(tmp_path).prepare(tmp_path / name, resume=resume)
    assert (tmp_path / name).read_text() == "mine"


def test_only_the_same_program_is_resumed(tmp_path: Path) -> None:
    out, program, other = tmp_path / "out", tmp_path / "fail.py", tmp_path / "other.py"
    used(out)
    for path in (program, other, out / "original" / "fail.py"):
        path.write_text("a program")
    Workspace(out).prepare(program, resume=True)
    with pytest.raises(NotOurs, match="another program"):
        Workspace(out).prepare(other, resume=True)
    program.write_text("another program")
    with pytest.raises(NotOurs, match="another program"):
        Workspace(out).prepare(program, resume=True)
    assert (out / "repro.py").read_text() == "kept"
    Workspace(out).prepare(program, resume=False)
    assert not (out / "repro.py").exists()


def test_a_program_that_is_kept_in_part_is_not_another_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, program = tmp_path / "out", tmp_path / "fail.py"
    program.write_text("a program")
    space = used(out)

    def full(source: Path, path: Path) -> None:
        path.write_text("a pro")
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("shutil.copyfile", full)
        with pytest.raises(OSError, match="No space"):
            space.keep(program)
    assert not list(space.original.glob("fail.py*"))
    Workspace(out).prepare(program, resume=True)
    space.keep(program)
    assert (space.original / "fail.py").read_text() == "a program"


class Ended(BaseException):
    """Stands for kill -9: nothing of ours runs any more."""


CHANGES = ("os.mkdir", "os.open", "os.replace", "os.unlink", "os.rmdir", "io.open")


def ended_at(number: int, work: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether `work` came to its change of a file or directory of this number, and was ended before it."""
    made = 0

    def before(real: Callable[..., Any]) -> Callable[..., Any]:
        def change(*given: Any, **more: Any) -> Any:
            nonlocal made
            made += 1
            if made > number:
                raise Ended
            return real(*given, **more)

        return change

    with monkeypatch.context() as patch:
        for name in CHANGES:
            module, function = name.split(".")
            patch.setattr(name, before(getattr(importlib.import_module(module), function)))
        try:
            work()
        except Ended:
            return True
    return False


@pytest.mark.parametrize("resume", [True, False])
@pytest.mark.parametrize("before", ["nothing", "an empty directory", "an earlier result"])
def test_whenever_it_is_killed_the_next_job_takes_the_directory(
    before: str, resume: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(100):
        out = tmp_path / str(number)
        if before != "nothing":
            out.mkdir()
        if before == "an earlier result":
            used(out)

        def prepare(out: Path = out) -> None:
            space = Workspace(out)
            has = resume and space.earlier() is not None
            space.prepare(resume=resume, first=None if has else lambda: Result(status="error"))

        ended = ended_at(number, prepare, monkeypatch)
        prepare()
        expected = {"original", "result.json"}
        if before == "an earlier result":
            expected |= {"notes.txt"} | ({"repro.py", "exported_program.pt2", "reduction.jsonl"} if resume else set())
        assert names(out) == expected, f"ended before change {number}"
        if not ended:
            return
    pytest.fail("it never came to its end")


@pytest.mark.parametrize(("number", "kept"), [(errno.ENOSPC, True), (errno.EROFS, False)])
def test_what_the_job_no_longer_needs_makes_room_for_its_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, kept: bool
) -> None:
    room = tmp_path / "room"
    write = Path.write_text

    def written(path: Path, text: str, **more: Any) -> int:
        if not room.exists():
            raise OSError(number, os.strerror(number))
        return write(path, text, **more)

    space = Workspace(tmp_path / "out")
    space.prepare(resume=False)
    monkeypatch.setattr(Path, "write_text", written)
    with contextlib.nullcontext() if kept else pytest.raises(OSError, match="Read-only"):
        space.save_last(Result(status="error"), room.mkdir)
    assert (space.result.exists(), room.exists()) == (kept, kept)


def test_a_full_disk_leaves_a_directory_that_can_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    space = Workspace(tmp_path)
    space.prepare(resume=False)
    with monkeypatch.context() as patch:
        patch.setattr("os.replace", full)
        with pytest.raises(OSError, match="No space"):
            space.save(Result(status="error"))
    space.abandon()
    assert names(tmp_path) == set()
