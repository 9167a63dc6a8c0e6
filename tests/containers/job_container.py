"""The job that minifies, in a container, with its steps run one after another as GitHub's runner does that.

Checked against actions/runner: the container runs `tail -f /dev/null` with the work directory at /__w, its home at /github/home
and the socket of the engine (ContainerOperationProvider.cs, ContainerInfo.cs, DockerCommandManager.cs); a step is `docker exec -i`
with each variable by its name (StepHost.cs); a cancel sends SIGINT and SIGTERM to that client, and kills it (ProcessInvoker.cs).
The scripts and their variables are those of `minify.yml`. Kinder than GitHub: there is no network, no Node of the runner,
and the checkout is a directory that is made here.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.workflows.workflow_files import trigger, workflow

MINIMIZE = "Minimize"
END = "End it, where the runner's signal went no further than docker exec"
CLEAN = "Leave nothing behind"
# The account of the runner on the machine: that of GitHub's own and of ARC.
RUNNER = 1001
# What docs/github.md leaves to a container whose programs are to have accounts of their own.
LEAST = tuple(word for name in ("SETUID", "SETGID", "CHOWN", "DAC_OVERRIDE", "KILL") for word in ("--cap-add", name))
LEAST = ("--cap-drop", "ALL", *LEAST, "--security-opt", "no-new-privileges", "--pids-limit", "4096")
PLAIN = ("--user", str(RUNNER), "--cap-drop", "ALL", "--security-opt", "no-new-privileges")
_WORKFLOW = workflow("minify.yml")
_JOB = _WORKFLOW["jobs"]["minify"]
_STEPS = {step["name"]: step for step in _JOB["steps"]}
_INPUTS = {name: given.get("default", "") for name, given in trigger(_WORKFLOW)["workflow_call"]["inputs"].items()}
_EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")


def docker(*words: str, check: bool = True, timeout: float = 900.0, **more: Any) -> subprocess.CompletedProcess[str]:
    """One command of the engine's client."""
    done = subprocess.run(["docker", *words], capture_output=True, text=True, timeout=timeout, check=False, **more)
    assert not check or done.returncode == 0, (words, done.returncode, done.stdout[-3000:], done.stderr[-3000:])
    return done


def request(script: str, **options: Any) -> dict[str, Any]:
    """A request for the program `script`, as the gate writes it."""
    return {
        "schema": 1,
        "id": "tried",
        "script": script,
        "repository": "o/r",
        "asked_by": "somebody",
        "code": {"where": "comment", "author": "somebody", "trusted": True},
        "answer": {"repository": "o/r", "issue": 1, "marker": "<!-- torch-minify:comment-42 run:7 -->"},
        "options": options,
    }


