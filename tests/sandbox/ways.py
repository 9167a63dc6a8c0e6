"""The ways in which the engine, and so a program, can run here: by account, by what the container lets it have, on a machine with a GPU.

On a machine the ways of a container are its capabilities alone. `scripts/try-container` runs the same tests in real containers: each is one
way, named by TORCH_MINIFY_WAY, and what Docker does besides (its own filter of system calls, what it masks below /proc) is there too.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
DRIVER = Path(__file__).with_name("attack_driver.py")
# The way that these tests are in already, where they run in a container.
HERE = os.environ.get("TORCH_MINIFY_WAY", "")
# An interpreter that every account can reach, and the number of an account that nobody has.
SYSTEM_PYTHON = sys.executable if HERE else "/usr/bin/python3"
USER = 64_317
# What Docker leaves to a container's root: https://github.com/moby/moby/blob/v28.0.0/oci/caps/defaults.go
CONTAINER = "chown,dac_override,fsetid,fowner,mknod,net_raw,setgid,setuid,setfcap,setpcap,net_bind_service,sys_chroot,kill,audit_write"
_AS_USER = ("setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups")
_KEPT = ",".join(f"+{name}" for name in CONTAINER.split(","))
_ABLE = "-all,+chown,+kill,+setuid,+setgid"
WAYS: dict[str, tuple[str, ...]] = {
    "host-root": (),
    "host-user": _AS_USER,
    "container-root": ("setpriv", f"--bounding-set=-all,{_KEPT}", f"--inh-caps=-all,{_KEPT}"),
    # the Action's engine: an account of its own, which may give accounts
    "action-engine": (*_AS_USER, f"--inh-caps={_ABLE}", f"--ambient-caps={_ABLE}"),
    "host-root-gpu": (),
    "host-user-gpu": _AS_USER,
    "container-user": (*_AS_USER, "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"),
}
if HERE:
    WAYS = {HERE: ()}


@dataclass(frozen=True)
class Ran:
    """What became of a program."""

    status: int
    text: str
    layers: tuple[str, ...]
    ended: str
    failed: str
    ending: float
    left: tuple[str, ...]


@dataclass(frozen=True)
class Way:
    """One way to run a program, in a `place` that the account of the engine owns; `home` is that account's."""

    name: str
    place: Path
    package: Path

    @property
    def home(self) -> Path:
        return self.place / "home"

    def words(self, code: str, **more: Any) -> list[str]:
        order = {"root": str(self.package), "code": code, "readable": [], "gpu": "gpu" in self.name, **more}
        return [*WAYS[self.name], SYSTEM_PYTHON, "-I", str(self.package / DRIVER.name), json.dumps(order)]

    def environment(self, **variables: str) -> dict[str, str]:
        return {"PATH": os.defpath + ":/usr/bin:/bin", "HOME": str(self.home), **variables}

    def run(self, code: str, *, env: dict[str, str] | None = None, **more: Any) -> Ran:
        """Run the program `code` in a sandbox; `more` goes to the driver."""
        words = self.words(code, **more)
        done = subprocess.run(words, env=self.environment(**(env or {})), cwd="/", capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, (done.returncode, done.stderr, done.stdout[-500:])
        said = json.loads(done.stdout.splitlines()[-1])
        return Ran(**{name: tuple(value) if isinstance(value, list) else value for name, value in said.items()})

    def own(self, path: Path) -> Path:
        """Give `path` to the account of the engine."""
        if os.geteuid() == 0 and "root" not in self.name:
            os.chown(path, USER, USER)
        return path


@contextmanager
def prepared(name: str) -> Iterator[Way]:
    """A way by its name, or the one that we are in; tests are skipped where it cannot be had."""
    root = os.geteuid() == 0
    name = HERE or name
    if not HERE and not name.startswith("host-user") and not root:
        pytest.skip("needs root")
    if not Path(SYSTEM_PYTHON).exists() or (WAYS[name] and root and shutil.which("setpriv") is None):
        pytest.skip(f"needs {SYSTEM_PYTHON} and setpriv")
    if subprocess.run([SYSTEM_PYTHON, "-c", "import sys; sys.exit(sys.version_info < (3, 10))"], check=False).returncode:
        pytest.skip(f"{SYSTEM_PYTHON} is too old")
    with tempfile.TemporaryDirectory(prefix="ways-", ignore_cleanup_errors=True) as place:
        os.chmod(place, 0o755)
        package = Path(place, "package")
        shutil.copytree(ROOT / "bot" / "sandbox", package / "bot" / "sandbox", ignore=shutil.ignore_patterns("__pycache__"))
        (package / "bot" / "inside").mkdir()
        (package / "bot" / "__init__.py").touch()
        shutil.copy(DRIVER, package)
        for folder, _, files in os.walk(package):
            os.chmod(folder, 0o755)
            for file in files:
                os.chmod(os.path.join(folder, file), 0o644)
        way = Way(name, Path(place), package)
        if not root and not HERE:
            # we are the plain user already
            way = Way(name, Path(place), package)
            WAYS["host-user"] = WAYS["host-user-gpu"] = ()
        way.own(Path(place))
        way.home.mkdir()
        way.own(way.home)
        yield way


def running_with(mark: str) -> list[int]:
    """The processes whose command line holds `mark`."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                words = (entry / "cmdline").read_bytes()
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if mark.encode() in words and state != "Z":
                found.append(int(entry.name))
    return found
