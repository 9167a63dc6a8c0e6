from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from bot.action.minify import checkout


def git(where: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=nobody", "-c", "user.email=nobody@example.invalid"]
    return subprocess.run(["git", "-C", str(where), *identity, *arguments], check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    path = tmp_path / "server/o/r"
    path.mkdir(parents=True)
    git(path, "init", "--quiet")
    git(path, "config", "uploadpack.allowAnySHA1InWant", "true")
    for text in ("first", "second"):
        (path / "file").write_text(text)
        git(path, "add", "file")
        git(path, "commit", "--quiet", "--message", text)
    return tmp_path / "server"


def test_one_commit_is_fetched(origin: Path, tmp_path: Path) -> None:
    first = git(origin / "o/r", "rev-parse", "HEAD~")
    checkout.fetch(f"file://{origin}", "o/r", first, tmp_path / "checkout", "secret-token", os.environ)
    assert (tmp_path / "checkout/file").read_text() == "first"
    assert git(tmp_path / "checkout", "rev-parse", "HEAD") == first
    kept = "".join(path.read_text(errors="replace") for path in (tmp_path / "checkout/.git").rglob("*") if path.is_file())
    assert "secret-token" not in kept
    assert "c2VjcmV0LXRva2Vu" not in kept


def test_a_commit_that_is_not_there(origin: Path, tmp_path: Path) -> None:
    with pytest.raises(checkout.FetchError, match="git fetch failed"):
        checkout.fetch(f"file://{origin}", "o/r", "f" * 40, tmp_path / "checkout", "", os.environ)


def test_a_name_in_a_commit_that_git_tells_as_it_is(origin: Path, tmp_path: Path) -> None:
    """Its messages hold names of files unchanged, and these may be any bytes."""
    path = origin / "o/r"
    entry = b"100644 blob " + git(path, "rev-parse", "HEAD:file").encode() + b"\t" + b"\xff" * 300 + b"\0"  # longer than a name may be
    tree = subprocess.run(["git", "-C", str(path), "mktree", "-z"], input=entry, check=True, capture_output=True).stdout.decode().strip()
    commit = git(path, "commit-tree", tree, "-m", "long")
    with pytest.raises(checkout.FetchError, match="git checkout failed"):
        checkout.fetch(f"file://{origin}", "o/r", commit, tmp_path / "checkout", "", os.environ)


def test_git_goes_the_way_to_github_that_the_machine_names(tmp_path: Path) -> None:
    """Through its proxy, as our own requests do; of everything else in the environment it sees nothing."""
    told = tmp_path / "told"
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/git").write_text(f"#!/bin/sh\nenv >> {told}\n")
    (tmp_path / "bin/git").chmod(0o755)
    way = {"https_proxy": "http://proxy:3128", "NO_PROXY": "localhost", "GIT_SSL_CAINFO": "/etc/ca.pem"}
    others = {"GITHUB_TOKEN": "secret-token", "GIT_TRACE": "1", "GIT_SSL_NO_VERIFY": "1", "LD_PRELOAD": ""}
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    checkout.fetch("https://github.com", "o/r", "f" * 40, tmp_path / "checkout", "secret-token", {"PATH": path, **way, **others})
    seen = told.read_text()
    for name, value in way.items():
        assert seen.count(f"{name}={value}\n") == 3
    assert not [name for name in others if f"\n{name}=" in f"\n{seen}"]
