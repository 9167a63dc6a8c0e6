"""What a job knows, and the status that follows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bot.engine.capture.region import Capture, Region, RegionRecipe, RuleUsed, nearness
from bot.engine.header import with_header
from bot.engine.state import (
    FEW_LINES,
    Ending,
    Explanation,
    Findings,
    Proof,
    Reproduction,
    SearchResult,
    result_of,
    resumed,
)
from bot.failure.outcome import Outcome
from bot.models.failure import Kind, Phase, Signature, Stage
from bot.models.result import ExportedProgram, Files, Result, Rule, VerificationFacts
from bot.reduce.graph.form import Graph, Input, Meta, Node, Program, Ref

SIGNATURE = Signature(kind=Kind.EXCEPTION, phase=Phase.INDUCTOR_LOWERING, exception=("InductorError", "KeyError"), message="7\nmore")

PROVEN = VerificationFacts(runs=3, same=3, eager="passes")
ONCE = VerificationFacts(runs=1, same=1, eager="passes")


def program(ops: int, elements: int = 4) -> Program:
    meta = Meta("tensor", (elements,), (1,), "float32")
    names = ["x", *(f"relu_{n}" for n in range(ops))]
    nodes = tuple(Node(names[n + 1], "function", "torch.relu", (Ref(names[n]),), meta=meta) for n in range(ops))
    return Program(Graph((Input("x", meta),), nodes, (Ref(names[-1]),)))


def search(**more: Any) -> SearchResult:
    """A graph of three operations reduced to one."""
    facts = {"stage": Stage.AOT, "text": "a\nb\nc\n", "rule": Rule(), "start": program(3), "program": program(1, 1)}
    return SearchResult(**{**facts, **more})


def reproduction(tmp_path: Path, **more: Any) -> Reproduction:
    capture = Capture(outcome=Outcome(status="raised", seconds=30.0), signature=SIGNATURE, regions=(), versions={}, log=tmp_path)
    return Reproduction(capture=capture, failure=SIGNATURE, source=None, original=None, hang_after=60.0, **more)


def findings(result: SearchResult | None = None, facts: VerificationFacts = PROVEN, **more: Any) -> Findings:
    """One that is proven in three runs."""
    result = result or search()
    return Findings(**{"original": "a\nb\n# c\n\nd\n", "search": result, "proof": Proof(result.text, facts), **more})


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
        (3, 3, "not_applicable", "error"),  # a comment would not repeat it either
    ],
)
def test_status(runs: int, same: int, eager: Any, status: str) -> None:
    assert findings(facts=VerificationFacts(runs=runs, same=same, eager=eager)).status(3) == status


SOURCE = {"stage": Stage.SOURCE, "start": None, "program": None}
SMALLER: list[tuple[dict[str, Any], bool]] = [
    ({}, True),
    ({"program": program(3, 1), "text": "a\nb\nc\nd\n"}, False),
    ({"program": program(3, 1), "text": "a\nb\nc\n"}, False),
    ({"text": "a\n" * FEW_LINES}, True),
    ({"text": "a\n" * (FEW_LINES + 1)}, False),  # a longer script of a smaller graph
    ({"program": program(3, 1), "text": "a\nb\n"}, True),
    ({"program": program(2), "text": "a\n" * 9}, True),
    ({**SOURCE, "text": "a\nb\n"}, True),
    ({**SOURCE, "text": "a\nb\n# c\n\nd\n"}, False),
    ({**SOURCE, "text": "a\nb\nd\n"}, False),  # only the comment went
    ({**SOURCE, "text": "a\nb\nd\n# a long comment\n"}, False),
]


@pytest.mark.parametrize(("change", "smaller"), SMALLER)
def test_smaller(change: dict[str, Any], smaller: bool) -> None:
    found = findings(search(**change))
    assert found.is_smaller() is smaller
    assert found.status(3) == ("minimized" if smaller else "reproduced")


@pytest.mark.parametrize(
    ("change", "smaller"),
    [
        ({"program": program(1)}, True),
        ({"program": program(3, 1)}, True),
        ({"program": program(3)}, False),
        ({"program": program(4, 1)}, False),
        ({"program": program(1, 9)}, True),
        (SOURCE, False),
    ],
)
def test_a_program_without_a_text_is_as_large_as_its_graph(change: dict[str, Any], smaller: bool) -> None:
    """Of a command, nothing else is known: that nothing could be removed from its graph is no reduction."""
    assert findings(search(**change), original=None).is_smaller() is smaller


def test_nothing_is_not_smaller() -> None:
    assert not Findings(None).is_smaller()


def test_how_much_smaller() -> None:
    found = findings(search_seconds=1.23456).reduction(7, 2)
    assert (found.ops_before, found.ops_after) == (3, 1)
    assert (found.input_elements_before, found.input_elements_after) == (4, 1)
    assert (found.lines_before, found.lines_after) == (3, 3), "blank lines and comments are none"
    assert (found.queries, found.memo_hits, found.seconds) == (7, 2, 1.235)
    source = findings(search(**SOURCE)).reduction()
    assert (source.ops_before, source.ops_after, source.input_elements_after) == (None, None, None)


def test_a_reason_is_given_where_nothing_is_verified() -> None:
    assert findings().reason_if_unverified("out of time", 3) is None
    assert findings(facts=ONCE).reason_if_unverified("out of time", 3) == "out of time"


@pytest.mark.parametrize(
    ("search_was", "same", "code"),
    [
        ({}, 0, "budget"),  # cut off before anything failed alone
        ({}, 3, "internal"),  # the script did, without more time
        ({"fixed_point": True}, 0, "internal"),  # each form was asked
        ({"fault": "a worker broke"}, 0, "internal"),
        ({"reference": SIGNATURE}, 0, "internal"),  # a form failed, which fresh processes do not confirm
    ],
)
def test_why_nothing_is_proven(search_was: dict[str, Any], same: int, code: str) -> None:
    found = findings(search(**search_was), VerificationFacts(runs=3, same=same, eager="fails"))
    assert found.code(found.status(3)) == code
    assert found.unlike(by_command=False).startswith("out of time") == (code == "budget")


@pytest.mark.parametrize(
    ("same", "by_command", "said"),
    [
        (3, False, "3 of 3 fresh processes failed in the same way, but the compiler is not shown to be the cause: eager control: it fails"),
        (0, False, "fresh processes did not show the same failure: eager control: it fails"),
        (3, True, "3 of 3 fresh processes failed in the same way, but the compiler is not shown to be the cause: eager control: it fails"),
        (0, True, "the command fails here, but not the script that calls its test alone: eager control: it fails"),
    ],
)
def test_fresh_runs_that_fail_alike_are_told_so_where_the_control_fails(same: int, by_command: bool, said: str) -> None:
    facts = VerificationFacts(runs=3, same=same, eager="fails")
    proven = Findings(None, proof=Proof("text", facts, ("run 3: passes", "eager control: it fails")))
    assert proven.unlike(by_command=by_command) == said


@pytest.mark.parametrize(("same", "eager", "holds"), [(1, "passes", True), (0, "passes", False), (3, "fails", False)])
def test_a_proof_holds(same: int, eager: Any, holds: bool) -> None:
    assert Proof("text", VerificationFacts(runs=3, same=same, eager=eager)).holds is holds


@pytest.mark.parametrize(("kind", "said"), [(Kind.NO_RAISE, "ValueError: no"), (Kind.EXCEPTION, "")])
def test_what_eager_raises_counts_where_the_compiled_program_does_not(tmp_path: Path, kind: Kind, said: str) -> None:
    found = reproduction(tmp_path)
    capture = found.capture.model_copy(update={"eager_error": "ValueError: no"})
    assert replace(found, capture=capture, failure=SIGNATURE.model_copy(update={"kind": kind})).eager_error == said


@pytest.mark.parametrize(("partial", "said"), [(False, "ValueError: no"), (True, "")])
def test_what_eager_raises_counts_where_the_program_says_by_itself_that_it_is_missed(tmp_path: Path, partial: bool, said: str) -> None:
    """It may leave with a status: then nothing of what it prints names the error."""
    found = reproduction(tmp_path)
    capture = found.capture.model_copy(update={"eager_error": "ValueError: no", "own_verdict": True, "partial": partial})
    assert replace(found, capture=capture, failure=SIGNATURE.model_copy(update={"kind": Kind.EXCEPTION})).eager_error == said


@pytest.mark.parametrize(("seconds", "pooled", "limit"), [(1.0, False, 20.0), (30.0, False, 90.0), (30.0, True, 180.0)])
def test_a_query_may_take_a_few_times_what_the_program_took(tmp_path: Path, seconds: float, pooled: bool, limit: float) -> None:
    """Its kernels are compiled one after the other, as the program's may not be."""
    found = reproduction(tmp_path)
    outcome = Outcome(status="raised", seconds=seconds)
    assert replace(found, capture=found.capture.model_copy(update={"outcome": outcome, "pooled": pooled})).limit == limit


