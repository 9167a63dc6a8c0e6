"""Whether a compiled graph computes wrong numbers, by PyTorch's rule.

`torch._dynamo.utils.same`: compiled against eager within the tolerance, or no worse than eager is against float64.
Each run starts from the same seed. What a healthy program may do is not a difference: results that eager itself does not
repeat (uninitialized memory), a compiled call that raises (another failure). Where eager draws random numbers it is the only
reference: in float64 the same seed gives other ones, and so far from those everything would pass.
"""

from __future__ import annotations

import contextlib
import copy
import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from .fp64 import drew, random_state
from .uninitialized import code_of, made_to_differ

SEED = 0


def clones(inputs: Sequence[Any]) -> list[Any]:
    """Copies of the inputs that keep strides, whether a gradient is required, and which are leaves."""
    retain = importlib.import_module("torch._dynamo.debug_utils").clone_inputs_retaining_gradness
    with torch.enable_grad():
        copies = list(retain(list(inputs)))
        for index, value in enumerate(inputs):
            if isinstance(value, torch.Tensor) and not value.is_leaf:
                made = copies[index].clone()
                # a layout that only a leaf can have, of overlapping elements, is worth more
                copies[index] = made if made.stride() == value.stride() else copies[index]
        return copies


def differs(
    gm: Any,
    compiled: Callable[..., Any],
    inputs: Sequence[Any],
    *,
    boxed: bool,
    backward: bool,
    rule: ComparisonRule,
    backend: Callable[..., Any] | None,
) -> bool:
    """Whether `compiled` and the graph `gm` that it came from disagree on these inputs by this `rule`.

    `boxed`: it takes its arguments in one list. `backward`: gradients are compared, too. `backend` compiles the graph anew.

    A graph that draws random numbers is compiled once more so that it draws eager's numbers: Inductor's own generator
    gives other ones, which is no bug.
    """
    if backend is not None and any(_draws(node) for node in gm.graph.nodes):
        with importlib.import_module("torch._inductor.config").patch(fallback_random=True):
            again = backend(copy.deepcopy(gm), list(inputs))
            return _compare(gm, again, inputs, getattr(again, "_boxed_call", False) and boxed, backward, rule)
    return _compare(gm, compiled, inputs, boxed, backward, rule)


def _compare(gm: Any, compiled: Callable[..., Any], inputs: Sequence[Any], boxed: bool, backward: bool, rule: ComparisonRule) -> bool:
    debug = importlib.import_module("torch._dynamo.debug_utils")
    backward = backward and torch.is_grad_enabled()

    def unboxed(*args: Any) -> Any:
        return compiled(list(args)) if boxed else compiled(*args)

    def run_precise() -> list[Any]:
        model, arguments = debug.cast_to_fp64(copy.deepcopy(gm), clones(inputs))
        return _run(model, arguments, backward)

    return _results_differ(gm, unboxed, lambda function: _run(function, inputs, backward), run_precise, rule)


def package_differs(exported: Any, loaded: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], rule: ComparisonRule) -> bool:
    """The same for a `loaded` AOTInductor package and the `exported` program it was made from, called with `args` and `kwargs`,
    by this `rule`."""
    mapping = importlib.import_module("torch.utils._pytree").tree_map

    def run(function: Callable[..., Any]) -> list[Any]:
        with torch.random.fork_rng(), torch.no_grad():
            torch.manual_seed(SEED)
            given, named = copy.deepcopy((args, kwargs))
            return tensors_of(function(*given, **named))

    def run_precise() -> list[Any]:
        doubled = copy.deepcopy(module).double()

        def cast(tree: Any) -> Any:
            return mapping(lambda x: x.double() if isinstance(x, torch.Tensor) and x.is_floating_point() else x, tree)

        return run(lambda *a, **k: doubled(*cast(a), **cast(k)))

    module = exported.module()
    return _results_differ(module, loaded, run, run_precise, rule)


