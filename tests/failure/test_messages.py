"""Each rule of normalization on its example, and what is left of a message."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.failure.messages import ADVICE, MAX_WORDS, NORMALIZATION, PLACE, SPELLING, MessageRule, essence, normalize, peel, words


@pytest.mark.parametrize("rule", [*NORMALIZATION, ADVICE, SPELLING, PLACE], ids=lambda rule: rule.name)
def test_each_rule_on_its_example(rule: MessageRule) -> None:
    assert rule.apply(rule.example) == rule.becomes
    assert rule.becomes != rule.example


def test_rules_in_their_order() -> None:
    said = "FakeTensor(size=(2, 3)) at /a/b.py: buf12 is 0x7f and (3, s4) \u2018x\u2019"
    assert normalize(said) == "FakeTensor(...) at <path>: bufN is N and (N) 'x'"
    assert normalize(normalize(said)) == normalize(said)


def test_classes_that_a_message_quotes() -> None:
    quoted = "LoweringException: AssertionError: no\n  target: aten.relu.default"
    assert peel("InductorError", quoted) == (("InductorError", "LoweringException", "AssertionError"), "no\n  target: aten.relu.default")
    assert peel("ValueError", quoted) == (("ValueError",), quoted)


def test_the_operator_keeps_its_digits_and_advice_goes() -> None:
    said = "cannot lower 3\nSet TORCH_LOGS=x\n  target: aten.conv2d.default"
    assert essence("AssertionError", said) == "cannot lower N\ntarget: aten.conv2d.default"


@pytest.mark.parametrize(
    ("reason", "guard"),
    [
        ("0/0: tensor 'x' dtype mismatch. expected Float, actual Double", "tensor dtype mismatch. expected Float, actual Double"),
        ("1/0: tensor 'a['b']' size mismatch at index 0. expected 3, actual 4", "tensor size mismatch at index N. expected N, actual N"),
        ("2/1: self.k == 0.5  # return x * self.k  # made_up.py:7 in f", "self.k == N"),
    ],
)
def test_code_that_is_compiled_again_names_the_guard(reason: str, guard: str) -> None:
    said = "Detected recompile when the stance forbids it. line number: 3"
    triggered = f"{said}\n    triggered by the following guard failure(s):\n    - {reason}\n    - 0/0: other"
    assert essence("RuntimeError", triggered) == f"{normalize(said)}\nguard: {guard}"
    assert essence("RuntimeError", said) == normalize(said)


def test_of_a_compiler_the_first_error_counts() -> None:
    said = (
        "C++ compile error\nOutput:\n/a/b.cpp:3:4: error: no \u2018sinus\u2019; did you mean \u2018sin\u2019?\n/a/b.cpp:9:4: error: other\n"
    )
    assert essence("CppCompileError", said) == "no 'sinus'"


@pytest.mark.parametrize(
    "tail", ["from user code:", "For C++ stack trace, see", "  args[0]: 3", "[compiler-out] reached: 1", "==== TorchDynamo Stack Trace"]
)
def test_what_only_repeats_the_program_is_left_out(tail: str) -> None:
    assert essence("ValueError", f"it broke:\n{tail}\nmore") == "it broke:"
    assert essence("ValueError", f"it broke:\nsee {tail}") != "it broke:"


def test_a_message_that_begins_with_what_was_executed_is_no_note() -> None:
    said = "While executing unfold, functionalization encountered a tensor being mutated that has internal overlap."
    note = "While executing %abs_ : [num_users=1] = call_method[target=abs_](args = (%z,), kwargs = {})"
    assert essence("RuntimeError", f"{said}\n\n{note}\nOriginal traceback:") == said
    assert essence("RuntimeError", f"it broke\n\n{note}") == "it broke"
    assert essence("RuntimeError", "it broke\n\nWhile executing return (%add,)") == "it broke"


@pytest.mark.parametrize(
    ("name", "message", "shown"),
    [
        ("ValueError", "\nno rank 3 of 4\nmore", "no rank 3 of 4"),
        (
            "GuardOnDataDependentSymNode",
            "No guard on Eq(u0, 1) (unhinted: Eq(u0, 1)). (Size-like symbols: u0)",
            "No guard on Eq(u0, 1)",
        ),
        ("RuntimeError", "lost /home/me/secret/data/x7.pt at 0x7f3a", "lost x7.pt at 0x..."),
        ("RuntimeError", "Something failed:\n  op12 is gone\nadvice", "Something failed: op12 is gone"),
        ("RuntimeError", "Something failed:\n\n  op12:\n    is gone\nadvice", "Something failed: op12: is gone"),
        ("RuntimeError", "These are gone:\n  op1\n  op2\n    at x\n  op3\nadvice", "These are gone: op1; op2"),
        ("RuntimeError", "These are gone (2)!\n- op1.\n- op2\nadvice", "These are gone (2)! op1; op2"),
        ("RuntimeError", "Something failed:\n  op12\n  target: aten.foo\nSet TORCH_LOGS=x", "Something failed: op12"),
        ("RuntimeError", "It ended in:", "It ended in:"),
        ("KeyError", "no such keys {\n  'a': 1,\n  'b': [\n    2],\n} of x\nmore", "no such keys { 'a': 1, 'b': [ 2], } of x"),
        ("KeyError", "{\n  'code': 3\n}", "{ 'code': 3 }"),
        ("KeyError", "these [\n  'a']:\n  b\nmore", "these [ 'a']: b"),
        ("KeyError", "it was cut off {\n  'a': 1", "it was cut off {"),
        ("ValueError", "before a View( or after it\nmore", "before a View(...)"),
        ("ValueError", "=====\nit broke\n=====", "it broke"),
        ("ValueError", "=====", "====="),
        ("CppCompileError", "C++ compile error\n\nOutput:\n/tmp/c1.cpp:3:5: error: 'sin7' was not declared", "'sin7' was not declared"),
        ("KeyError", "x" * 999, "x" * MAX_WORDS),
        ("", "", ""),
    ],
)
def test_people_are_shown_the_words_as_they_were_printed(name: str, message: str, shown: str) -> None:
    assert words(name, message) == shown


def test_what_a_list_goes_on_with_does_not_tell_two_failures_apart() -> None:
    """A smaller program may have fewer of what is listed."""
    assert essence("RuntimeError", "These are gone:\n  a:\n    b") == essence("RuntimeError", "These are gone:\n  a:\n    c") != ""
    assert essence("RuntimeError", "These are gone:\n  a\n  b") == essence("RuntimeError", "These are gone:\n  a") != ""


@pytest.mark.parametrize("begins", ["{", "[", "----", "  ("])
def test_a_line_of_signs_names_no_bug(begins: str) -> None:
    one, other = (essence("RuntimeError", f"{begins}\n  {said}\n") for said in ("'lowering': x", "'schedule': y"))
    assert one != other
    assert essence("RuntimeError", begins) == begins.strip(), "if there is nothing else"


def test_a_dump_that_does_not_end_takes_only_its_line() -> None:
    said = "no FakeTensor(..., size=(2, 3)\nExplanation: it is gone"
    assert essence("Unsupported", said) == "no FakeTensor(...)\nit is gone"
    whole = "no FakeTensor(..., size=(2,\n  3)) here\nExplanation: it is gone"
    assert essence("Unsupported", whole) == "no FakeTensor(...) here\nit is gone"


@given(st.text(), st.text())
def test_any_message_can_be_shown(name: str, message: str) -> None:
    assert len(words(name, message)) <= MAX_WORDS
    assert "\n" not in words(name, message)


def test_a_set_is_the_same_in_any_order() -> None:
    one, other = (essence("ValueError", f"unknown: {{{said}}} of {{1, 'a'}}") for said in ("'add', 'mul', 'a, b'", "'mul', 'a, b', 'add'"))
    assert one == other == "unknown: {'a, 'add', 'mul', b'} of {'a', N}"


@pytest.mark.parametrize("said", ["kwargs: {} is unknown", "Hint: {} is too few", "Caused by: {}"])
def test_what_a_message_begins_with_is_no_tail(said: str) -> None:
    assert essence("ValueError", said.format("foo")) == said.format("foo")
    assert essence("ValueError", f"\n{said}") == ""


def test_what_stands_for_one_thing_may_be_where_another_begins() -> None:
    """The suffix is that of a generated name only once its number is gone."""
    assert normalize("buf12_3 is read") == "bufN is read"
    assert normalize("s77_5.86") == "sN.N"
