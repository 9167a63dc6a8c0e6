"""The steps of the job that minifies which are scripts, run as the runner would run them, where act's host mode shows nothing.

In a job container a step is `docker exec -i`, which passes no signal on (moby#35703; tried with Docker 20.10: neither SIGINT nor SIGTERM
reached the step). So a cancel ends that client and leaves the program: here a session of its own stands for the container.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.workflows.workflow_files import workflow

STEPS = {step["name"]: step for step in workflow("minify.yml")["jobs"]["minify"]["steps"]}
END = "End it, where the runner's signal went no further than docker exec"
# Hands on what it has and ends, some time after it was told to.
PROGRAM = """#!/bin/bash
trap 'sleep 1; echo saved > "$PLACE/results"; exit 0' TERM
echo begun > "$PLACE/begun"
while :; do sleep 0.1; done
"""


def script(name: str, where: Path) -> subprocess.Popen[bytes]:
    """A step, as `shell: bash` runs it."""
    (where / "step.sh").write_text(STEPS[name]["run"], encoding="utf-8")
    environment = {"PATH": f"{where}/bin{os.pathsep}{os.environ['PATH']}", "PLACE": "place"}
    return subprocess.Popen(
        ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "step.sh"], cwd=where, env=environment, start_new_session=True
    )


@pytest.fixture
def where(tmp_path: Path) -> Path:
    (tmp_path / "bin").mkdir()
    (tmp_path / "place").mkdir()
    program = tmp_path / "bin/torch-minify-action"
    program.write_text(PROGRAM, encoding="utf-8")
    program.chmod(0o755)
    return tmp_path


def test_a_cancel_reaches_the_program_and_is_waited_for(where: Path) -> None:
    running = script("Minimize", where)
    try:
        for _ in range(200):
            if (where / "place/begun").exists():
                break
            time.sleep(0.05)
        # the noted number is the program's own: nothing stands between
        assert int((where / "place/pid").read_text()) == running.pid
        ending = script(END, where)
        # reaped, as the init of a container would
        assert running.wait(30) == 0
        assert ending.wait(30) == 0
        assert (where / "place/results").read_text() == "saved\n"
    finally:
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGKILL)


def test_a_cancel_before_it_began_ends_nothing(where: Path) -> None:
    assert script(END, where).wait(30) == 0
    (where / "place/pid").write_text("99999999\n")
    assert script(END, where).wait(30) == 0


def test_the_order_of_the_last_steps() -> None:
    """The program is ended before its result is handed on, and that is done before it is removed."""
    names = list(STEPS)
    assert names[-3:] == [END, "Hand the result on", "Leave nothing behind"]
    assert [STEPS[name]["if"] for name in names[-3:]] == ["cancelled()", "always()", "always()"]


def test_nothing_is_left(where: Path) -> None:
    (where / "place/checkout").mkdir()
    (where / "place/checkout/-rf").write_text("")
    (where / "other").write_text("")
    assert script("Leave nothing behind", where).wait(30) == 0
    assert not (where / "place").exists()
    assert (where / "other").exists()
