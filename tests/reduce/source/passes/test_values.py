"""Rewrites of values: what each proposes."""

from __future__ import annotations

from bot.reduce.source.passes.values import strings, tuples


def test_an_assignment_of_several_keeps_those_that_are_read() -> None:
    text = "def f(self):\n    self.a, self.b, c = 1, 2, 3\n    return self.a, c\n"
    assert "def f(self):\n    self.a, c = 1, 3\n    return self.a, c\n" in tuples(text)


def test_what_nobody_reads_goes_out_of_an_assignment_of_several() -> None:
    assert list(tuples("self.a, self.b = 1, 2\nprint(self.b)\n")) == ["self.b = 2\nprint(self.b)\n"]


def test_constant_parts_of_a_string_are_written_out() -> None:
    assert list(strings("f(f'layer{0}', f'{n}', f'{1!r}')\n")) == ["f('layer0', f'{n}', f'{1!r}')\n"]
