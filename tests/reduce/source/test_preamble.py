"""Preambles: what a repro needs of the user's own definitions."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.reduce.source.preamble import drop_statements, preambles
from bot.reduce.source.text.normal_form import legal

SCRIPT = textwrap.dedent('''\
    from __future__ import annotations
    import os, sys
    import torch, my_ops
    import torch.nn as nn
    from torch._inductor.pattern_matcher import PatternMatcherPass, register_graph_pattern, CallFunction, Arg

    print("start")
    matcher = PatternMatcherPass()
    seen = []

    @register_graph_pattern(CallFunction(torch.ops.aten.relu.default, Arg()), pass_dict=matcher)
    def replacement(match, x):
        seen.append(match)

    class MyPass:
        def __call__(self, graph):
            matcher.apply(graph)

    class Model(nn.Module):
        def forward(self, x): return torch.ops.mylib.foo(x).relu()

    lib = torch.library.Library("mylib", "DEF")
    lib.define("foo(Tensor x) -> Tensor")
    @torch.library.impl(lib, "foo", "CPU")
    def foo(x):
        """A docstring."""
        return x + 1  # a comment

    def main(n=2, *, tag="t"):
        model = Model()
        mine = MyPass(); mine.extra = tag
        x = torch.randn(n)
        torch._inductor.config.post_grad_custom_post_pass = mine
        compiled = torch.compile(model)
        compiled(x)
        assert x is not None
        with torch.no_grad():
            out = compiled(x)  # fails
        print(out)

    if __name__ == "__main__":
        torch.manual_seed(0)
        main(n=4)
''')


def line_of(source: str, part: str) -> int:
    return next(i for i, line in enumerate(source.splitlines(), 1) if part in line)


def has(*parts: str) -> Callable[[Sequence[str]], int | None]:
    def ask(texts: Sequence[str]) -> int | None:
        return next((i for i, t in enumerate(texts) if all(p in t for p in parts)), None)

    return ask


def test_smallest_first_and_names_followed() -> None:
    found = preambles(SCRIPT, ["mine"], [], line_of(SCRIPT, "# fails"))
    assert [len(t) for t in found] == sorted(len(t) for t in found)
    assert found[0].endswith("mine = MyPass()\n")
    assert "class MyPass" in found[0]
    assert "matcher = PatternMatcherPass()" in found[0]
    assert "Model" not in found[0]
    assert "import os" not in found[0]


def test_decorators_and_attributes_that_change_a_needed_name_come_along() -> None:
    with_mutations = preambles(SCRIPT, ["mine"], [], line_of(SCRIPT, "# fails"))[1]
    assert "pass_dict=matcher" in with_mutations
    assert "seen = []" in with_mutations
    assert "mine.extra = tag" in with_mutations
    assert 'tag = "t"' in with_mutations
    assert "config.post_grad_custom_post_pass = mine" in with_mutations


def test_registrations_of_an_operator_are_found_by_its_namespace() -> None:
    found = preambles(SCRIPT, [], ["mylib"], line_of(SCRIPT, "# fails"))
    assert any("lib.define" in t and "def foo(x)" in t and "Model" not in t for t in found)


def test_everything_before_leaves_out_prints_asserts_comments_and_compiled_calls() -> None:
    everything = preambles(SCRIPT, ["mine"], [], line_of(SCRIPT, "# fails"))[-1]
    for absent in ("print", "assert", "#", "docstring", "compiled", "__future__", "def main"):
        assert absent not in everything
    assert "n = 4\n" in everything
    assert "x = torch.randn(n)" in everything
    assert "torch.manual_seed(0)" in everything
    assert "my_ops" in everything  # imported for its effect


def test_nothing_after_the_failing_line_is_taken() -> None:
    source = "import torch\na = [1]\nf(a)\na.append(2)\n"
    assert preambles(source, ["a"], [], 3) == ["a = [1]\n"]


def test_a_name_that_is_imported_gives_its_import() -> None:
    assert preambles("from passes import mine, other\nmine.x = 1\n", ["mine"], [], None)[0] == "from passes import mine\n"


@pytest.mark.parametrize(
    ("opening", "bound"),
    [
        ("with lock:", ""),
        ("with scope('my') as lib:", 'lib = scope("my").__enter__()'),
        ("for i in range(3):", "i = next(iter(range(3)))"),
        ("if flag:", ""),
        ("try:", ""),
    ],
)
def test_blocks_around_the_failing_line_are_taken_apart(opening: str, bound: str) -> None:
    tail = "\nexcept ValueError:\n    pass\n" if opening == "try:" else "\n"
    source = f"import torch\n{opening}\n    mine = make()\n    run(mine)  # fails{tail}"
    last = preambles(source, ["mine"], [], line_of(source, "# fails"))[-1]
    assert "mine = make()" in last
    assert "run" not in last
    assert opening.split()[0] not in last.split()
    assert bound in last


def test_a_test_function_is_flattened() -> None:
    source = "import torch\n\ndef helper():\n    return 1\n\n"
    source += "class TestX:\n    def test_it(self, k=3):\n        mine = helper()\n        go(mine)\n"
    assert preambles(source, ["mine"], [], 9)[0] == "def helper():\n    return 1\n\n\nmine = helper()\n"


@pytest.mark.parametrize("guard", ["", 'if __name__ == "__main__":\n    '])
def test_what_needs_a_class_that_is_taken_apart_goes_with_it(guard: str) -> None:
    """`setUpClass` is called in place of PyTorch's own `run_tests()`, without which its tests do not run."""
    source = "import torch\nregister(1)\n\nclass TestX(Case):\n    def test_it(self):\n        go(1)\n\n"
    source += guard + 'TestX.setUpClass()\nTestX("test_it").debug()\n'.replace("\nT", f"\n{' ' * 4 * bool(guard)}T")
    found = preambles(source, ["register"], [], line_of(source, "go(1)"))
    assert found
    assert "register(1)" in found[-1]
    assert not any("TestX" in text for text in found)


