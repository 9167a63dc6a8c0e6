"""`torch-minify minify`: one request of a request file, on the machine that has what it needs.

The request says what to run, the workflow says how this machine is set up. The engine is the command line's `run`, in a process of its
own with an environment and, where we may, an account of its own: our own process may hold what that one must not see.
"""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from bot.action.minify import venv
from bot.action.minify.child_process import Children, Stopped, ignore_line, log_group, stop_on_signals
from bot.action.minify.isolation import account, allowed_environment, chown_like_parent, copy_out
from bot.action.settings import Settings
from bot.machine import gpu
from bot.models.request import Request
from bot.models.result import EXIT_STATUS, Result
from bot.units import duration

# Seconds for the commands that set the checkout up, and beyond its budget for the engine.
SETUP_LIMIT, BEYOND_BUDGET = 3600.0, 600.0
DEFAULT_BUDGET = 1800.0
_WORK = Path("original/work")


# Answers about the program, not faults: they leave a job green.
GREEN = {EXIT_STATUS[status] for status in ("minimized", "reproduced", "not_reproduced", "flaky")}


class RequestError(ValueError):
    """A request file that cannot be used, for people."""


class Unprepared(Exception):
    """This machine is not ready for the request, for people."""


@dataclass(frozen=True)
class Place:
    """How this machine does it. `budget` (seconds) is for a request that names none; `python` the interpreter with the user's torch."""

    checkout: Path
    setup: str = ""
    python: str | None = None
    budget: float = DEFAULT_BUDGET
    device: Literal["cpu", "cuda"] | None = None
    jobs: int = 1
    actions: bool = False


def place(settings: Settings) -> Place:
    """How this machine does it, by the inputs."""
    return Place(
        checkout=settings.checkout,
        setup=settings.setup,
        python=settings.python,
        budget=duration(settings.budget),
        device=settings.device or None,
        jobs=settings.jobs,
        actions=settings.in_actions,
    )


def read(file: Path, index: int) -> Request:
    """The request with that index.

    Raises:
        RequestError: there is none, or the file is no list of requests.
    """
    try:
        requests = TypeAdapter(list[Request]).validate_json(file.read_bytes())
    except (OSError, ValidationError) as error:
        raise RequestError(f"cannot read {file}: {error}") from error
    if not 0 <= index < len(requests):
        raise RequestError(f"{file} holds {len(requests)} requests, none with index {index}")
    return requests[index]


def budget(request: Request, place: Place) -> float:
    """Seconds for a request."""
    return request.options.budget or place.budget


def arguments(request: Request, place: Place, *, script: Path, python: str, out: Path) -> list[str]:
    """The arguments of `run` for a request; `script` is where its text lies."""
    options = request.options
    given = {
        "--stage": options.stage.value if options.stage else None,
        "--accuracy": options.accuracy,
        "--device": options.device or place.device,
        "--budget": f"{budget(request, place):g}s",
        "--jobs": str(place.jobs),
        "--python": python,
        "--out": str(out),
        "--command": request.command,
    }
    # one word each: a value that begins with a dash is a value
    words = [f"{name}={value}" for name, value in given.items() if value is not None]
    return ["run", *words, *([] if request.command is not None else [str(script)])]


def minify(request: Request, place: Place, out: Path, environ: Mapping[str, str], watch: Callable[[str], None] = ignore_line) -> int:
    """Do it and fill `out`; the exit status of `run`. `watch` is told each line that is printed on the way."""
    out.mkdir(parents=True, exist_ok=True)
    children = Children(account(), watch)
    with tempfile.TemporaryDirectory(prefix="torch-minify-", ignore_cleanup_errors=True) as scratch, stop_on_signals(children.stop):
        room = Room(Path(scratch).resolve(), request, place, out, children, environ)
        try:
            status = room.minify()
        except Unprepared as why:
            status = unprepared(out, str(why))
        except Stopped:
            status = unprepared(out, "the job was ended before it began")
        children.account.kill_processes()
        room.save()
        if not (out / "result.json").is_file():
            status = unprepared(out, f"the engine ended with exit status {status} and left no result")
        chown_like_parent(out)
    return status


def unprepared(out: Path, reason: str) -> int:
    """Leave a result that says why there is none, by no fault of the program; its exit status."""
    sys.stderr.write(f"torch-minify: {reason}\n")
    result = Result(status="error", reason=reason, machine_fault=reason[:200])
    out.mkdir(parents=True, exist_ok=True)
    (out / "result.json").write_text(result.to_json(), encoding="utf-8")
    return EXIT_STATUS[result.status]


