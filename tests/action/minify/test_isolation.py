from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.action.minify import isolation
from bot.action.minify.isolation import Account, allowed_environment, chown_like_parent, copy_out


@pytest.mark.parametrize(
    "name", ["PATH", "LANG", "LC_ALL", "CUDA_HOME", "LD_LIBRARY_PATH", "TORCH_LOGS", "TRITON_INTERPRET", "OMP_NUM_THREADS"]
)
def test_what_a_program_may_see(name: str) -> None:
    assert allowed_environment({name: "1"}) == {name: "1"}


@pytest.mark.parametrize(
    "name",
    [
        "GITHUB_TOKEN",
        "INPUT_GITHUB-TOKEN",
        "ACTIONS_RUNTIME_TOKEN",
        "ACTIONS_ID_TOKEN_REQUEST_URL",
        "GITHUB_OUTPUT",
        "GITHUB_ENV",
        "GITHUB_ACTIONS",
        "RUNNER_TEMP",
        "HOME",
        "AWS_SECRET_ACCESS_KEY",
        "HF_TOKEN",
        "TORCH_HUB_TOKEN",
        "CUDA_LICENSE_KEY",
        "PIP_INDEX_URL",
        "TORCHINDUCTOR_CACHE_DIR",
        "TRITON_CACHE_DIR",
        "PYTHONPATH",
        "LD_PRELOAD",
        "SSH_AUTH_SOCK",
    ],
)
def test_what_it_may_not(name: str) -> None:
    assert allowed_environment({name: "1"}, network=True) == {}


def test_proxies_are_for_the_setup_alone() -> None:
    assert allowed_environment({"https_proxy": "p", "NO_PROXY": "n"}) == {}
    assert allowed_environment({"https_proxy": "p", "NO_PROXY": "n"}, network=True) == {"https_proxy": "p", "NO_PROXY": "n"}


@given(st.dictionaries(st.text(min_size=1), st.text()))
def test_nothing_is_invented_and_no_token_kept(environ: dict[str, str]) -> None:
    found = allowed_environment(environ, network=True)
    assert found.items() <= environ.items()
    assert not any("TOKEN" in name.upper() or "SECRET" in name.upper() for name in found)


def test_plain_files_alone_are_copied(tmp_path: Path) -> None:
    source, target, secret = tmp_path / "source", tmp_path / "target", tmp_path / "secret"
    (source / "original/work").mkdir(parents=True)
    secret.mkdir()
    (secret / "key").write_text("secret")
    (source / "result.json").write_text("{}")
    (source / "original/log.txt").write_text("log")
    (source / "original" / "work" / "cache").write_text("cache")
    (source / "link").symlink_to(secret / "key")
    (source / "folder").symlink_to(secret)
    os.mkfifo(source / "pipe")
    left = copy_out(source, target, Path("original/work"))
    found = {str(path.relative_to(target)): path.read_text() for path in target.rglob("*") if path.is_file()}
    assert found == {"result.json": "{}", "original/log.txt": "log"}
    assert {line.split(":")[0] for line in left} == {"link", "pipe"}


def test_a_file_is_replaced_in_one_step(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    for text in ("first", "second"):
        (source / "repro.py").write_text(text)
        copy_out(source, target)
    assert [path.name for path in target.iterdir()] == ["repro.py"]
    assert (target / "repro.py").read_text() == "second"


def test_what_is_too_large_or_too_much_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "LARGEST_FILE", 3)
    monkeypatch.setattr(isolation, "MOST_FILES", 1)
    source = tmp_path / "source"
    source.mkdir()
    (source / "large").write_text("four")
    assert len(copy_out(source, tmp_path / "target")) == 1
    (source / "large").write_text("3")
    (source / "other").write_text("3")
    assert len(copy_out(source, tmp_path / "target")) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, as the container action has it")
def test_an_account_owns_what_it_is_given_but_nothing_behind_a_link(tmp_path: Path) -> None:
    room, outside = tmp_path / "room", tmp_path / "outside"
    room.mkdir()
    outside.write_text("mine")
    (room / "file").write_text("")
    (room / "link").symlink_to(outside)
    Account(12345, 12345).chown(room)
    assert (room / "file").stat().st_uid == 12345
    assert (room / "link").lstat().st_uid == 12345
    assert outside.stat().st_uid == 0
    chown_like_parent(room)
    assert (room / "file").stat().st_uid == 0


def test_without_an_account_nothing_changes(tmp_path: Path) -> None:
    before = tmp_path.stat()
    Account().chown(tmp_path)
    Account().kill_processes()
    assert tmp_path.stat().st_uid == before.st_uid
    assert stat.S_IMODE(tmp_path.stat().st_mode) == stat.S_IMODE(before.st_mode)
    assert Account().popen() == {}