def test_text_over_several_lines_in_a_body_keeps_its_value() -> None:
    source = 'def main():\n    s = """a\n  b"""\n    go(s)\n\nmain()\n'
    scope: dict[str, object] = {}
    exec(preambles(source, ["s"], [], 4)[0], scope)
    assert scope["s"] == "a\n  b"


def test_nothing_found_is_empty() -> None:
    assert preambles("import os\n", ["unknown"], [], 1) == []


def test_drop_statements_reaches_what_is_asked_for() -> None:
    everything = preambles(SCRIPT, ["mine"], [], line_of(SCRIPT, "# fails"))[-1]
    shrunk = drop_statements(everything, has("matcher.apply", "lib.define"))
    assert [line for line in shrunk.splitlines() if line and "import" not in line] == [
        "matcher = PatternMatcherPass()",
        "class MyPass:",
        "    def __call__(self, graph):",
        "        matcher.apply(graph)",
        'lib = torch.library.Library("mylib", "DEF")',
        'lib.define("foo(Tensor x) -> Tensor")',
    ]
    assert shrunk.count("import") == 2, "of the modules that these statements use"


def test_what_a_function_uses_that_is_not_called_stays_bound() -> None:
    """torch asks a pass for its `uuid` only where its caches are on."""
    whole = "from tools import first\nfrom tools import digest\n\n\nclass Pass:\n    def uuid(self):\n        return digest(1)\n"
    shrunk = drop_statements(whole, has("return digest"))
    assert shrunk == "from tools import digest\n\n\nclass Pass:\n    def uuid(self):\n        return digest(1)\n"
    assert drop_statements(whole, has("class Pass")) == "class Pass:\n    pass\n"


def test_what_two_imports_take_from_one_module_is_one_import() -> None:
    asked: list[str] = []
    working = has("first(", "digest(")

    def ask(texts: Sequence[str]) -> int | None:
        asked.extend(texts)
        return working(texts)

    whole = "from tools import first\nfrom tools import digest\n\nfirst(digest(1))\n"
    assert drop_statements(whole, ask) == "from tools import first, digest\n\nfirst(digest(1))\n"
    assert asked[-1] == "from tools import first, digest\n\nfirst(digest(1))\n", "it is asked like any other"


