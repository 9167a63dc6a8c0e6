"""What a capture brings back; the rerun itself is in `tests/inside/capture/test_main.py`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from bot.engine.capture import run as room
from bot.engine.capture.region import Capture, read_regions
from bot.engine.capture.run import Tolerance, Watch, capture
from bot.engine.target import Target
from bot.failure.outcome import Outcome
from bot.workers.process import Patience

TRACEBACK = 'Traceback (most recent call last):\n  File "fail.py", line 1, in <module>\nKeyError: 1\n'


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """Stands for the process: `facts` is what it writes, `outcome` how it ends, `order` what it was told."""
    world: dict[str, object] = {"facts": None, "outcome": Outcome(status="exit", text="printed", exit=1, seconds=2.0)}

    def run(command: list[str], patience: Patience, *, env: dict[str, str], cwd: Path, **_: object) -> object:
        world["order"] = json.loads(Path(command[-1]).read_text())
        world["env"], world["cwd"], world["patience"] = env, cwd, patience
        if world["facts"] is not None:
            (Path(command[-1]).parent / "run.json").write_text(json.dumps(world["facts"]))
        return world["outcome"]

    monkeypatch.setattr(room, "run_process", run)
    return world


def go(tmp_path: Path, **more: object) -> Capture:
    target = Target(Path("fail.py"), None, ("-v",))
    watch = Watch(tmp_path / "out", tmp_path / "cache", **more)  # type: ignore[arg-type]
    return capture(target, "python", tmp_path, watch, Patience(9.0))


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


def test_why_the_program_was_never_run_is_what_the_process_printed(process: dict[str, object], tmp_path: Path) -> None:
    """Its own words count, if it wrote any."""
    process["outcome"] = Outcome(status="raised", text=TRACEBACK, exit=1, seconds=2.0)
    process["facts"] = {"status": "infra", "calls": 0}
    found = go(tmp_path)
    assert (found.outcome.status, found.outcome.text, found.signature) == ("infra", TRACEBACK, None)
    process["facts"] = {"status": "infra", "text": "no torch here"}
    assert go(tmp_path).outcome.text == "no torch here"


@pytest.mark.parametrize("status", ["timeout", "signal"])
def test_a_process_that_was_killed_counts_as_such(process: dict[str, object], tmp_path: Path, status: str) -> None:
    process["facts"] = {"status": "ok"}
    process["outcome"] = Outcome(status=status, signal="SIGSEGV" if status == "signal" else None)
    assert go(tmp_path).outcome.status == status


def test_a_process_that_wrote_nothing(process: dict[str, object], tmp_path: Path) -> None:
    found = go(tmp_path)
    assert (found.outcome.status, found.outcome.exit, found.versions, found.tolerance) == ("exit", 1, {}, None)


@pytest.mark.parametrize(("more", "dump"), [({"compare": Tolerance()}, False), ({"beforehand": True}, False), ({}, True)])
def test_only_a_plain_capture_calls_the_dumpers(process: dict[str, object], tmp_path: Path, more: dict[str, object], dump: bool) -> None:
    go(tmp_path, **more)
    order = process["order"]
    assert isinstance(order, dict)
    assert order["dump"] is dump


def test_a_link_in_the_place_of_a_file_is_not_followed(process: dict[str, object], tmp_path: Path) -> None:
    """Whatever ran there could write into its directory."""
    kept = tmp_path / "kept.txt"
    kept.write_text('{"status": "ok"}')
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "log.txt").symlink_to(kept)
    (tmp_path / "out" / "run.json").symlink_to(kept)
    assert go(tmp_path).outcome.status == "exit"
    assert kept.read_text() == '{"status": "ok"}'
    kept.write_text(json.dumps({"hook": "aot", "failed": "run", "backward": False, "recipe": {}, "graph": None, "reason": "no"}))
    (tmp_path / "out" / "region-001.json").symlink_to(kept)
    (tmp_path / "out" / "region-002.json").write_bytes(kept.read_bytes())
    assert [region.blobs.name for region in read_regions(tmp_path / "out")] == ["region-002"]


def test_wrong_numbers_of_a_child_count_where_the_program_ends_well(process: dict[str, object], tmp_path: Path) -> None:
    for pid, failed in ((5, "run"), (6, "accuracy")):
        facts = {"hook": "aot", "failed": failed, "backward": False, "recipe": {}, "graph": None, "reason": "no"}
        (tmp_path / "out" / f"child-{pid}").mkdir(parents=True)
        (tmp_path / "out" / f"child-{pid}" / "region-001.json").write_text(json.dumps(facts))
    process["facts"] = {"status": "ok", "text": ""}
    assert [region.failed for region in go(tmp_path).regions] == ["accuracy"]
    process["facts"] = {"status": "raised", "text": TRACEBACK}
    assert go(tmp_path).regions == ()


def test_regions_come_in_order_with_their_files(tmp_path: Path) -> None:
    for number, hook in ((2, "dynamo"), (10, "aoti"), (1, "aot")):
        facts = {"hook": hook, "failed": "compile", "backward": False, "recipe": {}, "graph": None, "reason": "no"}
        (tmp_path / f"region-{number:03d}.json").write_text(json.dumps(facts))
    (tmp_path / "region-011.json.new").write_text("{")
    regions = read_regions(tmp_path)
    assert [region.hook for region in regions] == ["aot", "dynamo", "aoti"]
    assert regions[0].blobs == tmp_path / "region-001"
    assert read_regions(tmp_path / "none") == ()


OF_COMPILER = """Traceback (most recent call last):
  File "/a/fail.py", line 30, in main
    model(x)
  File "/v/site-packages/torch/_dynamo/symbolic_convert.py", line 7, in step
    f()
