"""What a job knows, and the status that follows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bot.engine.state import Findings
from bot.engine.workspace import Workspace
from bot.models.failure import Kind, Phase, Signature, Stage
from bot.models.result import ExportedProgram, Result, VerificationFacts
from bot.oracle.memo import Ledger
from bot.reduce.graph.form import Graph, Input, Meta, Node, Program, Ref

SIGNATURE = Signature(kind=Kind.EXCEPTION, phase=Phase.INDUCTOR_LOWERING, exception=("InductorError", "KeyError"), message="7\nmore")


def program(ops: int, elements: int = 4) -> Program:
    meta = Meta("tensor", (elements,), (1,), "float32")
    names = ["x", *(f"relu_{n}" for n in range(ops))]
    nodes = tuple(Node(names[n + 1], "function", "torch.relu", (Ref(names[n]),), meta=meta) for n in range(ops))
    return Program(Graph((Input("x", meta),), nodes, (Ref(names[-1]),)))


def findings(**more: Any) -> Findings:
    """A graph of three operations reduced to one, proven in three runs."""
    facts = {
        "original": "a\nb\n# c\n\nd\n",
        "verify_runs": 3,
        "stage": Stage.AOT,
        "failure": SIGNATURE,
        "start": program(3),
        "program": program(1, 1),
        "text": "a\nb\nc\n",
        "verification": VerificationFacts(runs=3, same=3, eager="passes"),
    }
    return Findings(**{**facts, **more})


@pytest.mark.parametrize(
    ("runs", "same", "eager", "status"),
    [
        (0, 0, "not_applicable", "error"),
        (3, 3, "passes", "minimized"),
        (3, 3, "fails", "error"),
        (3, 0, "passes", "error"),
        (10, 4, "passes", "flaky"),
        (10, 9, "passes", "flaky"),
        (10, 9, "fails", "error"),
        (1, 1, "passes", "error"),  # cut short
        (2, 2, "passes", "error"),
        (10, 10, "passes", "minimized"),
    ],
)
def test_status(runs: int, same: int, eager: Any, status: str) -> None:
    assert findings(verification=VerificationFacts(runs=runs, same=same, eager=eager)).status() == status


SMALLER: list[tuple[dict[str, Any], bool]] = [
    ({}, True),
    ({"text": None}, False),
    ({"original": None, "program": program(3)}, True),  # a command: any script is smaller
    ({"program": program(3, 1), "text": "a\nb\nc\nd\n"}, False),
    ({"program": program(3, 1), "text": "a\nb\n"}, True),
    ({"program": program(2), "text": "a\n" * 9}, True),
    ({"stage": Stage.SOURCE, "start": None, "program": None, "text": "a\nb\n"}, True),
    ({"stage": Stage.SOURCE, "start": None, "program": None, "text": "a\nb\n# c\n\nd\n"}, False),
    ({"stage": Stage.SOURCE, "start": None, "program": None, "text": "a\nb\nd\n"}, False),  # only the comment went
    ({"stage": Stage.SOURCE, "start": None, "program": None, "text": "a\nb\nd\n# a long comment\n"}, False),
]


@pytest.mark.parametrize(("change", "smaller"), SMALLER)
def test_smaller(change: dict[str, Any], smaller: bool) -> None:
    assert findings(**change).smaller() is smaller
    assert findings(**change).status() == ("minimized" if smaller else "reproduced")


def test_how_much_smaller(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "log", resume=False)
    ledger.queries, ledger.memo_hits = 7, 2
    found = findings(ledger=ledger, timing={"search": 1.23456}).reduction()
    assert (found.ops_before, found.ops_after) == (3, 1)
    assert (found.input_elements_before, found.input_elements_after) == (4, 1)
    assert (found.lines_before, found.lines_after) == (3, 3), "blank lines and comments are none"
    assert (found.queries, found.memo_hits, found.seconds) == (7, 2, 1.235)
    source = findings(stage=Stage.SOURCE, start=None, program=None).reduction()
    assert (source.ops_before, source.ops_after, source.input_elements_after) == (None, None, None)


def test_unproven() -> None:
    assert findings().unproven("out of time") is None
    assert findings(verification=VerificationFacts(runs=1, same=1, eager="passes")).unproven("out of time") == "out of time"


VERSIONS = {"python": "3.11", "torch": "2.13", "git": "abc"}


def test_the_head_of_a_repro_is_comments() -> None:
    text = findings(versions=VERSIONS).headed("import torch\n", VerificationFacts(runs=10, same=4, eager="passes"))
    assert text.splitlines() == [
        "# exception in inductor_lowering: InductorError: KeyError: 7",
        "# torch 2.13, python 3.11",
        "# failed in 4 of 10 fresh processes",
        "import torch",
    ]


def test_the_result_says_what_is_there(tmp_path: Path) -> None:
    space = Workspace(tmp_path / "out")
    space.prepare(resume=False)
    found = findings(versions=VERSIONS, culprit="pass", passes_if="-a", other=("x",), timing={"capture": 1.0, "start": 9.0})
    empty = found.result(space, "minimized", "fixed_point")
    assert (empty.files.repro, empty.files.exported_program, empty.evidence.pytorch_dump) == (None, None, False)
    space.repro.write_text("")
    space.exported.write_text("")
    space.exported_text.write_text("")
    (space.original / "pytorch").mkdir()
    stale = found.result(space, "not_reproduced", "fixed_point").files  # of an earlier run
    assert (stale.repro, stale.exported_program, stale.exported_text) == (None, None, None)
    found.confirmed, found.exported = (found.program, found.text), ExportedProgram(same_signature=True)
    full = found.result(space, "error", "budget", "why", "the disk is full")
    assert (full.files.repro, full.files.exported_program) == ("repro.py", "exported_program.pt2")
    assert full.files.exported_text == "exported_program.txt"
    assert (full.status, full.ended_by, full.reason, full.machine_fault) == ("error", "budget", "why", "the disk is full")
    assert (full.signature, full.culprit, full.evidence.passes_if, full.evidence.other_failures) == (SIGNATURE, "pass", "-a", ("x",))
    assert (full.timing.capture, full.timing.search) == (1.0, 0.0)
    assert full.evidence.pytorch_dump
    assert full.versions["torch"] == "2.13"
    assert Result.model_validate_json(full.to_json()) == full


def test_a_job_that_found_nothing_has_a_result(tmp_path: Path) -> None:
    space = Workspace(tmp_path / "out")
    found = Findings("text", 3)
    result = found.result(space, found.status(), "interrupted", "ended")
    assert (result.status, result.signature, result.stage, result.versions) == ("error", None, None, {})
    assert replace(found).status() == "error"
