"""Errors of the compiler of which somebody tells in words."""

from __future__ import annotations

import pytest

from bot.action.ci import told_errors
from bot.action.ci.failing_test import Failure, Seen

HEADER = "Traceback (most recent call last):\n"
PROGRAM = ["```", "import torch", "f = torch.compile(g)", "f(x)", "```"]


def said(found: list[Failure]) -> list[str]:
    """What each failure that was told of raised."""
    assert all((each.name, each.test, each.seen) == ("a program", "", Seen.LOGGED) for each in found)
    return [each.text.removeprefix(HEADER) for each in found]


@pytest.mark.parametrize(
    ("line", "raised"),
    [
        ("It fails with `InductorError: LoweringException: made up`.", "InductorError: LoweringException: made up"),
        ("We get an error: torch._dynamo.exc.Unsupported: made up", "torch._dynamo.exc.Unsupported: made up"),
        ("Compiling raises the exception InternalTorchDynamoError: made up \u00e9", "InternalTorchDynamoError: made up \u00e9"),
        (
            "It crashes: backend='inductor' raised: AssertionError: made up",
            "BackendCompilerFailed: backend='inductor' raised: AssertionError: made up",
        ),
        # that it went on, a log, a change, a title, a class of anybody's
        ("It fails with `InductorError: made up`, and falls back to eager.", ""),
        ("WARNING: it fails with `InductorError: made up`", ""),
        ("+ it fails with `InductorError: made up`", ""),
        ("# It fails with `InductorError: made up`", ""),
        ("It fails with `ValueError: made up`.", ""),
        ("It tells of `InductorError: made up`.", ""),
    ],
)
def test_a_sentence_that_tells_of_an_error(line: str, raised: str) -> None:
    found = said(list(told_errors.sentences(["words", line, "more words"])))
    assert found == ([raised] if raised else [])


def test_the_last_of_several_sentences() -> None:
    lines = ["It fails with `InductorError: first`.", "Now it fails with `InductorError: last`."]
    assert said(list(told_errors.sentences(lines))) == ["InductorError: last"]


def test_a_class_alone_counts_where_its_traceback_is_cut_off() -> None:
    lines = ["It fails with BackendCompilerFailed when I run it"]
    assert said(list(told_errors.sentences(lines))) == []
    assert said(list(told_errors.sentences(lines, cut=True))) == ["BackendCompilerFailed"]
    assert said(list(told_errors.of_cut(lines))) == ["BackendCompilerFailed"]
    assert said(list(told_errors.sentences(["It should not fail with BackendCompilerFailed"], cut=True))) == []


def test_a_comment_of_a_program() -> None:
    lines = ["```", "f(x)", "# InductorError: LoweringException: made up", "#   more of it", "```"]
    assert said(list(told_errors.sentences(lines))) == ["InductorError: LoweringException: made up\n  more of it"]
    # what is not fenced is a title
    assert said(list(told_errors.sentences(lines[1:-1]))) == []


@pytest.mark.parametrize(
    ("title", "raised"),
    [
        ("# [inductor] InductorError: LoweringException: made up", "InductorError: LoweringException: made up"),
        ("# torch.compile: `BackendCompilerFailed: made up`", "BackendCompilerFailed: made up"),
        ("# `torch._dynamo.exc.Unsupported` when I call f", "torch._dynamo.exc.Unsupported"),
        ("# Dynamo fails with InternalTorchDynamoError on Windows", "InternalTorchDynamoError"),
        ("# RuntimeError: made up with torch.compile", "RuntimeError: made up with torch.compile"),
        # what is to be done, what went on, what should be, whose machine it is, and what happens in eager
        ("# Fix InductorError: made up", ""),
        ("# [dynamo] Support f (InductorError: made up)", ""),
        ("# InductorError: made up is no longer raised", ""),
        ("# InductorError: made up should be raised", ""),
        ("# InductorError: CUDA out of memory", ""),
        ("# RuntimeError: made up without torch.compile", ""),
        ("# RuntimeError: made up", ""),
        ("InductorError: made up", ""),
    ],
)
def test_a_title_that_tells_of_an_error(title: str, raised: str) -> None:
    found = said(list(told_errors.titled([title, "words"])))
    assert found == ([raised] if raised else [])