VERSIONS = {"python": "3.11", "torch": "2.13", "git": "abc"}


def test_the_head_of_a_repro_is_comments() -> None:
    text = with_header("import torch\n", SIGNATURE, VerificationFacts(runs=10, same=4, eager="passes"), VERSIONS)
    assert text.splitlines() == [
        "# exception in inductor_lowering: InductorError: KeyError: 7",
        "# torch 2.13, python 3.11",
        "# failed in 4 of 10 fresh processes",
        "import torch",
    ]


@pytest.mark.parametrize(
    ("programs", "repros", "said"), [(True, True, True), (True, False, False), (True, None, True), (False, True, False)]
)
def test_a_repro_that_is_called_alone_fails_in_no_backward(programs: bool, repros: bool | None, said: bool, tmp_path: Path) -> None:
    failure = SIGNATURE.model_copy(update={"backward": programs})
    reference = None if repros is None else SIGNATURE.model_copy(update={"backward": repros})
    found = findings(search(reference=reference), reproduction=replace(reproduction(tmp_path), failure=failure))
    assert ("(backward)" in found.shown().line()) is said
    assert found.shown().same_across_forms(failure)


def test_the_head_of_a_repro_tells_what_the_repro_says(tmp_path: Path) -> None:
    """Its sizes are others than the program's, and a graph is compared by a check of its own."""
    failure = SIGNATURE.model_copy(update={"message": "size N", "said": "size 4096"})
    own, begun = (failure.model_copy(update={"said": said}) for said in ("size 2", "size 64"))
    found = findings(search(reference=begun), reproduction=replace(reproduction(tmp_path), failure=failure))
    assert found.proof is not None
    proven = replace(found, proof=replace(found.proof, shown=own))
    assert found.shown().said == "size 64", "nobody heard a fresh run"
    assert (proven.shown().said, proven.shown().message) == ("size 2", "size N")
    assert replace(proven, search=None, proof=None).shown().said == "size 4096"

    wrong = Signature(kind=Kind.ACCURACY, phase=Phase.RUN, exception=("AssertionError",), message="step N diverged", said="step 3 diverged")
    left = wrong.model_copy(update={"exception": ("SystemExit",), "said": "3"})
    compared = wrong.model_copy(update={"message": "Tensor-likes are not close!", "said": ""})
    for program, said in ((wrong, ""), (left, "3")):  # an exit stays what the program says of wrong numbers
        one = findings(search(reference=compared), reproduction=replace(reproduction(tmp_path), failure=program))
        assert one.shown().said == said


