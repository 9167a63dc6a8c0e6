"""What the processes that run somebody's program get: an account, an environment, a directory.

The environment is an allow-list, so it contains no token of the workflow. If we are root, as in our image, a separate account keeps them
from reading what belongs to the workflow: its files, and the memory and environment of our own process.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import DEVNULL
from typing import Any

from bot.action.redaction import is_secret_name
from bot.sandbox import accounts
from bot.sandbox.environment import is_secret
from bot.sandbox.process import Process, start_as
from bot.sandbox.walk import walk

_KEPT = re.compile(
    r"PATH|LANG|LANGUAGE|LC_\w+|TZ|TERM|CC|CXX|CFLAGS|CXXFLAGS|LDFLAGS|LD_LIBRARY_PATH|VIRTUAL_ENV|CONDA_PREFIX"
    r"|(?:CUDA|NVIDIA|NCCL|TORCH|TORCHINDUCTOR|PYTORCH|TRITON|OMP|MKL|KMP|OPENBLAS)_\w+|HF_HOME|SSL_CERT_FILE|SSL_CERT_DIR"
)
_PROXIES = re.compile(r"(?:https?|no|all)_proxy", re.IGNORECASE)
# A cache of compiled code is executable, so requests do not share one.
_CACHE = re.compile(r"CACHE_DIR")
_PR_SET_DUMPABLE = 4


def allowed_environment(environ: Mapping[str, str], *, network: bool = False) -> dict[str, str]:
    """What a program may see of `environ`; `network` adds the proxies, for the commands that set up a checkout, with their passwords."""
    return {
        name: value
        for name, value in environ.items()
        if not is_secret_name(name)
        and ((_KEPT.fullmatch(name) and not _CACHE.search(name) and not is_secret("", value)) or (network and _PROXIES.fullmatch(name)))
    }


@dataclass(frozen=True)
class Account:
    """The account that runs the program; by default, the one that runs us."""

    uid: int | None = None
    gid: int | None = None
    keep: tuple[int, ...] = ()  # capabilities that it has nevertheless

    def start(self, command: Sequence[str], *, cwd: Path, env: Mapping[str, str], sole: bool = True, **streams: Any) -> Process:
        """Start `command` in the directory `cwd` with the environment `env`, without our groups. What it starts ends with it, and if it is
        the account's `sole` process, so does everything else that runs under that account.

        `streams` are those of `subprocess.Popen`. Raises OSError if there is no such program.
        """
        return start_as(command, cwd=cwd, env=env, uid=self.uid, gid=self.gid, keep=self.keep, sole=sole, **streams)

    def chown(self, path: Path) -> None:
        """Hand over the directory `path` and everything in it; links are not followed."""
        if self.uid is None or self.gid is None:
            return
        for folder, _, files in walk(path):
            for held in (folder, *(os.path.join(folder, name) for name in files)):
                os.chown(held, self.uid, self.gid, follow_symlinks=False)


@dataclass(frozen=True)
class Identities:
    """The accounts that run foreign code: the `setup` of the checkout, and the `engine`, which gives each program a separate account."""

    setup: Account = field(default_factory=Account)
    engine: Account = field(default_factory=Account)


class NoAccountError(Exception):
    """Programs would be root. The message is for people."""


def identities(environ: Mapping[str, str], python: str = sys.executable) -> Identities:
    """Two unused accounts if we are root, otherwise our own. Neither owns a workplace that `environ` names.

    The engine is root nevertheless if other accounts cannot reach its interpreter, `python`; its programs are not. Raises NoAccountError
    if we are root, but may not start others under another account.
    """
    if os.geteuid() != 0 or sys.platform != "linux":
        return Identities()
    setup, engine = (accounts.draw(environ) if accounts.may_change() else None for _ in range(2))
    if setup is None or engine is None:
        raise NoAccountError("this job is root and may not start programs under another account: give it CAP_SETUID, or run it as a user")
    other = Account(engine, engine, accounts.TO_CHANGE)
    process = other.start([python, "-I", "-c", "import bot"], cwd=Path("/"), env={}, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL)
    reached = process.wait() == 0
    process.end()
    return Identities(Account(setup, setup), other if reached else Account())


def make_undumpable() -> None:
    """Make this process's memory and environment unreadable to other processes of the same account (Linux: not dumpable)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def chown_like_parent(path: Path) -> None:
    """Give the directory `path` to the owner of its parent: root's files in a workspace break the next checkout there."""
    if os.geteuid() == 0:
        owner = os.stat(path.resolve().parent)
        Account(owner.st_uid, owner.st_gid).chown(path)
