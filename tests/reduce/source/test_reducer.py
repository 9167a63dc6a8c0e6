"""The source stage, asked by predicates on the text: what it reaches, in how many questions, and that all it asks is legal."""

from __future__ import annotations

import ast
import itertools
import random
import re
import textwrap
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.models.failure import Verdict
from bot.reduce.candidate import BudgetSpent, Candidate, Checks
from bot.reduce.distance import distance
from bot.reduce.graph.form import Meta
from bot.reduce.source.join_modules import joined
from bot.reduce.source.reducer import reduce_source
from bot.reduce.source.text.normal_form import MARK, legal, measure


class Asked:
    """An oracle that answers by a predicate on the text, and checks what it is asked."""

    def __init__(self, works: Callable[[str], bool], limit: int = 10_000) -> None:
        self.works = works
        self.limit = limit
        self.texts: list[str] = []

    def ask(self, candidate: Candidate) -> Verdict:
        assert legal(candidate.text)
        assert MARK not in candidate.text
        assert candidate.text not in self.texts
        assert candidate.size == measure(candidate.text)[:2]
        if len(self.texts) == self.limit:
            raise BudgetSpent
        self.texts.append(candidate.text)
        return Verdict.SAME if self.works(candidate.text) else Verdict.PASSES

    def first(self, candidates: Sequence[Candidate]) -> int | None:
        return next((i for i, c in enumerate(candidates) if self.ask(c) is Verdict.SAME), None)

    def shapes(self, text: str) -> dict[str, Meta] | None:
        raise AssertionError("the source stage asks for no shapes")


def runs_into(error: str) -> Callable[[str], bool]:
    """Whether the program, run for good, ends in an error with this text."""

    def works(text: str) -> bool:
        try:
            exec(compile(text, "<case>", "exec"), {"__name__": "__main__"})
        except (AttributeError, NameError, TypeError, IndexError, ValueError, ZeroDivisionError) as found:
            return error in str(found)
        return False

    return works


DEEP = textwrap.dedent('''\
    """A program whose failure lies three levels deep."""
    import math
    from dataclasses import dataclass

    @dataclass
    class Config:
        width: int = 16
        depth: int = 3

    class Tool:
        def compile(self, f): return f
    torch = Tool()

    def scaled(x, factor=1.0):
        y = [v * factor for v in x]
        z = y.missing  # here
        return z

    class Inner:
        def __init__(self, width):
            self.width = width
            self.bias = math.pi

        def forward(self, x):
            h = [v + self.bias for v in x]
            h = scaled(h, factor=0.5)
            return [v * self.width for v in h]

    class Outer:
        def __init__(self, cfg):
            self.inner = Inner(cfg.width)
            self.other = [Inner(cfg.width) for _ in range(cfg.depth)]

        def forward(self, x):
            for module in self.other:
                x = x + [len(self.other)]
            return self.inner.forward(x)

    def main():
        cfg = Config(width=8)
        model = Outer(cfg)
        step = torch.compile(model.forward)
        for i in range(3):
            out = step([1.0, 2.0])
            print(i, out)

    if __name__ == "__main__":
        main()
''')


def lines_with(text: str, *parts: str) -> list[int]:
    return [i for p in parts for i, line in enumerate(text.splitlines(), 1) if p in line]


HINTS = lines_with(DEEP, "    main()", "out = step", "return self.inner.forward", "h = scaled", "z = y.missing")


def test_a_deep_failure_becomes_short_in_few_questions() -> None:
    oracle = Asked(runs_into("'list' object has no attribute 'missing'"))
    reduced = reduce_source(DEEP, oracle, failing_lines=HINTS)
    assert reduced.fixed_point
    assert oracle.works(reduced.text)
    assert measure(reduced.text)[0] <= 8, reduced.text
    assert len(oracle.texts) <= 100


@pytest.mark.all
def test_without_hints_it_ends_as_small_but_takes_longer() -> None:
    oracle = Asked(runs_into("'list' object has no attribute 'missing'"))
    reduced = reduce_source(DEEP, oracle)
    assert reduced.fixed_point
    assert measure(reduced.text)[0] <= 10, reduced.text


