"""The set-ups that repositories have, each from the comment or the red run to the answer: a row is what is written and what comes of it.

Images are not among them: act has none in host mode, and `scripts/try-container` has those rows. Programs that the set-ups start are
scripts that say what they were asked for. Checked against the help of uv 0.13.8 (`uv venv --seed [PATH]`, `uv pip install --python --index
--prerelease`, `uv run [OPTIONS] [COMMAND]`) and by a run of tox 4.67 (`tox exec -e ENV -- COMMAND`). Kinder than those: nothing is
installed, and no option is refused.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.action.github.emulator import REPO, Emulator, encoded
from tests.workflows.act_harness import MACHINE, Machine, Ran, run, walk
from tests.workflows.test_act import CODE, red
from tests.workflows.workflow_files import TOOLS, trigger, workflow

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not (TOOLS / "stamp").exists(), reason="scripts/setup-tools has not run")]

TEST = "tests/test_a.py::test_b"
INDEX = trigger(workflow("minify.yml"))["workflow_call"]["inputs"]["torch-index"]["default"]
PYTHON = sys.executable
UV = f"""#!/bin/bash
echo "uv was asked for: $*"
case "$1 $2" in
    venv*) mkdir -p "${{@: -1}}/bin" && ln -s {PYTHON} "${{@: -1}}/bin/python" ;;
    run*) while [ "$1" != python ]; do shift; done; exec "$@" ;;
