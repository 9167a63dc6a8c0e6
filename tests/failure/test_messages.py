"""Each rule of normalization on its example, and what is left of a message."""

from __future__ import annotations

import pytest

from bot.failure.messages import RULES, MessageRule, essence, normalize, peel


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
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