@dataclass
class Job:
    """A job in the container `name`; `work` is the runner's work directory on the machine, `place` the job's own one in it."""

    name: str
    work: Path
    inputs: dict[str, Any]
    place: str = "torch-minify--1-1-0"
    seen: set[tuple[int, str]] = field(default_factory=set)

    @property
    def here(self) -> Path:
        """The job's own directory, from outside."""
        return self.work / "r" / "r" / self.place

    @property
    def result(self) -> Path:
        """The result directory, from outside."""
        return self.here / "results" / "result-0"

    def step(self, name: str) -> subprocess.Popen[bytes]:
        """Start the script of the step called `name`; its output goes to one file."""
        step = _STEPS[name]
        script = self.work / "_temp" / f"{uuid.uuid4()}.sh"
        script.write_text(step["run"], encoding="utf-8")
        script.chmod(0o644)
        values = {
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "ACTIONS_RUNTIME_TOKEN": "a-secret",
            "GITHUB_WORKSPACE": "/__w/r/r",
            "PLACE": self.place,
        }
        values |= {key: self._value(str(text)) for key, text in step.get("env", {}).items()}
        names = [word for key in values for word in ("-e", key)]
        words = ["docker", "exec", "-i", "--workdir", "/__w/r/r", *names, self.name]
        words += ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", f"/__w/_temp/{script.name}"]
        with self.log.open("ab") as log:
            return subprocess.Popen(words, env={**os.environ, **values}, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)

    @property
    def log(self) -> Path:
        """What the steps have printed."""
        return self.work.parent / "log.txt"

    def run(self, name: str, limit: float = 900.0) -> int:
        """The exit status of the step called `name`; meanwhile it is seen which accounts run what."""
        process = self.step(name)
        until = time.monotonic() + limit
        while process.poll() is None:
            assert time.monotonic() < until, self.log.read_text(errors="replace")[-3000:]
            self.look()
            time.sleep(0.5)
        return process.returncode

    def cancel(self, process: subprocess.Popen[bytes]) -> None:
        """What the runner does to the client of a step's `process`."""
        for number, patience in ((signal.SIGINT, 7.5), (signal.SIGTERM, 2.5), (signal.SIGKILL, 10.0)):
            process.send_signal(number)
            try:
                process.wait(patience)
            except subprocess.TimeoutExpired:
                continue
            return

    def look(self) -> dict[int, tuple[int, str]]:
        """The processes in the container: by number, the account and the words."""
        listed = docker("top", self.name, "-eo", "pid,uid,args", check=False).stdout.splitlines()[1:]
        rows = [line.split(None, 2) for line in listed]
        found = {int(row[0]): (int(row[1]), row[2] if len(row) > 2 else "") for row in rows}
        self.seen.update(found.values())
        return found

    def _value(self, text: str) -> str:
        def value(match: re.Match[str]) -> str:
            place, _, name = match[1].partition(".")
            known = {"env": {"PLACE": self.place}, "matrix": {"index": 0}, "inputs": _INPUTS | self.inputs}
            if match[1].startswith("needs.gate.outputs.request-sha256 "):
                return ""
            return str(known[place][name])

        return _EXPRESSION.sub(value, text)


@contextmanager
def job(
    image: str, where: Path, script: str | dict[str, Any], options: tuple[str, ...] = (), owner: int = RUNNER, **inputs: Any
) -> Iterator[Job]:
    """A job for the program `script`, or for another request, in a container of `image`, made with `options` besides the runner's own.

    `where` is an empty directory; `owner` is the account of the runner, which owns its work directory; `inputs` are those of the workflow.
    """
    work = where / "_work"
    made = Job(f"tried-{uuid.uuid4().hex[:12]}", work, {key.replace("_", "-"): value for key, value in inputs.items()})
    for path in (work / "r/r", work / "_temp/_github_home", work / "_temp/_github_workflow", work / "_tool"):
        path.mkdir(parents=True)
    for folder, directories, files in os.walk(work):
        for name in (".", *directories, *files):
            os.chown(os.path.join(folder, name), owner, owner)
    home = work / "_temp/_github_home"
    engine = os.environ.get("DOCKER_HOST", "").removeprefix("unix://") or "/var/run/docker.sock"
    mounts = [
        (work, "/__w"),
        (home, "/github/home"),
        (work / "_temp/_github_workflow", "/github/workflow"),
        (engine, "/var/run/docker.sock"),
    ]
    volumes = [word for source, target in mounts for word in ("-v", f"{source}:{target}")]
    words = [
        "--name",
        made.name,
        "--workdir",
        "/__w/r/r",
        "--network",
        "none",
        *options,
        "-e",
        "HOME=/github/home",
        "-e",
        "GITHUB_ACTIONS=true",
        "-e",
        "CI=true",
    ]
    docker("create", *words, *volumes, "--entrypoint", "tail", image, "-f", "/dev/null")
    try:
        docker("start", made.name)
        # as actions/checkout and actions/download-artifact do, which run in the container, under its account
        take = (
            f"mkdir -p {made.place}/checkout && echo 'of the repository' > {made.place}/checkout/README && cat > {made.place}/request.json"
        )
        docker("exec", "-i", made.name, "sh", "-c", take, input=json.dumps([request(script) if isinstance(script, str) else script]))
        yield made
    finally:
        docker("rm", "--force", made.name, check=False)
        shutil.rmtree(work, ignore_errors=True)