def test_what_was_rejected_counts_only_for_a_failure_that_always_shows() -> None:
    hides = True

    class Hidden(Asked):
        def ask(self, candidate: Candidate) -> Verdict:
            return Verdict.PASSES if hides else super().ask(candidate)

    def settle(text: str) -> Callable[[], bool]:
        assert text == DEEP

        def steady() -> bool:
            nonlocal hides
            hides = False
            return False

        return steady

    works = runs_into("'list' object has no attribute 'missing'")
    assert measure(reduce_source(DEEP, Hidden(works), failing_lines=HINTS, checks=Checks(settle=settle)).text)[0] <= 8
    hides = True
    assert reduce_source(DEEP, Hidden(works), failing_lines=HINTS).text == DEEP


def test_nothing_is_left_over() -> None:
    reduced = reduce_source(DEEP, Asked(runs_into("'list' object has no attribute 'missing'")), failing_lines=HINTS)
    tree = ast.parse(reduced.text)
    assert not any(isinstance(n, ast.Pass) for n in ast.walk(tree))
    read = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    bound = {a.asname or a.name for n in ast.walk(tree) if isinstance(n, (ast.Import, ast.ImportFrom)) for a in n.names}
    assert bound <= read
    assert reduced.text.endswith("\n")
    assert "\n\n\n\n" not in reduced.text


def test_the_compile_call_is_never_taken_away() -> None:
    oracle = Asked(lambda text: "missing" in text)
    reduce_source(DEEP, oracle, failing_lines=HINTS)
    assert oracle.texts
    assert all("torch.compile" in t for t in oracle.texts)


def test_the_marked_call_survives_although_nobody_reads_its_value() -> None:
    text = "import torch\n\n\ndef f(x):\n    return x\n\n\ng = torch.compile(f)\nout = g(1)\nprint(out)\n"
    reduced = reduce_source(text, Asked(lambda t: "(1)" in t), failing_lines=[8])
    assert "print" not in reduced.text
    assert "(1)" in reduced.text


def test_a_program_that_can_not_be_reduced_comes_back_as_it_was() -> None:
    text = "import torch  # mine\nx = [ 1,2 ]\ntorch.compile(x)\n"
    reduced = reduce_source(text, Asked(lambda t: False))
    assert (reduced.text, reduced.fixed_point) == (text, True)
    assert reduced.refused


