"""What is said of a result's figures: no more than they show."""

from __future__ import annotations

from typing import Any

import pytest

from bot.action.report.render.facts import evidence, figures, reduction, why
from bot.models.failure import Kind, Phase, Signature
from bot.models.result import Elsewhere, Evidence, ExportedProgram, Files, Reduction, Rule, Timing, VerificationFacts
from tests.action.report.reports import result


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, ""),
        ({"reason": "no gcc"}, "`no gcc`"),
        ({"reason": "no gcc here", "machine_fault": "no gcc"}, "`no gcc here`\n\nThis is the machine's fault."),
        ({"reason": "it passes", "machine_fault": "no gcc"}, "`it passes`\n\nThe machine's fault: `no gcc`"),
        ({"reason": "a\nb"}, "```text\na\nb\n```"),
    ],
)
def test_why(changes: dict[str, Any], said: str) -> None:
    assert why(result(**changes)) == said


@pytest.mark.parametrize(
    ("reduced", "repro", "said"),
    [
        ({"ops_before": 1200, "ops_after": 1, "lines_before": 9, "lines_after": 2}, True, "1,200 → 1 ops, 9 → 2 lines"),
        ({"ops_before": 9, "ops_after": 1}, False, ""),
        ({"ops_before": 9}, True, ""),
    ],
)
def test_figures(reduced: dict[str, Any], repro: bool, said: str) -> None:
    nothing = {"lines_before": 0, "lines_after": 0}
    made = result(reduction=Reduction(**{**nothing, **reduced}), files=Files(repro="repro.py" if repro else None))
    assert figures(made) == said


@pytest.mark.parametrize(
    ("eager", "kind", "said"),
    [
        ("passes", Kind.EXCEPTION, "passes"),
        ("passes", Kind.NO_RAISE, "raises, as it should"),
        ("fails", Kind.EXCEPTION, "does not pass"),
        ("fails", Kind.NO_RAISE, "does not raise what it should"),
        ("not_applicable", Kind.EXCEPTION, "not run"),
    ],
)
def test_the_control(eager: Any, kind: Kind, said: str) -> None:
    made = result(
        signature=Signature(kind=kind, phase=Phase.DYNAMO, exception=("E",), message="no"),
        verification=VerificationFacts(runs=3, same=2, eager=eager),
    )
    rows = dict(evidence(made))
    assert rows["Without the compiler"] == said
    assert rows["Fails in the same way, alone, in fresh processes"] == "2 of 3"


def test_an_error_that_is_missing_where_the_program_ends_in_its_own_way() -> None:
    """Its signature is the program's exit status, which says nothing of it."""
    made = result(
        signature=Signature(kind=Kind.EXCEPTION, phase=Phase.RUN, exception=("SystemExit",), message="3"),
        verification=VerificationFacts(runs=3, same=3, eager="passes", rule=Rule(own_verdict=True, error="IndexError: <index> out of")),
    )
    said = "passes: something that is compiled raises <code>IndexError: &lt;index&gt; out of</code>, as it should"
    assert dict(evidence(made))["Without the compiler"] == said


def test_without_a_run_nothing_is_said_of_one() -> None:
    rows = dict(evidence(result(verification=VerificationFacts(runs=0, same=0, eager="not_applicable"), stage=None)))
    assert rows == {}


def test_each_fact_has_its_row() -> None:
    others = (Elsewhere(python="p", versions={"torch": "2.9"}, same=True), Elsewhere(python="q", versions={}, same=False, said="<passes>"))
    made = result(
        versions={"torch": "2.9.1", "cuda_arch": "90"},
        compile_only=True,
        exported_program=ExportedProgram(same_signature=False, reason="<other>"),
        files=Files(repro="repro.py", kernel="kernel.py"),
        evidence=Evidence(elsewhere=others, other_failures=("A", "B")),
        sandbox=("uid", "landlock"),
    )
    rows = dict(evidence(made))
    assert rows["Ran on"] == "<code>torch 2.9.1</code>"
    assert "for sm_<code>90</code>, without a GPU" in rows["Only compiled"]
    assert rows["The exported program, loaded again"] == "<code>&lt;other&gt;</code>"
    assert rows["The kernel alone, without the graph"] == "kernel.py fails in the same way"
    assert rows["With other interpreters"] == (
        "<code>torch 2.9: fails in the same way</code><br><code>without torch: &lt;passes&gt;</code>"
    )
    assert rows["Other failures that the search met"] == "<code>A</code><br><code>B</code>"
    assert rows["Sandbox"] == "<code>uid, landlock</code>"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "4 programs tried; the search took 2.0 s, until nothing more could be removed"),
        ({"ended_by": "budget"}, "4 programs tried; the search took 2.0 s, until the time limit"),
        ({"ended_by": "interrupted"}, "4 programs tried; the search took 2.0 s, until it was interrupted"),
        ({"status": "error", "files": Files()}, "4 programs tried; the search took 2.0 s, with no result"),
    ],
)
def test_how_a_search_ended(changes: dict[str, Any], said: str) -> None:
    rows = reduction(result(timing=Timing(capture=1, search=2, verification=3, evidence=4), **changes)).splitlines()
    assert rows[0] == f"- {said}"
    assert rows[1] == "- capture 1.0 s, search 2.0 s, verification 3.0 s, evidence 4.0 s"


@pytest.mark.parametrize(("hits", "said"), [(0, ""), (1, "; 1 answer was known from before"), (2, "; 2 answers were known from before")])
def test_answers_that_were_known(hits: int, said: str) -> None:
    first = reduction(result(reduction=Reduction(queries=4, memo_hits=hits, seconds=2.0))).splitlines()[0]
    assert first.partition("removed")[2] == said


def test_one_program_is_told_as_one() -> None:
    assert reduction(result(reduction=Reduction(queries=1, seconds=2.0))).startswith("- 1 program tried; the search took 2.0 s")
