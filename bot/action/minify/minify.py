"""`torch-minify minify`: carries out one request of a request file, on the machine that has what it needs.

The request says what to run, the workflow how this machine is set up. The engine is the command line's `run`, in a separate process with
its own environment and, if possible, its own account: our own process may hold what the engine must not see.
"""

from __future__ import annotations

import importlib.metadata
import logging
import os
import re
import shlex
import shutil
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from bot.action import request_file
from bot.action.console import FAULT, Console, JobOutcome
from bot.action.minify import leftovers, venv
from bot.action.minify.checkout import leading_out
from bot.action.minify.child_process import Children, Stopped, ignore_line, stop_on_signals
from bot.action.minify.handover import hand_over
from bot.action.minify.isolation import Identities, allowed_environment, chown_like_parent
from bot.action.minify.machine_report import FILE, LIMIT, MOST_LINES, machine_report
from bot.action.minify.result_place import begin
from bot.action.redaction import redact
from bot.machine import gpu
from bot.models.request import Request
from bot.models.result import EXIT_STATUS, Result
from bot.sandbox.environment import PASSED
from bot.sandbox.files import Scratch, read_plain
from bot.workflow_commands import harmless, log_group

log = logging.getLogger(__name__)

# Seconds for the commands that set up the checkout, and for the engine beyond its budget.
SETUP_LIMIT, BEYOND_BUDGET = 3600.0, 600.0
DEFAULT_BUDGET = 1800.0
ENGINE = (sys.executable, "-I", "-m", "bot")
_WORK = Path("original/work")
_OURS = frozenset({"PATH", "HOME", "TMPDIR", "XDG_CACHE_HOME"})
# Files that pytest looks for in the directories around the tests; it exits if it may not read them.
_AROUND = ("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
NEVER_BEGAN = "the job was ended before it began"
# Answers about the program, not faults: they leave a job green.
GREEN = {EXIT_STATUS[status] for status in ("minimized", "reproduced", "not_reproduced", "flaky")}


class NotReadyError(Exception):
    """This machine is not ready for the request. The message is for people."""


@dataclass(frozen=True)
class RunnerConfig:
    """How this machine runs a request.

    `budget` (seconds) is for a request without one. `python` is the interpreter with the user's torch, `engine` the command that runs the
    command line. The engine runs under one of the `identities`, the setup under the other. Both see the harmless part of `environ`, the
    variables in it that `pass_env` names, and `variables`. `torch_index` has the builds of torch that a request may name.
    """

    checkout: Path
    setup: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    pass_env: Sequence[str] = ()
    torch_index: str = ""
    python: str | None = None
    budget: float = DEFAULT_BUDGET
    device: Literal["cpu", "cuda"] | None = None
    jobs: int = 1
    engine: Sequence[str] = ENGINE
    identities: Identities = field(default_factory=Identities)
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)


def budget(request: Request, config: RunnerConfig) -> float:
    """Seconds for `request`: its own budget, otherwise that of `config`."""
    return request.options.budget or config.budget


def arguments(request: Request, config: RunnerConfig, *, script: Path, python: str, out: Path) -> list[str]:
    """The arguments of `run` for `request` according to `config`.

    `script` is the file with its text, `python` the interpreter with the user's torch, `out` the result directory.
    """
    options = request.options
    given = {
        "--stage": options.stage.value if options.stage else None,
        "--accuracy": options.accuracy,
        "--device": options.device or config.device,
        "--budget": f"{budget(request, config):g}s",
        "--jobs": str(config.jobs or "auto"),
        "--python": python,
        "--out": str(out),
        "--command": bare_command(request),
    }
    # one word each, so that a value may begin with a dash
    words = [f"{name}={value}" for name, value in given.items() if value is not None]
    return ["run", *words, *([] if request.command is not None else [str(script)])]


def assignments(command: str) -> tuple[dict[str, str], str]:
    """The variables `NAME=value` before the program in `command`, and the command without them."""
    words, found = shlex.split(command), {}
    while words and (match := _ASSIGNMENT.fullmatch(words[0])):
        found[match[1]] = match[2]
        words = words[1:]
    # variables alone are not a program, which the engine reports
    return (found, shlex.join(words)) if found and words else ({}, command)


