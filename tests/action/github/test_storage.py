"""Files that are kept on a branch: made once, replaced, and written again where somebody else wrote in between."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from bot.action.github.client import GitHub
from bot.action.github.transport import GitHubError, Transport
from tests.action.github.stub import Stub

REPO, BRANCH = "octo/models", "torch-minify-results"
AT = f"/repos/{REPO}"


class Kept(Stub):
    """A repository with one branch. Checked against the documentation of GitHub's REST API (git database, contents), version
    2022-11-28."""

    def __init__(self) -> None:
        super().__init__()
        self.branches: set[str] = set()
        self.files: dict[str, str] = {}
        self.conflicts = 0  # writes of somebody else that come between the next reads and writes
        self.also_made = False  # somebody else makes the branch at the same moment
        self.bodies: list[dict[str, Any]] = []

    def work(self, verb: str, path: str, body: bytes) -> tuple[int, Any]:
        said = json.loads(body) if body else {}
        if path == f"{AT}/git/ref/heads/{BRANCH}":
            return (200, {"ref": BRANCH}) if BRANCH in self.branches else (404, {"message": "Not Found"})
        if path in (f"{AT}/git/trees", f"{AT}/git/commits"):
            self.bodies.append(said)
            return 201, {"sha": "a" * 40}
        if path == f"{AT}/git/refs":
            self.branches.add(BRANCH)
            return (422, {"message": "Reference already exists"}) if self.also_made else (201, {"ref": said["ref"]})
        name = path.removeprefix(f"{AT}/contents/")
        if verb == "GET":
            return (200, {"sha": self.files[name]}) if name in self.files else (404, {"message": "Not Found"})
        if self.conflicts:
            self.conflicts -= 1
            self.files[name] = f"{self.conflicts:040}"
            return 409, {"message": f"{name} does not match"}
        if name in self.files and "sha" not in said:
            return 422, {"message": '"sha" wasn\'t supplied'}
        if said.get("sha") != self.files.get(name):
            return 409, {"message": f"{name} does not match {said['sha']}"}
        self.files[name] = said["content"]
        return 201, {"content": {"html_url": f"https://github.com/{REPO}/blob/{said['branch']}/{name}"}}


def put(github: Kept, content: bytes) -> str:
    api = GitHub(Transport("t", github.url, sleep=lambda _: None), "bot")
    return api.put_file(REPO, BRANCH, "7-c42/repro.py", content, "Keep it")


@pytest.mark.parametrize("also_made", [False, True])
def test_a_branch_is_made_once_and_has_no_history_in_common_with_others(also_made: bool) -> None:
    with Kept() as github:
        github.also_made = also_made
        assert put(github, b"one") == f"https://github.com/{REPO}/blob/{BRANCH}/7-c42/repro.py"
        assert put(github, b"two")
        assert base64.b64decode(github.files["7-c42/repro.py"]) == b"two"
        trees, commits = ([body for body in github.bodies if key in body] for key in ("tree", "parents"))
        assert len(commits) == 1
        assert commits[0]["parents"] == []
        assert not any("base_tree" in tree for tree in trees)


@pytest.mark.parametrize(("conflicts", "kept"), [(2, True), (3, False)])
def test_who_writes_in_between_is_read_again_and_not_for_ever(conflicts: int, kept: bool) -> None:
    with Kept() as github:
        github.conflicts = conflicts
        if kept:
            put(github, b"one")
            assert base64.b64decode(github.files["7-c42/repro.py"]) == b"one"
        else:
            with pytest.raises(GitHubError, match="409"):
                put(github, b"one")
        assert github.conflicts == 0
