"""Sizes of a program that became constants, and those that a candidate would make constant."""

from __future__ import annotations

import pytest

from bot.reduce.source.fixed_sizes import fixes_no_size, is_of_a_size

PROGRAM = """\
class Pooler(torch.nn.Module):
    def __init__(self):
        self.chunk = 4

    def forward(self, x, mask):
        x = x + self.position
        b, s, d = x.shape
        self.last = s
        t = s // self.chunk
        m = mask.reshape(b, t, self.chunk)
        return x.reshape(b, s // self.chunk, self.chunk, d).sum(-1) * m.view(-1)


x = torch.randn(2, 16, 8)
torch.export.export(Pooler(), (x, x), dynamic_shapes={"x": {1: Dim("s")}})
"""


@pytest.mark.parametrize(
    ("before", "after", "kept"),
    [
        ("b, s // self.chunk, self.chunk, d", "s // self.chunk, self.chunk", True),
        ("b, s // self.chunk, self.chunk, d", "s // 4, 4", True),
        ("b, s // self.chunk, self.chunk, d", "self.chunk, self.chunk", False),  # by chance of the size that x has
        ("b, s // self.chunk, self.chunk, d", "4, 4", False),
        ("b, s // self.chunk, self.chunk, d", "(4, 4)", False),
        ("b, s // self.chunk, self.chunk, d", "b, s // 4, 4, 8", False),
        ("b, s // self.chunk, self.chunk, d", "x.shape[1] // 4, 4", True),
        ("b, t, self.chunk", "t, self.chunk", True),
        ("b, t, self.chunk", "4, 4", False),
        ("t = s // self.chunk", "t = self.chunk", False),
        ("m.view(-1)", "m", True),
        (".sum(-1)", "", True),
        ("torch.randn(2, 16, 8)", "torch.ones(1, 16, 1)", True),
        ("b, s, d = x.shape", "b, s, d = 2, 16, 8", False),
        ("x.shape", "x.size(", False),  # no Python
    ],
)
def test_a_candidate_gives_no_more_sizes_that_are_fixed(before: str, after: str, kept: bool) -> None:
    assert before in PROGRAM
    assert fixes_no_size(PROGRAM)(PROGRAM.replace(before, after)) is kept


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("Constraints violated (s)!\n- You marked s as dynamic but your code specialized it to be a constant (N).", True),
        ("Constraints violated (batch)!\n- Not all values of batch satisfy the generated guard", True),
        ("Could not guard on data-dependent expression u0 <= N", False),
        ("", False),
    ],
)
def test_messages(message: str, expected: bool) -> None:
    assert is_of_a_size(message) is expected
