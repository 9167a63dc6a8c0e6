"""The source of objects that no top-level name leads to: what is written is run again, and must do the same."""

from __future__ import annotations

import importlib.util
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from bot.inside.capture import definitions, literals  # noqa: E402

Load = Callable[[str], Any]


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    """A module of the user's, which is not installed."""

    def module(body: str) -> Any:
        path = tmp_path / "users_own.py"
        path.write_text(textwrap.dedent(body))
        spec = importlib.util.spec_from_file_location("users_own", path)
        assert spec is not None
        assert spec.loader is not None
        made = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, "users_own", made)
        spec.loader.exec_module(made)
        return made

    return module


def again(value: Any) -> Any:
    """What the written source makes, in a place where nothing else is."""
    found = definitions.of(value)
    assert found is not None
    place: dict[str, Any] = {"__name__": "__main__", "torch": torch}  # every script imports torch
    exec("\n".join(found["statements"]), place)
    return eval(found["expression"], place)


def source_of(value: Any) -> str:
    found = definitions.of(value)
    assert found is not None
    return "\n".join([*found["statements"], found["expression"]])


class TestFunctions:
    """Functions with all that they name."""

    def test_a_closure_over_lists_and_functions(self, load: Load) -> None:
        user = load("""
            LIMIT = 3

            def make(kinds, factor):
                def scaled(x): return x * factor
                def outer(x): return [kinds, scaled(x), LIMIT]
                return outer

            made = make(["add", 1.5, None], 4)
        """)
        assert again(user.made)(2) == [["add", 1.5, None], 8, 3]

    def test_globals_of_nested_functions(self, load: Load) -> None:
        user = load("""
            BASE = 10
            def helper(x): return x + BASE
            def outer(xs):
                def inner(x):
                    return helper(x)
                return [inner(x) for x in xs]
        """)
        assert again(user.outer)([1]) == [11]

    def test_local_names_and_attributes_are_not_taken_for_globals(self, load: Load) -> None:
        user = load("""
            import torch
            x = torch.randn(3)
            nodes = open(__file__)
            def f(graph):
                x = graph.nodes
                return x
        """)
        assert again(user.f)(type("Graph", (), {"nodes": 7})) == 7
        user.nodes.close()

    def test_two_that_call_each_other(self, load: Load) -> None:
        user = load("""
            def even(n): return True if n == 0 else odd(n - 1)
            def odd(n): return False if n == 0 else even(n - 1)
            def fact(n): return 1 if n < 2 else n * fact(n - 1)
        """)
        assert again(user.even)(10) is True
        assert again(user.fact)(5) == 120

    def test_what_a_definition_needs_when_it_is_made(self, load: Load) -> None:
        user = load("""
            import functools as ft
            from typing import Any, Callable, Optional
            import operator
            START = 5

            def traced(function: Callable[..., Any]) -> Callable[..., Any]:
                @ft.wraps(function)
                def run(*args: Any) -> Any:
                    return ["traced", function(*args)]
                return run

            @traced
            def f(x: Optional[int], y: int = START) -> int:
                return operator.add(x, y)
        """)
        assert again(user.f)(1) == ["traced", 6]

    def test_imports_as_the_user_wrote_them(self, load: Load) -> None:
        user = load("""
            import math
            import os.path
            import torch.nn.functional as F
            from math import sqrt as root
            from functools import reduce
            def f(x): return [math.floor(x), root(x), F.relu(x) if x is None else x, reduce(max, [x, 1]), os.path.basename("a/b")]
        """)
        assert again(user.f)(4.0) == [4, 2.0, 4.0, 4.0, "b"]
        assert "from math import sqrt as root" in source_of(user.f)

    def test_operators_and_their_namespaces(self, load: Load) -> None:
        user = load("""
            import torch
            aten = torch.ops.aten
            mm, cond, packet = aten.mm.default, torch.ops.higher_order.cond, torch.ops.aten.relu
            def f(): return [aten, mm, cond, packet]
        """)
        assert again(user.f)() == [torch.ops.aten, torch.ops.aten.mm.default, torch.ops.higher_order.cond, torch.ops.aten.relu]

    def test_a_namespace_of_operators_is_named_and_not_imported(self, load: Load) -> None:
        # torch._ops imports torch, so the namespace stands there under its whole name as well
        user = load("""
            import torch
            aten = torch.ops.aten
            def f(x): return aten.relu(x)
        """)
        text = source_of(user.f)
        assert "aten = torch.ops.aten\n" in text
        assert "import" not in text

    def test_what_was_free_is_global(self, load: Load) -> None:
        user = load("""
            def make():
                count = 0
                def step():
                    nonlocal count
                    count += 1
                    inside = 0
                    def inner():
                        nonlocal inside
                        inside += 1
                    inner()
                    return count, inside
                return step
            made = make()
        """)
        step = again(user.made)
        assert [step(), step()] == [(1, 1), (2, 1)]

    def test_two_closures_of_one_name_cannot_stand_side_by_side(self, load: Load) -> None:
        user = load("""
            def make(n):
                def f(x): return x + n
                return f
            one, two = make(1), make(2)
            def first(x): return x
        """)
        assert definitions.of([user.one, user.two]) is None
        assert [f(0) for f in again([user.one, user.first])] == [1, 0]

    def test_partials_and_methods(self, load: Load) -> None:
        user = load("""
            import functools
            def f(a, b, c): return [a, b, c]
            class Holder:
                def __init__(self, n): self.n = n
                def call(self, x): return self.n + x
            part = functools.partial(f, [1], c=len)
            method = Holder(3).call
        """)
        assert again(user.part)(2) == [[1], 2, len]
        assert again(user.method)(1) == 4