def _results_differ(
    module: Any,
    compiled: Callable[..., Any],
    run: Callable[[Callable[..., Any]], list[Any]],
    run_precise: Callable[[], list[Any]],
    rule: ComparisonRule,
) -> bool:
    """Whether `run` gives other results for what was compiled than for the module, and the same ones for the module again, though
    uninitialized memory holds something else."""
    eager = _Watched(module)
    try:
        expected, actual = run(eager), run(compiled)
    except Exception:
        return False
    precise = None
    # integer-only operators and the like have no float64 form: eager alone is the reference then
    with contextlib.suppress(Exception):
        precise = None if eager.drew else run_precise()
    if rule.same(expected, actual, precise):
        return False
    try:
        with made_to_differ(code_of(module)):
            return rule.same(expected, run(eager))
    except Exception:
        return False


def tensors_of(tree: Any) -> list[torch.Tensor]:
    """The tensors in a `tree` of containers."""
    return [x for x in importlib.import_module("torch.utils._pytree").tree_leaves(tree) if isinstance(x, torch.Tensor)]


class _Watched:
    """A callable that knows whether its calls drew random numbers."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.drew = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        before = random_state()
        result = self.function(*args, **kwargs)
        self.drew = self.drew or drew(before)
        return result


def _run(function: Callable[..., Any], inputs: Sequence[Any], backward: bool) -> list[Any]:
    """Tensors that a call yields, gradients of the inputs after them."""
    testing = importlib.import_module("torch._dynamo.testing")
    with torch.random.fork_rng():
        torch.manual_seed(SEED)
        arguments = clones(inputs)
        tensors = [value for value in arguments if isinstance(value, torch.Tensor)]
        for value in tensors:
            if value.is_leaf:
                value.grad = None
        out = function(*arguments)
        results = tensors_of(out)
        if backward and testing.requires_bwd_pass(out):
            for value in tensors:
                if value.requires_grad and not value.is_leaf:
                    value.retain_grad()
            testing.reduce_to_scalar_loss(out).backward()
            results += [x.grad for x in tensors if x.requires_grad and x.grad is not None]
        return [x.detach() for x in results]


@dataclass(frozen=True)
class ComparisonRule:
    """When two results differ.

    Without `tolerance`: PyTorch's rule, `same` with the configured tolerance. With one (`(rtol, atol)`, or `()` for the
    defaults of `torch.testing.assert_close`): the program's own, which eager has to satisfy against float64.
    `strict`: integral and boolean tensors count too.
    """

    strict: bool = False
    tolerance: tuple[float, ...] | None = None

    def same(self, expected: Sequence[Any], actual: Sequence[Any], precise: Sequence[Any] | None = None) -> bool:
        """Whether the lists of tensors `expected` and `actual` agree; `precise` is what float64 gives, where that could be had."""
        if len(expected) != len(actual):
            return False
        config = importlib.import_module("torch._dynamo.config")
        if precise is not None and (len(precise) != len(expected) or not config.same_two_models_use_fp64):
            precise = None
        kept = [i for i, x in enumerate(expected) if self.strict or x.is_floating_point() or x.is_complex()]
        ours, theirs = [expected[i] for i in kept], [actual[i] for i in kept]
        if any(a.shape != b.shape for a, b in zip(ours, theirs, strict=True)):
            return False  # torch's rule raises there
        exact = [precise[i] for i in kept] if precise is not None else None
        if self.tolerance is not None:
            rounded = [e.to(o.dtype) for e, o in zip(exact, ours, strict=False)] if exact is not None else ours
            # eager itself has to be right under this tolerance, or it proves nothing
            return self._close(theirs, ours) or not self._close(rounded, ours)
        utils = importlib.import_module("torch._dynamo.utils")
        return bool(utils.same(ours, theirs, exact, tol=config.repro_tolerance, equal_nan=True))

    def _close(self, actual: Sequence[Any], expected: Sequence[Any]) -> bool:
        given = dict(zip(("rtol", "atol"), self.tolerance or (), strict=False))
        try:
            torch.testing.assert_close(list(actual), list(expected), equal_nan=True, **given)
        except AssertionError:
            return False
        return True


def _draws(node: Any) -> bool:
    if node.op == "call_function" and torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()):
        return True
    if node.op in ("call_function", "call_method"):
        name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
        return any(word in name for word in ("dropout", "rand", "bernoulli", "normal_", "uniform_", "multinomial", "exponential_"))
    return False
