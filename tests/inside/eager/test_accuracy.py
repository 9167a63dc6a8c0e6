"""When numbers are wrong, and what only looks like it."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch._dynamo.config as dynamo_config  # noqa: E402

from bot.inside.eager import accuracy, fp64  # noqa: E402
from bot.inside.eager.accuracy import ComparisonRule  # noqa: E402

ONES = torch.ones(4)
NAN, INF = float("nan"), float("inf")


def tensors(*values: Any) -> list[Any]:
    return [torch.as_tensor(value) for value in values]


class TestComparisonRule:
    """Two lists of results."""

    @pytest.mark.parametrize(
        ("expected", "actual", "same"),
        [
            ([1.0, NAN, INF, -INF], [1.0, NAN, INF, -INF], True),
            ([1.0, NAN], [1.0, 1.0], False),
            ([1.0, INF], [1.0, -INF], False),
            ([1.0, INF], [1.0, 3e38], False),
            ([1.0, 2.0], [1.0005, 2.0], True),
            ([1.0, 2.0], [1.1, 2.0], False),
            ([1.0 + 1.0j], [1.0 - 1.0j], False),
        ],
    )
    @pytest.mark.parametrize("tolerance", [None, (1e-3, 1e-3)])
    def test_numbers(self, expected: list[Any], actual: list[Any], same: bool, tolerance: Any) -> None:
        assert ComparisonRule(tolerance=tolerance).same(tensors(expected), tensors(actual)) is same

    def test_integral_outputs_count_only_if_strict(self) -> None:
        expected, actual = tensors([1.0], [1, 2], [True]), tensors([1.0], [1, 3], [False])
        assert ComparisonRule().same(expected, actual)
        assert not ComparisonRule(strict=True).same(expected, actual)
        assert ComparisonRule(strict=True).same(expected, expected)

    def test_a_whole_number_that_rounding_decides_proves_nothing(self) -> None:
        """Which of two numbers that are alike is the larger one: float64 says something else than eager, too."""
        rule = ComparisonRule(strict=True)
        expected, actual = tensors([3], [True]), tensors([4], [False])
        assert rule.compare(expected, actual, tensors([3], [True])).wrong == (0, 1)
        assert rule.compare(expected, actual, tensors([5], [True])).wrong == (1,)
        assert rule.compare(expected, actual, None, tensors([5], [False])).wrong == ()
        assert rule.compare(expected, actual, None).wrong == (0, 1)

    def test_another_shape_type_or_number_of_results(self) -> None:
        for tolerance in (None, ()):
            rule = ComparisonRule(tolerance=tolerance)
            assert not rule.same([ONES], [])
            assert not rule.same([ONES], [torch.ones(3)])
            assert not rule.same([ONES], [ONES.double()])

    def test_float16_noise_is_no_difference(self) -> None:
        """Worse than the tolerance, and no worse than eager is against float64."""
        exact = torch.linspace(1, 2, 64, dtype=torch.float64)
        eager, compiled = (exact * 1.004).half(), (exact * 0.996).half()
        assert not ComparisonRule().same([eager], [compiled])
        assert ComparisonRule().same([eager], [compiled], [exact])
        assert not ComparisonRule().same([eager], [(exact * 1.5).half()], [exact])
        with dynamo_config.patch(same_two_models_use_fp64=False):
            assert not ComparisonRule().same([eager], [compiled], [exact])

    def test_the_configured_tolerance_counts(self) -> None:
        with dynamo_config.patch(repro_tolerance=0.5):
            assert ComparisonRule().same([ONES], [ONES * 1.3])

    def test_the_programs_own_tolerance_counts(self) -> None:
        assert not ComparisonRule(tolerance=()).same([ONES], [ONES * 1.001]), "PyTorch's rule would let it pass"
        assert ComparisonRule(tolerance=(0.5, 0.0)).same([ONES], [ONES * 1.3]), "PyTorch's rule would not"

    def test_an_eager_run_that_misses_its_own_tolerance_proves_nothing(self) -> None:
        """Then the ratio of the two errors decides, as PyTorch's rule has it."""
        rule = ComparisonRule(tolerance=(1e-6, 0.0))
        assert rule.same([ONES], [ONES * 1.03], [ONES.double() * 1.01])
        assert not rule.same([ONES], [ONES * 1.1], [ONES.double() * 1.01])
        assert not rule.same([ONES], [ONES * 1.1], [ONES.double()])
        found = [rule.compare([ONES], [ONES * 1.1], [ONES.double() * off]) for off in (1.01, 1.0)]
        assert [(one.wrong, one.own) for one in found] == [((0,), False), ((0,), True)]

    def test_which_of_them_are_wrong_and_how_far_off(self) -> None:
        ours = [ONES, ONES * 2, ONES]
        found = ComparisonRule().compare(ours, [ONES, ONES * 3, ONES * 1.5], [one.double() for one in ours])
        assert found.wrong == (1, 2)
        assert found.near
        assert found.errors == (1.0, 0.0)

    def test_what_a_graph_casts_to_fewer_bits_is_known(self) -> None:
        """Its float64 form makes these numbers in fewer bits, too."""
        exact = ONES.double()
        assert not ComparisonRule().compare([ONES, ONES], [ONES, ONES], [exact, exact]).unmeasured
        assert ComparisonRule().compare([ONES, ONES], [ONES, ONES * 1.0001], [exact, ONES]).unmeasured

    @pytest.mark.parametrize("ours", [1.0, float("nan"), float("inf")])
    @pytest.mark.parametrize("theirs", [1.0, float("nan"), float("inf"), float("-inf")])
    def test_errors_say_nothing_of_an_infinity_or_nan_that_is_something_else_in_the_other(self, ours: float, theirs: float) -> None:
        """Softshrink of NaN is 0 when it is compiled, and its errors are those of the other elements."""
        eager, compiled = torch.tensor([2.0, ours]), torch.tensor([2.0, theirs])
        found = ComparisonRule().compare([eager, ONES], [compiled, ONES], [eager.double(), ONES.double()])
        assert found.unmeasured == (str(ours) != str(theirs))

    def test_one_number_that_eager_rounds_well_by_chance_proves_nothing(self) -> None:
        """A unit in the last place of bfloat16 is more than any tolerance, and nothing but rounding."""
        exact = torch.tensor([1.00001], dtype=torch.float64)
        eager, compiled = exact.to(torch.bfloat16), torch.tensor([1.0078125], dtype=torch.bfloat16)
        assert not ComparisonRule().same([eager], [compiled], [exact]), "PyTorch's rule alone calls it wrong"
        assert not ComparisonRule().compare([eager], [compiled], [exact]).wrong
        assert ComparisonRule().compare([eager], [compiled * 1.1], [exact]).wrong == ()
        many = torch.linspace(1, 2, 999, dtype=torch.float64)
        assert ComparisonRule().compare([many.bfloat16()], [(many * 1.01).bfloat16()], [many]).wrong == (0,)
        assert not ComparisonRule().compare([many.bfloat16()], [(many * 1.001).bfloat16()], [many]).wrong

    def test_without_float64_compiled_has_to_be_outside_of_eagers_own_spread(self) -> None:
        eager = torch.linspace(1, 2, 64)
        for spread, wrong in ((1e-6, (0,)), (0.3, ())):
            assert ComparisonRule().compare([eager], [eager * 1.1], None, [eager * (1 + spread)]).wrong == wrong

    @pytest.mark.parametrize(("off", "wrong"), [(0.5, ()), (1.0, ()), (9.0, (0,))])
    def test_a_spread_that_misses_any_tolerance_is_the_measure_all_the_same(self, off: float, wrong: tuple[int, ...]) -> None:
        """As float64's error is: compiled is wrong where it is clearly farther than eager moves."""
        eager = torch.linspace(1, 2, 64)
        signs = torch.tensor([1.0, -1.0, -1.0, 1.0]).repeat(16)
        moved, compiled = eager + 0.1 * signs, eager + 0.1 * off * signs.flip(0).roll(1)
        assert ComparisonRule().compare([eager], [compiled], None, [moved]).wrong == wrong
        assert ComparisonRule().compare([eager.bfloat16()], [compiled.bfloat16()], None, [moved.bfloat16()]).wrong == wrong

    def test_float64_results_in_few_bits_are_compared(self) -> None:
        """A program that makes its own numbers makes them in few bits whatever its inputs are."""
        assert ComparisonRule().compare([ONES], [ONES * 2], [ONES.clone()]).wrong == (0,)

    def test_numbers_of_eight_bits_are_compared(self) -> None:
        eager = torch.linspace(1, 2, 64).to(torch.float8_e4m3fn)
        twice = (eager.float() * 2).to(torch.float8_e4m3fn)
        assert ComparisonRule().same([eager], [eager.clone()])
        assert not ComparisonRule().same([eager], [twice])
        assert ComparisonRule().compare([eager], [twice], [eager.double()]).wrong == (0,)

    def test_float64_results_of_another_number_are_not_used(self) -> None:
        assert not ComparisonRule().same([ONES], [ONES * 2], [])


