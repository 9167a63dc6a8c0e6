"""Command lines, and what a capture brings back; the rerun itself is in `tests/inside/capture/test_main.py`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.engine.capture import run as room
from bot.engine.capture.region import Capture, read_regions
from bot.engine.capture.run import CommandError, Target, capture, target_of_command
from bot.failure.outcome import Outcome


@pytest.mark.parametrize(
    ("command", "target"),
    [
        ("pytest a.py::test_x -k 'a b'", Target(None, "pytest", ("a.py::test_x", "-k", "a b"))),
        ("/venv/bin/pytest a.py", Target(None, "pytest", ("a.py",))),
        ("py.test", Target(None, "pytest", ())),
        ("python fail.py -v --x=1", Target(Path("fail.py"), None, ("-v", "--x=1"))),
        ("/usr/bin/python3.11 -u fail.py", Target(Path("fail.py"), None, ())),
        ("python -m pytest -x", Target(None, "pytest", ("-x",))),
        ("python -mpytest -x", Target(None, "pytest", ("-x",))),
        ("python -um unittest a", Target(None, "unittest", ("a",))),
        ("python -W ignore -Xdev -X faulthandler fail.py -m x", Target(Path("fail.py"), None, ("-m", "x"))),
        ("python -bWignore fail.py", Target(Path("fail.py"), None, ())),
    ],
)
def test_commands(command: str, target: Target) -> None:
    assert target_of_command(command) == target


@pytest.mark.parametrize(
    ("command", "file"),
    [
        ("python fail.py x.py", "fail.py"),
        ("pytest -q t/a.py::A::test_x[1.py]", "t/a.py"),
        ("pytest a.py::test_x a.py::test_y", "a.py"),
        ("pytest a.py b.py", None),
        ("pytest", None),
        ("python -m unittest a.py", None),
    ],
)
def test_file(command: str, file: str | None) -> None:
    assert target_of_command(command).file == file


@pytest.mark.parametrize(
    "command",
    [
        *("", "  ", "make test", "bash -c 'pytest'", "pytest 'a", "pythonic fail.py", "FOO=1 pytest a.py"),
        *("python", "python -c 'import x' fail.py", "python -", "python -u", "python -m", "python --version", "python -Z fail.py"),
    ],
)
def test_commands_that_run_no_python_program(command: str) -> None:
    with pytest.raises(CommandError):
        target_of_command(command)


@given(st.lists(st.sampled_from(["python", "-m", "-W", "-u", "-c", "-", "--", "x", "-mx", "-X", "'"]), max_size=6))
def test_a_command_gives_a_target_or_says_no(words: list[str]) -> None:
    try:
        target = target_of_command(" ".join(words))
    except CommandError:
        return
    assert (target.script is None) != (target.module is None)


def test_names() -> None:
    assert Target(Path("a/fail.py"), None, ()).name == "fail.py"
    assert Target(None, "pytest", ()).name == "pytest"


TRACEBACK = 'Traceback (most recent call last):\n  File "fail.py", line 1, in <module>\nKeyError: 1\n'


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """Stands for the process: `facts` is what it writes, `outcome` how it ends, `order` what it was told."""
    world: dict[str, object] = {"facts": None, "outcome": Outcome(status="exit", text="printed", exit=1, seconds=2.0)}

    def run(command: list[str], *, env: dict[str, str], cwd: Path, timeout: float, wanted: object, stacks: int) -> object:
        world["order"] = json.loads(Path(command[-1]).read_text())
        world["env"], world["cwd"], world["timeout"] = env, cwd, timeout
        assert stacks > 1
        if world["facts"] is not None:
            (Path(command[-1]).parent / "run.json").write_text(json.dumps(world["facts"]))
        return world["outcome"]

    monkeypatch.setattr(room, "run_process", run)
    return world


def go(tmp_path: Path, **more: object) -> Capture:
    target = Target(Path("fail.py"), None, ("-v",))
    options = {"python": "python", "cwd": tmp_path, "out": tmp_path / "out", "cache": tmp_path / "cache", "timeout": 9.0, **more}
    return capture(target, **options)  # type: ignore[arg-type]


def test_what_the_process_writes_counts(process: dict[str, object], tmp_path: Path) -> None:
    process["facts"] = {"status": "raised", "text": TRACEBACK, "calls": 2, "versions": {"torch": "9"}, "tolerance": [0.1, 0.2]}
    found = go(tmp_path)
    assert (found.outcome.status, found.outcome.text, found.outcome.calls, found.outcome.seconds) == ("raised", TRACEBACK, 2, 2.0)
    assert found.signature.exception == ("KeyError",)
    assert (found.versions, found.tolerance) == ({"torch": "9"}, (0.1, 0.2))
    assert found.log.read_text() == "printed"
    order = process["order"]
    assert isinstance(order, dict)
    assert (order["script"], order["module"], order["argv"], order["dump"]) == ("fail.py", None, ["-v"], True)
    assert isinstance(process["env"], dict)
    assert process["env"]["PATH"] == os.environ["PATH"]
    assert process["env"]["TORCHINDUCTOR_CACHE_DIR"] == str(tmp_path / "cache")


@pytest.mark.parametrize("status", ["timeout", "signal"])
def test_a_process_that_was_killed_counts_as_such(process: dict[str, object], tmp_path: Path, status: str) -> None:
    process["facts"] = {"status": "ok"}
    process["outcome"] = Outcome(status=status, signal="SIGSEGV" if status == "signal" else None)
    assert go(tmp_path).outcome.status == status


def test_a_process_that_wrote_nothing(process: dict[str, object], tmp_path: Path) -> None:
    found = go(tmp_path)
    assert (found.outcome.status, found.outcome.exit, found.versions, found.tolerance) == ("exit", 1, {}, None)


@pytest.mark.parametrize(("more", "dump"), [({"check": True}, False), ({"beforehand": True}, False), ({}, True)])
def test_only_a_plain_capture_calls_the_dumpers(process: dict[str, object], tmp_path: Path, more: dict[str, bool], dump: bool) -> None:
    go(tmp_path, **more)
    order = process["order"]
    assert isinstance(order, dict)
    assert order["dump"] is dump


def test_regions_come_in_order_with_their_files(tmp_path: Path) -> None:
    for number, hook in ((2, "dynamo"), (10, "aoti"), (1, "aot")):
        facts = {"hook": hook, "failed": "compile", "backward": False, "recipe": {}, "graph": None, "reason": "no"}
        (tmp_path / f"region-{number:03d}.json").write_text(json.dumps(facts))
    (tmp_path / "region-011.json.new").write_text("{")
    regions = read_regions(tmp_path)
    assert [region.hook for region in regions] == ["aot", "dynamo", "aoti"]
    assert regions[0].blobs == tmp_path / "region-001"
    assert read_regions(tmp_path / "none") == ()


@pytest.mark.parametrize(
    ("target", "name"),
    [
        (Target(Path("a/fail.py"), None, ()), "fail.py"),
        (Target(None, "pytest", ("-x", "tests/test_it.py::test_this[1]")), "test_it.py"),
        (Target(None, "pytest", ("-k", "this")), "pytest"),
        (Target(None, "package.train", ()), "train.py"),
    ],
)
def test_what_tracebacks_call_the_program(target: Target, name: str) -> None:
    assert target.name == name
