"""Runs the workflows under act, in host mode, with small stand-ins for what needs a container or GitHub's own servers.

The workflows are the repository's own text with one change: a step `uses: $/.github/actions/light` becomes the same step with a
composite action, made from `.github/actions/light/action.yml`, that runs the same program with the same inputs. The actions of others are
replaced by `--local-repository`, the image of the job with the GPU by the machine itself, and the engine by recorded results.

Checked against actions/runner 2.336: `$/` is the repository and commit of the workflow that holds the step (ActionManager.cs), inputs of
a container action come as INPUT_ variables with their dashes, an empty image is no container (PipelineTemplateConverter.cs), a cancel is
SIGINT to the process of a step (ProcessInvoker.cs). Kinder than GitHub: host mode has no containers and no accounts, every run has the
number 1, and permissions are not enforced (tests/action/github/test_token.py compares them with what is asked).
actions/checkout leaves a file that says what was asked of it; what it fetches is not looked at. As the pinned one does, it wants git-lfs
on PATH where `lfs` is asked for.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.action.github.emulator import BOT, TOKENS
from tests.workflows.workflow_files import ROOT, TOOLS, load

HERE = Path(__file__).parent / "act"
TOKEN = TOKENS[BOT]
LIGHT = re.compile(r"(?<=uses: )\$/\.github/actions/light$", re.MULTILINE)
_STUBS = {
    "actions/checkout": (
        {"repository": "", "ref": "", "path": ".", "persist-credentials": "true", "submodules": "false", "lfs": "false"},
        (
            'mkdir -p "$A_PATH" && echo "$A_REPOSITORY $A_REF" > "$A_PATH/checked-out.txt"\n'
            # src/git-command-manager.ts of v6.0.2
            'if [ "$A_LFS" = true ] && ! command -v git-lfs; then echo "::error::Unable to locate executable file: git-lfs"; exit 1; fi\n'
            '[ "$A_SUBMODULES$A_LFS" = falsefalse ] || echo "submodules $A_SUBMODULES, lfs $A_LFS" > "$A_PATH/asked.txt"'
        ),
    ),
    "actions/upload-artifact": (
        {"name": "", "path": "", "if-no-files-found": "warn", "retention-days": "0", "include-hidden-files": "false", "overwrite": "false"},
        f'"{sys.executable}" "{HERE}/artifact.py" up',
    ),
    "actions/download-artifact": (
        {"name": "", "pattern": "", "path": "", "merge-multiple": "false"},
        f'"{sys.executable}" "{HERE}/artifact.py" down',
    ),
}


@dataclass(frozen=True)
class Ran:
    """What a run left."""

    status: int
    log: str
    artifacts: Path

    def job(self, name: str) -> str:
        """The lines of one job."""
        return "\n".join(line for line in self.log.splitlines() if re.match(rf"\[.*/{name}\s*\]", line))

    def result(self, index: int) -> dict[str, Any]:
        """What a request left behind."""
        return json.loads((self.artifacts / f"torch-minify-result-{index}/result-{index}/result.json").read_text(encoding="utf-8"))

    def seen(self, index: int, call: str = "torch-minify") -> dict[str, Any]:
        """What its program could see; `call` is how the names of its artifacts begin."""
        return json.loads((self.artifacts / f"{call}-result-{index}/result-{index}/seen.json").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Machine:
    """The machine that minifies: the `variables` of its runner, the texts of scripts on its PATH, and whether torch-minify is there.

    And of the hosted ones those that cannot begin, as where their image cannot be pulled: the modes `without_image`. The run is cancelled
    once so many programs as `cancelled_with` wait for that.
    """

    variables: Mapping[str, str] = field(default_factory=dict)
    programs: Mapping[str, str] = field(default_factory=dict)
    has_ours: bool = True
    without_image: tuple[str, ...] = ()
    cancelled_with: int = 0


MACHINE = Machine()


def run(where: Path, event_name: str, event: dict[str, Any], api_url: str, workflow: str, machine: Machine = MACHINE, **inputs: str) -> Ran:
    """Run one of the workflows on an event, against a GitHub at `api_url`."""
    repository = where / "repository"
    _workflows(repository, event["repository"]["full_name"], inputs)
    return _act(where, event_name, event, api_url, workflow, [], machine)


def walk(where: Path, event_name: str, event: dict[str, Any], api_url: str, text: str, called: str, machine: Machine = MACHINE) -> Ran:
    """Run a workflow that a newcomer wrote (`text`), in a repository with nothing else; it calls ours under the name `called`."""
    ours, repository = where / "ours", where / "repository"
    _workflows(ours, "torch-minify/torch-minify", {})
    (repository / ".github/workflows").mkdir(parents=True)
    (repository / ".github/workflows/minify.yml").write_text(text, encoding="utf-8")
    _committed(repository, event["repository"]["full_name"])
    return _act(where, event_name, event, api_url, "minify.yml", [f"{called}={ours}"], machine)


def _act(where: Path, event_name: str, event: dict[str, Any], api_url: str, workflow: str, more: list[str], machine: Machine) -> Ran:
    repository, artifacts, cache = where / "repository", where / "artifacts", where / "cache"
    for path in (artifacts, cache):
        path.mkdir(parents=True)
    light = _light(where / "light", machine.without_image)
    (where / "event.json").write_text(json.dumps(event), encoding="utf-8")
    replaced = [f"torch-minify/light@v0={light}", *_stubs(where / "stubs"), *more]
    # the accounts that a job of root gives to programs may come here, which they may not to pytest's own directories
    shared = Path(tempfile.mkdtemp(prefix="torch-minify-machine-"))
    path = [str(shared), *([str(programs(where / "bin"))] if machine.has_ours else []), os.environ["PATH"]]
    shared.chmod(0o755)
    for name, text in machine.programs.items():
        (shared / name).write_text(text, encoding="utf-8")
        (shared / name).chmod(0o755)
    status, log = _watched(
        [
            *(str(TOOLS / "venv/bin/act"), event_name, "-W", f".github/workflows/{workflow}", "-e", str(where / "event.json")),
            *("-P", "ubuntu-latest=-self-hosted", "-s", f"GITHUB_TOKEN={TOKEN}", "--env", f"GITHUB_API_URL={api_url}"),
            *("--env", f"ACT_ARTIFACTS={artifacts}", "--action-offline-mode", "--no-cache-server"),
            *(word for name, value in machine.variables.items() for word in ("--env", f"{name}={value}")),
            *(word for one in replaced for word in ("--local-repository", one)),
        ],
        repository,
        {"PATH": os.pathsep.join(path), "HOME": str(cache), "XDG_CACHE_HOME": str(cache)},
        machine.cancelled_with,
    )
    shutil.rmtree(shared)
    return Ran(status, log, artifacts)


def _watched(command: list[str], cwd: Path, env: dict[str, str], cancelled_with: int) -> tuple[int, str]:
    """The exit status of act and what it printed; cancelled where that is asked for."""
    act = subprocess.Popen(command, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert act.stdout is not None
    limit = threading.Timer(110, act.kill)
    limit.start()
    log, waiting = "", 0
    for line in act.stdout:
        log += line
        waiting += "waits for a cancel" in line
        if cancelled_with and waiting == cancelled_with:
            _cancel(act, Path(env["HOME"]))
            cancelled_with = 0
    limit.cancel()
    return act.wait(), log


def _cancel(act: subprocess.Popen[str], home: Path) -> None:
    """As GitHub cancels: SIGINT to the process of each step that runs; its job, and those behind it, are cancelled ones then."""
    for noted in home.rglob("torch-minify-*/pid"):
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(noted.read_text()), signal.SIGINT)
            until = time.monotonic() + 10
            while time.monotonic() < until:
                os.kill(int(noted.read_text()), 0)
                time.sleep(0.02)
    act.send_signal(signal.SIGINT)


def _workflows(repository: Path, full_name: str, inputs: dict[str, str]) -> None:
    """The repository's workflows, in a repository that act takes for the event's."""
    folder = repository / ".github/workflows"
    folder.mkdir(parents=True)
    for path in (ROOT / ".github/workflows").glob("*.yml"):
        text, count = LIGHT.subn("torch-minify/light@v0", path.read_text(encoding="utf-8"))
        assert count == text.count("uses: torch-minify/light@v0")
        if path.name in ("on-comment.yml", "on-red-ci.yml"):
            given = {"runner": "ubuntu-latest", "image": "none", **inputs}
            data = load(path)
            data["on"] = data.pop(True)
            data["jobs"]["minify"]["with"] = given
            text = yaml.safe_dump(data, sort_keys=False)
        (folder / path.name).write_text(text, encoding="utf-8")
    _committed(repository, full_name)


def _committed(repository: Path, full_name: str) -> None:
    commands = [
        ["init", "--quiet", "--initial-branch=main"],
        ["remote", "add", "origin", f"https://github.com/{full_name}"],
        ["add", "--all"],
        ["-c", "user.name=nobody", "-c", "user.email=nobody@example.invalid", "commit", "--quiet", "--message", "workflows"],
    ]
    for command in commands:
        subprocess.run(["git", *command], cwd=repository, check=True, capture_output=True)


def _light(where: Path, missing: tuple[str, ...]) -> Path:
    """The light action without its container. In the modes that are `missing` it fails before anything of ours begins."""
    action = load(ROOT / ".github/actions/light/action.yml")
    environment = {f"INPUT_{name.upper()}": f"${{{{ inputs.{name} }}}}" for name in action["inputs"]}
    outputs = {name: {**value, "value": f"${{{{ steps.it.outputs.{name} }}}}"} for name, value in action["outputs"].items()}
    missed = f'case $INPUT_MODE in {"|".join(missing) or "none"}) echo "::error::Docker pull failed with exit code 1"; exit 1 ;; esac'
    step = {"id": "it", "shell": "bash", "env": environment, "run": f'{missed}\nexec "{sys.executable}" -I -m bot.action.__main__'}
    _composite(where, {**action, "outputs": outputs}, step)
    return where


def _stubs(where: Path) -> list[str]:
    """Stand-ins for the actions that the workflows use, under the very commits that they name."""
    text = "".join(path.read_text(encoding="utf-8") for path in (ROOT / ".github/workflows").glob("*.yml"))
    found = []
    for name, (inputs, command) in _STUBS.items():
        folder = where / name
        environment = {f"A_{key.upper().replace('-', '_')}": f"${{{{ inputs.{key} }}}}" for key in inputs}
        action = {
            "name": name,
            "description": name,
            "inputs": {key: {"description": key, "default": value} for key, value in inputs.items()},
        }
        _composite(folder, action, {"shell": "bash", "env": environment, "run": command})
        found += [f"{name}@{commit}={folder}" for commit in sorted(set(re.findall(rf"{name}@([0-9a-f]{{40}})", text)))]
    return found


def _composite(where: Path, action: dict[str, Any], step: dict[str, Any]) -> None:
    where.mkdir(parents=True)
    # what it stands for has no steps of its own, which would be skipped in a run that was cancelled
    text = yaml.safe_dump({**action, "runs": {"using": "composite", "steps": [{**step, "if": "always()"}]}}, sort_keys=False)
    (where / "action.yml").write_text(text, encoding="utf-8")


def programs(where: Path, **edge: str) -> Path:
    """What the job with the GPU finds on its PATH: our program, with the engine replaced, and more of its edge as Python has it."""
    where.mkdir()
    engine = where / "engine"
    engine.write_text(
        f'#!/bin/sh\nACT_STORE="{where.parent}/artifacts" exec "{sys.executable}" "{HERE}/engine.py" "$@"\n', encoding="utf-8"
    )
    program = where / "torch-minify-action"
    program.write_text(
        f"#!{sys.executable} -I\nimport sys\nfrom bot.action.__main__ import Edge, main\n"
        f"sys.exit(main(Edge(engine=({str(engine)!r},), {', '.join(f'{name}={value}' for name, value in edge.items())})))\n",
        encoding="utf-8",
    )
    for path in (engine, program):
        path.chmod(0o755)
    shutil.copymode(engine, program)
    return where
