from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bot.sandbox import files
from bot.sandbox.accounts import TO_CHANGE, draw
from bot.sandbox.process import start_as
from bot.sandbox.sandbox import Sandbox
from tests.sandbox.ways import ROOT, SYSTEM_PYTHON


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
    files.copy_plain_tree(source / "folder", tmp_path / "other")
    assert not (tmp_path / "other").exists(), "the program has exchanged the whole directory for a link"


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


def test_a_link_in_the_place_of_the_directory_around_a_file_is_not_followed(tmp_path: Path) -> None:
    """Workers share the directory of their questions: each may exchange what lies in it."""
    (tmp_path / "somebody").mkdir()
    (tmp_path / "somebody" / "exported_program.pt2").write_text("weights")
    (tmp_path / "link").symlink_to(tmp_path / "somebody")
    assert files.copy_plain_file(tmp_path / "somebody" / "exported_program.pt2", tmp_path / "copy") == 7
    for read in (files.read_plain, lambda path: files.copy_plain_file(path, tmp_path / "other")):
        with pytest.raises(OSError, match=r"Not a directory|symbolic"):
            read(tmp_path / "link" / "exported_program.pt2")
    assert not (tmp_path / "other").exists()


def test_one_file_is_replaced_in_one_step(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("new")
    (tmp_path / "b").write_text("old")
    assert files.copy_plain_file(tmp_path / "a", tmp_path / "b") == 3
    assert (tmp_path / "b").read_text() == "new"
    with pytest.raises(OSError, match="too large"):
        files.copy_plain_file(tmp_path / "a", tmp_path / "b", most=2)
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two accounts")
@pytest.mark.parametrize("made", [files.Scratch, tempfile.TemporaryDirectory])
def test_what_another_account_left_is_no_error(made: type[tempfile.TemporaryDirectory[str]]) -> None:
    """Python's own raises there, though it is told to ignore errors (3.10 to 3.12)."""
    with tempfile.TemporaryDirectory() as base:
        os.chmod(base, 0o777)
        ready, told = os.pipe(), os.pipe()
        pid = os.fork()
        if pid == 0:
            os.setresgid(71234, 71234, 71234)
            os.setresuid(71234, 71234, 71234)
            place = made(dir=base, ignore_cleanup_errors=True)
            os.write(ready[1], place.name.encode())
            os.read(told[0], 1)
            try:
                place.cleanup()
            except PermissionError:
                os._exit(3)
            os._exit(0)
        other = Path(os.read(ready[0], 4096).decode()) / "other"
        other.mkdir(mode=0o700)
        (other / "file").write_text("")
        os.write(told[1], b"x")
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        for fd in (*ready, *told):
            os.close(fd)
    if made is files.Scratch:
        assert status == 0
    elif sys.version_info < (3, 12):
        assert status == 3


def dig(place: Path, deep: int) -> None:
    """Nested directories with a file in the last one, as a program makes them: one after another, from within."""
    back = os.open(".", os.O_RDONLY)
    try:
        os.chdir(place)
        for _ in range(deep):
            os.mkdir("d")
            os.chdir("d")
        Path("file").write_text("x")
    finally:
        os.fchdir(back)
        os.close(back)


def test_what_lies_too_deep_is_removed(tmp_path: Path) -> None:
    """Deeper than Python calls itself, and than a path can be."""
    for name in ("box", "scratch"):
        (tmp_path / name).mkdir()
        dig(tmp_path / name, 2100)
    (tmp_path / "box" / "d" / "closed").mkdir(mode=0)
    files.remove(tmp_path / "box")
    with files.Scratch(dir=tmp_path / "scratch"):
        dig(next(path for path in (tmp_path / "scratch").iterdir() if path.name != "d"), 1200)
    files.remove(tmp_path / "scratch")
    assert list(tmp_path.iterdir()) == []


def test_what_lies_too_deep_stops_no_copy(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "z").write_text("z")
    dig(source, 1200)
    files.take_over(source)
    files.copy_plain_tree(source, tmp_path / "target")
    assert (tmp_path / "target" / "z").read_text() == "z"
    files.remove(source)
    files.remove(tmp_path / "target")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's files can be changed for others")
def test_a_file_exchanged_for_a_link_is_not_handed_to_a_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs are at work in what they share. One of them exchanges a file as soon as it was looked at."""
    shared, secret = tmp_path / "shared", tmp_path / "secret"
    (shared / "below").mkdir(parents=True)
    (tmp_path / "closed").mkdir(mode=0o700)
    for path in (secret, tmp_path / "closed" / "file", shared / "file", shared / "below" / "file"):
        path.write_text("x")
        path.chmod(0o600)

    looks, exchanged = {name: getattr(os, name) for name in ("lstat", "open")}, []

    def watched(name: str) -> Callable[..., Any]:
        def look(path: Any, *args: Any, **more: Any) -> Any:
            found = looks[name](path, *args, **more)
            if str(path).endswith("file") and not exchanged:
                exchanged.append(path)
                (shared / "file").unlink()
                (shared / "file").symlink_to(secret)
                (shared / "below").rename(shared / "gone")
                (shared / "below").symlink_to(tmp_path / "closed")
            return found

        return look

    with monkeypatch.context() as patched:
        for name in looks:
            patched.setattr(os, name, watched(name))
        box = Sandbox(tmp_path, on=False)
        patched.setattr(Sandbox, "_job_group", lambda _: 71_234)
        box.lend(shared)
    assert exchanged
    for path in (secret, tmp_path / "closed" / "file"):
        facts = path.stat()
        assert (facts.st_gid, facts.st_mode & 0o777) == (os.getegid(), 0o600), path
    assert shared.stat().st_gid == 71_234


def test_what_is_ours_is_handed_to_a_group(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "file").write_text("x")
    os.link(tmp_path / "a" / "b" / "file", tmp_path / "second-name")
    (tmp_path / "a" / "file").write_text("x")
    (tmp_path / "a" / "file").chmod(0o600)
    files.hand_to_group(tmp_path / "a", os.getegid())
    assert (tmp_path / "a" / "b").stat().st_mode & 0o7777 == 0o2770
    assert (tmp_path / "a" / "file").stat().st_mode & 0o777 == 0o660
    assert (tmp_path / "second-name").stat().st_mode & 0o777 != 0o660


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be an engine that may give accounts")
def test_an_engine_that_is_not_root_takes_over_what_is_its_owner_s_alone(tmp_path: Path) -> None:
    number, other = draw({}), draw({})  # all processes of the first end with this one
    assert number is not None
    assert other is not None
    place = Path(tempfile.mkdtemp())
    try:
        (place / "left/below").mkdir(parents=True)
        (place / "left/below/file").write_text("read")
        for path in (place / "left/below/file", place / "left/below", place / "left"):
            os.chmod(path, 0o700)
            os.chown(path, other, other)
        os.chown(place, number, number)
        shutil.copytree(ROOT / "bot/sandbox", place / "package/bot/sandbox")
        code = (
            f"import sys; sys.path.insert(0, {str(place / 'package')!r}); from pathlib import Path;"
            "from bot.sandbox.files import take_over;"
            f"take_over(Path({str(place / 'left')!r})); print(Path({str(place / 'left/below/file')!r}).read_text())"
        )
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE}
        process = start_as([SYSTEM_PYTHON, "-I", "-c", code], cwd=Path("/"), env={}, uid=number, gid=number, keep=TO_CHANGE, **streams)
        said, _ = process.communicate(timeout=60)
        process.end()
        assert said == b"read\n"
    finally:
        shutil.rmtree(place)