esac
"""
TOX = """#!/bin/bash
echo "tox was asked for: $*"
while [ "$1" != -- ]; do shift; done
shift
exec "$@"
"""
# What a launcher starts: asked by `-c CODE FILE` for its own path, it writes that. A program of everybody's, unlike the tests' interpreter.
OTHER = "/of-the-launcher/bin/python"
LAUNCHED = f"""#!/bin/sh
[ "$1" = -c ] && printf %s {OTHER} > "$3"
"""


@dataclass(frozen=True)
class Row:
    """What somebody writes behind `/minify`, with these `inputs` of the workflow on that machine; and what comes of it.

    The program sees `arguments`, `environment` (None: it lacks that variable) and the files `here`; `log` is in the log of its job.
    """

    said: str = ""
    inputs: dict[str, str] = field(default_factory=dict)
    machine: Machine = MACHINE
    arguments: tuple[str, ...] = ()
    environment: dict[str, str | None] = field(default_factory=dict)
    here: tuple[str, ...] = ("checked-out.txt",)
    log: tuple[str, ...] = ()


def of_a_test(command: str, *arguments: str, **more: Any) -> Row:
    """A test of the repository, run by that `test-command`, in the directory `x` if need be."""
    made = {"setup": "mkdir -p x && touch x/inner.txt", "test-command": command} | more.pop("inputs", {})
    return Row(f"--test {TEST}", made, arguments=arguments or (f"--command=pytest {TEST}",), **more)


INNER = ("inner.txt",)
RUN: dict[str, Row] = {
    "image: none": Row(arguments=("--budget=1800s",)),
    "a nightly": Row(
        "--torch-version nightly", machine=Machine(programs={"uv": UV}), log=(f"--index {INDEX}/nightly/cpu --prerelease allow torch",)
    ),
    "a version with its build": Row(
        "--torch-version 2.13.0+cu126", machine=Machine(programs={"uv": UV}), log=(f"--index {INDEX}/cu126 torch==2.13.0+cu126",)
    ),
    "a mirror of the index": Row(
        "--torch-version 2.13.0+cpu",
        {"torch-index": "https://mirror.invalid/whl/"},
        Machine(programs={"uv": UV}),
        log=("--index https://mirror.invalid/whl/cpu torch==2.13.0+cpu",),
    ),
    "a release and a Python": Row(
        "--torch-version 2.12.0 --python-version 3.11",
        machine=Machine(programs={"uv": UV}),
        log=("--seed --python 3.11", "python torch==2.12.0"),
    ),
    "cd and a variable": of_a_test("cd x && VAR='1 2' pytest {nodeid}", environment={"VAR": "1 2"}, here=INNER),
    "a shell": of_a_test("bash -lc 'cd x && VAR=1 python -m pytest {nodeid}'", f"--command=python -m pytest {TEST}", here=INNER),
    "uv run": of_a_test(
        "cd x && uv run --extra test pytest {nodeid}",
        f"--python={OTHER}",
        machine=Machine(programs={"uv": UV, "python": LAUNCHED}),
        here=INNER,
        log=("uv was asked for: run --extra test python -c",),
    ),
    "tox": of_a_test(
        "tox -e py -- -x {nodeid}",
        f"--command=pytest -x {TEST}",
        f"--python={OTHER}",
        machine=Machine(programs={"tox": TOX, "python": LAUNCHED}),
        log=("tox was asked for: exec -e py -- python -c",),
    ),
    "working-directory": of_a_test("pytest {nodeid}", inputs={"working-directory": "x"}, here=INNER),
    "env": Row(inputs={"env": "ONE=1\nTWO=a b=c\n"}, environment={"ONE": "1", "TWO": "a b=c"}),
    "pass-env": Row(
        inputs={"pass-env": "PIP_INDEX_URL, HF_ENDPOINT"},
        machine=Machine({"PIP_INDEX_URL": "https://mirror.invalid/simple", "HF_ENDPOINT": "https://hf.invalid", "OTHER": "1"}),
        environment={"PIP_INDEX_URL": "https://mirror.invalid/simple", "HF_ENDPOINT": "https://hf.invalid", "OTHER": None},
    ),
    "no pass-env": Row(machine=Machine({"PIP_INDEX_URL": "https://mirror.invalid/simple"}), environment={"PIP_INDEX_URL": None}),
    "submodules": Row(inputs={"submodules": "recursive"}, here=("asked.txt", "checked-out.txt")),
    "lfs": Row(inputs={"lfs": "true"}, machine=Machine(programs={"git-lfs": "#!/bin/sh\n"}), here=("asked.txt", "checked-out.txt")),
}


@pytest.fixture(scope="module")
def forge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    with Emulator(tmp_path_factory.mktemp("emulator")) as running:
        yield running


def minified(tmp_path: Path, forge: Emulator, said: str, machine: Machine, inputs: dict[str, str]) -> tuple[Ran, str]:
    """The run of a comment, and its one answer."""
    code = "" if "--test" in said else "\n\n" + CODE.format(result="lowering")
    event = forge.commented(forge.issue("It fails."), f"/minify {said}{code}")
    ran = run(tmp_path / "act", "issue_comment", event, forge.url, "on-comment.yml", machine, **inputs)
    (answer,) = forge.ours(event["issue"]["number"])
    return ran, answer


# Rows that differ little from another one are tried by `--all`.
LIKE_OTHERS = {"a mirror of the index", "a release and a Python", "a shell", "no pass-env", "a variable that is not set"}
LIKE_OTHERS |= {"what takes a shell", "outside of the checkout"}


def named(rows: Iterable[str]) -> list[Any]:
    return [pytest.param(name, marks=[pytest.mark.all] if name in LIKE_OTHERS else []) for name in rows]


@pytest.mark.parametrize("name", named(RUN))
def test_it_is_minimized(tmp_path: Path, forge: Emulator, name: str) -> None:
    row = RUN[name]
    ran, answer = minified(tmp_path, forge, row.said, row.machine, row.inputs)
    assert "### Minimized" in answer, ran.log
    assert ran.status == 0, ran.log
    seen = ran.seen(0)
    assert set(row.arguments) <= set(seen["arguments"])
    assert {name: seen["environment"].get(name) for name in row.environment} == row.environment
    assert tuple(sorted(seen["here"])) == row.here
    assert all(words in ran.job("minify 0") for words in row.log), ran.job("minify 0")
    if row.machine.programs.keys() & {"uv"} and "--torch-version" in row.said:
        (python,) = (word for word in seen["arguments"] if word.startswith("--python="))
        assert python.endswith("/venv/bin/python")


# What the engine, or the machine, would refuse hours later: the gate says so at once.
REFUSED: dict[str, tuple[str, dict[str, str], str]] = {
    "no Python program": (f"--test {TEST}", {"test-command": "make {nodeid}"}, "is no Python program"),
    "what takes a shell": (f"--test {TEST}", {"test-command": "pytest {nodeid} | tee log"}, "which takes a shell"),
    "outside of the checkout": (f"--test {TEST}", {"test-command": "cd .. && pytest {nodeid}"}, "outside of the checkout"),
    "a budget beyond the job's time": ("--budget 6h", {}, "do not fit into a job that is ended after 120"),
    "an input that is none of its words": ("", {"stage": "fast"}, "input stage 'fast'"),
    "a secret among the variables": ("", {"env": "HF_TOKEN=abc"}, "'HF_TOKEN' sounds like a secret"),
    "a name that no artifact can have": ("", {"name": "GPU"}, "input name 'GPU'"),
    "a variable that is not set": ("", {"runner": "", "hosted-runner": ""}, "input runner-label '[]'"),
    "no such version": ("--torch-version 2.13.0;x", {}, "torch-version"),
}


@pytest.mark.parametrize("name", named(REFUSED))
def test_it_is_refused_at_once(tmp_path: Path, forge: Emulator, name: str) -> None:
    said, inputs, words = REFUSED[name]
    ran, answer = minified(tmp_path, forge, said, MACHINE, inputs)
    assert words in answer, ran.log
    assert "abc" not in answer
    assert not ran.job("minify 0")
    assert not ran.job("report")


def test_a_machine_that_lacks_torch_minify(tmp_path: Path, forge: Emulator) -> None:
    """As a runner that is a service, whose PATH is another than that of whoever installed it."""
    event = forge.commented(forge.issue("It fails."), "/minify\n\n" + CODE.format(result="lowering"))
    failed = {"id": 1, "name": "minify / minify 0", "status": "completed", "conclusion": "failure", "runner_name": "gpu-1"}
    steps = [{"name": step["name"], "conclusion": "success", "number": 1} for step in workflow("minify.yml")["jobs"]["minify"]["steps"][:3]]
    steps[-1]["conclusion"] = "failure"
    # of the run that act takes every run for; what GitHub says of it is said here, since act tells nobody
    forge.add(runs=[{"id": 1, "head_sha": "d" * 40, "status": "in_progress", "conclusion": None, "jobs": [failed | {"steps": steps}]}])
    ran = run(tmp_path / "act", "issue_comment", event, forge.url, "on-comment.yml", Machine(has_ours=False))
    assert "Failure - Main Look for torch-minify" in ran.job("minify 0"), ran.log
    (answer,) = forge.ours(event["issue"]["number"])
    assert "there was no torch-minify-action on the PATH" in answer, ran.log


def test_what_a_machine_that_lacks_torch_minify_says() -> None:
    """The step itself: act may lose the words of one that ends within a few milliseconds."""
    (step,) = [one for one in workflow("minify.yml")["jobs"]["minify"]["steps"] if one.get("name") == "Look for torch-minify"]
    bash = shutil.which("bash")
    assert bash is not None
    ran = subprocess.run([bash, "-e", "-c", step["run"]], env={"PATH": "/nowhere"}, capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert ran.stdout == "::error::There is no torch-minify-action on the PATH of this job: /nowhere\n"


def test_two_calls_in_one_run(tmp_path: Path, forge: Emulator) -> None:
    """For cpu and gpu: each has its own comment, its own artifacts, its own place on a machine that both have."""
    call = """
  {name}:
    permissions: {{actions: write, contents: read, issues: write, pull-requests: write}}
    uses: maintainer/torch-minify/.github/workflows/minify.yml@{commit}
    with: {{runner: ubuntu-latest, image: none, name: {name}, env: 'WHICH={name}'}}"""
    commit = "1234567890" * 4
    calls = "".join(call.format(name=name, commit=commit) for name in ("cpu", "gpu"))
    text = f"name: both\non:\n  issue_comment:\n    types: [created]\npermissions: {{}}\njobs:{calls}\n"
    event = forge.commented(forge.issue("It fails."), "/minify\n\n" + CODE.format(result="lowering"))
    ran = walk(tmp_path / "act", "issue_comment", event, forge.url, text, f"maintainer/torch-minify@{commit}")
    assert ran.status == 0, ran.log
    answers = forge.ours(event["issue"]["number"])
    assert sorted(answer.partition("-comment-")[0] for answer in answers) == ["<!-- torch-minify:cpu", "<!-- torch-minify:gpu"]
    assert all("### Minimized" in answer for answer in answers), ran.log
    assert {path.name for path in ran.artifacts.iterdir()} == {
        f"torch-minify-{name}-{what}" for name in ("cpu", "gpu") for what in ("request", "result-0")
    }
    assert [ran.seen(0, f"torch-minify-{name}")["environment"]["WHICH"] for name in ("cpu", "gpu")] == ["cpu", "gpu"]


def test_a_merge_queue(tmp_path: Path, forge: Emulator) -> None:
    """Its red run is answered on the pull request that it tried, whose number its branch has (GitHub's documentation of `merge_group`)."""
    main = forge.ask("GET", f"/repos/{REPO}/git/ref/heads/main")["object"]["sha"]
    forge.ask("POST", f"/repos/{REPO}/git/refs", ref="refs/heads/topic", sha=main)
    forge.ask("PUT", f"/repos/{REPO}/contents/x.py", message="x", content=encoded(b"x = 1\n"), branch="topic")
    pull = forge.ask("POST", f"/repos/{REPO}/pulls", title="x", head="topic", base="main")["number"]
    head = forge.ask("GET", f"/repos/{REPO}/commits/topic")["sha"]
    event = red(forge, 991, "pytest", event="merge_group", head_branch=f"gh-readonly-queue/main/pr-{pull}-{main}", head_sha=head)
    ran = run(tmp_path / "act", "workflow_run", event, forge.url, "on-red-ci.yml")
    (answer,) = forge.ours(pull)
    assert answer.count("Minimized") == 2, ran.log
    assert ran.seen(0)["here"] == {"checked-out.txt": f"{REPO} {head}\n"}
