"""Large texts: whole statements by their names alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from bot.models.failure import Verdict
from bot.reduce.candidate import BudgetSpent, Candidate, Checks
from bot.reduce.graph.form import Meta
from bot.reduce.source.passes.coarse import thinned
from bot.reduce.source.reducer import reduce_source
from bot.reduce.source.text.normal_form import MARK

BLOCK = """\
class Block{0}(torch.nn.Module):
    def forward(self, x, scale=1.0):
        for j in range(3):
            x = x + j
        return x * SIZES{0}[0]


def helper{0}(x, y=2):
    a, b = x + 1, y
    return math.floor(a) + b


SIZES{0} = [1, 2, (3, 4)]
value{0} = helper{0}(3, 4)
"""
END = """\
def f(x):
    y = x + 1
    return undefined(y)  # here


torch.compile(f)(torch.ones(2))  # here
"""


def program(blocks: int) -> str:
    return "import torch\nimport math\n\n" + "\n\n".join([*(BLOCK.format(i) for i in range(blocks)), END])


def having(*words: str) -> Callable[[Sequence[str | None]], int | None]:
    """Takes the first text that has these words."""
    return lambda texts: next((i for i, t in enumerate(texts) if t is not None and all(w in t for w in words)), None)


def test_what_the_marks_need_is_asked_first() -> None:
    asked: list[str | None] = []
    found = thinned(program(300).replace("# here", MARK), lambda texts: asked.extend(texts) or having("undefined")(texts))
    assert found == asked[0] == f"import torch\n{END}".replace("# here", MARK).replace("\n\n\n", "\n")


def test_what_reads_what_is_gone_goes_as_well() -> None:
    found = thinned(program(300), having("value77 =", "torch.compile(f)"))
    assert "import math\ndef helper77(" in found
    assert "SIZES77" not in found
    assert "Block" not in found
    assert "helper78" not in found


def test_the_largest_block_after_the_script_itself() -> None:
    lines = "".join(f"    v{i} = x * {i}\n" for i in range(2000))
    found = thinned(
        f"import torch\n\ndef f(x):\n{lines}    return v1234 + v7\n\ntorch.compile(f)(1)\n", having("return v1234 + v7", "compile(f)")
    )
    assert found == "import torch\n\ndef f(x):\n    v7 = x * 7\n    v1234 = x * 1234\n    return v1234 + v7\n\ntorch.compile(f)(1)\n"


def test_small_texts_stay() -> None:
    assert thinned(END, having()) == END


class Oracle:
    """Says whether a text has some words, and sees how long it was left alone."""

    def __init__(self, *words: str) -> None:
        self.words = words
        self.queries = 0
        self.longest, self.last = 0.0, time.process_time()

    def check(self) -> None:
        now = time.process_time()
        self.longest, self.last = max(self.longest, now - self.last), now

    def ask(self, candidate: Candidate) -> Verdict:
        self.check()
        self.queries += 1
        return Verdict.SAME if all(w in candidate.text for w in self.words) else Verdict.PASSES

    def first(self, candidates: Sequence[Candidate]) -> int | None:
        return next((i for i, c in enumerate(candidates) if self.ask(c) is Verdict.SAME), None)

    def shapes(self, text: str) -> dict[str, Meta] | None:
        raise AssertionError("the source stage asks for no shapes")


def test_a_script_of_many_lines() -> None:
    oracle = Oracle("undefined(", "torch.compile(f)(", "value77 = ")
    started = time.process_time()
    reduced = reduce_source(program(300), oracle, checks=Checks(in_time=oracle.check))
    assert len(reduced.text.splitlines()) < 20
    assert oracle.queries < 150
    assert time.process_time() - started < 30


def test_the_time_is_looked_at_while_candidates_are_made() -> None:
    def spent() -> None:
        raise BudgetSpent

    reduced = reduce_source(program(1), Oracle("undefined("), checks=Checks(in_time=spent))
    assert (reduced.text, reduced.fixed_point) == (program(1), False)
