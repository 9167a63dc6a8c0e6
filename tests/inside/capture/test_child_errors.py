"""Errors in a process that the program started: which are kept, and in which words. Without torch."""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from bot.inside import children
from bot.inside.capture.child_errors import ChildErrors
from bot.inside.protocol import CHILD_DEATH, CHILD_ERRORS, CHILD_FACTS


@pytest.fixture(autouse=True)
def left(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stack of this process goes where pytest has it."""
    for name in ("enable", "disable"):
        monkeypatch.setattr(faulthandler, name, lambda *_: None)


@pytest.fixture
def entered(tmp_path: Path) -> ChildErrors:
    """What a child has to say, in a process that is one."""
    made = ChildErrors(str(tmp_path))
    made.enter()
    return made


def kept(made: ChildErrors) -> list[tuple[str, bool]]:
    """The errors that are written down: what they said, and whether the process ended with them."""
    path = Path(made.directory, CHILD_ERRORS)
    found = json.loads(path.read_text(encoding="utf-8"))["errors"] if path.exists() else []
    return [(error["said"], error["ended"]) for error in found]


def facts(made: ChildErrors) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(made.directory, CHILD_FACTS).read_text(encoding="utf-8"))
    return found


def raised(error: BaseException, cause: BaseException | None = None) -> BaseException:
    try:
        raise error from cause
    except type(error) as caught:
        return caught


def test_each_process_has_a_directory(tmp_path: Path) -> None:
    made = ChildErrors(str(tmp_path))
    assert made.enter() == made.directory == str(tmp_path / f"child-{os.getpid()}")
    assert not Path(made.directory).exists()


# A fork whose library has a handler of its own for the signal, as a DataLoader's worker has: `signal.signal` takes faulthandler's place.
FORKED = """
    import faulthandler, os, resource, signal, sys
    from bot.inside.capture.child_errors import ChildErrors

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    faulthandler.enable()
    made = ChildErrors(sys.argv[1])
    os.register_at_fork(after_in_child=made.enter)
    if not (pid := os.fork()):
        signal.signal(signal.SIGSEGV, signal.SIG_DFL)
        made.reached()
        os.kill(os.getpid(), signal.SIGSEGV)
        os._exit(0)
    print(pid, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


def test_a_fork_leaves_its_stack_whatever_handles_the_signal(tmp_path: Path) -> None:
    words = [sys.executable, "-c", textwrap.dedent(FORKED), str(tmp_path)]
    pid, status = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    assert int(status) == -signal.SIGSEGV
    assert "Fatal Python error: Segmentation fault" in (tmp_path / f"child-{pid}" / CHILD_DEATH).read_text(encoding="utf-8")


def test_in_the_program_itself_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = ChildErrors(str(tmp_path))
    made.reached()
    made.record(raised(KeyError(1)))
    made.ended(raised(KeyError(1)))
    made.compared([1e-3])
    assert (made.tolerance, list(tmp_path.iterdir())) == ([1e-3], [])


def test_the_sign_that_the_compiler_was_called(entered: ChildErrors, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setattr(sys, "argv", ["program.py", "--fast"])
    entered.reached()
    assert Path(entered.directory, CHILD_DEATH).read_bytes() == b""
    found = facts(entered)
    assert (found["rank"], found["world"], found["argv"], found["call"], found["tolerance"]) == ("1", "2", ["--fast"], "", None)
    assert os.path.isabs(found["file"]) or not found["file"]


def test_a_function_of_multiprocessing_has_no_arguments_of_a_command(entered: ChildErrors, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "work", lambda: "step(1)")
    entered.reached()
    assert (facts(entered)["call"], facts(entered)["argv"]) == ("step(1)", None)


def test_what_the_process_was_started_for(tmp_path: Path) -> None:
    code = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[3])!r})
from bot.inside.capture.child_errors import ChildErrors
made = ChildErrors({str(tmp_path)!r})
made.enter()
made.reached()
"""
    script = tmp_path / "train.py"
    script.write_text("# Größe\n" + code, encoding="utf-8")
    started = ([sys.executable, "-c", code, "--fast"], [sys.executable, str(script)], [sys.executable, "-"])
    expected = ((str(tmp_path), code, ["--fast"]), (str(script), "# Größe\n" + code, []), (str(tmp_path / "<stdin>"), "", []))
    for command, one in zip(started, expected, strict=True):
        with subprocess.Popen(command, cwd=tmp_path, stdin=subprocess.PIPE, text=True) as process:
            process.communicate(code if command[-1] == "-" else "")
        found = json.loads((tmp_path / f"child-{process.pid}" / CHILD_FACTS).read_text(encoding="utf-8"))
        assert (found["file"], found["text"], found["argv"]) == one


def test_a_tolerance_is_said_as_soon_as_it_is_known(entered: ChildErrors) -> None:
    entered.compared([1e-3, 1e-3])
    assert not Path(entered.directory).exists()  # nothing was compiled
    entered.reached()
    assert facts(entered)["tolerance"] == [1e-3, 1e-3]
    entered.compared([])
    assert facts(entered)["tolerance"] == []


def test_an_error_that_passes_several_places_counts_as_it_leaves_the_last(entered: ChildErrors) -> None:
    first = raised(KeyError("x"))
    entered.record(first)
    assert kept(entered) == [("KeyError: 'x'", False)]
    entered.record(first)
    entered.record(raised(RuntimeError("compile failed\nin two lines"), first))
    assert kept(entered) == [("RuntimeError: compile failed", False)]
    entered.record(raised(KeyError("y")))
    assert kept(entered) == [("RuntimeError: compile failed", False), ("KeyError: 'y'", False)]


def test_the_chain_goes_through_what_a_backend_holds(entered: ChildErrors) -> None:
    first = raised(KeyError("x"))
    outer: Any = raised(RuntimeError("backend"))
    outer.inner_exception = first
    entered.record(first)
    entered.record(outer)
    assert kept(entered) == [("RuntimeError: backend", False)]


def test_a_chain_that_goes_in_a_circle_ends(entered: ChildErrors) -> None:
    one, two = KeyError(1), KeyError(2)
    one.__cause__, two.__cause__ = two, one
    entered.record(raised(ValueError("first")))
    entered.record(one)
    assert len(kept(entered)) == 2


def test_the_end_of_a_process_counts_after_it_compiled(entered: ChildErrors) -> None:
    entered.ended(raised(KeyError("before")))
    assert kept(entered) == []
    entered.reached()
    entered.ended(raised(KeyError("after")))
    assert kept(entered) == [("KeyError: 'after'", True)]


def test_an_end_by_what_is_known_says_nothing_new(entered: ChildErrors) -> None:
    first = raised(KeyError("x"))
    entered.record(first)
    entered.ended(raised(RuntimeError("wrapped"), first))
    assert kept(entered) == [("KeyError: 'x'", False)]
    entered.ended(raised(SystemError("another")))
    assert kept(entered)[1:] == [("SystemError: another", True)]


def test_a_child_of_a_child_begins_anew(entered: ChildErrors) -> None:
    entered.record(raised(KeyError("x")))
    entered.enter()
    entered.record(raised(KeyError("y")))
    assert kept(entered) == [("KeyError: 'y'", False)]
