"""Which files are kept for good, under which names, and what is said of those that are not."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, cast

import pytest

from bot.action.github.client import GitHub
from bot.action.github.transport import GitHubError
from bot.action.report import durable
from bot.action.report.result_dir import EXPORTED, Folder
from bot.models.report import Section, Stored
from tests.action.report import reports

REPO = "octo/models"


class Shelf:
    """Takes what is kept, or refuses it with a status. Checked against `put_file` and `put_asset` of bot/action/github/client.py."""

    def __init__(self, refuses: dict[str, int | None] | None = None) -> None:
        self.held: dict[str, bytes] = {}
        self.refuses = refuses or {}

    def _put(self, name: str, content: bytes) -> str:
        for end, status in self.refuses.items():
            if name.endswith(end):
                raise GitHubError(f"PUT: {status} no", status)
        self.held[name] = content
        return f"https://github.com/{name}"

    def put_file(self, repository: str, branch: str, path: str, content: bytes, message: str) -> str:
        assert (repository, branch, message) == (REPO, durable.NAME, f"Keep {path}")
        return self._put(path, content)

    def put_asset(self, repository: str, tag: str, name: str, content: bytes) -> str:
        assert (repository, tag) == (REPO, durable.NAME)
        return self._put(name, content)


def section(**changes: Any) -> Section:
    files = tuple(Stored(name=name, size=1, sha256="0") for name in ("repro.py", "result.json", EXPORTED))
    return Section(request=reports.request(), result=reports.result(), repro="import torch\n", files=files).model_copy(update=changes)


def keep(part: Section, folder: Path | None, where: durable.Where, shelf: Shelf) -> Section:
    return durable.keep(part, Folder(folder) if folder else None, where, cast(GitHub, shelf), REPO, 7)


@pytest.mark.parametrize(("where", "between"), [("branch", "/"), ("release", "-")])
def test_what_is_posted_is_kept(tmp_path: Path, where: durable.Where, between: str) -> None:
    shelf = Shelf()
    (tmp_path / EXPORTED).write_bytes(b"PK")
    (tmp_path / "repro.py").write_text("of the folder, with a secret")
    kept = keep(section(), tmp_path, where, shelf)
    assert shelf.held[f"7-c42-0{between}repro.py"] == b"import torch\n"
    assert shelf.held[f"7-c42-0{between}{EXPORTED}"] == b"PK"
    assert len(shelf.held) == 3
    assert [stored.kept for stored in kept.files] == [f"https://github.com/7-c42-0{between}{stored.name}" for stored in kept.files]
    assert kept.unkept is None


@pytest.mark.parametrize(
    ("part", "folder", "where"),
    [
        (section(), True, "none"),
        (section(), False, "branch"),
        (section(result=reports.result(status="not_reproduced")), True, "branch"),
        (section(repro=None), True, "branch"),  # says that it is minimized, and shows nothing
    ],
)
def test_of_what_did_not_fail_here_nothing_is_kept(tmp_path: Path, part: Section, folder: bool, where: durable.Where) -> None:
    shelf = Shelf()
    assert keep(part, tmp_path if folder else None, where, shelf) == part
    assert shelf.held == {}


def test_a_name_leads_nowhere_else(tmp_path: Path) -> None:
    shelf = Shelf()
    keep(section(request=reports.request(id="../../é" + "x" * 300)), tmp_path, "branch", shelf)
    assert all(name.count("/") == 1 and ".." not in name and name.isascii() and len(name) < 110 for name in shelf.held)


@pytest.mark.parametrize("how", ["absent", "a link", "too large"])
def test_an_exported_program_that_cannot_be_read_keeps_nothing_else_back(tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durable, "LIMIT", 10)
    if how == "a link":
        (tmp_path / "other").write_bytes(b"x")
        os.symlink(tmp_path / "other", tmp_path / EXPORTED)
    elif how == "too large":
        (tmp_path / EXPORTED).write_bytes(b"x" * 11)
    shelf = Shelf()
    assert keep(section(), tmp_path, "branch", shelf).unkept is None
    assert set(shelf.held) == {"7-c42-0/repro.py", "7-c42-0/result.json"}


def test_a_file_that_is_refused_keeps_no_other_back(tmp_path: Path) -> None:
    shelf = Shelf({"repro.py": 422})
    kept = keep(section(), tmp_path, "branch", shelf)
    assert set(shelf.held) == {"7-c42-0/result.json"}
    assert kept.unkept == "PUT: 422 no"
    assert [stored.kept is None for stored in kept.files] == [True, False, True]


@pytest.mark.parametrize("status", [None, 500, 503])
def test_who_does_not_answer_is_not_asked_for_each_file(tmp_path: Path, status: int | None) -> None:
    with pytest.raises(GitHubError):
        keep(section(), tmp_path, "branch", Shelf({"repro.py": status}))