def test_when_time_is_spent_the_best_so_far_is_kept() -> None:
    whole = Asked(runs_into("'list' object has no attribute 'missing'"))
    reduce_source(DEEP, whole, failing_lines=HINTS)
    accepted: list[str] = []
    oracle = Asked(whole.works, limit=len(whole.texts) // 2)
    reduced = reduce_source(DEEP, oracle, failing_lines=HINTS, on_accept=accepted.append)
    assert not reduced.fixed_point
    assert reduced.text == accepted[-1]
    assert oracle.works(reduced.text)


@pytest.mark.all
def test_a_script_indented_by_tabs_is_reduced_alike() -> None:
    tabs = DEEP.replace("    ", "\t")
    for hints in (HINTS, []):
        found = [reduce_source(t, Asked(runs_into("'list' object has no attribute 'missing'")), failing_lines=hints) for t in (DEEP, tabs)]
        assert found[1] == found[0]


def test_each_step_is_smaller() -> None:
    accepted: list[str] = []
    oracle = Asked(runs_into("'list' object has no attribute 'missing'"))
    reduce_source(DEEP, oracle, on_accept=accepted.append)
    sizes = [measure(t) for t in accepted]
    assert len(sizes) > 5
    assert all(a > b for a, b in itertools.pairwise(sizes))


def test_a_start_that_works_is_reduced_instead() -> None:
    start = "class Tool:\n    def compile(self, f): return f\ntorch = Tool()\ntorch.compile([].missing)\n"
    oracle = Asked(runs_into("'list' object has no attribute 'missing'"))
    reduced = reduce_source(DEEP, oracle, starts=["no program (", "1 / 0\n", start])
    assert oracle.texts[:2] == ["1 / 0\n", start]
    assert len(reduced.text) < len(DEEP) / 10


def test_local_modules_are_written_in_and_reduced_along() -> None:
    script = "import torch\nfrom mine import go, other\n\n\nrun = torch.compile(go)\nother()\nrun(3)\n"
    module = "import math\n\n\ndef other():\n    return math.pi\n\n\ndef go(n):\n    k = n + 1\n    return k.missing\n"
    oracle = Asked(lambda t: "from mine" not in t and ".missing" in t and "torch.compile(go)" in t and "(3)" in t)
    text, lines = joined(script, [7], {"mine": module}, {"mine": [10]})
    reduced = reduce_source(text, oracle, failing_lines=lines)
    assert reduced.text == "import torch\n\n\ndef go(n):\n    return n.missing\n\n\ntorch.compile(go)(3)\n"


def test_imports_that_nobody_reads_go_from_the_start() -> None:
    script = "import torch, os\nfrom math import floor, pi\nimport random\n\ntorch.compile(pi)\n"
    # one of a line stays where a whole statement cannot go
    oracle = Asked(lambda t: "import torch" in t and "torch.compile(pi)" in t and "from math" in t)
    assert reduce_source(script, oracle).text == "import torch\nfrom math import pi\n\ntorch.compile(pi)\n"


def test_conditions_become_simple() -> None:
    script = (
        "import torch\n\n\ndef f(x, n):\n    if n > 1 and x.mean() > -1:\n        return x + 1\n    return x\n\n\ntorch.compile(f)(2, 3)\n"
    )
    reduced = reduce_source(script, Asked(lambda t: "if " in t and "x" in t.split("if ")[1].split(":")[0] and "torch.compile(" in t))
    assert "    if x:\n" in reduced.text


def test_how_a_method_is_bound_stays() -> None:
    script = (
        "import torch\n\n\nclass F:\n    @staticmethod\n    @torch.no_grad()\n    def g(x):\n        return x\n\n\ntorch.compile(F.g)(1)\n"
    )
    reduced = reduce_source(script, Asked(lambda t: "class F" in t and "def g(x)" in t and "torch.compile(F.g)" in t))
    assert "@staticmethod" in reduced.text
    assert "no_grad" not in reduced.text


def test_what_was_refused_at_the_end_is_kept_the_nearest_first() -> None:
    reduced = reduce_source("import torch\na = 1\nb = 2\ntorch.compile(a, b)\n", Asked(lambda t: "a = 1" in t and "2" in t))
    assert reduced.refused
    assert all("a = 1" not in text or "2" not in text for text in reduced.refused)
    away = [distance(reduced.text.splitlines(), text) for text in reduced.refused]
    assert away == sorted(away)


class Seen(Exception):
    """Raised by the call that a case looks for."""


def reaches(wanted: object) -> Callable[[str], bool]:
    """Whether a program, run for good, calls `f` with this argument inside or after `torch.compile`."""

    def f(value: object = None, *rest: object) -> object:
        if value == wanted:
            raise Seen
        return value

    class Torch:
        compile = staticmethod(lambda x: x)

    class Anything:
        def __enter__(self) -> None: ...
        def __exit__(self, *_: object) -> None: ...

    def works(text: str) -> bool:
        scope = {"__name__": "__main__", "f": f, "torch": Torch, "g": lambda *a: a, "here": Anything(), "yes": True}
        try:
            exec(compile(text, "<case>", "exec"), scope)
        except Seen:
            return True
        except (NameError, TypeError, AttributeError, IndexError, KeyError, ValueError):
            return False
        return False

    return works


PAIR = """\
class C:
    def __init__(self):
        self.a, self.b = 1, 2

    def __call__(self):
        f(self.a + self.b)


C()()
"""

PROPERTY = """\
class C:
    @property
    def p(self):
        n = [1]
        return f(n)

    def __call__(self):
        return g(self.p, 0)


C()()
"""


@pytest.mark.parametrize(
    ("before", "wanted", "after"),
    [
        ("for i in range(3):\n    f(i)\n", 0, "f(0)\n"),
        ("with here:\n    f(1)\n", 1, "f(1)\n"),
        ("if yes:\n    f(1)\nelse:\n    g()\n", 1, "f(1)\n"),
        ("x = g(g(f(1)))\nprint(x)\n", 1, "f(1)\n"),
        ("def go(a, b=2):\n    f(a, b)\n\n\ngo(1)\n", 1, "f(1)\n"),
        ("def go(n):\n    yield f(n)\n\n\nfor v in go(1):\n    print(v)\n", 1, "f(1)\n"),
        ("class C:\n    n: int = 7\n\n\nc = C()\nf(c.n)\n", 7, "f(7)\n"),
        ("class C:\n    def __init__(self, n):\n        self.n = n\n\n\nc = C([1])\nf(c.n)\n", [1], "f([1])\n"),
        ("x = 1\ny = x\ny = f(y)\n", 1, "f(1)\n"),
        ("a, b = 1, 2\nf(a)\n", 1, "f(1)\n"),
        ("a, b = 1, 2\nf(a + b)\n", 3, "f(1 + 2)\n"),
        (PAIR, 3, "f(1 + 2)\n"),
        (PROPERTY, [1], "f([1])\n"),
        ("class C:\n    n = 2\n\n\nC.n = f(1)\ng(C.n)\n", 1, "f(1)\n"),
        ("class C:\n    n = 2\n\n\nc = C()\nc.n += f(1)\ng(c.n)\n", 1, "f(1)\n"),
        ("def go():\n    n = 1\n    if f(n):\n        n = 2\n    return n\n\n\ngo()\n", 1, "f(1)\n"),
    ],
)
def test_levels_are_taken_apart(before: str, wanted: object, after: str) -> None:
    text = "torch.compile(f)\n" + before
    reduced = reduce_source(text, Asked(reaches(wanted)))
    assert reduced.text.endswith(after), reduced.text
    assert measure(reduced.text)[0] <= 2, reduced.text


CLAMP = """\
import torch
from torch import nn


class Clamp(torch.autograd.Function):
    calls = {}

    @staticmethod
    def forward(ctx, x, bits, name):
        Clamp.calls = Clamp.calls.get(name)
        return x


class Linear(nn.Module):
    def __init__(self):
        super().__init__()
        self.bits, self.name = 1, "head"

    def forward(self):
        return Clamp.apply(torch.ones(1), self.bits, self.name)


torch.compile(Linear(), fullgraph=True)()
"""


def test_what_applies_a_function_of_autograd_gives_way_to_it() -> None:
    parts = ("torch.compile(", "(torch.autograd.Function)", ".apply", "def forward(ctx, x", 'Clamp.calls.get("head")', "torch.ones(1)")
    oracle = Asked(lambda t: '"head"' in t and all(part in t.replace("get(name)", 'get("head")') for part in parts))
    reduced = reduce_source(CLAMP, oracle)
    assert reduced.text == (
        "import torch\n\n\nclass Clamp(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n"
        '        Clamp.calls.get("head")\n\n\ntorch.compile(Clamp.apply)(torch.ones(1))\n'
    )
    assert len(oracle.texts) <= 60


def test_sizes_become_small_together() -> None:
    text = "import torch\n\nf = torch.compile(g)\nf(torch.zeros(64, 32), torch.zeros(32))\n"

    def works(candidate: str) -> bool:
        found = [int(n) for n in re.findall(r"\b\d+\b", candidate)]
        return len(found) == 3 and found[1] == found[2] and found[0] > 1 and "torch.compile" in candidate

    assert "torch.zeros(2, 2), torch.zeros(2)" in reduce_source(text, Asked(works)).text


# --- properties


@st.composite
def programs(draw: st.DrawFn) -> str:
    """Programs of assignments, calls, blocks, functions and classes over a few names."""
    seed = draw(st.integers(0, 2**32 - 1))
    rng = random.Random(seed)
    names = ["a", "b", "c", "d"]

    def expression(depth: int) -> str:
        kind = rng.randrange(7 if depth else 2)
        inner = lambda: expression(depth - 1)  # noqa: E731
        return [
            lambda: rng.choice(names),
            lambda: str(rng.randrange(20)),
            lambda: f"g({inner()}, {inner()})",
            lambda: f"{rng.choice(names)}.m({inner()})",
            lambda: f"({inner()} + {inner()})",
            lambda: f"[{inner()}, {inner()}]",
            lambda: f"k(x={inner()})",
        ][kind]()

    def block(depth: int, indent: str) -> list[str]:
        out: list[str] = []
        for _ in range(rng.randrange(1, 4)):
            kind = rng.randrange(9 if depth else 3)
            if kind < 2:
                out.append(f"{indent}{rng.choice(names)} = {expression(2)}")
            elif kind == 2:
                out.append(f"{indent}{expression(2)}")
            elif kind == 8:
                out.append(f"{indent}try:")
                out += block(depth - 1, indent + "    ")
                out.append(f"{indent}except ValueError:\n{indent}    pass")
            else:
                head = [
                    f"for {rng.choice(names)} in {expression(1)}:",
                    f"if {expression(1)}:",
                    f"with {expression(1)}:",
                    f"def {rng.choice('fgh')}(x, y={expression(0)}):",
                    f"class {rng.choice('PQ')}:",
                ][kind - 3]
                out.append(indent + head)
                out += block(depth - 1, indent + "    ")
                if kind == 4 and rng.random() < 0.5:
                    out.append(indent + "else:")
                    out += block(depth - 1, indent + "    ")
        return out

    return "\n".join(["import torch", "from lib import *", "torch.compile(run)", *block(2, "")]) + "\n"


def shape(text: str) -> set[str]:
    return {type(n).__name__ for n in ast.walk(ast.parse(text))}


@settings(max_examples=12, deadline=None)
@given(programs(), st.integers(0, 10**6), st.booleans())
def test_any_program_ends_small_and_true_the_same_way_twice(text: str, seed: int, hinted: bool) -> None:
    rng = random.Random(seed)
    wanted = set(rng.sample(sorted(shape(text)), 2))
    hints = [rng.randrange(1, text.count("\n") + 1)] if hinted else []

    def works(candidate: str) -> bool:
        return wanted <= shape(candidate)

    oracle = Asked(works)
    reduced = reduce_source(text, oracle, failing_lines=hints)
    assert works(reduced.text)
    assert reduced.fixed_point
    assert measure(reduced.text) <= measure(text)
    assert reduce_source(text, Asked(works), failing_lines=hints) == reduced


@settings(max_examples=10, deadline=None)
@given(programs(), st.integers(0, 60))
def test_any_budget_leaves_a_text_that_works(text: str, limit: int) -> None:
    wanted = sorted(shape(text))[0]
    oracle = Asked(lambda t: wanted in shape(t), limit=limit)
    reduced = reduce_source(text, oracle)
    assert wanted in shape(reduced.text)
    assert len(oracle.texts) <= limit


def test_what_a_script_does_beside_the_failure_goes_with_the_first_guess() -> None:
    text = textwrap.dedent(
        """
        import random
        import torch


        def trained(steps):
            return [random.random() for _ in range(steps)]


        def compiled(value):
            return torch.missing(value)


        random.seed(3)
        rates = trained(5)
        for rate in rates:
            print(rate)
        torch.manual_seed(1)
        value = 2
        compiled(value)
        """
    )
    oracle = Asked(lambda t: "torch.missing(" in t and "compiled(" in t)
    reduce_source(text, oracle, failing_lines=[11, 20])
    assert "random" not in oracle.texts[0]
    assert "manual_seed" in oracle.texts[0]  # of torch: it may matter


GROWS = """
import lib
model = lib.Model(size=3, depth=2)
lib.shown(model)
lib.fails(model)
"""


def slow_without(*words: str) -> Callable[[str, str], bool]:
    """Runs take longer without these words."""

    def slower(text: str, standing: str) -> bool:
        return any(word in standing and word not in text for word in words)

    return slower


def test_what_makes_the_run_longer_is_taken_last_and_only_for_a_line() -> None:
    asked = Asked(lambda text: "lib.fails(" in text and "model = lib.Model(" in text)
    found = reduce_source(GROWS, asked, checks=Checks(slower=slow_without("size=3")))
    assert found.fixed_point
    assert found.text == "import lib\n\nmodel = lib.Model(size=3)\nlib.fails(model)\n"
    asked = Asked(lambda text: "lib.fails(" in text and "import lib" in text)
    found = reduce_source(GROWS, asked, checks=Checks(slower=slow_without("lib.shown")))
    assert "lib.shown" not in found.text, "a line is worth the time"
    assert found.fixed_point


def test_what_must_stay_is_not_asked() -> None:
    asked = Asked(lambda text: "a" in text)
    found = reduce_source("a = 1\nb = 2\nc = 3\n", asked, checks=Checks(keeps=lambda text: "b" in text))
    assert "b" in found.text
    assert all("b" in text for text in asked.texts)
    assert "c" not in found.text
