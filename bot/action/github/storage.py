"""Files that outlive an artifact: on a branch of their own, or as assets of a release."""

from __future__ import annotations

import base64
from typing import Any
from urllib.parse import quote

from bot.action.github.transport import GitHubError, Transport


def _found(http: Transport, path: str, parameters: dict[str, Any] | None = None) -> Any:
    try:
        return http.ask("GET", path, parameters)
    except GitHubError as error:
        if error.status == 404:
            return None
        raise


def _branch(http: Transport, repo: str, branch: str) -> None:
    """Make a branch that shares no history with the others: it holds nothing but what is kept."""
    ref = f"{repo}/git/ref/heads/{quote(branch)}"
    if _found(http, ref) is not None:
        return
    note = {"path": "README.md", "mode": "100644", "type": "blob", "content": "Repros kept by torch-minify.\n"}
    tree = http.ask("POST", f"{repo}/git/trees", body={"tree": [note]})
    commit = http.ask("POST", f"{repo}/git/commits", body={"message": "A branch for repros", "tree": tree["sha"], "parents": []})
    try:
        http.create(f"{repo}/git/refs", {"ref": f"refs/heads/{branch}", "sha": commit["sha"]}, lambda: _found(http, ref))
    except GitHubError as error:
        if error.status != 422:  # somebody else was first
            raise


def put_file(http: Transport, repo: str, branch: str, path: str, content: bytes, message: str) -> str:
    """Write `content` as the file `path` of `branch`, over what is there, through `http`; its URL.

    `repo` is the path of the repository in the API, `message` that of the commit. A file is read before it is written: GitHub wants
    to know what is replaced, and a PUT that is sent again after a lost answer then finds its own.
    """
    _branch(http, repo, branch)
    at = f"{repo}/contents/{quote(path)}"
    body: dict[str, Any] = {"message": message, "branch": branch, "content": base64.b64encode(content).decode()}
    for last in (False, False, True):
        known = _found(http, at, {"ref": branch})
        try:
            answer = http.ask("PUT", at, body=body | ({"sha": known["sha"]} if known else {}))
        except GitHubError as error:
            if error.status not in (409, 422) or last:  # another request wrote to the branch in between
                raise
        else:
            return str(answer["content"]["html_url"])
    raise AssertionError


def put_asset(http: Transport, repo: str, tag: str, name: str, content: bytes) -> str:
    """Write `content` as the asset `name` of the release with the tag `tag`, over what is there; its URL.

    `http` and `repo` are as for `put_file`.
    """

    def find() -> Any:
        return _found(http, f"{repo}/releases/tags/{quote(tag, safe='')}")

    made = {"tag_name": tag, "name": tag, "body": "Repros kept by torch-minify.", "prerelease": True, "make_latest": "false"}
    release = find() or http.create(f"{repo}/releases", made, find)
    for asset in http.pages(f"{repo}/releases/{release['id']}/assets"):
        if asset["name"] == name:
            http.ask("DELETE", f"{repo}/releases/assets/{asset['id']}")
    url = str(release["upload_url"]).partition("{")[0]
    return str(http.upload(f"{url}?name={quote(name, safe='')}", content)["browser_download_url"])
