"""What the processes that run somebody's program are given: an account, an environment, a directory.

The environment is an allow-list, so that no token of the workflow is in it. Where we are root, as in our image, an account of its own
keeps them from reading what belongs to the workflow: its files, and the memory and environment of our own process.
"""

from __future__ import annotations

import ctypes
import os
import pwd
import re
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bot.action.archives import holds_secret
from bot.action.minify.scrub import LONGEST, is_program, is_text, scrubbed

# The account that the image makes for this; nothing else runs under it.
ACCOUNT = "torch-minify"
# Of what leaves the private directory, larger files and more files are left behind (bytes, count).
LARGEST_FILE, MOST_FILES = 256 << 20, 2000

_KEPT = re.compile(
    r"PATH|LANG|LANGUAGE|LC_\w+|TZ|TERM|CC|CXX|CFLAGS|CXXFLAGS|LDFLAGS|LD_LIBRARY_PATH|VIRTUAL_ENV|CONDA_PREFIX"
    r"|(?:CUDA|NVIDIA|NCCL|TORCH|TORCHINDUCTOR|PYTORCH|TRITON|OMP|MKL|KMP|OPENBLAS)_\w+|HF_HOME|SSL_CERT_FILE|SSL_CERT_DIR"
)
_PROXIES = re.compile(r"(?:https?|no|all)_proxy", re.IGNORECASE)
_SECRET = re.compile(r"TOKEN|SECRET|PASSW|CREDENTIAL|_KEY|APIKEY|COOKIE", re.IGNORECASE)
# A cache of compiled code is executable: requests share none.
_CACHE = re.compile(r"CACHE_DIR")
_PR_SET_DUMPABLE = 4


def allowed_environment(environ: Mapping[str, str], *, network: bool = False) -> dict[str, str]:
    """What a program may see of `environ`; `network` adds the proxies, for the commands that set a checkout up."""
    return {
        name: value
        for name, value in environ.items()
        if not is_secret_name(name) and not _CACHE.search(name) and (_KEPT.fullmatch(name) or (network and _PROXIES.fullmatch(name)))
    }


def is_secret_name(name: str) -> bool:
    """Whether the variable `name` is, by its name, one that no program may see."""
    return bool(_SECRET.search(name))


@dataclass(frozen=True)
class Account:
    """Whom the program runs as; without one, as whoever runs us."""

    uid: int | None = None
    gid: int | None = None

    def popen(self) -> dict[str, object]:
        """Arguments for `subprocess`: no group of ours is kept."""
        return {} if self.uid is None else {"user": self.uid, "group": self.gid, "extra_groups": []}

    def chown(self, path: Path) -> None:
        """Hand over the directory `path` and all that is in it; links are not followed."""
        if self.uid is None or self.gid is None:
            return
        os.chown(path, self.uid, self.gid, follow_symlinks=False)
        for folder, directories, files in os.walk(path):
            for name in (*directories, *files):
                os.chown(os.path.join(folder, name), self.uid, self.gid, follow_symlinks=False)

    def kill_processes(self) -> None:
        """Kill what the account still runs: a program may have left processes that would write while we read."""
        if self.uid is None:
            return
        kill = f"import os; os.kill(-1, {int(signal.SIGKILL)})"
        subprocess.run([sys.executable, "-I", "-c", kill], check=False, capture_output=True, env={}, **self.popen())  # type: ignore[call-overload]


def program_account(name: str = ACCOUNT) -> Account:
    """The account `name` for programs; our own where we may not change it or the machine has none."""
    if os.geteuid() != 0:
        return Account()
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return Account()
    return Account(entry.pw_uid, entry.pw_gid)


def make_undumpable() -> None:
    """Make this process's memory and environment unreadable to others of the same account (Linux: not dumpable)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def copy_out(source: Path, target: Path, without: Path | None = None) -> list[str]:
    """Copy from `source` to `target` what a program may have touched: plain files alone, no link followed, within bounds.

    Returns what was left behind. `without` is a directory below `source` that is not wanted. An existing file is replaced in one step.
    """
    left: list[str] = []
    copied = 0
    target.mkdir(parents=True, exist_ok=True)
    for folder, directories, files in os.walk(source):
        here = Path(folder).relative_to(source)
        if here == without:
            directories.clear()
            continue
        # os.walk does not go into links to directories, but lists them
        directories[:] = [name for name in directories if not (Path(folder) / name).is_symlink()]
        for name in files:
            if copied >= MOST_FILES:
                left.append(f"{here / name}: more than {MOST_FILES} files")
                continue
            reason = _copy_file(Path(folder) / name, target / here / name)
            if reason:
                left.append(f"{here / name}: {reason}")
            else:
                copied += 1
    return left


def _copy_file(source: Path, target: Path) -> str | None:
    try:
        held = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        return error.strerror or "cannot be opened"
    with os.fdopen(held, "rb") as opened:
        facts = os.fstat(held)
        if not stat.S_ISREG(facts.st_mode):
            return "no plain file"
        if facts.st_size > LARGEST_FILE:
            return f"larger than {LARGEST_FILE >> 20} MiB"
        text = is_text(source)
        if text and facts.st_size > LONGEST:
            return f"a text larger than {LONGEST >> 20} MiB: it cannot be searched for secrets"
        if is_program(source):
            if holds_secret(opened):
                return "a secret or a personal path in it, or no archive"
            opened.seek(0)
        target.parent.mkdir(parents=True, exist_ok=True)
        new = target.with_name(target.name + ".new")
        with open(new, "wb") as written:
            if text:
                written.write(scrubbed(source, opened.read(LONGEST)))
            else:
                shutil.copyfileobj(opened, written)
        os.replace(new, target)
    return None


def chown_like_parent(path: Path) -> None:
    """Give the directory `path` to the owner of the one around it: root's files in a workspace break the next checkout there."""
    if os.geteuid() == 0:
        owner = os.stat(path.resolve().parent)
        Account(owner.st_uid, owner.st_gid).chown(path)