torch._dynamo.exc.Unsupported: no frames
"""
OWN = 'Traceback (most recent call last):\n  File "/a/fail.py", line 40, in <module>\n    raise\n{}\n'


@pytest.mark.parametrize(
    ("facts", "status", "text", "caught"),
    [
        ({"status": "exit", "exit": 1}, "", "", True),  # logged, and sys.exit(1)
        (None, "exit", "", True),  # os._exit
        (None, "raised", OWN.format("KeyError: 7"), True),  # os._exit behind a traceback that it printed
        ({"status": "raised", "text": OWN.format("RuntimeError: serving failed")}, "", "", False),
        ({"status": "raised", "text": OWN.format("RuntimeError: 1 failed: Unsupported('no frames')")}, "", "", True),
        ({"status": "raised", "text": OWN.format("RuntimeError: 1 of 2 failed: no frames")}, "", "", True),
        ({"status": "raised", "text": OWN.format("RuntimeError: no\n    frames")}, "", "", True),
        ({"status": "raised", "text": OWN.format("RuntimeError: model"), "behind": OF_COMPILER}, "", "", True),
        ({"status": "raised", "text": OF_COMPILER}, "", "", False),
        ({"status": "raised", "text": OWN.format("AssertionError: Unsupported")}, "", "", False),
        ({"status": "raised", "text": OWN.format("AssertionError: no result"), "threaded": True}, "", "", False),
        ({"status": "ok", "exit": 0}, "", "", False),
        ({"status": "ok", "exit": 0, "threaded": True}, "", "", True),
    ],
)
def test_what_the_program_caught_is_its_failure_where_it_ended_for_that(
    process: dict[str, object], tmp_path: Path, facts: dict[str, object] | None, status: str, text: str, caught: bool
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "escaped.json").write_text(json.dumps({"text": OF_COMPILER}))
    process["facts"] = facts
    if status:
        process["outcome"] = Outcome(status=status, text=text, exit=3)
    found = go(tmp_path)
    assert (found.ended is not None) is caught
    assert (found.outcome.text == OF_COMPILER and found.signature.exception == ("Unsupported",)) is (
        caught or (facts or {}).get("text") == OF_COMPILER
    )
    own = found.as_it_ended("fail.py")
    assert own.ended is None
    assert own.outcome.status == (facts["status"] if facts else status)
    # what one that ended well lived with is told
    assert found.caught == ("exception in dynamo: Unsupported: no frames" if own.outcome.status == "ok" else "")
    # whether it failed for that can be seen by running it without
    behind = own.outcome.status == "raised" and ("serving failed" in own.outcome.text or "AssertionError" in own.outcome.text)
    assert found.behind == (OF_COMPILER if behind else "")


def test_an_error_of_the_program_that_ran_compiled_says_nothing_of_an_exit(process: dict[str, object], tmp_path: Path) -> None:
    """It raises where it runs, and the program lives with that: why it leaves is another matter."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "escaped.json").write_text(json.dumps({"text": OWN.format("ValueError: no")}))
    process["facts"] = {"status": "exit", "exit": 1}
    assert go(tmp_path).ended is None


def test_a_class_of_pythons_own_is_named_for_any_reason(process: dict[str, object], tmp_path: Path) -> None:
    """The program lived with the compiler's RuntimeError, and raises one of its own later."""
    (tmp_path / "out").mkdir()
    theirs = OF_COMPILER.replace("torch._dynamo.exc.Unsupported: no frames", "RuntimeError: no frames")
    (tmp_path / "out" / "escaped.json").write_text(json.dumps({"text": theirs}))
    process["facts"] = {"status": "raised", "text": OWN.format("RuntimeError: another matter")}
    assert go(tmp_path).ended is None