class Room:
    """A private directory in which one request is done."""

    def __init__(self, root: Path, request: Request, place: Place, out: Path, children: Children, environ: Mapping[str, str]) -> None:
        self.root, self.request, self.place, self.target = root, request, place, out
        self.children = children
        self.out, self.home, self.tmp, self.venv = (root / name for name in ("out", "home", "tmp", "venv"))
        self.script = root / "program" / "program.py"
        self.environ = environ

    def minify(self) -> int:
        """The exit status of the engine.

        Raises:
            Unprepared: the engine was not started.
            Stopped: we were told to end.
        """
        if "cuda" in (self.request.options.device, self.place.device) and (why := gpu.unseen()):
            raise Unprepared(f"--device cuda: {why}")
        checkout = self._furnish()
        python = self._interpreter(checkout)
        self._set_up(checkout)
        engine = [sys.executable, "-I", "-m", "bot", *arguments(self.request, self.place, script=self.script, python=python, out=self.out)]
        limit = budget(self.request, self.place) + BEYOND_BUDGET
        with log_group("torch-minify run", actions=self.place.actions):
            return self.children.run(engine, cwd=checkout, env=self._environment(), limit=limit, tick=self.save)

    def save(self) -> None:
        """Bring what there is to where it is wanted. Repeated while the engine runs: a job may be killed at any time."""
        copy_out(self.out, self.target, _WORK)

    def _furnish(self) -> Path:
        """The directories, the program, and the checkout: a copy where the account may not write to the given one."""
        for path in (self.out, self.home, self.tmp, self.script.parent):
            path.mkdir()
        if self.request.script is not None:
            self.script.write_text(self.request.script, encoding="utf-8", errors="surrogatepass", newline="")
        checkout = self.place.checkout.resolve()
        if self.children.account.uid is not None:
            checkout = self.root / "checkout"
            shutil.copytree(self.place.checkout, checkout, symlinks=True, ignore_dangling_symlinks=True)
            self.children.account.chown(self.root)
        return checkout

    def _interpreter(self, checkout: Path) -> str:
        python = self.place.python or sys.executable
        if os.sep in python:
            # not resolved: a virtual environment's python is a link
            python = os.path.join(checkout, python)
        options = self.request.options
        if options.python_version is None and options.torch_version is None:
            return python
        try:
            commands = venv.install_commands(
                self.venv,
                python=options.python_version,
                torch=options.torch_version,
                own_python=python,
                own_torch=_installed("torch"),
            )
        except venv.VersionError as error:
            raise Unprepared(str(error)) from error
        for command in commands:
            self._prepare(command, self.root, "the interpreter that was asked for")
        return str(self.venv / "bin" / "python")

    def _set_up(self, checkout: Path) -> None:
        if self.place.setup.strip():
            self._prepare(["bash", "-eo", "pipefail", "-c", self.place.setup], checkout, "the setup commands")

    def _prepare(self, command: list[str], cwd: Path, what: str) -> None:
        with log_group(what, actions=self.place.actions):
            try:
                status = self.children.run(command, cwd=cwd, env=self._environment(network=True), limit=SETUP_LIMIT)
            except OSError as error:
                raise Unprepared(f"{what}: {command[0]} cannot be started: {error.strerror}") from error
        if status == 124:
            raise Unprepared(f"{what} took more than {SETUP_LIMIT / 60:g} minutes")
        if status != 0:
            raise Unprepared(f"{what} failed with exit status {status}; the log of the run shows what they printed")

    def _environment(self, *, network: bool = False) -> dict[str, str]:
        env = allowed_environment(self.environ, network=network)
        env.update(HOME=str(self.home), TMPDIR=str(self.tmp), XDG_CACHE_HOME=str(self.home / ".cache"), PYTHONUNBUFFERED="1")
        # where pip puts scripts that it may not put beside the interpreter
        path = [str(self.home / ".local" / "bin"), env.get("PATH", os.defpath)]
        if self.venv.is_dir():
            env["VIRTUAL_ENV"] = str(self.venv)
            path.insert(0, str(self.venv / "bin"))
        env["PATH"] = os.pathsep.join(path)
        return env


def _installed(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
