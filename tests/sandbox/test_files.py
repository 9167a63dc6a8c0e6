from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from bot.sandbox import files
from bot.sandbox.accounts import TO_CHANGE
from bot.sandbox.process import start_as
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


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be an engine that may give accounts")
def test_an_engine_that_is_not_root_takes_over_what_is_its_owner_s_alone(tmp_path: Path) -> None:
    number, other = 64_317, 64_318
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
