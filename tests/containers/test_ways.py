"""The containers in which the job that minifies can run: a request is minimized in each, in the layers that there are.

Run by `scripts/try-container`, which builds the images. A row is an image and what its container is given.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.containers.job_container import CLEAN, END, LEAST, MINIMIZE, PLAIN, RUNNER, Job, docker, job, request
from tests.workflows.workflow_files import ROOT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.skipif("TORCH_MINIFY_TRIED" not in os.environ, reason="scripts/try-container runs these, with the images that it builds"),
]
LIGHT, GPU, OWN = (f"torch-minify-{name}:tried" for name in ("light", "gpu", "own"))
PROGRAM = (ROOT / "examples/aot.py").read_text(encoding="utf-8")
# Slower still: a save comes every 15 s, and the search has to go on after the first that brings a repro.
LONG = (ROOT / "tests/e2e/cases/slow_pass.py").read_text(encoding="utf-8").replace("time.sleep(0.5)", "time.sleep(3)")
assert "time.sleep(3)" in LONG
# Of a container nobody may make namespaces, so there is no /tmp of one's own; the rest is up to the account and the kernel.
EVERYWHERE = {"no-capabilities", "no-new-privs", "landlock", "seccomp", "rlimits", "no-network"}
# In the setup, which is a stranger's too: our token, our process, the engine's socket.
LOOK = """
echo "account $(id -u)"
echo "tokens $(printenv | grep -c -i token || true)"
for path in /proc/1/environ /proc/*/environ; do
    if [ "$path" != "/proc/$$/environ" ] && tr '\\0' '\\n' < "$path" 2>/dev/null | grep -q "a-secre[t]"; then echo "READ $path"; fi
done
python3 - <<'END'
import socket
try:
    socket.socket(socket.AF_UNIX).connect("/var/run/docker.sock")
    print("REACHED the engine")
except OSError as error:
    print("engine:", error.strerror)
END
"""


@dataclass(frozen=True)
class Row:
    """A container: its image, what it is made with, and whether programs have accounts of their own there."""

    image: str
    options: tuple[str, ...] = ()
    accounts: bool = True


WAYS = {
    "our image": Row(GPU),
    "our image, fewer rights": Row(GPU, LEAST),
    "one's own image": Row(OWN),
    "one's own image, fewer rights": Row(OWN, LEAST),
    "one's own image, a user": Row(OWN, ("--user", str(RUNNER)), accounts=False),
    "our image, a user without rights": Row(GPU, PLAIN, accounts=False),
}


def layers(accounts: bool) -> set[str]:
    """What there is on this kernel: Landlock is asked, in a container, since an engine may keep it from programs."""
    said = docker(
        "run",
        "--rm",
        "--network",
        "none",
        "--entrypoint",
        "python",
        GPU,
        "-I",
        "-c",
        "from bot.sandbox import landlock as l; print(l.abi(), l.scopes_signals())",
    )
    abi, scopes = said.stdout.split()
    found = EVERYWHERE - ({"landlock"} if abi == "0" else set())
    return found | ({"uid"} if accounts else set()) | ({"landlock-signals"} if scopes == "True" else set())


def result_of(ran: Job) -> dict[str, Any]:
    path = ran.result / "result.json"
    assert path.exists(), ran.log.read_text(errors="replace")[-5000:]
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize("way", WAYS)
def test_a_request_is_minimized(way: str, tmp_path: Path, record_property: Any) -> None:
    row = WAYS[way]
    with job(row.image, tmp_path, PROGRAM, row.options, setup=LOOK) as ran:
        status = ran.run(MINIMIZE)
        log = ran.log.read_text(errors="replace")
        found = result_of(ran)
        assert (status, found["status"]) == (0, "minimized"), log[-5000:]
        assert found["reduction"]["ops_after"] == 1
        assert found["verification"]["same"] == found["verification"]["runs"] == 3
        assert set(found["sandbox"]) == layers(row.accounts), found["sandbox"]
        record_property("layers", " ".join(found["sandbox"]))
        # of what the runner gave the container, the setup sees nothing, and so does what leaves
        assert re.search(r"^tokens 0$", log, re.MULTILINE), log
        assert "READ" not in log
        assert "a-secret" not in log + "".join(path.read_text(errors="replace") for path in ran.result.rglob("*") if path.is_file())
        assert "REACHED" not in log or row.options == ("--user", str(RUNNER))
        accounts(ran, row, int(re.findall(r"^account (\d+)$", log, re.MULTILINE)[0]))
        assert ran.run(CLEAN) == 0
        gone(ran)


def accounts(ran: Job, row: Row, setup: int) -> None:
    """Ours, the setup's, the engine's and the programs' are what they should be."""
    engines = {uid for uid, words in ran.seen if " -m bot run " in words}
    programs = {uid for uid, words in ran.seen if "bot/inside/" in words}
    ours = {uid for uid, words in ran.seen if "torch-minify-action" in words or " -m bot.action" in words}
    assert len(engines) == 1, ran.seen
    assert programs, ran.seen
    if not row.accounts:
        assert {setup} | engines | programs | ours == {RUNNER}
        return
    assert ours == {0}
    drawn = {setup} | engines | programs
    assert len(drawn) == 2 + len(programs)
    assert not drawn & {0, RUNNER}
    # a process each: the capture, the workers' parent, those of the proof
    assert len(programs) > 2


def gone(ran: Job) -> None:
    """Nothing of the job is left: no process in the container, and in the work directory no file that the runner could not remove."""
    assert [words for _, words in ran.look().values()] == ["tail -f /dev/null"]
    assert not ran.here.exists()
    strangers = [path for path in ran.work.rglob("*") if path.lstat().st_uid != RUNNER and path.parent.name != "_temp"]
    assert strangers == []


# A repository whose package is below the checkout, and a test of it that needs a variable.
PACKAGE = """
mkdir -p python/its python/tests
echo 'SIZE = 2' > python/its/__init__.py
cat > python/pyproject.toml <<'END'
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"
[project]
name = "its"
version = "1"
[tool.setuptools]
packages = ["its"]
END
cat > python/tests/test_pool.py <<'END'
import os

import its
import torch


def test_pool():
    size = its.SIZE * int(os.environ["TIMES"])
    pool = torch.nn.FractionalMaxPool2d(0, output_size=(size, size))
    torch.compile(pool)(torch.randn(2, 8, 16, 16))
END
pip install --quiet --no-index --no-build-isolation -e ./python
"""


@pytest.mark.parametrize("way", ["our image", "our image, fewer rights", "our image, a user without rights"])
def test_a_test_of_a_package_that_the_setup_installed(way: str, tmp_path: Path) -> None:
    """As `test-command: cd python && TIMES=2 pytest {nodeid}` and `setup: pip install -e ./python` have it, without an index."""
    row = WAYS[way]
    wanted = request("") | {"script": None, "command": "TIMES=2 pytest tests/test_pool.py::test_pool", "directory": "python"}
    with job(row.image, tmp_path, wanted, row.options, setup=PACKAGE) as ran:
        status = ran.run(MINIMIZE)
        found = result_of(ran)
        assert (status, found["status"]) == (0, "minimized"), ran.log.read_text(errors="replace")[-5000:]
        assert found["input"]["taken_as"] == "command"
        assert found["reduction"]["ops_after"] == 1
        assert "import its" not in (ran.result / "repro.py").read_text(encoding="utf-8")
        assert ran.run(CLEAN) == 0
        gone(ran)


def test_the_checkout_finds_what_it_looks_for() -> None:
    """actions/checkout runs in the job's container: without git it takes no submodules, without git-lfs no `lfs`."""
    said = docker("run", "--rm", "--network", "none", "--entrypoint", "sh", GPU, "-c", "git --version && git-lfs --version").stdout
    assert said.startswith("git version")
    assert "git-lfs/" in said


def test_root_that_may_not_give_accounts_is_refused(tmp_path: Path) -> None:
    # of a runner that is root: else such a container could not even check out
    with job(GPU, tmp_path, PROGRAM, ("--cap-drop", "ALL"), owner=0) as ran:
        assert ran.run(MINIMIZE) == 2
        assert "may not start programs under another account" in ran.log.read_text()
        assert "may not start programs under another account" in result_of(ran)["reason"]


@pytest.mark.parametrize("way", ["our image", "one's own image, a user"])
def test_a_cancel_reaches_the_engine_and_the_best_is_posted(way: str, tmp_path: Path, record_property: Any) -> None:
    row = WAYS[way]
    with job(row.image, tmp_path, LONG, row.options) as ran:
        process = ran.step(MINIMIZE)
        # the first that was confirmed is on disk, and the search goes on
        until = time.monotonic() + 600
        while not (ran.result / "repro.py").exists():
            if process.poll() is not None or time.monotonic() > until:
                pytest.fail(ran.log.read_text(errors="replace")[-3000:])
            time.sleep(0.5)
        ran.cancel(process)
        assert any(" -m bot run " in words for _, words in ran.look().values()), (
            "the signal went further than it does under GitHub's runner"
        )
        began = time.monotonic()
        assert ran.run(END) == 0
        took = time.monotonic() - began
        record_property("seconds", f"{took:.1f}")
        assert took < 60
        assert [words for _, words in ran.look().values()] == ["tail -f /dev/null"]
        found = result_of(ran)
        assert found["ended_by"] == "interrupted"
        # what was confirmed by one fresh run is kept and shown, and not called minimized: that takes three
        assert (found["status"], found["verification"]["same"]) == ("error", 1), found["reason"]
        assert "interrupted after 1 of 3 fresh runs" in found["reason"]
        repro = (ran.result / "repro.py").read_text(encoding="utf-8")
        comment = posted(ran, tmp_path)
        assert ", interrupted" in comment
        assert repro.strip().splitlines()[-1] in comment
        assert ran.run(CLEAN) == 0
        gone(ran)


def posted(ran: Job, where: Path) -> str:
    """The comment that the job `report` would write."""
    file = where / "request.json"
    shutil.copy(ran.here / "request.json", file)
    words = [sys.executable, "-m", "bot", "report", "--dry-run", "--request", str(file), "--result", str(ran.here / "results")]
    done = subprocess.run(
        words, capture_output=True, text=True, cwd=ROOT, env={**os.environ, "GITHUB_REPOSITORY": "o/r"}, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "bot").mkdir()
    for name in ("bot/__init__.py", "json.py"):
        (tmp_path / name).write_text('raise SystemExit("the workspace was imported")\n')
    (tmp_path / "event.json").write_text("{}\n")
    (tmp_path / "request.json").write_text(json.dumps([request(PROGRAM)]))
    return tmp_path


def action(workspace: Path, image: str, *more: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """What the runner does with a container action, or docs/github.md with an image."""
    given = {"GITHUB_ACTIONS": "true", "ACTIONS_RUNTIME_TOKEN": "a-secret", **variables}
    words = [word for name, value in given.items() for word in ("--env", f"{name}={value}")]
    place = ("--network", "none", "--workdir", "/github/workspace", "--volume", f"{workspace}:/github/workspace")
    return docker("run", "--rm", *place, *more, *words, image, check=False)


def test_light_has_no_torch_and_imports_nothing_of_the_workspace(workspace: Path) -> None:
    docker(
        "run",
        "--rm",
        "--network",
        "none",
        "--entrypoint",
        "python",
        LIGHT,
        "-c",
        "import importlib.util as i; assert i.find_spec('torch') is None",
    )
    event = {"GITHUB_EVENT_NAME": "push", "GITHUB_EVENT_PATH": "/github/workspace/event.json"}
    ran = action(workspace, LIGHT, INPUT_MODE="gate", **{"INPUT_GITHUB-TOKEN": "none"}, **event)
    assert (ran.returncode, ran.stdout) == (0, "nothing\n"), ran.stderr


def test_the_command_of_the_documents(workspace: Path) -> None:
    """`docker run` by docs/github.md, in a workspace of another account: the result is that account's."""
    for path in (workspace / "checkout", workspace / "result"):
        path.mkdir()
    for path in (workspace, *workspace.rglob("*")):
        os.chown(path, 4321, 4321)
    inputs = {"INPUT_MODE": "minify", "INPUT_REQUEST_FILE": "request.json", "INPUT_CHECKOUT": "checkout", "INPUT_RESULT": "result"}
    ran = action(workspace, GPU, *LEAST, **inputs)
    found = json.loads((workspace / "result/result.json").read_text())
    assert found["status"] == "minimized", ran.stdout + ran.stderr
    assert set(found["sandbox"]) == layers(accounts=True)
    assert {path.lstat().st_uid for path in (workspace / "result").rglob("*")} == {4321}
    page = (ROOT / "docs/github.md").read_text(encoding="utf-8")
    assert all(word in page for word in LEAST), "docs/github.md has another command"


def test_without_a_gpu_that_is_said(workspace: Path) -> None:
    inputs = {"INPUT_MODE": "minify", "INPUT_REQUEST_FILE": "request.json", "INPUT_DEVICE": "cuda"}
    ran = action(workspace, GPU, *LEAST, **inputs)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "no GPU is visible: there is no /dev/nvidia*" in json.loads((workspace / "result/result.json").read_text())["reason"]