def test_the_head_holds_no_command_to_a_terminal() -> None:
    said = SIGNATURE.model_copy(update={"message": "7 \x1b]0;x\x07 \r"})
    text = with_header("", said, VerificationFacts(runs=3, same=3, eager="passes"), VERSIONS)
    assert "KeyError: 7 \\x1b]0;x\\x07" in text
    assert all(character == "\n" or character.isprintable() for character in text)
    assert all(line.startswith("# ") for line in text.splitlines())


def test_the_head_says_that_nothing_ran() -> None:
    text = with_header("import torch\n", SIGNATURE, VerificationFacts(runs=3, same=3, eager="passes"), {**VERSIONS, "cuda_arch": "90"})
    assert "# compile-only, no GPU was used: compiled for sm_90" in text.splitlines()


WITHIN = "which is within the tolerance"


@pytest.mark.parametrize(
    ("compiled", "eager", "words"),
    [
        (1.5e-3, 1.4e-3, "compiled is as near to float64 as eager (root mean square error 1.5e-03, eager 1.4e-03)"),
        (1.2e-3, 1.4e-3, "compiled is nearer to float64 than eager (root mean square error 1.2e-03, eager 1.4e-03)"),
        (0.0, 3.0, "compiled is nearer to float64 than eager (root mean square error 0.0e+00, eager 3.0e+00)"),
        (0.0, 0.0, "compiled is as near to float64 as eager (root mean square error 0.0e+00, eager 0.0e+00)"),
        (4e-1, 1e-1, "compiled is no farther from float64 than rounding may take it (root mean square error 4.0e-01, eager 1.0e-01)"),
        (
            4e-4,
            1e-6,
            f"compiled is 4e+02 times as far from float64 as eager, {WITHIN} (root mean square error 4.0e-04, eager 1.0e-06)",
        ),
        (
            4e-4,
            0.0,
            f"compiled is farther from float64 than eager, {WITHIN} (root mean square error 4.0e-04, eager 0.0e+00)",
        ),
    ],
)
def test_nearness_is_said_as_it_was_found(compiled: float, eager: float, words: str) -> None:
    assert nearness(compiled, eager) == words


