"""Whether a program that caught the compiler's exception failed for that."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.engine.capture.region import Capture, Region, RegionRecipe
from bot.engine.caught import ends_so_anyway, for_what_it_caught, passes
from bot.failure.outcome import Outcome
from bot.failure.signature import signature_of

OF_COMPILER = Outcome(
    status="raised",
    text="Traceback (most recent call last):\n"
    '  File "/v/site-packages/torch/_dynamo/exc.py", line 1, in unimplemented\n    raise\ntorch._dynamo.exc.Unsupported: no frames\n',
)
SAID = "exception in dynamo: Unsupported: no frames"
LEFT = Outcome(status="exit", exit=1)
OWN = 'Traceback (most recent call last):\n  File "fail.py", line 9, in <module>\n    raise RuntimeError(said)\nRuntimeError: {}\n'
SAYS = Outcome(status="raised", text=OWN.format("2 of 3 failed, Unsupported"))
FROM_IT = Outcome(
    status="raised",
    text=f"{OF_COMPILER.text}\nThe above exception was the direct cause of the following exception:\n\n{OWN.format('no model')}",
)


def captured(outcome: Outcome, ended: Outcome | None = None, child: str = "") -> Capture:
    signature = signature_of(outcome, script="fail.py")
    return Capture(outcome=outcome, signature=signature, ended=ended, child=child, regions=(), versions={}, log=Path())


@pytest.mark.parametrize(
    ("ended", "again", "anyway"),
    [
        (LEFT, captured(LEFT), True),
        (LEFT, captured(Outcome(status="exit", exit=2)), False),
        (LEFT, captured(Outcome(status="ok")), False),
        (LEFT, captured(OF_COMPILER, LEFT), False),  # of a backward: nothing can be run in its place
        (SAYS, captured(Outcome(status="raised", text=OWN.format("1 of 3 failed, Unsupported"))), True),
        (SAYS, captured(Outcome(status="ok")), False),
    ],
)
def test_it_is_run_once_more_without_the_exception(ended: Outcome, again: Capture, anyway: bool) -> None:
    assert ends_so_anyway(captured(OF_COMPILER, ended), "fail.py", lambda: again) is anyway


@pytest.mark.parametrize("found", [captured(OF_COMPILER), captured(OF_COMPILER, FROM_IT), captured(OF_COMPILER, LEFT, "rank 1")])
def test_what_follows_from_it_is_not_asked(found: Capture) -> None:
    def never() -> Capture:
        raise AssertionError("run once more")

    assert not ends_so_anyway(found, "fail.py", never)


STOPPED = Outcome(status="raised", text=OWN.format("stopped early: 3 of 6"))


def behind(outcome: Outcome) -> Capture:
    return captured(outcome).model_copy(update={"behind": OF_COMPILER.text, "own_verdict": True})


@pytest.mark.parametrize(
    ("again", "follows"),
    [
        (captured(Outcome(status="ok")), True),
        (captured(STOPPED), False),
        (captured(LEFT), False),
        (captured(OF_COMPILER), False),
    ],
)
def test_a_program_that_passes_without_the_exception_failed_for_it_whatever_it_says(again: Capture, follows: bool) -> None:
    found = behind(STOPPED)
    taken = for_what_it_caught(found, "fail.py", lambda: again)
    if not follows:
        assert taken == found
        return
    assert taken.signature == signature_of(OF_COMPILER)
    assert taken.ended == STOPPED
    assert not taken.own_verdict
    assert taken.as_it_ended("fail.py").outcome == STOPPED
    assert not ends_so_anyway(taken, "fail.py", lambda: captured(STOPPED)), "it is not run for that again"


ASSERTED = Outcome(status="raised", text=OWN.format("stopped early: 3 of 6").replace("RuntimeError", "AssertionError"))
WRONG = Region(hook="aot", failed="accuracy", backward=False, recipe=RegionRecipe(), graph=None, reason="no", blobs=Path())


def test_an_assertion_is_about_wrong_numbers_if_there_are_some() -> None:
    """It fell back after an error of one mode, and what another mode computes is wrong."""
    found = behind(ASSERTED)
    assert found.signature is not None
    assert "AssertionError" in found.signature.exception

    def compared(one: Capture) -> Capture:
        return one.with_wrong((WRONG,))

    def never() -> Capture:
        raise AssertionError("run once more")

    assert for_what_it_caught(found, "fail.py", never, compared).wrong == (WRONG,)
    ended_well = captured(Outcome(status="ok"))
    taken = for_what_it_caught(found, "fail.py", lambda: ended_well, lambda one: one.with_wrong(()))
    assert taken.signature == signature_of(OF_COMPILER)
    kept = for_what_it_caught(found, "fail.py", lambda: captured(ASSERTED), lambda one: one.model_copy(update={"errors": (1.0, 1.0)}))
    assert (kept.signature, kept.errors) == (found.signature, (1.0, 1.0))


@pytest.mark.parametrize(
    ("source", "message", "about_numbers"),
    [
        ("assert torch.allclose(a, b)", "", True),
        ("torch.testing.assert_close(a, b)", "Tensor-likes are not close!", True),
        ("self.assertEqual(a, b)", "2 != 3", True),
        ("check(a, b)", "Mismatched elements: 3 / 4", True),
        ("assert not refused, refused", "[torch.float16]", False),
        ("assert not failed, 'modes'", "modes", False),
        ("self.assertEqual(failed, [])", "Lists differ: ['max-autotune'] != []", False),
    ],
)
def test_an_assertion_that_compares_is_about_numbers(source: str, message: str, about_numbers: bool) -> None:
    """A graph that Dynamo traced wrong computes what it says, so no region shows that its numbers are wrong."""
    text = f'Traceback (most recent call last):\n  File "fail.py", line 9, in <module>\n    {source}\nAssertionError: {message}\n'
    found = behind(Outcome(status="raised", text=f"allclose(\n{text}"))
    taken = for_what_it_caught(found, "fail.py", lambda: captured(Outcome(status="ok")))
    assert (taken.signature == signature_of(OF_COMPILER)) is not about_numbers


def test_a_program_that_caught_nothing_is_not_run_again() -> None:
    found = captured(STOPPED)
    assert for_what_it_caught(found, "fail.py", lambda: captured(Outcome(status="ok"))) is found


@pytest.mark.parametrize(
    ("caught", "without", "said"),
    [
        ("", Outcome(status="ok"), "the program passes here"),
        (
            "",
            LEFT.model_copy(update={"raised": 1}),
            "passes here, but not without the compiler: it ends with status 1; a program that",
        ),
        (
            "exception in dynamo: Unsupported: no frames",
            LEFT,
            f"though it went on after what the compiler raised ({SAID}): a program that",
        ),
        (
            "exception in run: RuntimeError: u0 >= 5",
            Outcome(status="ok", raised=2),
            "though it went on after an error (exception in run: RuntimeError: u0 >= 5); without the compiler something of what it",
        ),
    ],
)
def test_what_is_said_of_one_that_passes(caught: str, without: Outcome, said: str) -> None:
    found = captured(Outcome(status="ok")).model_copy(update={"caught": caught})
    assert said in passes(found, without)


def test_of_what_it_checks_without_an_error_nothing_is_promised() -> None:
    """It may ask whether numbers differ, and leave with 0 where they do, by no more than rounding."""
    said = passes(captured(Outcome(status="ok")), LEFT)
    assert said == "the program passes here, but not without the compiler: it ends with status 1"


def test_a_compiler_that_is_turned_off_is_no_program_that_passes() -> None:
    found = captured(Outcome(status="ok")).model_copy(update={"off": "TORCH_COMPILE_DISABLE=1", "runs": 2})
    said = "the program passes here in 2 runs, but nothing is compiled: TORCH_COMPILE_DISABLE=1 turns the compiler off"
    assert passes(found, Outcome(status="ok")) == said


def test_what_dynamo_swallows_the_program_did_not_catch() -> None:
    found = captured(Outcome(status="ok")).model_copy(update={"caught": "KeyError: 7", "swallows": True})
    said = "the program passes here, though Dynamo swallowed what the compiler raised (KeyError: 7): without suppress_errors"
    assert passes(found, Outcome(status="ok")).startswith(said)


def test_whole_numbers_that_do_not_count_are_told() -> None:
    found = captured(Outcome(status="ok")).model_copy(update={"whole": True})
    said = passes(found, Outcome(status="ok"))
    assert said.startswith("the program passes here; integral or boolean results of what it compiles differ from eager's")
    assert said.endswith(": --accuracy strict counts these")


def test_other_results_that_are_only_printed_are_told() -> None:
    """Dynamo may have captured another computation: then no compiled graph is wrong."""
    found = captured(Outcome(status="ok")).model_copy(update={"runs": 2, "prints": ("sum 0.0\n",) * 2})
    said = "the program passes here in 2 runs; it prints 'sum 0.0' each time, and 'sum 2.5' without the compiler; if that is wrong, let"
    assert passes(found, Outcome(status="ok", stdout="sum 2.5\n")).startswith(said)
    assert passes(found, Outcome(status="ok", stdout="sum 0.0\n")) == "the program passes here in 2 runs"
    assert passes(found, Outcome(status="ok")) == "the program passes here in 2 runs"  # it is not known what that printed


def test_what_a_program_prints_for_want_of_an_error_is_told() -> None:
    """Eager refuses what it compiles: it prints the error and ends well, each time."""
    found = captured(Outcome(status="ok")).model_copy(update={"runs": 2, "prints": ("compiled: 0\nthat is wrong\n",) * 2})
    refused = Outcome(status="ok", raised=1, stdout="compiled: ValueError\n")
    said = "it prints 'compiled: 0' each time, and 'compiled: ValueError' without the compiler"
    assert said in passes(found, refused)
    assert said not in passes(found, refused.model_copy(update={"raised": 0}))