def bare_command(request: Request) -> str | None:
    """The command of `request` in the form that the engine expects."""
    if request.command is None:
        return None
    try:
        return assignments(request.command)[1]
    except ValueError:  # an unclosed quotation mark, which the engine reports
        return request.command


def variables_of(request: Request) -> dict[str, str]:
    """The variables that the command of `request` sets, except those that would change the engine itself."""
    try:
        found = assignments(request.command or "")[0]
    except ValueError:
        return {}
    return {name: value for name, value in found.items() if not name.startswith("LD_") and name not in _OURS}


def minify(
    request: Request,
    config: RunnerConfig,
    out: Path,
    console: Console,
    watch: Callable[[str], None] = ignore_line,
    stopped: threading.Event | None = None,
) -> int:
    """Minimize `request` according to `config`, fill the directory `out`, and return the exit status of `run`.

    Output goes to `console`, and each line to `watch`. A signal sets `stopped`, which ends the work. Raises InputError like `begin`.
    """
    begin(out)
    # first, since the job may be killed at any time
    (out / request_file.KEY_FILE).write_text(f"{request_file.key(request)}\n", encoding="utf-8")
    heard: deque[str] = deque(maxlen=MOST_LINES)
    watched = heard.append if request.doctor is not None else watch
    children = Children(config.identities.setup, console, watched, stopped or threading.Event())
    others = leftovers.descendants()
    leftovers.adopt_orphans()
    # named after our process id: if we are killed, the workflow's last step removes it
    prefix = f"torch-minify-{os.getpid()}-"
    with Scratch(prefix=prefix, ignore_cleanup_errors=True) as scratch, stop_on_signals(children.stop):
        directory = JobDirectory(Path(scratch).resolve(), request, config, out, children, heard)
        wrong = ""
        try:
            status = directory.minify()
        except NotReadyError as why:
            wrong = str(why)
        except OSError as error:
            wrong = f"the job could not be begun: {error}"
        except Stopped:
            wrong = NEVER_BEGAN
        except Exception:
            # whatever it is, there is a result that says something was wrong: the report reads nothing else from this job
            log.exception(FAULT)
            wrong = "a fault of torch-minify: the log of the run shows it"
        if wrong:
            status = write_error(out, wrong, console, cancelled=wrong == NEVER_BEGAN)
            heard.append(wrong)
        leftovers.kill_all_but(others)
        directory.save()
        directory.close()
        if request.doctor is not None:
            said = machine_report(heard, status, gpu.unseen(), config.identities.setup, gpu_needed=config.device == "cuda")
            (out / FILE).write_text(said, encoding="utf-8")
        elif not (out / "result.json").is_file():
            wrong = f"the engine ended with exit status {status} and left no result"
            status = write_error(out, wrong, console, cancelled=children.stopped.is_set())
        # last, to replace one that a program may have left in its place
        (out / request_file.KEY_FILE).write_text(f"{request_file.key(request)}\n", encoding="utf-8")
        chown_like_parent(out)
    return status


def write_error(out: Path, reason: str, console: Console, *, cancelled: bool = False) -> int:
    """Write a result to `out` that gives `reason` and does not blame the program; print it to `console`; return its exit status.

    `cancelled`: the job was told to end, so the machine is not to blame either.
    """
    reason = redact(reason)
    console.stderr.write(harmless(f"torch-minify: {reason}\n"))
    result = Result(status="error", reason=reason, machine_fault=reason[:200], reason_code="machine_fault")
    if cancelled:
        result = Result(status="error", ended_by="interrupted", reason=reason)
    out.mkdir(parents=True, exist_ok=True)
    (out / "result.json").write_text(result.to_json(), encoding="utf-8")
    return EXIT_STATUS[result.status]


