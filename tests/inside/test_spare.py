"""A site in which a device's runtime runs before we do: no question is a fork of the parent then."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bot.failure.outcome import Outcome
from bot.inside.protocol import Question
from bot.workers.pool import Pool
from tests.probes import probed

# A plug-in as makers of accelerators ship one: torch loads it while it is imported, and it starts its runtime.
PLUGIN = """
    import types
    import torch

    def autoload():
        torch.utils.rename_privateuse1_backend("made_up")
        device = types.ModuleType("torch.made_up")
        device.is_initialized = lambda: True
        device.is_available = lambda: False
        device.device_count = lambda: 0
        torch._register_device_module("made_up", device)
"""


def ask(pool: Pool, body: str, **more: Any) -> Outcome:
    return pool.ask(Question(textwrap.dedent(body), **{"limit": 30.0, **more}))[0]


def plugged_pool(directory: Path) -> Pool:
    """A pool whose parent must not fork."""
    site = directory / "site"
    facts = site / "made_up_plugin-1.0.dist-info"
    facts.mkdir(parents=True)
    (site / "made_up_plugin.py").write_text(textwrap.dedent(PLUGIN))
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: made-up-plugin\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text("[torch.backends]\nmade_up = made_up_plugin:autoload\n")
    pool = Pool(sys.executable, probed(directory), directory / "workers.log")
    # only for its parent: the pool that all tests share may start later
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(site))
        pool.start()
    return pool


@pytest.fixture(scope="module")
def plugged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    with plugged_pool(tmp_path_factory.mktemp("plugged")) as pool:
        yield pool


def test_a_question_is_no_fork_of_a_parent_with_a_device(plugged: Pool) -> None:
    body = """
        import gc, pathlib, torch
        assert torch.made_up.is_initialized() and gc.isenabled()
        words = pathlib.Path("/proc/self/cmdline").read_text().split("\\0")
        assert "spare" in words, words
    """
    outcome = ask(plugged, body)
    assert outcome.status == "ok", outcome.text


def test_a_question_is_a_fork_where_no_device_runs(pool: Pool) -> None:
    body = "import pathlib\nassert 'server' in pathlib.Path('/proc/self/cmdline').read_text().split('\\0')"
    outcome = ask(pool, body)
    assert outcome.status == "ok", outcome.text


def test_a_compile_fails_there_as_it_does_anywhere(plugged: Pool) -> None:
    body = """
        import torch

        @torch.compile(fullgraph=True)
        def f(x):
            if x.sum() > 0:
                return x
            return -x

        f(torch.ones(3))
    """
    outcome = ask(plugged, body, limit=60.0)
    assert outcome.status == "raised", outcome.text
    assert "Data-dependent branching" in outcome.text


@pytest.mark.parametrize(
    ("body", "more", "status"),
    [
        ("import os; os._exit(7)", {}, "exit"),
        ("import ctypes; ctypes.string_at(0)", {}, "signal"),
        ("import time; time.sleep(600)", {"limit": 0.5}, "timeout"),
        ("bytearray(1 << 45)", {}, "memory"),
        pytest.param("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", {}, "signal", marks=pytest.mark.all),
    ],
)
def test_how_a_question_ends_is_told(plugged: Pool, body: str, more: dict[str, Any], status: str) -> None:
    outcome = ask(plugged, body, **more)
    assert outcome.status == status, outcome.text


def test_the_limit_counts_from_where_the_process_is_warm(plugged: Pool) -> None:
    """Two at once: the second one's process begins to import when it is asked."""
    asked = [plugged.submit(Question("print('here')", limit=3.0)) for _ in range(2)]
    outcomes = [one.future.result(90)[0] for one in asked]
    assert [outcome.status for outcome in outcomes] == ["ok", "ok"]
    assert all(outcome.seconds < 3.0 for outcome in outcomes)


def test_questions_longer_than_a_pipe_holds(plugged: Pool) -> None:
    assert ask(plugged, f"text = {'x' * 300_000!r}\nassert len(text) == 300_000").status == "ok"


def test_a_process_that_dies_before_its_question_is_the_machine_s_fault(plugged: Pool) -> None:
    body = """
        import os, pathlib, time
        # the process that waits for the next question: our parent's other child, which it starts when it has given us ours
        children = pathlib.Path(f"/proc/{os.getppid()}/task/{os.getppid()}/children")
        while not (others := {int(pid) for pid in children.read_text().split()} - {os.getpid()}):
            time.sleep(0.01)
        other, = others
        raise RuntimeError(f"process {other} waits")
    """
    said = re.search(r"process (\d+) waits$", ask(plugged, body).text.rstrip())
    assert said is not None
    # from here: a program may not send signals to what is beside it
    os.kill(int(said[1]), signal.SIGKILL)
    assert ask(plugged, "pass").status == "infra"
    assert ask(plugged, "pass").status == "ok"


# Run apart: a server ends whatever else its process has for children.
LATE = """
    import os, subprocess, sys, time
    from bot.inside import server
    from bot.inside.protocol import Question

    class Sleeper:
        def __init__(self):
            self.output, output = os.pipe()
            self.result, result = os.pipe()
            command = ["sh", "-c", f"sleep 0.4; echo > /proc/self/fd/{result}; sleep 600"]
            self.process = subprocess.Popen(command, stdout=output, pass_fds=[result], start_new_session=True)
            self.pid = self.process.pid
            os.close(output)
            os.close(result)

        def ask(self, question):
            pass

    server.WARM, server.Spare = float(sys.argv[1]), Sleeper
    serving = server.Server(0, 1, forks=False)
    serving.start(Question("", limit=600, id=1, dir="."))
    while serving.children:
        serving.watch()
        time.sleep(0.01)
    os.killpg(serving.spare.pid, 9)
"""


@pytest.mark.parametrize("warm", ["0.1", "1"])
def test_one_that_is_not_warm_in_time_answers_for_nothing(warm: str) -> None:
    """Also where its sign is there by then, and nobody has read it."""
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-c", textwrap.dedent(LATE), warm]
    run = subprocess.run(command, capture_output=True, text=True, cwd=root, timeout=60)
    assert json.loads(run.stdout)["outcome"]["status"] == "infra", run.stderr


def test_closing_leaves_nobody(tmp_path: Path) -> None:
    report = tmp_path / "pids"
    body = f"""
        import os, pathlib, time
        children = pathlib.Path(f"/proc/{{os.getppid()}}/task/{{os.getppid()}}/children")
        while len(children.read_text().split()) < 2:
            time.sleep(0.01)
        pathlib.Path({str(report)!r}).write_text(f"{{os.getppid()}} {{children.read_text()}}.")
        time.sleep(600)
    """
    pool = plugged_pool(tmp_path)
    asked = pool.submit(Question(textwrap.dedent(body), limit=600.0))
    while not (report.exists() and report.read_text().endswith(".")):
        time.sleep(0.05)
    pool.close()
    assert asked.future.result(5)[0].status == "infra"
    pids = [int(pid) for pid in report.read_text().rstrip(".").split()]
    assert len(pids) == 3
    deadline = time.monotonic() + 5
    while any(Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]