class TestObjects:
    """Instances of classes, and the classes."""

    def test_constructor_arguments_and_bases(self, load: Load) -> None:
        user = load("""
            import abc
            LEVELS = ("low", "high")

            class Base(abc.ABC):
                level = LEVELS[1]
                @abc.abstractmethod
                def __call__(self, x): ...

            class Pass(Base):
                def __init__(self, factor, *, names=(), limit=7, **rest):
                    super().__init__()
                    self._factor, self.names, self.limit = factor, names, limit
                def __call__(self, x):
                    return [x * self._factor, self.names, self.limit, self.level, self.helper(x), self.twice]
                @staticmethod
                def helper(x): return below(x)
                @property
                def twice(self): return below(self._factor)

            def below(x): return -x
            made = Pass(3, names=["a"])
        """)
        found = source_of(user.made)
        assert again(user.made)(2) == [6, ["a"], 7, "high", -2, -3]
        assert "limit=" not in found.splitlines()[-1], "a default is not written"

    def test_enumerations_and_data_classes(self, load: Load) -> None:
        user = load("""
            import dataclasses, enum
            class Color(enum.Enum):
                RED = 1
            @dataclasses.dataclass
            class Options:
                color: Color
                sizes: dict
            made = Options(Color.RED, {"a": Color.RED})
        """)
        copy = again(user.made)
        assert (copy.color.name, copy.sizes["a"].value) == ("RED", 1)

    def test_an_argument_that_is_kept_nowhere(self, load: Load) -> None:
        user = load("class Pass:\n    def __init__(self, n): self.m = n + 1\nmade = Pass(1)")
        assert definitions.of(user.made) is None

    def test_objects_of_installed_packages(self) -> None:
        import collections
        import logging

        assert again(collections.OrderedDict) is collections.OrderedDict
        assert again([torch.fx.passes.shape_prop.ShapeProp, logging.Formatter.format]) == [
            torch.fx.passes.shape_prop.ShapeProp,
            logging.Formatter.format,
        ]
        linear = again(torch.nn.Linear(2, 3))
        assert (linear.in_features, linear.out_features) == (2, 3)


@pytest.mark.parametrize(
    "made",
    [
        "lambda x: x",
        "[lambda: 1]",
        "torch.ones(2)",
        "open(__file__)",
        "iter([])",
        "sys.modules[__name__]",
        "eval(compile('def f(): pass', 'nowhere', 'exec')) or f",
        "holder",
        "recursive",
    ],
)
def test_unknown(load: Load, made: str) -> None:
    """No guess where the source cannot be had."""
    user = load(f"""
        import sys, torch
        tensor = torch.ones(3)
        def holder(): return tensor
        recursive = []
        recursive.append(recursive)
        exec("def f(): pass")
        made = {made}
    """)
    assert definitions.of(user.made) is None


INSTALLED = ("math", "sys", "os.path", "torch", "torch._C", "torch.ops", "pytest")
ELSEWHERE = ("__main__", "no.such.module", None, "users_own", "conjured")


@pytest.mark.parametrize(("module", "there"), [*((name, True) for name in INSTALLED), *((name, False) for name in ELSEWHERE)])
def test_what_is_installed(load: Load, monkeypatch: pytest.MonkeyPatch, module: str | None, there: bool) -> None:
    load("")
    monkeypatch.setitem(sys.modules, "conjured", type(sys)("conjured"))
    assert literals.installed(module) is there
