"""Whole numbers that rounding decides are told from those that it does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from bot.inside.eager.accuracy import ComparisonRule, compare_graph  # noqa: E402
from bot.inside.eager.fp64 import evaluate  # noqa: E402
from bot.inside.eager.noise import MARGIN  # noqa: E402
from bot.inside.eager.rounding import RUNS, Rounded, as_rounding_leaves, is_beyond_rounding  # noqa: E402


def beside_a_border(x: Any) -> Any:
    """Codes of which the first lies so near to the next one that another order of the same sum gives that."""
    return torch.round((x * 3.0).sum(-1)).to(torch.int8)


# 3 * 0.1 * 5 is 1.5 up to rounding; the other row is far from a border
NEAR = torch.tensor([[0.1] * 5, [0.2] * 5])


def on_a_border(x: Any) -> Any:
    """Truths that hang on equality; nothing before it is rounded."""
    return torch.floor(x / 0.5) * 0.5 >= 1.0


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * 0.5,
        lambda x: torch.floor(x),
        lambda x: x.round().sum(),
        lambda x: x.clone().relu(),
        lambda x: (x.round() - 1).to(torch.float16),
        lambda x: x.argmax(),
    ],
)
def test_what_is_exact_stays(function: Callable[[Any], Any]) -> None:
    torch.manual_seed(0)
    x = torch.randn(40)
    for seed in range(RUNS):
        with Rounded(seed):
            moved = function(x)
        assert torch.equal(moved, function(x))


@pytest.mark.parametrize("function", [lambda x: x * 0.3, lambda x: x.exp(), lambda x: x.sum(), lambda x: x.to(torch.bfloat16)])
def test_what_is_rounded_moves_as_far_as_rounding_may_take_it(function: Callable[[Any], Any]) -> None:
    torch.manual_seed(0)
    x = torch.randn(40)
    eager, exact = function(x), function(x.double()).double()
    with Rounded(0):
        moved = function(x)
    error = (eager.double() - exact).abs()
    far = torch.maximum(MARGIN * error, MARGIN * torch.finfo(eager.dtype).eps * eager.double().abs())
    away = (moved.double() - eager.double()).abs()
    assert (away > 0).any()
    assert (away <= far + torch.finfo(eager.dtype).eps * eager.double().abs()).all()


def test_each_seed_moves_in_its_own_way_and_always_the_same() -> None:
    def run(seed: int) -> Any:
        with Rounded(seed):
            return torch.linspace(0, 1, 50).exp()

    assert torch.equal(run(3), run(3))
    assert not torch.equal(run(3), run(4))


def test_only_what_rounding_decides_comes_out_otherwise() -> None:
    def call() -> list[Any]:
        return [beside_a_border(NEAR), on_a_border(torch.tensor([1.0, 0.7])), NEAR.exp()]

    expected = call()
    found = as_rounding_leaves(expected, call)
    assert (found[0] != expected[0]).tolist() == [True, False]
    assert found[1:] == expected[1:]


def test_a_call_that_fails_when_moved_says_nothing() -> None:
    def call() -> list[Any]:
        raise RuntimeError

    expected = [torch.tensor([1])]
    assert as_rounding_leaves(expected, call) == expected


def test_where_float64_stands_for_compiled_results_they_are_no_proof() -> None:
    assert not torch.equal(evaluate(beside_a_border, (NEAR,), {}), beside_a_border(NEAR))
    x = torch.tensor([1.0, 0.7])
    assert torch.equal(evaluate(on_a_border, (x,), {}), on_a_border(x))


@pytest.mark.parametrize(
    ("function", "x", "compiled", "wrong"),
    [
        (beside_a_border, NEAR, lambda x: [torch.tensor([1, 3], dtype=torch.int8)], ()),
        (beside_a_border, NEAR, lambda x: [torch.tensor([2, 3], dtype=torch.int8)], ()),
        (on_a_border, torch.tensor([1.0, 0.7]), lambda x: [torch.tensor([False, False])], (0,)),
        (lambda x: x.round().to(torch.int8), NEAR, lambda x: [x.round().to(torch.int8) + 1], (0,)),
    ],
)
def test_a_region_is_wrong_only_in_what_rounding_does_not_decide(
    function: Callable[[Any], Any], x: Any, compiled: Callable[[Any], Any], wrong: tuple[int, ...]
) -> None:
    class Module(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return (function(x),)

    graph = torch.fx.symbolic_trace(Module())
    rule = ComparisonRule(strict=True)
    assert compare_graph(graph, compiled, [x], boxed=False, backward=False, rule=rule, backend=None).wrong == wrong


# the first row is beside a border, as NEAR has it; the others are far from one
CODES = torch.cat([NEAR[:1], (torch.arange(1, 100) % 40).unsqueeze(1).expand(99, 5) * 0.2])


@pytest.mark.parametrize(("others", "wrong"), [(0, ()), (8, ()), (60, (0,))])
def test_far_more_numbers_than_rounding_moves_are_wrong(others: int, wrong: tuple[int, ...]) -> None:
    """A pass that folded 1/127 into 1/128 made half of the codes of a layer wrong; that rounding decided a few of them hid it."""

    class Module(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return (beside_a_border(x),)

    def compiled(x: Any) -> Any:
        return [beside_a_border(x) + (torch.arange(100) <= others).to(torch.int8)]

    graph, rule = torch.fx.symbolic_trace(Module()), ComparisonRule(strict=True)
    assert compare_graph(graph, compiled, [CODES], boxed=False, backward=False, rule=rule, backend=None).wrong == wrong


def test_the_outcome_in_which_most_is_otherwise() -> None:
    outcomes = [[torch.tensor(one)] for one in ([0, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 1])]

    def call() -> list[Any]:
        return outcomes.pop(0)

    (expected,) = call()
    assert as_rounding_leaves([expected], call)[0].tolist() == [0, 1, 0]
    outcomes.append([torch.tensor([0, 0, 0], dtype=torch.int8)])  # of another type: all of them
    assert as_rounding_leaves([expected], call, most=True)[0].dtype == torch.int8
    assert outcomes == []


@pytest.mark.parametrize(
    ("moved", "theirs", "beyond"),
    [
        ([1] * 2 + [0] * 98, [1] * 50 + [0] * 50, True),
        ([1] * 2 + [0] * 98, [1] * 13 + [0] * 87, False),
        ([1] * 40 + [0] * 60, [1] * 100, False),
    ],
)
def test_how_many_numbers_rounding_explains(moved: list[int], theirs: list[int], beyond: bool) -> None:
    assert is_beyond_rounding(torch.zeros(100, dtype=torch.int64), torch.tensor(theirs), torch.tensor(moved)) is beyond
    assert not is_beyond_rounding(torch.zeros(100, dtype=torch.int64), torch.ones(100), torch.tensor(moved)), "a float tells by itself"
