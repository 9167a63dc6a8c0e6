"""Failing tests by cause, and which causes are worth minimizing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.action.ci.failing_test import Failure
from bot.action.ci.groups import BaseRun, chosen, group, rank
from bot.models.failure import Kind, Phase, Signature


def failure(name: str, test: str | None = None, text: str = "x") -> Failure:
    return Failure(name, f"t.py::{name}" if test is None else test, text)


SIGNATURES: dict[str, Signature | None] = {
    "lower": Signature(kind=Kind.EXCEPTION, phase=Phase.INDUCTOR_LOWERING, exception=("InductorError",), message="a"),
    "dynamo": Signature(kind=Kind.EXCEPTION, phase=Phase.RUN, exception=("Unsupported",), message="b"),
    "numbers": Signature(kind=Kind.EXCEPTION, phase=Phase.RUN, exception=("AssertionError",), message="Tensor-likes are not close!"),
    "crash": Signature(kind=Kind.CRASH, phase=Phase.RUN, signal="SIGSEGV"),
    "plain": Signature(kind=Kind.EXCEPTION, phase=Phase.RUN, exception=("KeyError",), message="c"),
    "silent": None,
}


def sign(found: Failure) -> Signature | None:
    return SIGNATURES[found.name.partition("_")[0]]


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("lower_1", "suggested"),
        ("dynamo_1", "suggested"),
        ("numbers_1", "no"),
        ("numbers_compiled", "possible"),
        ("crash_1", "possible"),
        ("plain_1", "no"),
        ("silent_1", "no"),
    ],
)
def test_what_it_looks_like(name: str, verdict: str) -> None:
    (found,) = group([failure(name)], None, sign)
    assert found.verdict == verdict
    assert found.reason


def test_the_compiler_on_the_stack_is_possible() -> None:
    assert group([failure("plain_1", text="torch/_dynamo/eval_frame.py")], None, sign)[0].verdict == "possible"


@pytest.mark.parametrize("test", ["", "-pno:x.py::test_a", "@options.py::test_a", "a.py::test_\n", "a.py::test_" + "x" * 1000])
def test_what_cannot_be_named_in_a_command_is_not_run(test: str) -> None:
    (found,) = group([failure("lower_1", test=test)], None, sign)
    assert (found.verdict, "no test of it can be named" in found.reason) == ("no", True)
    assert group([failure("lower_1", test=test), failure("lower_22222")], None, sign)[0].first.test == "t.py::lower_22222"


def test_the_machine_s_fault_is_no_candidate() -> None:
    (found,) = group([failure("lower_1")], None, sign, lambda _: "the disk is full")
    assert (found.verdict, found.reason) == ("no", "the machine's fault: the disk is full")


def test_compared_with_the_base() -> None:
    base = BaseRun.of("main", [failure("lower_1"), failure("plain_1")], sign)
    old, new = group([failure("lower_1")], base, sign), group([failure("lower_1"), failure("lower_2")], base, sign)
    assert (old[0].verdict, old[0].reason) == ("no", "fails in the same way on main")
    assert (new[0].verdict, new[0].tests) == ("suggested", ("t.py::lower_2",))
    # the same test, failing otherwise
    (other,) = group([Failure("dynamo_1", "t.py::lower_1", "")], base, sign)
    assert other.verdict == "suggested"


def test_the_plainest_test_stands_for_its_group() -> None:
    (found,) = group([failure("lower_[a]"), failure("lower_longer"), failure("lower_zz"), failure("lower_x", test="")], None, sign)
    assert found.first.test == "t.py::lower_zz"


names = st.lists(
    st.tuples(st.sampled_from(sorted(SIGNATURES)), st.integers(0, 9)).map(lambda pair: f"{pair[0]}_{pair[1]}"), unique=True, max_size=30
)


@given(names, names, st.integers(1, 5), st.booleans())
def test_groups_hold_every_new_failure_once_whatever_their_order(here: list[str], there: list[str], most: int, asked: bool) -> None:
    base = BaseRun.of("main", map(failure, there), sign)
    found = group(map(failure, here), base, sign)
    assert sorted(found, key=rank) == list(found)
    turned = group(map(failure, reversed(here)), base, sign)
    assert {(frozenset(each.tests), each.verdict) for each in turned} == {(frozenset(each.tests), each.verdict) for each in found}
    assert {name for each in found for name in each.tests} >= {f"t.py::{name}" for name in here} - {f"t.py::{name}" for name in there}
    for each in found:
        if each.verdict != "no":
            assert not {test.rpartition("::")[2] for test in each.tests} & set(there)
    taken = chosen(found, most, asked=asked)
    assert len(taken) <= most
    assert all(each.verdict == "suggested" or asked for each in taken)
    assert len({each.verdict for each in taken}) <= 1