ALONE = "in the program as given, by its own check alone: in the calls that were compared compiled is"
ALIKE = f"{ALONE} as near to float64 as eager (root mean square error 1.0e-03, eager 1.0e-03)"
BESIDE = (
    "in the program as given, each compiled graph computes what it says in the calls that were compared: compiled is as near to float64 as"
    " eager (root mean square error 1.0e-03, eager 1.0e-03); what its own check rejects may be rounding, an error in tracing,"
    " outside of the graphs or in another call, or something other than numbers"
)
FARTHER = f"{ALONE} 4 times as far from float64 as eager (root mean square error 4.0e-03, eager 1.0e-03)"


@pytest.mark.parametrize(
    ("kind", "right_numbers", "errors", "rules", "said"),
    [
        (Kind.EXCEPTION, True, (1e-3, 1e-3), (), BESIDE),  # no region was found wrong
        (Kind.ACCURACY, False, (1e-3, 1e-3), (), BESIDE),
        (Kind.ACCURACY, False, (1e-3, 1e-3), ((1e-9, 0.0),), ALIKE),  # a tolerance tighter than rounding
        (Kind.ACCURACY, False, (4e-3, 1e-3), ((1e-9, 0.0),), FARTHER),
        (Kind.ACCURACY, False, (1e-1, 1e-3), ((1e-9, 0.0),), ""),  # wrong by any rule
        (Kind.ACCURACY, False, (1e-3, 1e-3), ((1e-9, 0.0), None), ""),  # PyTorch's rule says so, too
        (Kind.EXCEPTION, False, (1e-3, 1e-3), (), ""),  # about something else
        (Kind.NO_RAISE, True, (1e-3, 1e-3), (), ""),  # what is wrong is no number
        (Kind.EXCEPTION, True, None, (), ""),  # nothing was compared
    ],
)
def test_who_asks_for_more_than_rounding_gives_is_told(
    tmp_path: Path, kind: Kind, right_numbers: bool, errors: Any, rules: tuple[Any, ...], said: str
) -> None:
    regions = tuple(
        Region(
            hook="aot", failed="accuracy", backward=False, recipe=RegionRecipe(), graph=None, reason=None, blobs=tmp_path,
            rule=RuleUsed(tolerance=tolerance),
        )
        for tolerance in rules
    )  # fmt: skip
    found = reproduction(tmp_path, right_numbers=right_numbers)
    capture = found.capture.model_copy(update={"errors": errors, "regions": regions})
    found = replace(found, capture=capture, failure=SIGNATURE.model_copy(update={"kind": kind}))
    assert found.nearness == said
    full = result_of(findings(reproduction=found), Ending("minimized"), findings().reduction(), Files(), VERSIONS, ())
    assert full.evidence.nearness == (said or None)
    assert (f"# {said}" in with_header("", SIGNATURE, PROVEN, VERSIONS, found.nearness).splitlines()) is bool(said)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (
            "recompile. filename: 'repro.py', function name: 'f', line number: 12",
            "filename: 'repro.py', function name: 'f', line number: 15",
        ),
        ("refused at repro.py:4", "refused at repro.py:7"),
        ('File "repro.py", line 4', 'File "repro.py", line 7'),
        ("refused at other.py:4", "refused at other.py:4"),
        ("repro.py asked other.py, line 4", "repro.py asked other.py, line 4"),
        ("repro.py gave 12 results", "repro.py gave 12 results"),
    ],
)
def test_lines_of_the_repro_are_counted_with_its_header(said: str, shown: str) -> None:
    first = with_header("", SIGNATURE.model_copy(update={"said": said}), PROVEN, VERSIONS).splitlines()[0]
    assert first.endswith(shown)


