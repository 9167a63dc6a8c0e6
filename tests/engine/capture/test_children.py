"""Which error of a child is the failure; what the hooks write there is seen in `tests/inside/test_children.py`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bot.engine.capture import children
from bot.engine.capture.region import ChildMain


def child(out: Path, pid: int, *errors: tuple[str, float], rank: str = "", ended: bool = False) -> None:
    directory = out / f"child-{pid}"
    directory.mkdir()
    held: list[dict[str, Any]] = [{"text": f"Traceback\n{said}", "said": said, "time": time, "ended": ended} for said, time in errors]
    facts = {"rank": rank, "world": rank and "4", "tolerance": None, "call": "", "file": "/x/fail.py", "argv": ["child"]}
    facts |= {"text": "import torch\n", "package": ""}
    (directory / "process.json").write_text(json.dumps(facts))
    if held:
        (directory / "errors.json").write_text(json.dumps({"errors": held}))


def test_the_first_error_that_somebody_mentions(tmp_path: Path) -> None:
    child(tmp_path, 5, ("InductorError: second", 2.0), rank="1")
    child(tmp_path, 6, ("ValueError: dealt with", 1.0), ("InductorError: third", 3.0))
    found = children.failing(tmp_path, "RuntimeError: Engine failed\n(EngineCore pid=5) InductorError: second\nInductorError: third")
    assert found is not None
    assert (found.directory.name, found.end.text, found.name) == ("child-5", "Traceback\nInductorError: second", "rank 1")
    assert len(children.directories(tmp_path)) == 2


def test_the_error_with_which_a_child_ended_is_another_question(tmp_path: Path) -> None:
    said = "AssertionError: Tensor-likes are not close!"
    child(tmp_path, 5, (said, 2.0), rank="3", ended=True)
    assert children.failing(tmp_path, said) is None
    found = children.failing(tmp_path, said, ended=True)
    assert found is not None
    assert (found.name, children.rank(found.directory)) == ("rank 3", (3, 4))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"rank": "x", "world": "2"}', '{"rank": null, "world": {}}'])
def test_whatever_a_program_writes_there_is_no_rank(tmp_path: Path, text: str) -> None:
    child(tmp_path, 5)
    (tmp_path / "child-5" / "process.json").write_text(text)
    assert children.rank(tmp_path / "child-5") is None
    assert children.facts(tmp_path / "child-5")["tolerance"] is None


def test_what_the_program_s_own_file_was_given_there(tmp_path: Path) -> None:
    child(tmp_path, 5)
    for launcher in ("/x/fail.py", "/x/other.py", None):
        assert children.arguments(tmp_path / "child-5", launcher) == ("child",)
    assert children.main(tmp_path / "child-5", "/x/fail.py") is None
    for launcher in ("/x/other.py", None):
        assert children.main(tmp_path / "child-5", launcher) == ChildMain(file=Path("/x/fail.py"), text="import torch\n")
    # a script that came by standard input
    known = json.loads((tmp_path / "child-5" / "process.json").read_text()) | {"file": "/x/<stdin>", "text": ""}
    (tmp_path / "child-5" / "process.json").write_text(json.dumps(known))
    assert children.main(tmp_path / "child-5", "/x/fail.py") is None
    assert children.arguments(tmp_path / "child-5", "/x/fail.py") is None


def test_an_error_that_nobody_mentions_was_dealt_with(tmp_path: Path) -> None:
    child(tmp_path, 6, ("ValueError: dealt with", 1.0))
    assert children.failing(tmp_path, "KeyError: 'something else'") is None


def test_a_child_that_died_left_its_stack(tmp_path: Path) -> None:
    assert children.dead(tmp_path) is None
    for pid, stack in ((5, ""), (6, "  <no Python frame>\n"), (7, '  File "/x/torch/_inductor/lowering.py", line 3 in tanh\n')):
        child(tmp_path, pid)
        said = f"Fatal Python error: Segmentation fault\n\nCurrent thread 0x01 (most recent call first):\n{stack}" if stack else ""
        (tmp_path / f"child-{pid}" / "death.txt").write_text(said)
    found = children.dead(tmp_path)
    assert found is not None
    assert (found.directory.name, found.name, found.end.status, found.end.signal) == ("child-7", "process 7", "signal", "SIGSEGV")
    assert "lowering.py" in found.end.text


def test_a_link_in_the_place_of_a_stack_is_not_followed(tmp_path: Path) -> None:
    child(tmp_path, 7)
    kept, death = tmp_path / "kept", tmp_path / "child-7" / "death.txt"
    kept.write_text('Fatal Python error: Aborted\n\nThread 0x01 (most recent call first):\n  File "/x.py", line 1 in f\n')
    death.symlink_to(kept)
    assert children.dead(tmp_path) is None
    death.unlink()
    death.write_bytes(kept.read_bytes())
    assert children.dead(tmp_path) is not None


def test_children_that_compiled_without_an_error(tmp_path: Path) -> None:
    assert children.directories(tmp_path) == []
    child(tmp_path, 7)
    assert children.directories(tmp_path) == [tmp_path / "child-7"]
    assert children.failing(tmp_path, "KeyError") is None
