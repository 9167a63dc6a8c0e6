"""What counts as the same failure, and what the control has to show for it."""

from __future__ import annotations

import pytest

from bot.failure.outcome import Outcome
from bot.failure.signature import own_words, signature_of
from bot.inside.protocol import Precision
from bot.models.failure import Kind, Phase, Signature
from bot.oracle.criterion import Criterion
from tests.oracle.fakes import FAILS, OTHER, PASSES

SHOWN = signature_of(Outcome(**FAILS))
assert SHOWN is not None
REFERENCE: Signature = SHOWN


def test_a_program_that_says_so_itself_has_to_be_passed_by_right_numbers() -> None:
    criterion = Criterion(of(Kind.EXCEPTION), own_verdict=True)
    assert criterion.precision == "fp64"
    assert Criterion(criterion.reference, own_verdict=True, eager_alone=True).precision is None


def of(kind: Kind, phase: Phase = Phase.RUN) -> Signature:
    return Signature(kind=kind, phase=phase)


@pytest.mark.parametrize(
    ("kind", "own_comparison", "eager_alone", "precision"),
    [
        (Kind.ACCURACY, True, False, "fp64"),
        (Kind.ACCURACY, False, False, "spread"),
        (Kind.ACCURACY, True, True, None),
        (Kind.ACCURACY, False, True, None),
        (Kind.EXCEPTION, True, False, None),
        (Kind.NO_RAISE, False, False, None),
    ],
)
def test_what_has_to_pass_in_place_of_compiled_results(
    kind: Kind, own_comparison: bool, eager_alone: bool, precision: Precision | None
) -> None:
    criterion = Criterion(of(kind), own_comparison=own_comparison, eager_alone=eager_alone)
    assert (criterion.kind, criterion.precision) == (kind, precision)


@pytest.mark.parametrize(
    ("kind", "phase", "may"),
    [
        (Kind.ACCURACY, Phase.RUN, True),
        (Kind.ACCURACY, Phase.DYNAMO, True),
        (Kind.EXCEPTION, Phase.RUN, True),
        (Kind.CRASH, Phase.RUN, True),
        (Kind.HANG, Phase.RUN, False),
        (Kind.EXCEPTION, Phase.INDUCTOR_LOWERING, False),
        (Kind.CRASH, Phase.LOAD, False),
    ],
)
def test_numbers_matter_where_the_program_runs(kind: Kind, phase: Phase, may: bool) -> None:
    assert Criterion(of(kind, phase)).may_depend_on_numbers is may


def test_an_outcome_shows_the_failure_or_not() -> None:
    criterion = Criterion(REFERENCE)
    assert criterion.shows(Outcome(**FAILS))
    assert not criterion.shows(Outcome(**OTHER))
    assert not criterion.shows(Outcome(**PASSES))


def test_another_form_may_have_other_wrappers() -> None:
    """The outer exceptions depend on the entry point; between scripts of one form they do not."""
    wrapped = REFERENCE.model_copy(update={"exception": ("BackendCompilerFailed", *REFERENCE.exception)})
    assert not Criterion(REFERENCE).matches(wrapped, "")
    assert Criterion(REFERENCE, across_forms=True).matches(wrapped, "")
    other = REFERENCE.model_copy(update={"message": "another"})
    assert not Criterion(REFERENCE, across_forms=True).matches(other, "")


@pytest.mark.parametrize("across_forms", [True, False])
def test_wrong_numbers_are_not_a_result_that_is_none(across_forms: bool) -> None:
    """Both are what `assert_close` raises: a search took away what the fake kernel of an operator returns, and that was posted."""

    def said(message: str) -> Signature:
        return Signature(kind=Kind.ACCURACY, phase=Phase.RUN, exception=("AssertionError",), message=message)

    numbers, none = said("Tensor-likes are not close! Mismatched elements: N / N (N%)"), said("None mismatch: None is not N")
    shape, own = said("The values for attribute 'shape' do not match: torch.Size([N])"), said("off by N")
    for reference in (numbers, none, shape):
        criterion = Criterion(reference, across_forms=across_forms)
        assert [one for one in (numbers, none, shape) if criterion.matches(one, "")] == [reference]
        assert criterion.matches(own, ""), "whose words are the program's own says nothing of that"
    assert Criterion(own, across_forms=across_forms).matches(none, "")


WORDED = (
    'Traceback (most recent call last):\n  File "repro.py", line 1, in <module>\n'
    '  File "/x/site-packages/torch/_inductor/graph.py", line 9, in call_function\n    out = lower()\n'
    "RuntimeError: The size of tensor a (7) must match the size of tensor b (8)\n"
)


def test_where_own_words_count_others_are_another_failure() -> None:
    outcome = Outcome(status="raised", text=WORDED)
    signature = signature_of(outcome)
    assert signature is not None
    said = own_words(signature, WORDED)
    assert Criterion(signature, own_words=said).matches(signature, WORDED)
    assert not Criterion(signature, own_words=f"{said} and more").matches(signature, WORDED)


@pytest.mark.parametrize(
    ("wanted", "raised", "error", "alike"),
    [
        ("", 1, "ValueError: x", True),
        ("ValueError: x", 1, "ValueError: x", True),
        ("ValueError: x", 2, "KeyError: x", False),
        ("", 0, "", False),
        ("ValueError: x", 0, "ValueError: x", False),
    ],
)
def test_what_eager_has_to_raise(wanted: str, raised: int, error: str, alike: bool) -> None:
    control = Outcome(status="raised", raised=raised, error=error)
    assert Criterion(of(Kind.NO_RAISE), eager_error=wanted).raises_alike(control) is alike
