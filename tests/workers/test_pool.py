"""The warm parent and its children: whatever a question does, the next one is answered."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any, get_args

import pytest

import bot.workers.pool as room
from bot.failure.outcome import Outcome
from bot.inside import own_time, protocol
from bot.inside.protocol import Facts, Question, Task
from bot.inside.server import STACKS
from bot.workers.pool import Pool, PoolError
from tests.inside.wire import misfit
from tests.probes import probed
from tests.processes import ended


def ask(pool: Pool, body: str, **more: Any) -> Outcome:
    return pool.ask(Question(textwrap.dedent(body), **{"limit": 30.0, **more}))[0]


REPRO = """
import torch

class Repro(torch.nn.Module):
    def forward(self, x):
        y = torch.relu(x)
        return torch.neg(y), y.shape[0]

torch.compile(Repro(), backend="eager")(torch.randn(3))
raise SystemExit(0)
"""


@pytest.mark.parametrize("task", get_args(Task))
def test_an_answer_is_what_the_protocol_declares(pool: Pool, tmp_path: Path, task: Task) -> None:
    outcome, facts = pool.ask(Question(REPRO, task, lines=(7,), save=str(tmp_path / "saved.pt2")))
    assert outcome.status == "ok", outcome.text
    assert misfit(facts, Facts) == ""
    found = {"shapes": "values", "localize": "first", "origins": "guesses", "frames": "frames", "control": "calls", "control_fp64": "calls"}
    assert found.get(task, "text") in facts


class TestChildren:
    """What a question may do to its own process."""

    def test_a_large_parallel_operation_runs(self, pool: Pool) -> None:
        """It hangs for ever in a child whose parent ran one: the OpenMP threads do not come along."""
        body = """
            import torch
            torch.set_num_threads(4)
            assert torch.ones(4_000_000).add(1).sum() == 8_000_000
        """
        outcome = ask(pool, body)
        assert outcome.status == "ok", outcome.text

    @pytest.mark.parametrize(("more", "status"), [("", "raised"), (".fill_(1)", "ok")])
    def test_a_control_that_has_to_repeat_itself_finds_other_bytes_in_uninitialized_memory(
        self, pool: Pool, more: str, status: str
    ) -> None:
        body = f"""
            import torch
            def f(x):
                return torch.empty_like(x){more}
            x = torch.ones(3)
            torch.testing.assert_close(torch.compile(f)(x), f(x), equal_nan=True)
        """
        assert ask(pool, body, task="control", repeats=True).status == status

    def test_compiled_code_draws_as_eager_where_that_is_asked(self, pool: Pool) -> None:
        body = "import torch._inductor.config as config\nassert config.fallback_random"
        assert ask(pool, body, as_eager=True).status == "ok"
        assert ask(pool, body).status == "raised"

    @pytest.mark.parametrize(
        ("body", "status", "code"),
        [
            ("print('x')", "ok", 0),
            ("raise SystemExit(3)", "exit", 3),
            ("raise SystemExit('words')", "exit", 1),
            ("import os; os._exit(7)", "exit", 7),
            ("def f(:", "raised", None),
            ("import sys; sys.stdout.close(); sys.stderr = None", "ok", 0),
            ("import sys; del sys.stdout", "ok", 0),
            ("bytearray(1 << 45)", "memory", None),
        ],
    )
    def test_how_a_script_ends(self, pool: Pool, body: str, status: str, code: int | None) -> None:
        outcome = ask(pool, body)
        assert (outcome.status, outcome.exit) == (status, code), outcome.text

    def test_an_exception_is_told_as_python_prints_it(self, pool: Pool) -> None:
        outcome = ask(pool, "def deep():\n    raise KeyError('k')\ndeep()")
        assert outcome.status == "raised"
        assert "repro.py\", line 2, in deep\n    raise KeyError('k')\nKeyError: 'k'" in outcome.text

    @pytest.mark.parametrize(("stop_after", "status"), [(None, "raised"), ("aot_autograd", "stopped")])
    def test_an_error_that_unittest_catches(self, pool: Pool, stop_after: str | None, status: str) -> None:
        body = """
            import unittest
            import torch

            class TestIt(unittest.TestCase):
                def test_it(self):
                    torch.compile(lambda x: x + 1, backend="inductor" if STOP else "eager")(torch.ones(2))
                    raise KeyError("k")

            unittest.main()
        """
        outcome = ask(pool, body.replace("STOP", str(bool(stop_after))), stop_after=stop_after)
        assert outcome.status == status, outcome.text
        assert ("KeyError: 'k'" in outcome.text) == (status == "raised")

    def test_a_message_that_is_no_text_comes_through(self, pool: Pool) -> None:
        outcome = ask(pool, "raise ValueError('name \\udce4 of a file')")
        assert outcome.status == "raised"
        assert outcome.text.endswith("ValueError: name \\udce4 of a file\n")

    def test_a_crash_says_its_signal_and_its_stack(self, pool: Pool) -> None:
        outcome = ask(pool, "import ctypes\ndef deep(): ctypes.string_at(0)\ndeep()")
        assert (outcome.status, outcome.signal) == ("signal", "SIGSEGV")
        assert "in deep" in outcome.text

    def test_a_hang_in_native_code_ends_with_the_python_stack(self, pool: Pool) -> None:
        assert ask(pool, "pass").status == "ok"  # from here on there is a parent
        started = time.monotonic()
        outcome = ask(pool, "import ctypes\ndef stuck():\n    while True: ctypes.PyDLL(None).sleep(600)\nstuck()", limit=1.0)
        assert outcome.status == "timeout"
        assert outcome.text.count("in stuck") == STACKS
        assert time.monotonic() - started < 10

    def test_memory_is_limited(self, pool: Pool) -> None:
        outcome = ask(pool, "import torch\nheld = [torch.ones(1 << 26) for _ in range(100)]", memory=1 << 30)
        assert outcome.status == "raised"
        assert "can't allocate memory" in outcome.text

    def test_a_question_has_the_memory_that_the_pool_gives(self, pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
        text = "import torch\nheld = torch.empty(1 << 32, dtype=torch.uint8)"
        assert ask(pool, text).status == "ok"
        monkeypatch.setattr(pool, "memory", 1 << 30)
        assert "can't allocate memory" in ask(pool, text).text

    def test_what_a_script_does_to_its_process_stays_there(self, pool: Pool) -> None:
        spoils = """
            import os, sys, threading, time, torch
            torch.relu = torch.Tensor.relu = None
            torch.set_default_dtype(torch.float64)
            torch._inductor.config.freezing = True
            torch.manual_seed(7)
            os.environ["TORCH_MINIFY_SPOILT"] = "1"
            sys.modules["math"] = None
            os.chdir("/")
            threading.Thread(target=time.sleep, args=(600,)).start()
        """
        looks = """
            import os, sys, torch, math, torch._inductor.config
            assert torch.equal(torch.relu(torch.tensor([-1.0])), torch.zeros(1, dtype=torch.float32))
            assert torch._inductor.config.freezing is False and torch.initial_seed() != 7
            assert "TORCH_MINIFY_SPOILT" not in os.environ
            assert os.listdir() == ["repro.py"]
        """
        assert ask(pool, "pass").status == "ok"  # from here on there is a parent
        started = time.monotonic()
        assert ask(pool, spoils).status == "ok"
        assert time.monotonic() - started < 20, "a thread held the answer back"
        outcome = ask(pool, looks)
        assert outcome.status == "ok", outcome.text

    def test_half_a_library_of_a_killed_compiler_is_not_loaded(self, pool: Pool) -> None:
        half = "os.path.join(os.environ['TORCHINDUCTOR_CACHE_DIR'], 'half.so')"
        dies = f"import os\nopen({half}, 'wb').write(b'half')\nos.kill(os.getpid(), 9)"
        assert ask(pool, dies).status == "memory"
        outcome = ask(pool, f"import os\nassert not os.path.exists({half})")
        assert outcome.status == "ok", outcome.text

    def test_a_flood_of_output_is_kept_in_part(self, pool: Pool) -> None:
        outcome = ask(
            pool,
            "import os\nprint('first', flush=True)\nfor _ in range(50): os.write(1, b'x' * (1 << 20))\nos.write(2, b'last'); os.abort()",
        )
        assert (outcome.status, outcome.signal) == ("signal", "SIGABRT")
        assert outcome.text.startswith("first\n")
        assert "last" in outcome.text[-20_000:]
        assert len(outcome.text) < 500_000

    @pytest.mark.parametrize("apart", [False, True], ids=["its group", "a session of its own"])
    def test_grandchildren_end_with_their_parent(self, pool: Pool, tmp_path: Path, apart: bool) -> None:
        body = f"""
            import pathlib, subprocess, sys
            shout = "import os, time\\nwhile True: os.write(1, b'x' * 4096)"
            codes = (shout, "import time; time.sleep(600)")
            left = [subprocess.Popen([sys.executable, "-c", code], start_new_session={apart}) for code in codes]
            pathlib.Path({str(tmp_path / "pids")!r}).write_text(" ".join(str(p.pid) for p in left))
        """
        assert ask(pool, body).status == "ok"
        for pid in (tmp_path / "pids").read_text().split():
            assert ended(int(pid), within=3.0)

    def test_a_fork_that_runs_to_the_end_of_the_script_gives_no_second_answer(self, pool: Pool) -> None:
        outcome = ask(pool, "import os\nchild = os.fork()\nif child:\n    assert os.waitpid(child, 0)[1] == 0\n    raise KeyError('mine')")
        assert outcome.status == "raised", outcome
        assert outcome.text.endswith("KeyError: 'mine'\n")

    def test_a_script_is_main_and_has_its_arguments(self, pool: Pool) -> None:
        outcome = ask(pool, "import sys\nassert sys.argv == [__file__, '-v'] and __name__ == '__main__'", argv=("-v",))
        assert outcome.status == "ok", outcome.text

    def test_a_control_counts_the_calls_of_the_compiler(self, pool: Pool) -> None:
        outcome = ask(pool, "import torch\ntorch.compile(torch.sin, backend='no such backend')(torch.ones(2))", task="control")
        assert outcome.status == "ok", outcome.text
        assert outcome.calls

    def test_questions_are_answered_at_the_same_time_and_can_be_cancelled(self, pool: Pool) -> None:
        slow = [pool.submit(Question("import time; time.sleep(600)")) for _ in range(2)]
        assert ask(pool, "pass").status == "ok"
        for asked in slow:
            pool.cancel(asked)
        for asked in slow:
            assert asked.future.result(10)[0].status == "infra"
            pool.cancel(asked)  # answered already: nothing happens

    def test_scratch_directories_are_removed(self, pool: Pool) -> None:
        asked = pool.submit(Question("open('left', 'w')"))
        asked.future.result(30)
        assert not Path(asked.directory.name).exists()


class TestParent:
    """The parent's own life."""

    def test_its_death_is_survived_and_closing_leaves_nobody(self, tmp_path: Path) -> None:
        with Pool(sys.executable, probed(tmp_path), tmp_path / "log") as pool:
            report = tmp_path / "pids"
            above = tmp_path / "parent"
            assert ask(pool, f"import os, pathlib; pathlib.Path({str(above)!r}).write_text(str(os.getppid()))").status == "ok"
            waiting = pool.submit(Question("import time; time.sleep(600)"))
            os.kill(int(above.read_text()), signal.SIGKILL)  # a question cannot
            assert waiting.future.result(60)[0].status == "infra"
            assert ask(pool, "pass").status == "ok"
            assert pool.restarts == 1
            hanging = (
                f"import os, pathlib, time\npathlib.Path({str(report)!r}).write_text(f'{{os.getpid()}} {{os.getppid()}}')\ntime.sleep(600)"
            )
            last = pool.submit(Question(hanging))
            while not (report.exists() and len(report.read_text().split()) == 2):
                time.sleep(0.05)
        assert last.future.result(5)[0].status == "infra"
        for pid in report.read_text().split():
            assert ended(int(pid), within=3.0)
        with pytest.raises(PoolError, match="closed"):
            pool.submit(Question(""))
        assert pool.versions["torch"]

    def test_an_interpreter_without_torch(self, tmp_path: Path) -> None:
        bare = tmp_path / "python"
        bare.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
        bare.chmod(0o755)
        with Pool(str(bare), tmp_path, tmp_path / "log") as pool:
            for _ in range(2):
                with pytest.raises(PoolError, match="ModuleNotFoundError: No module named 'torch'"):
                    ask(pool, "pass")

    def test_an_interpreter_without_memory_for_torch(self, tmp_path: Path) -> None:
        (tmp_path / "python").write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path} exec {sys.executable} -S "$@"\n')
        (tmp_path / "python").chmod(0o755)
        (tmp_path / "torch.py").write_text("raise MemoryError")
        failed = r"^MemoryError: while torch and its compiler were imported$"
        with Pool(str(tmp_path / "python"), tmp_path, tmp_path / "log") as pool, pytest.raises(PoolError, match=failed):
            ask(pool, "pass")

    def test_what_broke_off_first_is_said(self, tmp_path: Path) -> None:
        """What is imported after a full disk ended an import fails in words that do not name the disk."""
        (tmp_path / "python").write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path} exec {sys.executable} -S "$@"\n')
        (tmp_path / "python").chmod(0o755)
        (tmp_path / "torch").mkdir()
        (tmp_path / "torch" / "__init__.py").touch()
        (tmp_path / "torch" / "_dynamo.py").write_text("raise OSError(28, 'No space left on device')\n")
        first = r"before that, importing torch\._dynamo failed: OSError: \[Errno 28\] No space left on device$"
        with (
            Pool(str(tmp_path / "python"), tmp_path, tmp_path / "log") as pool,
            pytest.raises(PoolError, match=f"^AttributeError: .*; {first}"),
        ):
            ask(pool, "pass")

    def test_no_interpreter_at_all(self, tmp_path: Path) -> None:
        with Pool(str(tmp_path / "none"), tmp_path, tmp_path / "log") as pool, pytest.raises(OSError, match="none"):
            pool.start()