def test_a_title_of_what_is_compiled() -> None:
    assert said(list(told_errors.titled(["# RuntimeError: made up"], compiled=True))) == ["RuntimeError: made up"]


@pytest.mark.parametrize(
    ("lines", "raised"),
    [
        (["It fails with torch.compile:", "", "ValueError: made up"], "ValueError: made up"),
        (["With torch.compile it fails with `ValueError: made up`."], "ValueError: made up"),
        (["It fails with torch.compile.", "```", "f(x)  # it raises", "# ValueError: made up", "```"], "ValueError: made up"),
        # two of them, none of what compiles, what is not there, and a change
        (["It fails with torch.compile:", "ValueError: made up", "KeyError: made up"], ""),
        (["It fails:", "ValueError: made up"], ""),
        (["It fails with torch.compile:", "ImportError: No module named made_up"], ""),
        (["# Fix torch.compile", "It fails with torch.compile:", "ValueError: made up"], ""),
        (["It fails in eager, without torch.compile:", "ValueError: made up"], ""),
    ],
)
def test_the_only_error_of_a_text(lines: list[str], raised: str) -> None:
    found = list(told_errors.alone(lines))
    assert said(found) == ([raised] if raised else [])
    assert {each.note for each in found} <= {told_errors.TOLD}


CLOSE = "AssertionError: Tensor-likes are not close!"


def test_a_program_that_compares() -> None:
    assert [(each.text, each.note) for each in told_errors.alone([*PROGRAM, CLOSE])] == [(HEADER + CLOSE, told_errors.COMPARES)]
    assert told_errors.compares(PROGRAM, [CLOSE])
    assert not told_errors.compares(PROGRAM, [CLOSE, "ValueError: made up"])
    assert not told_errors.compares(PROGRAM, [])
    assert not told_errors.compares(["f(x)"], [CLOSE])
    assert not told_errors.compares(["# Fix it", *PROGRAM], [CLOSE])


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (PROGRAM, True),
        (["@torch.compile", "def f(x):"], True),
        (["@triton.jit", "def k(x):", *PROGRAM], False),
        (["He used `torch.compile` for it"], False),
    ],
)
def test_whether_a_program_compiles(lines: list[str], expected: bool) -> None:
    assert told_errors.compiles(lines) is expected


@pytest.mark.parametrize(
    ("lines", "note"),
    [
        (["# torch.compile fails on f", "", "I get the following error."], f"{told_errors.TOLD}, and shows no error"),
        (
            ["# A title", "### \U0001f41b Describe the bug", "torch.compile crashes when f is called."],
            f"{told_errors.TOLD}, and shows no error",
        ),
        (["# f gives wrong results under torch.compile"], "the text tells that a compiled program gives other results"),
        # what is asked, mended or slow, and an error that is shown
        (["# Fix torch.compile that fails on f", "I get the following error."], ""),
        (["# Does torch.compile give wrong results?"], ""),
        (["# torch.compile is slow"], ""),
        (["# torch.compile fails on f", "I get the following error.", "ValueError: made up"], ""),
    ],
)
def test_words_that_show_no_error(lines: list[str], note: str) -> None:
    assert [(each.text, each.note) for each in told_errors.unshown(lines)] == ([("", note)] if note else [])


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("torch.compile fails on f", True),
        ("It cannot be compiled with torch.compile", True),
        ("Inductor raises an error", True),
        ("I tried torch.compile. I got an error.", True),
        ("It fails in eager; torch.compile is fine", False),
        ("torch.compile may fail", False),
        ("torch.compile does not fail", False),
        ("torch.compile fails and falls back to eager", False),
        ("See torch/_inductor/a.py for what fails", False),
        ("it fails", False),
        ("x = torch.compile(f)  # fails", False),
    ],
)
def test_whether_it_is_said_that_compiling_fails(line: str, expected: bool) -> None:
    assert told_errors.says([line]) is expected
