"""Fetches one commit of a repository into a directory; only the one command that needs the token gets it."""

from __future__ import annotations

import base64
import os
import re
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path

# Seconds.
LIMIT = 1800.0
# How this machine reaches GitHub, as for our own requests.
_WAY = re.compile(r"(?:https?|no|all)_proxy|GIT_SSL_CA(?:INFO|PATH)", re.IGNORECASE)


class FetchError(Exception):
    """The commit could not be fetched; the message is for people."""


def fetch(server: str, repository: str, commit: str, where: Path, token: str, environ: Mapping[str, str]) -> None:
    """Check out `commit` of `repository` (owner/name) at `where`, without history and without a remote.

    `server` is the address of GitHub, `token` may read the repository, `environ` names the search path on which git is found, and the
    machine's proxy. Raises FetchError with git's message.
    """
    url = f"{server}/{repository}"
    environment = {name: value for name, value in environ.items() if _WAY.fullmatch(name)}
    environment |= {"PATH": environ.get("PATH", os.defpath), "GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_NOSYSTEM": "1", "HOME": os.devnull}
    _git(["init", "--quiet", str(where)], environment)
    _git(["-C", str(where), "fetch", "--quiet", "--depth=1", "--no-tags", "--", url, commit], {**environment, **_header(server, token)})
    _git(["-C", str(where), "-c", "advice.detachedHead=false", "checkout", "--quiet", "--detach", "FETCH_HEAD"], environment)


def leading_out(command: str | None, where: Path, top: Path) -> str | None:
    """The path of a Python file outside of the checkout `top` that the `command`, run in the directory `where`, names, directly or through
    a link in the checkout; None if there is none.

    The engine lets a program read its own file and those next to it, and keeps a copy: neither a commit nor a log must make that another
    repository's checkout on the same machine.
    """
    try:
        words = shlex.split(command or "")
    except ValueError:  # an unclosed quotation mark, which the engine reports
        return None
    for word in words:
        path = word.partition("::")[0]
        # a file of a test or a script: the interpreter of a virtual environment leads out as well
        named = ".py" in os.path.basename(path) and os.path.lexists(where / path)
        if named and not Path(os.path.realpath(where / path)).is_relative_to(os.path.realpath(top)):
            return path
    return None


def _header(server: str, token: str) -> dict[str, str]:
    """Passed through the environment, since every account of the machine could read an argument."""
    if not token:
        return {}
    basic = base64.b64encode(f"x-access-token:{token}".encode()).decode()
    return {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"http.{server}/.extraheader",
        "GIT_CONFIG_VALUE_0": f"AUTHORIZATION: basic {basic}",
    }


def _git(arguments: list[str], environment: dict[str, str]) -> None:
    try:
        # its messages hold names of files as the commit has them: any bytes
        done = subprocess.run(
            ["git", *arguments], env=environment, capture_output=True, encoding="utf-8", errors="replace", timeout=LIMIT, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise FetchError(f"git cannot be run: {error}") from error
    if done.returncode != 0:
        command = next(word for word in arguments if word in ("init", "fetch", "checkout"))
        raise FetchError(f"git {command} failed: {done.stderr.strip()[-300:]}")
