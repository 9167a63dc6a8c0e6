"""The last lines of a script."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bot.reduce.graph.form import Arg, Code, Graph, Input, Pipeline, Recipe, Ref
from bot.reduce.graph.printer.call import Call, in_call_order
from tests.reduce.graph.world import op, tensor

META = tensor(4)


def graph(*inputs: Input, output: Arg = Ref("r"), dtype: str = "float32") -> Graph:  # noqa: B008
    nodes = (op("r", "relu.default", Ref("x"), meta=replace(META, dtype=dtype)),)
    return Graph(inputs or (Input("x", META),), nodes, output)


def lines(recipe: Recipe, given: Graph | None = None, *, random: bool = False) -> list[str]:
    return Call(given or graph(), recipe, random).lines()


def test_inputs_by_keyword_come_last() -> None:
    inputs = (Input("a", META, keyword="a"), Input("b", META), Input("c", META, keyword="from"))
    assert [item.name for item in in_call_order(inputs)] == ["b", "a", "c"]
    assert lines(Recipe(), graph(*inputs)) == ['torch.compile(Repro())(b, a=a, **{"from": c})']


def test_a_recipe_says_how_to_compile() -> None:
    recipe = Recipe(backend="mine", mode="max-autotune", options=(("a", "1"),), dynamic=False, fullgraph=True)
    assert lines(recipe) == [
        'torch.compile(Repro(), backend=mine, mode="max-autotune", options={"a": 1}, dynamic=False, fullgraph=True)(x)'
    ]


def test_contexts_hold_the_call_but_not_the_making_of_the_module() -> None:
    found = lines(Recipe(accuracy=True, contexts=("torch.no_grad()", "mine()")))
    assert found[:3] == ["model = Repro()", "with torch.no_grad(), mine():", "    expected = model(x)"]
    assert len(found) == 5


def test_random_programs_are_seeded_before_each_run() -> None:
    found = lines(Recipe(accuracy=True, seed=7), random=True)
    assert found[1:5] == ["torch.manual_seed(7)", "expected = model(x)", "torch.manual_seed(7)", "actual = torch.compile(model)(x)"]


def test_a_module_that_changes_itself_is_copied() -> None:
    given = replace(graph(), constants=(Input("w", META),))
    found = lines(Recipe(accuracy=True, freshness=True), given)
    assert found[1] == "expected = copy.deepcopy(model)(x.clone())"
    assert "copy" not in "".join(lines(Recipe(accuracy=True, freshness=True)))


@pytest.mark.parametrize(
    ("output", "dtype", "loss"),
    [
        (Ref("r"), "float32", "out.sum()"),
        (Ref("r"), "complex64", "out.abs().sum()"),
        ((Ref("r"),), "float32", "out[0].sum()"),
        ((Ref("r"), Ref("x")), "float32", "sum(o.sum() for o in out if o.requires_grad)"),
        (
            [Ref("r"), None],
            "float32",
            "sum(o.abs().sum() for o in torch.utils._pytree.tree_leaves(out) if isinstance(o, torch.Tensor) and o.requires_grad)",
        ),
    ],
)
def test_what_is_differentiated(output: Arg, dtype: str, loss: str) -> None:
    found = lines(Recipe(backward=True), graph(output=output, dtype=dtype))
    assert found == ["out = torch.compile(Repro())(x)", f"{loss}.backward()"]


def test_gradients_are_compared_by_a_function() -> None:
    given = replace(graph(Input("x", META, requires_grad=True)), constants=(Input("w", META, requires_grad=True),))
    call = Call(given, Recipe(accuracy=True, backward=True), False)
    (helper,) = call.helpers()
    assert "torch.autograd.grad(out.sum(), (x, module.w), materialize_grads=True)" in helper
    assert call.lines()[1:3] == ["expected = run(model)", "actual = run(torch.compile(model))"]
    assert Call(given, Recipe(accuracy=True, backward=True, pipeline=Pipeline.AOTI), False).helpers() == []


@pytest.mark.parametrize(
    ("dtype", "recipe", "rule"),
    [
        ("float32", {}, "rtol=1e-3, atol=1e-3, "),
        ("float32", {"repro_tolerance": 1e-5}, "rtol=1e-5, atol=1e-5, "),
        ("bfloat16", {}, "rtol=0.016, atol=0.01, "),
        ("bfloat16", {"tolerance": ()}, ""),
        ("float16", {"tolerance": (0.0, 1e-12)}, "rtol=0.0, atol=1e-12, "),
    ],
)
def test_what_counts_as_wrong(dtype: str, recipe: dict[str, Any], rule: str) -> None:
    found = lines(Recipe(accuracy=True, **recipe), graph(dtype=dtype))
    assert found[-1] == f"torch.testing.assert_close(actual, expected, {rule}equal_nan=True)"


def test_a_package_is_made_of_an_exported_program() -> None:
    inputs = (Input("x", replace(META, dynamic=(0,))), Input("y", META, keyword="y"))
    assert lines(Recipe(pipeline=Pipeline.AOTI, options=(("a", "1"),)), graph(*inputs)) == [
        'ep = torch.export.export(Repro(), (x,), kwargs={"y": y}, dynamic_shapes={"x": {0: torch.export.Dim.DYNAMIC}, "y": None})',
        'path = torch._inductor.aoti_compile_and_package(ep, inductor_configs={"a": 1})',
        "torch._inductor.aoti_load_package(path)(x, y=y)",
    ]


class TestAgainstFloat64:
    """The comparison of a program where eager itself misses the tolerance: PyTorch's rule in plain torch."""

    RECIPE = Recipe(accuracy=True, against_float64=True)

    def test_both_errors_are_compared(self) -> None:
        assert lines(self.RECIPE)[3:] == [
            "exact = model(x.double())",
            "close = torch.allclose(actual, expected, rtol=1e-3, atol=1e-3, equal_nan=True)",
            "wrong, usual = ((out - exact).square().mean().sqrt() for out in (actual, expected))  # errors against float64",
            'assert close or wrong <= 3 * usual + 1e-4, f"off by {wrong:.1e}, eager by {usual:.1e}"',
        ]

    @pytest.mark.parametrize(("count", "dtype", "times"), [(999, "float32", 3), (1000, "float32", 2), (1000, "bfloat16", 3)])
    def test_results_with_few_digits_or_few_elements_may_be_farther(self, count: int, dtype: str, times: int) -> None:
        meta = tensor(count)
        given = Graph((Input("x", meta),), (op("r", "relu.default", Ref("x"), meta=replace(meta, dtype=dtype)),), Ref("r"))
        assert f"wrong <= {times} * usual" in lines(self.RECIPE, given)[-1]

    def test_a_module_with_tensors_becomes_one_in_float64(self) -> None:
        given = replace(graph(Input("x", META), Input("n", replace(META, dtype="int64"))), constants=(Input("w", META),))
        assert "exact = model.double()(x.double(), n)" in lines(self.RECIPE, given)
        fresh = lines(replace(self.RECIPE, freshness=True), given)
        assert "exact = copy.deepcopy(model).double()(x.double(), n.clone())" in fresh

    def test_gradients_are_compared_too(self) -> None:
        call = Call(graph(Input("x", META, requires_grad=True)), replace(self.RECIPE, backward=True), False)
        assert call.helpers() == [
            "def run(module, x):\n    out = module(x)\n    return [out, *torch.autograd.grad(out.sum(), (x,), materialize_grads=True)]"
        ]
        assert call.lines()[1:5] == [
            "expected = run(model, x)",
            "actual = run(torch.compile(model), x)",
            "exact = run(model, x.double())",
            "for a, e, x in zip(actual, expected, exact):",
        ]

    def test_operations_that_name_a_type_get_float64_all_the_same(self) -> None:
        given = Graph((Input("x", META),), (op("r", "to.dtype", Ref("x"), Code("torch.bfloat16"), meta=META),), Ref("r"))
        call = Call(given, self.RECIPE, False)
        assert call.helpers()[0].startswith("LOW = ")
        assert call.lines()[3:5] == ["with Float64():", "    exact = model(x.double())"]
        assert Call(graph(), self.RECIPE, False).helpers() == []
