"""The sandbox of one job, seen from our side."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bot.sandbox import accounts, environment, paths, private_tmp
from bot.sandbox.aside import ask
from bot.sandbox.files import Scratch, hand_to_group
from bot.sandbox.order import LANDLOCK, NO_NETWORK, PRIVATE_TMP, PRIVILEGES, RLIMITS, SECCOMP, UID, Order, ProcessReport
from bot.sandbox.process import Process, launch

_INSIDE = str(Path(__file__).resolve().parents[1] / "inside")
_ASK_LIMIT = 60.0
_GIB = 1 << 30
# On each file system that a program may write to, this many bytes stay free, and this many files can still be made.
_LEAST_FREE, _LEAST_FILES = 1 << 30, 50_000
_MOST_FILES, _LARGEST_FILE = 65_536, 64 * _GIB
_MOST_PROCESSES = 2048
_MOST_SIGNALS = 4096  # pending ones, and timers: the kernel counts those of all processes of an account
_MOST_LINKS = 2000
_MOST_SHOWN = 1000  # paths below /tmp that a private one shows


class NoSandbox(Exception):
    """The sandbox that was asked for is not available here. The message is for people."""


@dataclass
class Sandbox:
    """Starts processes that run somebody's code.

    `scratch` is a directory of the job, in which each process gets its own home. `python` is the interpreter of most of them: they get
    their own accounts only if these can reach it. `readable` are paths that a program may read in addition to what that needs. `network`:
    it may use the network. With `on` False, processes start as they are, without any layer. `patience` is the time in seconds for an
    interpreter to say what it needs. `links` are directories below the temporary one of each process, in which it finds links to the files
    of another directory, which it may read. `variables` are our own: each process has them in addition to what it may see.
    """

    scratch: Path
    python: str = sys.executable
    readable: Sequence[Path] = ()
    network: bool = False
    on: bool = sys.platform == "linux"
    patience: float = _ASK_LIMIT
    links: dict[str, Path] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    _bytecode: dict[str, Path] = field(default_factory=dict)
    _known: dict[str, tuple[str, ...]] = field(default_factory=dict)  # what each interpreter needs to read
    _allowed: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = field(default_factory=dict)
    _packages: tuple[str, ...] = field(default_factory=paths.optional_packages)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _probed: ProcessReport | None = None
    _group: int | None = None
    _shared: set[str] = field(default_factory=set)

    @property
    def layers(self) -> tuple[str, ...]:
        """The layers that are on in every process."""
        return self._probe().layers if self.on else ()

    @property
    def known_layers(self) -> tuple[str, ...]:
        """The layers that were on so far; none before the first process."""
        return self._probed.layers if self._probed else ()

    def why_no_account(self) -> str | None:
        """Why processes get no account of their own although we may change it: a directory is closed to other accounts; else None."""
        closed = self._probe().unreachable
        return next((why for path in closed if (why := _closed(path))), None)

    def state_of(self, python: str) -> str:
        """A hash that stays the same as long as the interpreter `python` has the same packages."""
        seen = [python, *(f"{path} {os.stat(path).st_mtime_ns}" for path in self.packages_of(python))]
        return hashlib.sha256("\n".join(seen).encode("utf-8", "surrogateescape")).hexdigest()

    def packages_of(self, python: str) -> list[Path]:
        """The directories that hold the packages of the interpreter `python`."""
        self._prepare(python)
        known = self._known.get(_found(python), ())
        return [Path(path) for path in known if path.endswith(("site-packages", "dist-packages")) and os.path.isdir(path)]

    def keep_bytecode(self, python: str, place: Path) -> None:
        """Have the interpreter `python`, and others in its directory, look for bytecode below `place` instead of next to the source."""
        self._bytecode[os.path.dirname(_found(python))] = place

    def require(self) -> None:
        """Make sure that every layer is on that an account like ours can have. Raises NoSandbox if one is not."""
        wanted = (
            {PRIVILEGES, LANDLOCK, SECCOMP, RLIMITS}
            | (set() if self.network else {NO_NETWORK})
            | ({UID} if os.geteuid() == 0 or accounts.may_change() else set())
        )
        lacking = sorted(wanted - set(self.layers))
        if lacking:
            closed = self.why_no_account() if UID in lacking else None
            raise NoSandbox(f"the sandbox lacks {', '.join(lacking)} here" + (f": {closed}" if closed else ""))

    def share(self, directory: Path) -> Path:
        """Let every process of this job that is given `directory` write to it, whatever its account. Returns it."""
        self._shared.add(str(directory))
        self.lend(directory)
        return directory

    def lend(self, directory: Path) -> None:
        """Open `directory`, which lies in a shared one, to the processes of this job."""
        group = self._job_group()
        if group is not None:
            hand_to_group(directory, group)

    def start(
        self,
        command: Sequence[str],
        *,
        cwd: Path | None,
        env: Mapping[str, str],
        write: Sequence[Path] = (),
        address_space: bool = True,
        linked: bool = False,
        **streams: Any,
    ) -> Process:
        """Start `command` in the directory `cwd` with what may be seen of the environment `env`.

        It may also `write` to the given directories. With `address_space`, what it may reserve is limited. `streams` are those of
        `subprocess.Popen`. With `linked`, it starts in a directory of its own, with a link to each entry of `cwd`. Raises OSError if there
        is no such program.
        """
        if not self.on:
            return Process(list(command), cwd=cwd, env=self._with_ours(env), start_new_session=True, **streams)
        program = shutil.which(command[0], path=env.get("PATH"))
        if program is None:
            raise FileNotFoundError(2, "No such file or directory", command[0])
        program = os.path.abspath(program)
        self._prepare(program)
        report = self._probe()
        private = Path(tempfile.mkdtemp(prefix="box-", dir=self.scratch))
        home, tmp = private / "home", private / "tmp"
        for path in (home, tmp):
            path.mkdir()
        for below, source in self.links.items():
            (tmp / below).mkdir(parents=True)
            for file in source.iterdir():
                (tmp / below / file.name).symlink_to(file)
        uid = accounts.draw(os.environ) if UID in report.layers else None
        order = self._order(program, private)
        compiled = self._bytecode.get(os.path.dirname(program))
        if compiled is not None:
            env = {**env, "PYTHONPYCACHEPREFIX": str(compiled)}
        order = order._replace(
            command=(program, *command[1:]),
            env=self._with_ours(environment.inside(env, str(home), str(tmp), network=self.network)),
            cwd=str(_linked(cwd or Path.cwd(), private / "cwd") if linked else cwd or Path.cwd()),
            uid=uid,
            # a group that others have too, only if something is shared with them
            gid=None if uid is None else self._group if self._shared.intersection(map(str, write)) else uid,
            give=tuple(map(str, [private, *(path for path in write if str(path) not in self._shared)])),
            read=(*order.read, str(self.scratch)),
            write=(*order.write, str(private), *map(str, write)),
            layers=tuple(layer for layer in report.layers if layer != PRIVATE_TMP),  # without it /tmp is refused
        )
        if PRIVATE_TMP in report.layers and len(private_tmp.tops(order.read)) <= _MOST_SHOWN:
            order = order._replace(tmp=str(tmp))
        if address_space and not order.gpu:
            order = order._replace(limits={**order.limits, "AS": 16 * _GIB + 2 * _memory()})
        return launch(order, private, streams)

    def _with_ours(self, env: Mapping[str, str]) -> dict[str, str]:
        """`env` with our own variables; if both have a PYTHONPATH, ours comes first."""
        paths_of_python = [held["PYTHONPATH"] for held in (self.variables, env) if held.get("PYTHONPATH")]
        return {**env, **self.variables, **({"PYTHONPATH": os.pathsep.join(paths_of_python)} if paths_of_python else {})}

    def _order(self, python: str, where: Path) -> Order:
        """What every process of this job that runs the interpreter `python` may do; `where` is a directory that it may write to."""
        devices, gpu = paths.devices(), paths.has_gpu()
        whole, listed = self._readable(python)
        system, places = paths.of_system()
        limits = {"NOFILE": _MOST_FILES, "FSIZE": _LARGEST_FILE, "MEMLOCK": 64 << 20, "MSGQUEUE": 1 << 20, "SIGPENDING": _MOST_SIGNALS}
        limits |= {"RTPRIO": 0, "NICE": 0}  # some machines let users run ahead of everybody else
        own = accounts.may_change()
        limits["NPROC"] = _MOST_PROCESSES + 64 * (os.cpu_count() or 1) + (0 if own else _running())
        return Order(
            read=(*system, *self._packages, _INSIDE, *whole),
            list_only=("/dev", *places, *listed),
            write=tuple(devices),
            named=(*map(str, self.readable), *paths.of_environment(os.environ), *self._known.get(_found(python), ())),
            groups=accounts.groups_of_gpus(devices),
            network=self.network,
            gpu=gpu,
            limits=limits,
            disk=(str(where), "/dev/shm"),
            least_free=_LEAST_FREE,
            least_files=_LEAST_FILES,
            most_processes=limits["NPROC"] if os.geteuid() == 0 else 0,
        )

    def _readable(self, python: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """What may be read with everything below it, and what may only be listed, under the interpreter `python`; looked up once."""
        found = self._allowed.get(python)
        if found is None:
            wanted = [*self._known.get(python, ()), *paths.of_environment(os.environ), *map(str, self.readable)]
            whole, listed = paths.readable(wanted, os.path.expanduser("~"))
            found = self._allowed[python] = (tuple(whole), tuple(listed))
        return found

    def _prepare(self, python: str) -> None:
        """Find out what the interpreter `python` needs to read; asked once."""
        python = _found(python)
        if not self.on:
            return
        with self._lock:
            if python in self._known:
                return
            # where it is and where its link leads: that is enough to start it, should it not say in time what else it reads
            found = [os.path.dirname(os.path.dirname(path)) for path in (os.path.abspath(python), os.path.realpath(python))]
            with contextlib.suppress(OSError, ValueError, subprocess.SubprocessError):
                found += [str(path) for path in json.loads(ask([python, "-c", paths.ASK], min(_ASK_LIMIT, self.patience)).stdout)]
            self._known[python] = tuple(found)

    def _job_group(self) -> int | None:
        return self._group if UID in self.layers else None

    def _probe(self) -> ProcessReport:
        """Which layers are available, tried on a process that does nothing; asked once, with the first interpreter."""
        self._prepare(self.python)
        with self._lock:
            if self._probed is not None:
                return self._probed
            python = _found(self.python)
            needed = self._known.get(python, ())
            os.chmod(self.scratch, 0o755)
            number = accounts.draw(os.environ) if accounts.may_change() else None
            reach = tuple(path for path in (python, _INSIDE, str(self.scratch), *needed, *map(str, self.readable)) if os.path.exists(path))
            with Scratch(prefix="box-", dir=self.scratch) as tmp:
                os.chmod(tmp, 0o755)
                order = self._order(python, self.scratch)
                order = order._replace(cwd="/", read=(*order.read, str(self.scratch)))
                if len(private_tmp.tops(order.read)) <= _MOST_SHOWN:
                    order = order._replace(tmp=tmp)
                own = order._replace(uid=number, gid=number, must_reach=reach)
                report = _tried(own)
                if report.failed or report.unreachable:
                    # an account is worth more than a private /tmp, in which something may be missing
                    plain = _tried(own._replace(tmp=""))
                    if not plain.failed and (report.failed or len(plain.unreachable) < len(report.unreachable)):
                        report = plain
                if number is not None and (report.failed or report.unreachable):
                    report = _tried(order)._replace(unreachable=report.unreachable)
                else:
                    self._group = number
            if report.failed:
                raise NoSandbox(report.failed)
            self._probed = report
            return report


def _found(python: str) -> str:
    """The interpreter's full path; not resolved, since a virtual environment's is a link."""
    return os.path.abspath(shutil.which(python) or python)


def _linked(cwd: Path, place: Path) -> Path:
    """The new directory `place`, in which a program finds what is in `cwd` and may write next to it; `cwd` itself if that holds too
    much."""
    try:
        entries = list(itertools.islice(os.scandir(cwd), _MOST_LINKS + 1))
    except OSError:
        return cwd
    if len(entries) > _MOST_LINKS:
        return cwd
    place.mkdir()
    for entry in entries:
        (place / entry.name).symlink_to(os.path.join(os.path.abspath(cwd), entry.name))
    return place


def _tried(order: Order) -> ProcessReport:
    process = launch(order, None, {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL})
    process.wait()
    process.end()
    return process.report


def _closed(path: str) -> str | None:
    """The sentence that says what to open, so that other accounts can reach `path`."""
    place = Path(os.path.realpath(path))
    for parent in (*reversed(place.parents), place):
        try:
            if not parent.stat().st_mode & 0o001 and parent.is_dir():
                return f"{parent} is closed to other accounts: `chmod o+x {parent}` opens the way to {path}"
        except OSError:
            return None
    return None


def _running() -> int:
    """The number of processes and threads that run under our account: a limit on processes counts them all."""
    count = 0
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError):
                if os.stat(f"/proc/{name}").st_uid == os.getuid():
                    count += len(os.listdir(f"/proc/{name}/task"))
    return count


def _memory() -> int:
    """Bytes of memory of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
