"""Which lines of an output show other results than without the compiler."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.engine.prints import other_results

VALUES = st.sampled_from(["True", "true", "FALSE", "nan", "-Inf", "+inf", "1.", "1e3", "-2E-400", "9" * 400, "1e999", "0"])
LINES = st.text(st.characters(codec="utf-8"), max_size=30) | st.sampled_from(["tensor([1., nan])", "True", "-inf", "1e3 2"])


@pytest.mark.parametrize(
    ("compiled", "eager"),
    [
        ("close: False", "close: True"),
        ('{"ok": false, "n": 1}', '{"ok": true, "n": 1}'),
        ("TRUE 1", "true 2"),
        ("True", "1"),
        ("tensor([0., 0.])", "tensor([0.5403, 0.1000])"),  # its columns are narrower
        ("tensor([ 1., -1.], grad_fn=<CompiledFunctionBackward>)", "tensor([1., 1.], grad_fn=<MulBackward0>)"),
        ("x=3", "x=4"),
        ("nan", "1.0"),
        ("inf", "-inf"),
        ("first 1\nsecond 2", "first 1\nsecond 7"),
    ],
)
def test_other_results(compiled: str, eager: str) -> None:
    told = other_results([compiled] * 2, eager)
    assert told == f"it prints {compiled.splitlines()[-1]!r} each time, and {eager.splitlines()[-1]!r} without the compiler"


@pytest.mark.parametrize(
    ("compiled", "eager"),
    [
        (["1"], "2"),  # one run may be as it is by chance
        (["1", "2"], "3"),  # not seeded, or a time
        (["largest difference: 1.1920929e-07"] * 2, "largest difference: 0.0"),
        (["1000.0"] * 2, "1000.4"),
        (["nan"] * 2, "NaN"),
        (["took 12.5s"] * 2, "took 0.1s"),
        (["compiled"] * 2, "eager"),
        (["1", "1\nand more"], "2"),
        (["grad_fn=<A>"] * 2, "grad_fn=<B>"),
        (["TRUE"] * 2, "true"),
        (["v2"] * 2, "v3"),  # no value, but a name
        ([""] * 2, ""),
        (["1" * 3_000] * 2, "2" * 3_000),
    ],
)
def test_no_other_results(compiled: list[str], eager: str) -> None:
    assert not other_results(compiled, eager)


def test_other_words_count_only_if_asked_for() -> None:
    compiled, eager = "eager: refused\ncompiled: tensor(0)\nso that is wrong", "eager: refused\ncompiled: refused: no"
    assert not other_results([compiled] * 2, eager)
    told = "it prints 'compiled: tensor(0)' each time, and 'compiled: refused: no' without the compiler"
    assert other_results([compiled] * 2, eager, words=True) == told
    assert not other_results([compiled, "eager: refused\ncompiled: 0x7f"], eager, words=True)
    assert not other_results([compiled] * 2, "eager: refused", words=True)


def test_a_long_line_is_cut() -> None:
    told = other_results(["value " * 40 + "1"] * 2, "value " * 40 + "2")
    assert len(told) < 250
    assert told.count("…") == 2


@given(st.lists(LINES, max_size=3), st.lists(LINES, max_size=3))
def test_any_two_outputs(one: list[str], other: list[str]) -> None:
    first, second = "\n".join(one), "\n".join(other)
    assert not other_results([first] * 3, first)
    assert bool(other_results([first] * 2, second)) is bool(other_results([second] * 2, first))


@given(st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=4), st.sampled_from([" ", ", ", " is "]))
def test_any_two_lines_of_values(pairs: list[tuple[str, str]], between: str) -> None:
    one, other = (between.join(values) for values in zip(*pairs, strict=True))
    assert bool(other_results([one] * 2, other)) is bool(other_results([other] * 2, one))


def test_it_takes_no_longer_for_a_long_number() -> None:
    began = time.process_time()
    other_results(["1" * 100_000 + "x"] * 2, "2" * 100_000 + "x")
    assert time.process_time() - began < 1
