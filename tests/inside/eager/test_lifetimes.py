"""Values deleted after their last use: a program computes and raises what it did, and holds less."""

from __future__ import annotations

import ast
import contextlib
import textwrap
import traceback
import types
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.inside.eager import lifetimes


class Value:
    """Something that can be changed in place, and that counts how many of its kind there are."""

    alive = most = 0

    def __init__(self, number: int) -> None:
        self.number = number
        Value.alive += 1
        Value.most = max(Value.most, Value.alive)

    def __del__(self) -> None:
        Value.alive -= 1

    def __add__(self, other: Value) -> Value:
        return Value((self.number * 3 + other.number) % 97)

    def __iadd__(self, other: Value) -> Value:
        self.number = (self.number * 5 + other.number) % 97
        return self

    def fail(self) -> None:
        raise ValueError(self.number)


def run(text: str, shorten: bool, on_delete: list[Any] | None = None) -> str:
    """What a program's `forward` returns; of an error its traceback."""
    tree: ast.Module | str = text
    if shorten:
        tree = ast.parse(text)
        function = lifetimes.forward(tree)
        assert function is not None
        lifetimes.shorten(function, None if on_delete is None else "on_delete")
    torch = types.SimpleNamespace(no_grad=contextlib.nullcontext)
    namespace: dict[str, Any] = {"torch": torch, "swallow": lambda: contextlib.suppress(Exception), "Value": Value}
    if on_delete is not None:
        namespace["on_delete"] = lambda name, value: on_delete.append((name, getattr(value, "number", None)))
    exec(compile(tree, "repro.py", "exec"), namespace)
    Value.most = Value.alive
    try:
        returned = namespace["Repro"]().forward(Value(2))
        return str([value.number for value in returned])
    except Exception as error:
        frames = [(f.lineno, f.end_lineno, f.colno, f.end_colno) if hasattr(f, "colno") else f.lineno for f in _frames(error)]
        return f"{frames} {type(error).__name__}: {error}"


def _frames(error: BaseException) -> list[traceback.FrameSummary]:
    return [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == "repro.py"]


def program(*statements: str) -> str:
    return "class Repro:\n    def forward(self, x):\n" + textwrap.indent("\n".join(statements), " " * 8) + "\n"


NAMES = "abcde"
SIMPLE = (
    "{0} = {1} + {2}",
    "{0} = {1}",
    "{0} += {1}",
    "{1} += {1}",
    "{0}, {1} = {1}, {2}",
    "({0}, [{1}, *rest]) = {2}, [{1}, {0}]",
    "{0} = {1} = {2} + {2}",
    "{0} = ({1} := {2} + {2})",
    "{0} = (lambda: {1} + {2})()",
    "{0} = [{1} + {0} for {1} in [{2}, {1}]][-1]",
    "{0}.number = {1}.number",
    "{0}: object = {1}",
    "{0}: object",
    "{0}",
)
RARE = ("del {0}", "{0}.fail()", "return {0}, {1}", "raise KeyError({0}.number)", "{0} = undefined")
BLOCKS = (
    "with torch.no_grad():\n    {body}",
    "with torch.no_grad(), swallow():\n    {body}",
    "with swallow() as {0}:\n    {body}",
    "if {0}.number % 2:\n    {body}",
    "for {0} in ({1}, {2}):\n    {body}",
    "while {0}.number % 3:\n    {0} += {1}\n    {body}\n    break",
    "try:\n    {body}\nexcept ValueError as {0}:\n    {1} = {2}",
    "def {0}():\n    return {1}\n{0} = {0}()",
    "import math as {0}\n{0} = {1}",
)
names = st.lists(st.sampled_from(NAMES), min_size=3, max_size=3)
simple = st.builds(lambda form, used: form.format(*used), st.sampled_from(SIMPLE * 3 + RARE), names)


def block(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    bodies = st.lists(inner, min_size=1, max_size=4).map(lambda lines: textwrap.indent("\n".join(lines), "    ").strip())
    return st.builds(lambda form, used, body: form.format(*used, body=body), st.sampled_from(BLOCKS), names, bodies)


programs = st.builds(
    lambda lines: program(*(f"{name} = x + Value({i})" for i, name in enumerate(NAMES)), *lines, "return a, b"),
    st.lists(st.recursive(simple, block, max_leaves=5), max_size=20),
)


@given(programs)
def test_deletions_change_nothing_that_a_program_computes_or_raises(text: str) -> None:
    assert run(text, True) == run(text, False), text


@given(programs)
def test_a_farewell_changes_nothing_either(text: str) -> None:
    assert run(text, True, on_delete=[]) == run(text, False), text


CHAIN = [f"v{i} = v{i - 1} + v{i - 1}" for i in range(1, 50)]


def test_a_chain_holds_two_values_at_a_time() -> None:
    text = program("v0 = x", *CHAIN, "return v49,")
    before = Value.alive
    assert run(text, False) == run(text, True)
    assert Value.most - before <= 4
    run(text, False)
    assert Value.most - before >= 50


def test_what_is_never_used_is_not_held() -> None:
    text = program(*(f"v{i} = x + x" for i in range(50)), "return x,")
    before = Value.alive
    run(text, True)
    assert Value.most - before <= 3


def test_inside_the_contexts_of_torch() -> None:
    text = program("v0 = x", "with torch.no_grad():", *(f"    {line}" for line in CHAIN), "return v49,")
    before = Value.alive
    assert run(text, True) == run(text, False)
    run(text, True)
    assert Value.most - before <= 4


@pytest.mark.parametrize("line", ["locals()", "eval('a')", "f = lambda: a", "a2 = [a for _ in '12']", "with swallow():\n    a = x"])
def test_left_where_it_may_be_seen(line: str) -> None:
    text = program("a = x + x", line, "b = x + x", "return b,")
    tree = ast.parse(text)
    function = lifetimes.forward(tree)
    assert function is not None
    lifetimes.shorten(function)
    assert "del a\n" not in ast.unparse(tree)


def test_the_farewell_sees_each_value_as_it_was_at_its_end() -> None:
    seen: list[Any] = []
    run(program("a = x + x", "b = a + x", "a += b", "c = b", "return c,"), True, on_delete=seen)
    assert seen == [("a", 66), ("b", 26)]


def test_the_farewell_sees_what_the_script_deletes_itself() -> None:
    for text in (program("a = x + x", "del a", "return x,"), program("a = x + x", "del a", "v0 = x", *CHAIN, "return v49,")):
        told = lifetimes.shortened(text, "on_delete")
        assert isinstance(told, ast.Module)
        assert ast.unparse(told).count("on_delete('a', a)\n        del a") == 1
    assert lifetimes.shortened(program("a = x + x", "del a", "return x,")).__class__ is str


def test_a_short_script_a_broken_one_and_one_without_the_class_stay_text() -> None:
    long = program("v0 = x", *CHAIN, "return v49,")
    for text in (program("a = x", "return a,"), long + "def", long.replace("Repro", "Other"), "class Repro:\n    x = 1\n"):
        assert lifetimes.shortened(text) is text
    assert isinstance(lifetimes.shortened(long), ast.Module)