CHAIN = """
class First:
    def __call__(self):
        pass

class Second:
    def __call__(self):
        raise KeyError

class Chain:
    def __init__(self, *passes, level=0):
        self.passes = passes

register(Chain(First(), Second(), First(), level=2))
"""


def test_what_is_called_at_the_top_loses_arguments_and_what_those_needed() -> None:
    def ask(texts: Sequence[str]) -> int | None:
        return next((i for i, text in enumerate(texts) if "register(Chain(" in text and "Second()" in text and "KeyError" in text), None)

    shrunk = drop_statements(CHAIN, ask)
    assert "register(Chain(Second(), level=2))" in shrunk
    assert "First" not in shrunk


def test_an_argument_takes_the_place_of_a_call() -> None:
    def ask(texts: Sequence[str]) -> int | None:
        return next((i for i, text in enumerate(texts) if "register(" in text and "Second()" in text), None)

    assert drop_statements(CHAIN, ask).splitlines()[-1] == "register(Second())"


def test_a_function_that_stays_goes_on_returning_what_it_did() -> None:
    def nested(after: str) -> str:
        return f"def lowering(x):\n    def inner(y):\n        return y * 2\n\n    early = 1\n    return inner(x)\n\n\n{after}"

    def needs(word: str) -> Callable[[Sequence[str]], int | None]:
        return lambda texts: next((i for i, text in enumerate(texts) if word in text), None)

    whole = nested("def other(x):\n    return x\n\n\nregister(lowering)\n")
    shrunk = drop_statements(whole, needs("register(lowering)"))
    assert shrunk == "def lowering(x):\n    pass\n\n\nregister(lowering)\n", "what is used stays bound"
    assert drop_statements(whole, needs("def lowering")) == "def lowering(x):\n    pass\n"
    kept = "def lowering(x):\n    def inner(y):\n        return y * 2\n\n    return inner(x)\n"
    assert drop_statements(whole, needs("def lowering"), returning=True) == kept
    assert drop_statements(whole, needs("def other"), returning=True) == "def other(x):\n    return x\n"
    assert drop_statements(whole, needs("register(lowering)"), returning=True) == f"{kept}\n\nregister(lowering)\n"


def test_a_decomposition_keeps_what_its_result_depends_on() -> None:
    decomposition = "def shift(x, dim):\n    pad = []\n    pad += [dim, 0]\n    return padded(x, pad)\n\n\ntable[op] = shift\n"
    noted = decomposition.replace("    pad = []\n", "    note = dim\n    pad = []\n")

    def ask(texts: Sequence[str]) -> int | None:
        return next((i for i, text in enumerate(texts) if "table[op] = shift" in text), None)

    assert drop_statements(noted, ask, returning=True) == decomposition
    assert "pad +=" not in drop_statements(noted, ask), "an error would be another one without it"


def test_drop_statements_passes_an_end_of_time_on() -> None:
    class Spent(Exception):
        pass

    def ask(texts: Sequence[str]) -> int | None:
        raise Spent

    with pytest.raises(Spent):
        drop_statements("a = 1\nb = 2\n", ask)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 40), st.sets(st.integers(0, 39), max_size=4))
def test_drop_statements_is_exact_and_cheap_on_a_flat_program(size: int, needed: set[int]) -> None:
    lines = [f"v{i} = {i}" for i in range(size)]
    keep = [lines[i] for i in sorted(needed) if i < size]
    asked: list[str] = []

    def ask(texts: Sequence[str]) -> int | None:
        assert all(legal(t) and t not in asked for t in texts)
        asked.extend(texts)
        return next((i for i, t in enumerate(texts) if set(keep) <= set(t.splitlines())), None)

    assert drop_statements("\n".join(lines) + "\n", ask).split("\n") == [*keep, ""]
    assert len(asked) <= 8 + 14 * len(keep)