Fake = Callable[[str], Pool]


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fake]:
    """A pool whose parent is a script of the test: no torch, so it starts at once."""
    made: list[Pool] = []

    def start(body: str) -> Pool:
        boot = tmp_path / "boot.py"
        boot.write_text("import json, os, sys, time\ndef say(x): print(json.dumps(x), flush=True)\n" + textwrap.dedent(body))
        monkeypatch.setattr(protocol, "BOOT", str(boot))
        made.append(Pool(sys.executable, tmp_path, tmp_path / "log"))
        return made[-1]

    yield start
    for pool in made:
        pool.close()


class TestProtocol:
    """What may go wrong between the two sides."""

    def test_questions_before_it_is_ready_wait_for_it(self, fake: Fake, tmp_path: Path) -> None:
        pool = fake("""
            while not os.path.exists("go"): time.sleep(0.01)
            say({"ready": {"torch": "9"}})
            for line in sys.stdin:
                say({"id": json.loads(line)["id"], "outcome": {"status": "ok", "text": json.loads(line)["text"]}})
        """)
        pool.cwd = tmp_path
        asked = [pool.submit(Question(str(i))) for i in range(3)]
        assert not any(one.future.done() for one in asked), "a question that waits can be given up at the deadline"
        (tmp_path / "go").touch()
        assert [a.future.result(20)[0].text for a in asked] == ["0", "1", "2"]
        assert pool.versions == {"torch": "9"}

    def test_killed_in_the_middle_of_an_answer(self, fake: Fake) -> None:
        pool = fake("say({'ready': {}})\nsys.stdin.readline()\nsys.stdout.write('{\"id\": 1, \"outc')\nsys.stdout.flush()\nos._exit(1)")
        outcome = ask(pool, "")
        assert (outcome.status, outcome.text) == ("infra", "the worker's parent died")

    def test_an_answer_that_is_none(self, fake: Fake) -> None:
        pool = fake("say({'ready': {}})\nfor line in sys.stdin: say({'id': json.loads(line)['id'], 'outcome': {'status': 5}})")
        assert [ask(pool, "").status for _ in range(2)] == ["infra", "infra"]

    def test_death_before_it_is_ready(self, fake: Fake) -> None:
        pool = fake("time.sleep(0.2)\nsys.exit(9)")
        for _ in range(2):
            with pytest.raises(PoolError, match="ended with status 9 before"):
                ask(pool, "")

    def test_a_parent_that_the_kernel_killed_before_it_was_ready_is_replaced(self, fake: Fake, tmp_path: Path) -> None:
        """The kernel takes the largest process, whoever filled the memory."""
        begun = tmp_path / "begun"
        pool = fake(f"""
            if not os.path.exists({str(begun)!r}):
                open({str(begun)!r}, "w").close()
                os.kill(os.getpid(), 9)
            say({{"ready": {{}}}})
            for line in sys.stdin: say({{"id": json.loads(line)["id"], "outcome": {{"status": "ok"}}}})
        """)
        assert [ask(pool, "").status for _ in range(2)] == ["infra", "ok"]

    @pytest.mark.parametrize("reads", [True, False])
    def test_a_parent_that_hangs_is_replaced(self, fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reads: bool) -> None:
        monkeypatch.setattr(room, "PULSE", 0.2)
        begun = tmp_path / "begun"
        pool = fake(f"""
            say({{"ready": {{}}}})
            if not os.path.exists({str(begun)!r}):
                open({str(begun)!r}, "w").close()
                while {reads}: sys.stdin.readline()
                time.sleep(600)
            for line in sys.stdin: say({{"id": json.loads(line)["id"], "outcome": {{"status": "ok"}}}})
        """)
        waiting = pool.submit(Question(""))
        lost = waiting.future.result(60)[0]
        assert (lost.status, lost.text) == ("infra", "the worker's parent died: it no longer answered")
        assert ask(pool, "").status == "ok"

    def test_a_parent_whose_question_takes_long_is_not(self, fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(room, "PULSE", 0.2)
        pool = fake(f"""
            say({{"ready": {{}}}})
            asked, pings = json.loads(sys.stdin.readline())["id"], 0
            while pings < {3 * room.UNANSWERED}:
                say({{"pong": json.loads(sys.stdin.readline())["ping"]}})
                pings += 1
            say({{"id": asked, "outcome": {{"status": "ok"}}}})
        """)
        assert ask(pool, "").status == "ok"

    def test_one_that_it_kills_each_time_is_given_up(self, fake: Fake) -> None:
        pool = fake("os.kill(os.getpid(), 9)")
        for _ in range(room.RESTARTS + 1):
            assert ask(pool, "").status == "infra"
        with pytest.raises(PoolError, match=r"keeps dying \(the last time, it was killed, as for its memory\); see "):
            ask(pool, "")

    def test_a_parent_that_keeps_dying(self, fake: Fake) -> None:
        pool = fake("say({'ready': {}})\nsys.stdin.readline()")
        for _ in range(room.RESTARTS + 1):
            assert ask(pool, "").status == "infra"
        with pytest.raises(PoolError, match="keeps dying; see "):
            ask(pool, "")

    def test_a_parent_that_answered_before_it_died_is_replaced_as_often_as_needed(self, fake: Fake) -> None:
        pool = fake("""
            say({"ready": {}})
            say({"id": json.loads(sys.stdin.readline())["id"], "outcome": {"status": "ok"}})
            sys.stdin.readline()
        """)
        for _ in range(room.RESTARTS + 2):
            assert ask(pool, "").status == "ok"
            assert ask(pool, "").status == "infra"

    def test_one_parent_however_many_ask_for_it(self, fake: Fake, tmp_path: Path) -> None:
        pool = fake(f"""
            open({str(tmp_path / "started")!r}, "a").write("x")
            say({{"ready": {{}}}})
            for line in sys.stdin:
                say({{"id": json.loads(line)["id"], "outcome": {{"status": "ok"}}}})
        """)
        threads = [threading.Thread(target=ask, args=(pool, "")) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        assert (tmp_path / "started").read_text() == "x"

    def test_long_questions_and_long_answers_cross(self, fake: Fake) -> None:
        """Each side writes more than a pipe holds before it reads."""
        pool = fake("""
            say({"ready": {}})
            ids = [json.loads(sys.stdin.readline())["id"] for _ in range(3)]
            time.sleep(0.3)
            for number in ids:
                say({"id": number, "outcome": {"status": "ok", "text": "x" * (1 << 20)}})
            for line in sys.stdin:
                say({"id": json.loads(line)["id"], "outcome": {"status": "ok"}})
        """)
        asked = [pool.submit(Question("y")) for _ in range(3)] + [pool.submit(Question("z" * (1 << 20)))]
        assert [a.future.result(20)[0].status for a in asked] == ["ok"] * 4

    def test_a_parent_that_never_gets_ready(self, fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(room, "START_LIMIT", 0.3)
        pool = fake("time.sleep(600)")
        late = ask(pool, "")
        assert late.status == "infra"
        assert "did not import torch within" in late.text
        for _ in range(2):
            with pytest.raises(PoolError, match=r"did not import torch within 0 s, twice$"):
                ask(pool, "")

    @pytest.mark.parametrize("stopped", [True, False])
    def test_a_parent_that_gets_ready_too_late_once_is_replaced(
        self, fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stopped: bool
    ) -> None:
        """It only saves time. Something may have stopped it, or what it imports lies on a disk that was slow."""
        monkeypatch.setattr(room, "START_LIMIT", 0.5)
        go = tmp_path / "go"
        pool = fake(f"""
            if not os.path.exists({str(go)!r}):
                if {stopped}: os.kill(os.getpid(), {int(signal.SIGSTOP)})
                time.sleep(600)
            say({{"ready": {{}}}})
            for line in sys.stdin: say({{"id": json.loads(line)["id"], "outcome": {{"status": "ok"}}}})
        """)
        assert ask(pool, "").status == "infra"
        go.touch()
        monkeypatch.setattr(room, "START_LIMIT", 60.0)
        assert ask(pool, "").status == "ok"

    @pytest.mark.skipif(sys.platform != "linux", reason="the state of a process is read from /proc")
    @pytest.mark.parametrize("itself", [True, False])
    def test_a_parent_that_a_signal_stops_while_it_warms_up_is_replaced(
        self, fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, itself: bool
    ) -> None:
        """So is one that waits for a compiler which a signal has stopped."""
        monkeypatch.setattr(room, "PULSE", 0.05)
        monkeypatch.setattr(own_time, "BETWEEN", 0.05)
        stop = "os.kill(os.getpid(), 19)" if itself else "import subprocess; subprocess.run(['sh', '-c', 'kill -STOP $$'])"
        mark = tmp_path / "mark"
        pool = fake(f"""
            if not os.path.exists({str(mark)!r}):
                open({str(mark)!r}, "w").close()
                {stop}
            say({{"ready": {{}}}})
            for line in sys.stdin:
                asked = json.loads(line)
                if "id" in asked:
                    say({{"id": asked["id"], "outcome": {{"status": "ok"}}}})
        """)
        outcome, _ = pool.submit(Question("")).future.result(30)
        assert (outcome.status, outcome.text.startswith("the worker's parent died: a signal had stopped it")) == ("infra", True)
        assert pool.ask(Question(""))[0].status == "ok"

    def test_a_parent_that_does_not_end_is_ended(self, fake: Fake, tmp_path: Path) -> None:
        pool = fake(f"open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\nsay({{'ready': {{}}}})\ntime.sleep(600)")
        asked = pool.submit(Question(""))
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
            time.sleep(0.02)
        started = time.monotonic()
        pool.close()
        assert time.monotonic() - started < 3
        assert ended(int((tmp_path / "pid").read_text()), within=3.0)
        assert asked.future.exception(5) is not None or asked.future.result()[0].status == "infra"


@pytest.mark.parametrize(
    ("facts", "status"),
    [
        ({"status": "exit", "exit": 1, "text": "", "printed": "Traceback (most recent call last):\nKeyError: 7"}, "raised"),
        ({"status": "exit", "exit": 1, "text": "Traceback (most recent call last):\nKeyError: 7"}, "raised"),
        ({"status": "exit", "exit": 3, "text": "", "printed": "Traceback (most recent call last):\nKeyError: 7"}, "exit"),
        ({"status": "exit", "exit": 1, "text": "", "printed": "no"}, "exit"),
        ({"status": "ok", "exit": 0, "text": "", "printed": "Traceback (most recent call last):\nKeyError: 7"}, "ok"),
    ],
)
def test_who_prints_a_traceback_and_leaves_is_read_as_in_a_fresh_process(tmp_path: Path, facts: Facts, status: str) -> None:
    asked = room.Asked(Future(), 1, tempfile.TemporaryDirectory(dir=tmp_path))
    asked.answer(facts)
    outcome = asked.future.result()[0]
    assert outcome.status == status
    assert ("KeyError: 7" in outcome.text) is (status == "raised")


@pytest.mark.parametrize(
    "line",
    [
        *("no JSON", "[]", "3", '{"id": 1}', '{"id": {}, "outcome": {}}', '{"ready": 1}', "[" * 100_000, '{"id": 1, "outcome": []}'),
        *(f'{{"id": 1, "outcome": {{"status": "exit", "exit": 1, "printed": {odd}}}}}' for odd in ('{"a": 1}', "7", '["x"]')),
    ],
)
def test_a_parent_that_speaks_nonsense_ends_with_its_questions(fake: Fake, line: str) -> None:
    """What it imports for the program can write into its pipe."""
    pool = fake(
        f"""
        say({{"ready": {{}}}})
        sys.stdin.readline()
        sys.stdout.write({line!r} + "\\n")
        sys.stdout.flush()
        time.sleep(60)
        """
    )
    asked = pool.submit(Question("pass"))
    assert asked.future.result(30)[0].status == "infra"
