"""Forks that wait with the GPU started. The GPU is a stand-in here: a module that is there once it was started."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from bot.inside.protocol import CUDA_ARCH, Question, Task, encode
from bot.inside.standby import suits

SERVE = """
import sys
from bot.inside import server, standby, warm, worker

def start():
    {start}
    sys.modules["gpu"] = sys

standby._start_gpu = start
warm.runs_device = lambda: "gpu" in sys.modules
standby.alike = lambda: {gpus}
parent = server.Server(0, 1, resident={resident})
server.STANDBYS = 2
parent.serve()
"""
STARTS = "import sys\nsys.modules['gpu'] = sys"
STARTED = "import sys\nassert 'gpu' in sys.modules"
COLD = "import sys\nassert 'gpu' not in sys.modules"


class Parent:
    """A parent in a process of its own."""

    def __init__(self, process: subprocess.Popen[str], directory: Path) -> None:
        self.process, self.directory, self.asked = process, directory, 0

    def ask(self, program: str, task: Task = "run") -> dict[str, Any]:
        self.asked += 1
        question = Question(program, task, limit=50, id=self.asked, dir=str(self.directory / str(self.asked)))
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(encode(question) + "\n")
        self.process.stdin.flush()
        said: dict[str, Any] = json.loads(self.process.stdout.readline())
        outcome: dict[str, Any] = said["outcome"]
        return outcome

    def children(self) -> set[int]:
        """The processes below it, once they are as many as wait."""
        path = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        deadline = time.monotonic() + 20
        while not (found := path.read_text().split()) and time.monotonic() < deadline:
            time.sleep(0.05)
        return set(map(int, found))


@contextmanager
def serving(directory: Path, *, resident: bool = True, start: str = "pass", gpus: tuple[str, ...] = ()) -> Iterator[Parent]:
    command = [sys.executable, "-c", SERVE.format(resident=resident, start=start, gpus=gpus)]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root) as process:
        try:
            yield Parent(process, directory)
        finally:
            assert process.stdin is not None
            process.stdin.close()


def test_forks_wait_once_a_program_used_the_gpu(tmp_path: Path) -> None:
    with serving(tmp_path) as parent:
        assert parent.ask(COLD)["status"] == "ok"
        assert parent.ask(STARTS)["device"] is True
        for _ in range(3):
            assert parent.ask(STARTED)["status"] == "ok"


def test_forks_wait_from_the_first_program_on_that_names_the_gpu(tmp_path: Path) -> None:
    with serving(tmp_path) as parent:
        assert parent.ask(COLD + "\nwhere = 'cuda'")["status"] == "ok"
        assert parent.children()
        assert parent.ask(STARTED)["status"] == "ok"


def test_none_waits_for_a_control(tmp_path: Path) -> None:
    """It may be asked while the program runs, whose memory the GPU's is."""
    with serving(tmp_path) as parent:
        assert parent.ask(COLD + "\nwhere = 'cuda'", "control")["calls"] == 0
        assert parent.ask(COLD)["status"] == "ok"


def test_none_waits_for_a_gpu_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CUDA_ARCH, "90")
    with serving(tmp_path) as parent:
        assert parent.ask(COLD + "\nwhere = 'cuda'")["status"] == "ok"
        assert parent.ask(COLD)["status"] == "ok"


def test_each_answers_one_question(tmp_path: Path) -> None:
    mark = "import sys\nassert 'mark' not in sys.modules\nsys.modules['mark'] = sys\n"
    with serving(tmp_path) as parent:
        parent.ask(STARTS)
        assert [parent.ask(mark + STARTED)["status"] for _ in range(4)] == ["ok"] * 4


def test_several_gpus_take_turns(tmp_path: Path) -> None:
    # by a name that does not speak of the environment: a script that does is asked of a plain fork
    text = "import os, sys\nassert 'gpu' in sys.modules\nraise SystemExit(int(os.getenv('CUDA_VISIBLE_DEVICES')))"
    with serving(tmp_path, gpus=("3", "5")) as parent:
        parent.ask(STARTS)
        seen = [parent.ask(f"# {number}\n{text}") for number in range(4)]
        assert [answer["exit"] for answer in seen] == [3, 5, 3, 5]


def test_a_script_that_names_one_of_several_gpus_gets_them_all(tmp_path: Path) -> None:
    with serving(tmp_path, gpus=("3", "5")) as parent:
        parent.ask(STARTS)
        assert parent.ask(COLD + "\nwhere = 'cuda:1'")["status"] == "ok"
        assert parent.ask(STARTED + "\nwhere = 'cuda:0'")["status"] == "ok"
    with serving(tmp_path / "one") as parent:
        parent.ask(STARTS)
        assert parent.ask(STARTED + "\nwhere = 'cuda:1'")["status"] == "ok"


def test_where_no_gpu_is_seen_none_waits(tmp_path: Path) -> None:
    with serving(tmp_path, resident=False) as parent:
        parent.ask(STARTS)
        assert parent.ask(COLD)["status"] == "ok"


def test_what_may_set_up_the_gpu_itself_gets_one_that_has_not_started_it(tmp_path: Path) -> None:
    with serving(tmp_path) as parent:
        parent.ask(STARTS)
        assert parent.ask(COLD + "\nimport os\nos.environ['CUDA_LAUNCH_BLOCKING'] = '1'")["status"] == "ok"
        assert parent.ask(STARTED)["status"] == "ok"


@pytest.mark.parametrize(
    "text", ["torch.cuda.memory.change_current_allocator(a)", "os.putenv('A', 'b')", "os.fork()", "import multiprocessing"]
)
def test_programs_that_do_not_suit(text: str) -> None:
    assert not suits(Question(text, limit=1))
    assert suits(Question("import torch\ntorch.ones(1, device='cuda')", limit=1))


def test_where_the_gpu_cannot_be_started_plain_forks_answer(tmp_path: Path) -> None:
    """The question that met it is the machine's to answer, and is asked again by whoever asked."""
    with serving(tmp_path, start="raise RuntimeError('full')") as parent:
        parent.ask(STARTS)
        assert parent.ask(COLD)["status"] == "infra"
        statuses = [parent.ask(COLD)["status"] for _ in range(4)]
        # the other one that was waiting by then
        assert statuses.count("infra") <= 1
        assert statuses[-2:] == ["ok", "ok"]


def test_closing_leaves_nobody(tmp_path: Path) -> None:
    with serving(tmp_path) as parent:
        parent.ask(STARTS)
        waiting = parent.children()
        assert waiting
    deadline = time.monotonic() + 10
    while any(Path(f"/proc/{pid}").exists() for pid in waiting) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not [pid for pid in waiting if Path(f"/proc/{pid}").exists()]