def test_the_result_says_what_is_known(tmp_path: Path) -> None:
    explanation = Explanation(culprit="pass", passes_if="-a", other_failures=("x",), exported=ExportedProgram(same_signature=True))
    found = findings(reproduction=reproduction(tmp_path, seconds=1.0), explanation=explanation)
    ending = Ending("error", "budget", "why", "the disk is full")
    files = Files(repro="repro.py", exported_program="exported_program.pt2")
    full = result_of(found, ending, found.reduction(7), files, VERSIONS, ("landlock",), pytorch_dump=True)
    assert (full.status, full.ended_by, full.reason, full.machine_fault) == ("error", "budget", "why", "the disk is full")
    assert (full.signature, full.culprit, full.evidence.passes_if, full.evidence.other_failures) == (SIGNATURE, "pass", "-a", ("x",))
    assert (full.timing.capture, full.timing.search, full.stage, full.files) == (1.0, 0.0, Stage.AOT, files)
    assert (full.reduction.queries, full.verification, full.exported_program) == (7, PROVEN, explanation.exported)
    assert full.evidence.pytorch_dump
    assert full.sandbox == ("landlock",)
    assert full.versions["torch"] == "2.13"
    assert Result.model_validate_json(full.to_json()) == full


def test_a_job_that_found_nothing_has_a_result() -> None:
    found = Findings("text")
    result = result_of(found, Ending(found.status(3), "interrupted", "ended"), found.reduction(), Files(), {}, ())
    assert (result.status, result.signature, result.stage, result.versions) == ("error", None, None, {})
    assert result.reduction.lines_before == 1


OTHER = SIGNATURE.model_copy(update={"message": "neither"})
UNPROVEN = VerificationFacts()


@pytest.mark.parametrize(
    ("failure", "facts", "status", "kept"),
    [
        (None, UNPROVEN, "error", True),
        (SIGNATURE, UNPROVEN, "error", True),
        (SIGNATURE, ONCE, "error", False),  # it has a result of its own
        (OTHER, UNPROVEN, "error", False),
        (None, UNPROVEN, "not_reproduced", False),
    ],
)
def test_a_resumed_run_that_proves_nothing_keeps_the_earlier_result(
    failure: Signature | None, facts: VerificationFacts, status: Any, kept: bool
) -> None:
    earlier = Result(status="error", ended_by="interrupted", signature=SIGNATURE, verification=ONCE)
    result = Result(status=status, ended_by="budget", reason="why", signature=failure, verification=facts)
    found = resumed(earlier, result)
    assert (found is not result) is kept
    if kept:
        assert (found.verification, found.signature, found.ended_by, found.reason) == (ONCE, SIGNATURE, "budget", "why")


def test_a_result_that_was_complete_stays_as_it_is() -> None:
    earlier = Result(status="minimized", signature=SIGNATURE, verification=ONCE)
    assert resumed(earlier, Result(status="error", ended_by="interrupted", reason="why")) is earlier


