"""What a program measures and shows in the message of its failure is still that, or is no longer shown."""

from __future__ import annotations

import pytest

from bot.reduce.source.shown import keeps_shown

PROGRAM = """
ref, got = m(x), low(x)
worst = (ref - got).abs().max()
if worst > 1e-4:
    raise SystemExit(f"{key} differs by {worst:.3e}, {(ref - got).norm() / ref.norm()} of {len(got)}")
assert torch.equal(ref, got), (ref - got).abs().amax()
"""


def kept(before: str, after: str, text: str = PROGRAM) -> bool:
    assert before in text
    candidate = text.replace(before, after)
    compile(candidate, "candidate", "exec")
    return keeps_shown(text)(candidate)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("{(ref - got).norm() / ref.norm()}", "{ref.norm()}"),
        ("{(ref - got).norm() / ref.norm()}", "{(ref - got).norm()}"),
        ("worst = (ref - got).abs().max()", "worst = ref.abs().max()"),
        ("worst = (ref - got).abs().max()", "worst = ref.max()"),
        ("{worst:.3e}", "{ref.max():.3e}"),
        (", (ref - got).abs().amax()", ", ref.amax()"),
        ("{len(got)}", "{got.max()}"),
    ],
)
def test_another_measure_under_the_same_words_is_refused(before: str, after: str) -> None:
    assert not kept(before, after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (", {(ref - got).norm() / ref.norm()} of {len(got)}", ""),
        (PROGRAM[PROGRAM.index("    raise") : PROGRAM.index("assert")], "    raise SystemExit(1)\n"),
        (", (ref - got).abs().amax()", ""),
        ("{worst:.3e}", "{(m(x) - low(x)).abs().max():.3e}"),
        ("worst = (ref - got).abs().max()", "worst = (ref['a'] - got['a']).abs().max()"),
        ("{key}", "logits"),
        ("m(x), low(x)", "x.max(), low(x)"),
        (PROGRAM, "x = 1\n"),
    ],
)
def test_the_same_measure_in_other_words_may_be_shown_or_none(before: str, after: str) -> None:
    assert kept(before, after)


@pytest.mark.parametrize("message", ['"off by %s" % (a - b).max()', '"off by {}".format((a - b).max())', '"off by", (a - b).max()'])
def test_ways_to_write_a_message(message: str) -> None:
    text = f"raise ValueError({message})\n"
    assert not kept("(a - b).max()", "a.max()", text)
    assert not kept("(a - b).max()", "(a - b)", text)
    assert kept("(a - b).max()", "(c - d).max()", text)


def test_exits_and_failing_tests_say_something_too() -> None:
    assert not kept("(a - b)", "a", 'sys.exit(f"off by {(a - b).max()}")\n')
    assert not kept("(a - b)", "a", 'self.fail(f"off by {(a - b).max()}")\n')
    assert kept("(a - b)", "a", 'print(f"off by {(a - b).max()}")\n'), "what is printed decides nothing, and may go alone"


def test_what_the_model_is_given_may_change() -> None:
    text = "x = randn(3).abs()\nref = m(x.sum(), x.max() - 1)\nassert ref, f'{(ref - low(x)).max()} and {float(ref)}'\n"
    assert kept("x.sum(), x.max() - 1", "x", text)
    assert kept("randn(3).abs()", "ones(2)", text)
    assert not kept("(ref - low(x)).max()", "ref.max()", text)


def test_a_program_that_measures_nothing_may_say_what_it_likes() -> None:
    assert kept("{x.shape}", "{x}", 'raise ValueError(f"bad {x.shape}")\n')
    assert not keeps_shown(PROGRAM)("def broken(:")
