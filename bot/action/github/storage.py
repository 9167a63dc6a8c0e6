"""Keeps files longer than an artifact: on a separate branch, or as assets of a release."""

from __future__ import annotations

import base64
from typing import Any
from urllib.parse import quote

from bot.action.github.transport import GitHubError, Transport


def _branch(http: Transport, repo: str, branch: str) -> None:
    """Create a branch without history in common with the others, which contains only what is kept."""
    ref = f"{repo}/git/ref/heads/{quote(branch)}"
    if http.find(ref) is not None:
        return
    note = {"path": "README.md", "mode": "100644", "type": "blob", "content": "Repros kept by torch-minify.\n"}
    tree = http.ask("POST", f"{repo}/git/trees", body={"tree": [note]})
    commit = http.ask("POST", f"{repo}/git/commits", body={"message": "A branch for repros", "tree": tree["sha"], "parents": []})
    try:
        http.create(f"{repo}/git/refs", {"ref": f"refs/heads/{branch}", "sha": commit["sha"]}, lambda: http.find(ref))
    except GitHubError as error:
        if error.status != 422:  # somebody else was first
            raise


def put_file(http: Transport, repo: str, branch: str, path: str, content: bytes, message: str) -> str:
    """See `GitHub.put_file`; `repo` is the path of the repository in the API.

    A file is read before it is written: GitHub requires the hash of what is replaced, and if a PUT is repeated after a lost answer, it
    then finds its own file.
    """
    _branch(http, repo, branch)
    at = f"{repo}/contents/{quote(path)}"
    body: dict[str, Any] = {"message": message, "branch": branch, "content": base64.b64encode(content).decode()}
    for last in (False, False, True):
        known = http.find(at, {"ref": branch})
        try:
            answer = http.ask("PUT", at, body=body | ({"sha": known["sha"]} if known else {}))
        except GitHubError as error:
            if error.status not in (409, 422) or last:  # another request wrote to the branch in between
                raise
        else:
            return str(answer["content"]["html_url"])
    raise AssertionError


def put_asset(http: Transport, repo: str, tag: str, name: str, content: bytes) -> str:
    """See `GitHub.put_asset`; `repo` is the path of the repository in the API."""

    def find() -> Any:
        return http.find(f"{repo}/releases/tags/{quote(tag, safe='')}")

    made = {"tag_name": tag, "name": tag, "body": "Repros kept by torch-minify.", "prerelease": True, "make_latest": "false"}
    release = find() or http.create(f"{repo}/releases", made, find)

    def known() -> list[Any]:
        return [asset for asset in http.pages(f"{repo}/releases/{release['id']}/assets") if asset["name"] == name]

    for asset in known():
        try:
            http.ask("DELETE", f"{repo}/releases/assets/{asset['id']}", kind=object)
        except GitHubError as error:
            if error.status != 404:  # it is gone: the answer to a first attempt was lost
                raise
    url = str(release["upload_url"]).partition("{")[0]
    try:
        kept = http.upload(f"{url}?name={quote(name, safe='')}", content)
    except GitHubError as error:
        # it is there: the answer to a first attempt was lost. An incomplete upload does not count.
        whole = [asset for asset in known() if error.status == 422 and asset.get("size") == len(content)]
        if not whole:
            raise
        kept = whole[0]
    return str(kept["browser_download_url"])