def test_a_run_that_resumes_nothing_has_its_own_result() -> None:
    result = Result(status="error")
    assert resumed(None, result) is result
    assert resumed(Result(status="error"), result) is result


def test_what_ended_the_search() -> None:
    end, fault = SearchResult(Stage.SOURCE, "x", Rule(), fixed_point=True), SearchResult(Stage.SOURCE, "x", Rule(), fault="of ours")
    assert Findings(None).ended_by("budget") == "budget"
    assert Findings(None, search=end).ended_by("budget") == "fixed_point"
    assert Findings(None, search=end).ended_by("interrupted", proven=False) == "interrupted"
    assert Findings(None, search=replace(end, fixed_point=False)).ended_by("budget") == "budget"
    assert Findings(None, search=fault).ended_by("budget") == Findings(None, search=fault).ended_by("fixed_point") == "interrupted"


@pytest.mark.parametrize(
    ("ended", "search_was", "code"),
    [
        (None, {"fixed_point": True}, "internal"),
        (Outcome(status="ok"), {"fixed_point": True}, "not_understood"),  # it lost a thread to it
        (Outcome(status="ok"), {"fixed_point": True, "reference": SIGNATURE}, "internal"),  # a form failed in a worker
        (Outcome(status="ok"), {}, "budget"),
        (Outcome(status="ok"), {"fixed_point": True, "fault": "a worker broke"}, "internal"),
    ],
)
def test_what_a_program_does_not_end_with_is_not_our_fault(
    tmp_path: Path, ended: Outcome | None, search_was: dict[str, Any], code: str
) -> None:
    given = reproduction(tmp_path)
    given = replace(given, capture=given.capture.model_copy(update={"ended": ended}))
    found = findings(search(**search_was), VerificationFacts(runs=3, same=0, eager="passes"), reproduction=given)
    assert found.proof is not None
    found = replace(found, proof=replace(found.proof, differences=("run 3: did not fail",)))
    assert found.code(found.status(3)) == code
    said = found.unlike(by_command=True)
    assert ("loses only a thread" in said) == (code == "not_understood")
    assert said.endswith(": run 3: did not fail")


def test_wrong_numbers_that_a_program_does_not_look_at_are_told_where_no_form_shows_them(tmp_path: Path) -> None:
    given = reproduction(tmp_path)
    given = replace(given, capture=given.capture.model_copy(update={"outcome": Outcome(status="ok")}))
    found = findings(search(fixed_point=True), VerificationFacts(runs=3, same=0, eager="passes"), reproduction=given)
    assert found.code(found.status(3)) == "not_understood"
    said = "the program does not end with its failure (a compiled graph's numbers are wrong), and no form of it that does was found"
    assert found.unlike(by_command=False).startswith(said)


def test_a_program_that_fails_steadily_in_another_way_is_told_so() -> None:
    """It did not end when it was captured, say, and raises in each fresh process."""
    proof = Proof("text", VerificationFacts(runs=3, same=0, eager="passes"), ("run 3: kind exception, not hang",), instead=SIGNATURE)
    said = Findings(None, proof=proof).unlike(by_command=False)
    assert said == (
        "3 of 3 fresh processes failed, but each in one other way (exception in inductor_lowering: InductorError: KeyError: 7):"
        " run 3: kind exception, not hang"
    )


@pytest.mark.parametrize(
    ("search_was", "same", "told"),
    [
        ({"fixed_point": True}, 3, True),
        ({"fixed_point": True}, 2, True),
        ({"fixed_point": True}, 0, False),  # the status says more
        ({"fixed_point": True, "reference": SIGNATURE}, 3, False),
        ({}, 3, False),  # the time was over before
    ],
)
def test_what_was_not_tried_to_be_removed_is_told(search_was: dict[str, Any], same: int, told: bool) -> None:
    found = findings(search(program=program(3), **search_was), VerificationFacts(runs=3, same=same, eager="passes"))
    assert (found.unreduced(found.status(3)) is not None) is told