def outcome_of(out: Path, status: int) -> JobOutcome:
    """The outcome of a job that left the directory `out` and ended with the exit status `status` of `run`.

    A program may have written the result: what it claims is one of five words, or not believed. A machine that was only looked at has none.
    """
    words: dict[int, str] = {number: word for word, number in EXIT_STATUS.items()}
    try:
        said: str = Result.model_validate_json((out / "result.json").read_bytes()).status
    except FileNotFoundError:
        said = words.get(status, "error") if status else ""
    except (OSError, ValueError):
        said = words.get(status, "error")
    return JobOutcome(0 if status in GREEN else status, outputs={"status": said})


class JobDirectory:
    """The private directory `root`, in which `children` carry out `request` according to `config`; its result goes to `target`.

    `heard` is their output, if that is the answer.
    """

    def __init__(self, root: Path, request: Request, config: RunnerConfig, target: Path, children: Children, heard: deque[str]) -> None:
        self.root, self.request, self.config, self.children, self.heard = root, request, config, children, heard
        self.engine, self.out = root / "engine", root / "engine" / "out"
        self.home, self.tmp, self.venv = (root / "setup" / name for name in ("home", "tmp", "venv"))
        # opened before anything runs that could replace it by a link
        self.result = os.open(target, os.O_RDONLY | os.O_DIRECTORY)
        self.left: list[str] = []
        self.script = root / "program" / "program.py"

    def minify(self) -> int:
        """Run everything, and return the exit status of the engine.

        Raises:
            NotReadyError: the engine was not started.
            Stopped: the job was told to end.
        """
        if self.request.doctor is None and "cuda" in (self.request.options.device, self.config.device) and (why := gpu.unseen()):
            raise NotReadyError(f"--device cuda: {why}")
        checkout = self._prepare()
        python = self._interpreter(checkout)
        if self.config.setup.strip():
            self._run_setup(["bash", "-eo", "pipefail", "-c", self.config.setup], checkout, "the setup commands")
        if self.request.doctor is not None:
            look = [*self.config.engine, "doctor", "--python", python]
            # if all went well, only the machine's report is needed
            self.heard.clear()
            with self._group("torch-minify doctor"):
                account = self.config.identities.engine
                status = self.children.run(look, cwd=checkout, env=self._environment(engine=True), limit=LIMIT, account=account)
            self._unless_stopped()
            return status
        where = self._directory(checkout)
        if (path := leading_out(self.request.command, where, checkout)) is not None:
            raise NotReadyError(f"{path} is not in the checkout, or leads out of it")
        if self.request.launcher and not self.venv.is_dir():
            python = self._launched(where)
        engine = [*self.config.engine, *arguments(self.request, self.config, script=self.script, python=python, out=self.out)]
        limit = budget(self.request, self.config) + BEYOND_BUDGET
        with self._group("torch-minify run"):
            account = self.config.identities.engine
            return self.children.run(engine, cwd=where, env=self._environment(engine=True), limit=limit, account=account, tick=self.save)

    def _directory(self, checkout: Path) -> Path:
        # before Python 3.13, `Path.resolve` raises for a cycle of links
        where, top = (Path(os.path.realpath(path)) for path in (checkout / self.request.directory, checkout))
        if not where.is_relative_to(top) or not where.is_dir():
            raise NotReadyError(f"the checkout has no directory {self.request.directory!r}, in which programs are to run")
        return where

    def _launched(self, where: Path) -> str:
        """The interpreter that the request's launcher, such as `uv run`, starts in the directory `where`."""
        said = self.tmp / "interpreter.txt"
        look = ["python", "-c", "import sys; open(sys.argv[1], 'w').write(sys.executable)", str(said)]
        self._run_setup([*self.request.launcher, *look], where, shlex.join(self.request.launcher))
        try:
            return read_plain(said, 4096).decode("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise NotReadyError(f"{shlex.join(self.request.launcher)} started no Python") from error

    def _group(self, title: str) -> AbstractContextManager[None]:
        console = self.children.console
        return log_group(console.stdout, title, enabled=console.in_actions)

    def save(self) -> None:
        """Copy the current result to its destination. Repeated while the engine runs, since a job may be killed at any time."""
        try:
            left = hand_over(self.config.identities.engine, self.out, self.result, _WORK)
        except OSError as error:
            left = [f"the result: {error}"]
        if left and left != self.left:
            self.left = left
            self.children.console.stderr.write(harmless(redact("".join(f"torch-minify: left behind: {line}\n" for line in left[:20]))))

    def close(self) -> None:
        """Close the descriptor of the result's destination."""
        os.close(self.result)

    def _prepare(self) -> Path:
        """Create the directories, the program, and the checkout: a copy if the account may not write to the given one, or if that is
        inside another checkout, as on a persistent runner, which programs must not read."""
        os.chmod(self.root, 0o711)  # its content belongs to several accounts
        for path in (self.out, self.engine / "home", self.engine / "tmp", self.home, self.tmp, self.script.parent):
            path.mkdir(parents=True)
        if self.request.script is not None:
            self.script.write_text(self.request.script, encoding="utf-8", errors="surrogatepass", newline="")
        checkout = self.config.checkout.resolve()
        setup = self.config.identities.setup
        if setup.uid is not None or any((above / name).exists() for above in checkout.parents for name in _AROUND):
            checkout = self.root / "checkout"
            shutil.copytree(self.config.checkout, checkout, symlinks=True, ignore_dangling_symlinks=True)
            setup.chown(checkout)
        setup.chown(self.home.parent)
        self.config.identities.engine.chown(self.engine)
        return checkout

    def _interpreter(self, checkout: Path) -> str:
        # if torch-minify is installed apart from torch, for example by pipx, the machine's own
        python = self.config.python or (sys.executable if _installed("torch") else shutil.which("python3") or sys.executable)
        if os.sep in python:
            # not resolved: a virtual environment's python is a link
            python = os.path.join(checkout, python)
        options = self.request.options
        if options.python_version is None and options.torch_version is None:
            return python
        try:
            own = _installed("torch")
            build = venv.build_of(own) or ("cpu" if options.device == "cpu" or gpu.unseen() else venv.DEFAULT_BUILD)
            commands = venv.install_commands(
                self.venv,
                python=options.python_version,
                torch=options.torch_version,
                own_python=python,
                own_torch=own,
                index=self.config.torch_index,
                build=build,
            )
        except venv.VersionError as error:
            raise NotReadyError(str(error)) from error
        for command in commands:
            self._run_setup(command, self.root, "the interpreter that was asked for")
        return str(self.venv / "bin" / "python")

    def _run_setup(self, command: list[str], cwd: Path, what: str) -> None:
        with self._group(what):
            try:
                status = self.children.run(command, cwd=cwd, env=self._environment(network=True), limit=SETUP_LIMIT)
            except OSError as error:
                raise NotReadyError(f"{what}: {command[0]} cannot be started: {error.strerror}") from error
        self._unless_stopped()
        if status == 124:
            raise NotReadyError(f"{what} took more than {SETUP_LIMIT / 60:g} minutes")
        if status != 0:
            raise NotReadyError(f"{what} failed with exit status {status}; the log of the run shows what they printed")

    def _unless_stopped(self) -> None:
        """Raise Stopped if we have ended the child: then its status says nothing about it."""
        if self.children.stopped.is_set():
            raise Stopped

    def _environment(self, *, network: bool = False, engine: bool = False) -> dict[str, str]:
        env = allowed_environment(self.config.environ, network=network)
        passed = (*self.config.pass_env, "RUNNER_TRACKING_ID")  # by which the runner finds processes that a job left running
        env.update({name: self.config.environ[name] for name in passed if name in self.config.environ})
        env.update(self.config.variables)
        if not network:  # for the program itself, not for its setup
            env.update(variables_of(self.request))
        home, tmp = (self.engine / "home", self.engine / "tmp") if engine else (self.home, self.tmp)
        env.update(HOME=str(home), TMPDIR=str(tmp), XDG_CACHE_HOME=str(home / ".cache"), PYTHONUNBUFFERED="1")
        if engine:
            # what was installed with `pip install --user`; and what was asked for by name is for the program too
            env["PYTHONUSERBASE"] = str(self.home / ".local")
            env[PASSED] = " ".join([*self.config.pass_env, *self.config.variables, *variables_of(self.request)])
        # where pip puts scripts that it may not put next to the interpreter
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