def relu(x: Any) -> Any:
    return torch.relu(x)


def raises(*_: Any, **__: Any) -> Any:
    raise RuntimeError


def graph(function: Callable[..., Any]) -> Any:
    return torch.fx.symbolic_trace(function)


def differs(function: Callable[..., Any], compiled: Callable[..., Any], *inputs: Any, **more: Any) -> bool:
    options = {"boxed": False, "backward": False, "rule": ComparisonRule(), "backend": None, **more}
    return bool(accuracy.compare_graph(graph(function), compiled, inputs, **options).wrong)


class TestDiffers:
    """A graph and what it was compiled to."""

    def test_wrong_and_right(self) -> None:
        assert differs(relu, lambda x: relu(x) + 1, ONES)
        assert not differs(relu, relu, ONES)
        assert differs(relu, lambda xs: relu(xs[0]) + 1, ONES, boxed=True)
        assert not differs(relu, lambda xs: relu(xs[0]), ONES, boxed=True)

    def test_eager_gets_the_strides_that_a_graph_was_traced_with(self) -> None:
        """What a backward gets from its compiled forward may lie otherwise, and a view of the graph's could not be made of it."""
        traced = importlib.import_module("torch.fx.experimental.proxy_tensor").make_fx(lambda x: x.view(4, 16) * 2)(torch.ones(1, 4, 4, 4))
        held = torch.randn(1, 4, 4, 4).to(memory_format=torch.channels_last)
        options: Any = {"boxed": False, "backward": False, "rule": ComparisonRule(), "backend": None}
        for wrong in (0, 1):
            found = accuracy.compare_graph(traced, lambda x, w=wrong: x.reshape(4, 16) * 2 + w, [held], **options)
            assert (found.broke, found.wrong) == (False, (0,) * wrong)

    def test_eager_that_does_not_repeat_itself_shows_nothing(self) -> None:
        class Counts(torch.nn.Module):
            graph = torch.fx.Graph()
            calls = 0

            def forward(self, x: Any) -> Any:
                Counts.calls += 1
                return x + Counts.calls

        options: Any = {"boxed": False, "backward": False, "rule": ComparisonRule(), "backend": None}
        assert not accuracy.compare_graph(Counts(), lambda x: x * 100, [ONES], **options).wrong

    def test_uninitialized_memory_is_no_wrong_number(self) -> None:
        """An allocator gives the same bytes again, so that eager repeats itself by chance; twice filled memory is what it is."""

        def reads(x: Any) -> Any:
            return x + torch.empty_like(x)

        def fills(x: Any) -> Any:
            return x + torch.empty_like(x).fill_(1)

        assert not differs(reads, lambda x: x + 1000, ONES)
        assert differs(fills, lambda x: x + 1000, ONES)

    @pytest.mark.parametrize(
        ("compiled", "strict", "wrong", "whole"),
        [
            (lambda x: (x + 0, x < 0), False, (), True),
            (lambda x: (x + 0, x < 0), True, (1,), False),
            (lambda x: (x + 1, x < 0), False, (0,), True),
            (lambda x: (x + 0, x > 0), False, (), False),
            (lambda x: (x + 0, (x > 0).int()), False, (), True),
        ],
    )
    def test_whole_numbers_that_do_not_count_are_known(self, compiled: Any, strict: bool, wrong: Any, whole: bool) -> None:
        options: Any = {"boxed": False, "backward": False, "rule": ComparisonRule(strict=strict), "backend": None}
        found = accuracy.compare_graph(graph(lambda x: (x + 0, x > 0)), compiled, [ONES], **options)
        assert (found.wrong, found.whole) == (wrong, whole)

    def test_of_whole_numbers_that_rounding_decides_nothing_is_said(self) -> None:
        def largest(x: Any) -> Any:
            return (x / 3 * 3).argmax()

        near = torch.tensor([1.0, 1.0 + 2**-23, 1.0])
        options: Any = {"boxed": False, "backward": False, "rule": ComparisonRule(), "backend": None}
        assert not accuracy.compare_graph(graph(largest), lambda x: largest(x) * 0 + 2, [near], **options).whole

    def test_a_compiled_call_that_raises_is_another_failure(self) -> None:
        assert not differs(relu, raises, ONES)

    def test_eager_that_cannot_be_run_alone_shows_nothing(self) -> None:
        assert not differs(lambda x: x.view(7), relu, ONES)

    def test_inputs_that_are_changed_are_fresh_for_each_run(self) -> None:
        for given in (torch.ones(3), torch.ones(3, requires_grad=True) * 1):
            assert not differs(lambda x: x.add_(1), lambda x: x.add_(1), given, backward=True)
            assert differs(lambda x: x.add_(1), lambda x: x.add_(2), given, backward=True)
            assert torch.equal(given, torch.ones(3))

    def test_what_is_written_to_an_input_is_a_result(self) -> None:
        """A program may return nothing of it: a cache, or the statistics of a normalization."""

        def fills(x: Any, y: Any) -> Any:
            y.add_(x)
            return x * 2

        def flipped(x: Any, y: Any) -> Any:
            y.add_(x.flip(0))
            return x * 2

        given = (torch.arange(4.0), torch.zeros(4))
        options: Any = {"boxed": False, "backward": False, "rule": ComparisonRule(), "backend": None}
        found = accuracy.compare_graph(graph(fills), flipped, given, **options)
        assert (found.wrong, found.written) == ((1,), (1,))
        assert not differs(fills, fills, *given)
        found = accuracy.compare_graph(graph(fills), lambda x, y: fills(x, y) + 1, given, **options)
        assert (found.wrong, found.written) == ((0,), ()), "what it writes is right"
        found = accuracy.compare_graph(graph(lambda x: x.add_(1)), lambda x: x.add_(2), [given[1]], **options)
        assert (found.wrong, found.written) == ((0,), ()), "it is returned"

    def test_gradients_of_a_sum_that_does_not_change(self) -> None:
        """What a softmax returns adds up to one, whatever it gets: only the gradients of another sum say anything."""

        class Wrong(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                ctx.save_for_backward(x)
                return x.softmax(-1)

            @staticmethod
            def backward(ctx: Any, grad: Any) -> Any:
                with torch.enable_grad():
                    x = ctx.saved_tensors[0].detach().requires_grad_()
                    return torch.autograd.grad(x.softmax(-1), x, grad)[0] * 1.5

        x = torch.randn(3, 5, generator=torch.Generator().manual_seed(0)).requires_grad_()
        options: Any = {"boxed": False, "rule": ComparisonRule(), "backend": None}
        found = accuracy.compare_graph(graph(lambda x: x.softmax(-1)), Wrong.apply, [x], backward=True, **options)
        assert (found.wrong, found.weighted) == ((1,), True)
        assert not differs(lambda x: x.softmax(-1), lambda x: x.softmax(-1), x, backward=True)
        assert not differs(lambda x: x.softmax(-1), Wrong.apply, x)

    def test_float64_decides_where_the_graph_can_run_in_it(self) -> None:
        """Eager sums float16 badly; the compiled one is right, and far from it."""
        x = torch.full((4,), 0.1, dtype=torch.float16)

        def eager(x: Any) -> Any:
            return ((x + 1000) - 1000) * 1000

        assert not differs(eager, lambda x: x * 1000, x)
        assert differs(eager, lambda x: x * 10_000, x)

    def test_a_graph_without_a_float64_form_is_compared_all_the_same(self) -> None:
        def bits(x: Any) -> Any:
            return x.view(torch.int32).view(torch.float32)

        assert differs(bits, lambda x: bits(x) + 1, ONES)
        assert not differs(bits, bits, ONES)

    @pytest.mark.parametrize("backward", [True, False])
    def test_gradients_count_where_they_are_asked_for(self, backward: bool) -> None:
        class Wrong(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                return x * 2

            @staticmethod
            def backward(ctx: Any, grad: Any) -> Any:
                return grad * 3

        x = torch.ones(3, requires_grad=True)
        assert differs(lambda x: x * 2, Wrong.apply, x, backward=backward) is backward
        with torch.no_grad():
            assert not differs(lambda x: x * 2, Wrong.apply, x, backward=backward)
        assert x.grad is None

    def test_float64_draws_other_numbers_and_decides_nothing(self) -> None:
        def eager(x: Any) -> Any:
            return relu(x) * torch.rand_like(x)

        assert differs(eager, lambda x: (relu(x) + 1) * torch.rand_like(x), ONES)
        assert not differs(eager, eager, ONES)

    def test_other_random_numbers_are_no_difference(self) -> None:
        """The graph is compiled once more so that it draws eager's numbers."""
        import torch._inductor.config as config

        seen: list[bool] = []

        def backend(gm: Any, inputs: list[Any]) -> Callable[..., Any]:
            seen.append(config.fallback_random)
            return gm.forward

        def other(x: Any) -> Any:
            return x + torch.rand(4) + 5

        assert not differs(lambda x: x + torch.rand_like(x), other, ONES, backend=backend)
        assert seen == [True]
        assert config.fallback_random is False
        assert differs(lambda x: x + torch.rand_like(x), other, ONES)


class TestPackage:
    """A loaded package and the program it was made from."""

    @pytest.fixture
    def exported(self) -> Any:
        class Module(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.register_buffer("n", torch.full((), 2.0))

            def forward(self, x: Any, *, scale: Any) -> Any:
                return {"y": x * self.n * scale, "i": x.argmax()}

        return torch.export.export(Module(), (torch.arange(4.0),), {"scale": torch.ones(())})

    @pytest.mark.parametrize(
        ("loaded", "wrong", "strictly"),
        [
            (lambda x, scale: {"y": x * 2 * scale, "i": x.argmax()}, False, False),
            (lambda x, scale: {"y": x * 3 * scale, "i": x.argmax()}, True, True),
            (lambda x, scale: {"y": x * 2 * scale, "i": x.argmin()}, False, True),
            (raises, False, False),
        ],
    )
    def test_results(self, exported: Any, loaded: Any, wrong: bool, strictly: bool) -> None:
        for rule, expected in ((ComparisonRule(), wrong), (ComparisonRule(strict=True), strictly)):
            found = accuracy.compare_package(exported, loaded, (torch.arange(4.0),), {"scale": torch.ones(())}, rule)
            assert bool(found.wrong) is expected


def test_each_run_of_a_package_that_counts_begins_alike() -> None:
    """Comparing leaves the program's own state as it was."""

    class Module(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.ones(1))

        def forward(self, x: Any) -> Any:
            self.count += 1
            return x * self.count

    module = Module()
    exported = torch.export.export(module, (ONES,))
    found = accuracy.compare_package(exported, lambda x: x * 2, (ONES,), {}, ComparisonRule())
    assert (found.wrong, found.errors) == ((), (0.0, 0.0))
    assert accuracy.compare_package(exported, lambda x: x * 3, (ONES,), {}, ComparisonRule()).wrong == (0,)
    assert module.count.item() == 1


def test_a_package_that_draws_is_compared_with_eager_alone() -> None:
    class Module(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x * torch.rand_like(x)

    exported = torch.export.export(Module(), (ONES,))
    found = accuracy.compare_package(exported, lambda x: (x + 1) * torch.rand_like(x), (ONES,), {}, ComparisonRule())
    assert found.wrong
    assert not accuracy.compare_package(exported, lambda x: x * torch.rand_like(x), (ONES,), {}, ComparisonRule()).wrong


def test_clones_keep_strides_gradients_and_leaves() -> None:
    leaf = torch.ones(2, 3, requires_grad=True)
    inputs = [leaf, leaf.t() * 1, torch.ones(6).as_strided((2, 2), (3, 1)), 7]
    copies = accuracy.clones(inputs)
    for one, other in zip(inputs[:3], copies[:3], strict=True):
        assert one is not other
        assert torch.equal(one, other)
        assert (one.stride(), one.requires_grad, one.is_leaf) == (other.stride(), other.requires_grad, other.is_leaf)
    assert copies[3] == 7


def test_what_lies_between_the_elements_of_an_argument_comes_along() -> None:
    def f(x: Any) -> Any:
        return torch.as_strided(x.mul_(2), (3, 2), (4, 1))

    def given() -> Any:
        return torch.arange(16.0)[::2]

    expected = f(given())
    x = given()
    assert torch.equal(fp64.evaluate(f, (x,), {}), expected)
    assert torch.equal(fp64.clones([given()])[0].as_strided((16,), (1,)), torch.arange(16.0))
