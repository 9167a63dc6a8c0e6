"""Whether a compiled graph computes wrong numbers, by PyTorch's rule.

The rule is `torch._dynamo.utils.same`: compiled agrees with eager within the tolerance, or is no worse than eager against float64. Each
run starts from the same seed. What a healthy program may do is not a difference: results that eager itself does not reproduce
(uninitialized memory), a compiled call that raises (a different failure), results for which the rule would reject mere rounding
(`noise.stretched`: one number that eager happened to round well). What a call writes to its inputs counts as a result. If float64 is not
available, or if eager draws random numbers, eager perturbed by its own rounding takes its place, and compiled has to be outside that
range.
"""

from __future__ import annotations

import contextlib
import copy
import importlib
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from . import checkpointed, drawing, errors, layouts, noise, rounding
from .finite import beside_infinities, parts
from .fp64 import drew, keeping_tensors, random_state
from .uninitialized import code_of, made_to_differ

SEED = 0
# A gradient vanishes if it is smaller than this many times eager's error in it.
_VANISHING = 10


def clones(inputs: Sequence[Any]) -> list[Any]:
    """Copies of the `inputs` that keep their strides, whether they require gradients, and which are leaves."""
    retain = importlib.import_module("torch._dynamo.debug_utils").clone_inputs_retaining_gradness
    with torch.enable_grad():
        copies = list(retain(list(inputs)))
        for index, value in enumerate(inputs):
            if isinstance(value, torch.Tensor) and not value.is_leaf:
                made = copies[index].clone()
                # an overlapping layout, which only a leaf can have, matters more
                copies[index] = made if made.stride() == value.stride() else copies[index]
        return copies


@dataclass(frozen=True)
class Compared:
    """How compiled results compare with eager's.

    `wrong`: positions of the wrong tensors among all that were compared. `own`: wrong by the program's own tolerance. `near`: eager is so
    close to float64 there that a tolerance alone tells right from wrong. `errors`: root mean squares against float64, of the compiled
    tensor and of eager's, where compiled is worst relative to eager. `unmeasured`: the errors mean nothing, because a result has low
    precision in the float64 run too, or only one of the two results has an infinity or NaN somewhere. `broke`: one of the runs raised, so
    nothing was compared. `written`: positions of inputs that the graph writes to and does not return; they count as results after those
    that it returns, and are listed only if one of them is wrong. `weighted`: gradients are wrong, but only those of a weighted sum of the
    results. `whole`: nothing that counts is wrong, but integral or boolean results, which do not count by this rule, are.
    """

    wrong: tuple[int, ...] = ()
    own: bool = False
    near: bool = True
    errors: tuple[float, float] | None = None
    unmeasured: bool = False
    broke: bool = False
    written: tuple[int, ...] = ()
    weighted: bool = False
    whole: bool = False


def compare_graph(
    gm: Any,
    compiled: Callable[..., Any],
    inputs: Sequence[Any],
    *,
    boxed: bool,
    backward: bool,
    rule: ComparisonRule,
    backend: Callable[..., Any] | None,
) -> Compared:
    """Compare `compiled` with the graph `gm` that it came from, on these `inputs`, by this `rule`.

    `boxed`: it takes its arguments in one list. `backward`: gradients are compared, too. `backend` compiles the graph again. A graph that
    draws random numbers is compiled once more so that it draws eager's numbers: Inductor's own generator gives different ones, which is
    not a bug.
    """
    if backend is not None and drawing.draws(gm.graph):
        with importlib.import_module("torch._inductor.config").patch(fallback_random=True):
            again = backend(copy.deepcopy(gm), list(inputs))
            return _compare(gm, again, inputs, getattr(again, "_boxed_call", False) and boxed, backward, rule)
    return _compare(gm, compiled, inputs, boxed, backward, rule)


def _compare(gm: Any, compiled: Callable[..., Any], inputs: Sequence[Any], boxed: bool, backward: bool, rule: ComparisonRule) -> Compared:
    debug = importlib.import_module("torch._dynamo.debug_utils")
    gm = checkpointed.plainly(gm)
    calls = _OnSameInputs(inputs, backward and torch.is_grad_enabled())

    def unboxed(*args: Any) -> Any:
        return compiled(list(args)) if boxed else compiled(*args)

    traced = layouts.as_traced(gm, inputs)

    def run(function: Callable[..., Any]) -> list[Any]:
        return calls.results(function, inputs if function is unboxed else traced)

    def run_precise() -> list[Any]:
        exact = calls.results(*debug.cast_to_fp64(copy.deepcopy(gm), clones(traced)))
        calls.note_exact(exact)
        return exact

    found = _compare_results(gm, unboxed, run, run_precise, rule)
    if not found.wrong and not found.broke and calls.gradients_vanish:
        calls.weighted = True
        found = _compare_results(gm, unboxed, run, run_precise, rule)
        return replace(found, weighted=bool(found.wrong))
    behind = range(calls.returned, calls.returned + len(calls.written or ()))
    return replace(found, written=calls.written or ()) if any(place in behind for place in found.wrong) else found


def compare_package(
    exported: Any, loaded: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], rule: ComparisonRule
) -> Compared:
    """Like `compare_graph` for a `loaded` AOTInductor package and the `exported` program it was made from, called with `args` and
    `kwargs`, by this `rule`."""
    mapping = importlib.import_module("torch.utils._pytree").tree_map

    def run(function: Callable[..., Any]) -> list[Any]:
        with torch.random.fork_rng(), torch.no_grad(), keeping_tensors(module):
            torch.manual_seed(SEED)
            given, named = copy.deepcopy((args, kwargs))
            return [one.clone() for one in tensors_of(function(*given, **named))]

    def run_precise() -> list[Any]:
        doubled = copy.deepcopy(module).double()
        return run(lambda *a, **k: doubled(*mapping(_in_double, a), **mapping(_in_double, k)))

    module = exported.module()
    return _compare_results(module, loaded, run, run_precise, rule)


def _compare_results(
    module: Any,
    compiled: Callable[..., Any],
    run: Callable[[Callable[..., Any]], list[Any]],
    run_precise: Callable[[], list[Any]],
    rule: ComparisonRule,
) -> Compared:
    """Whether `run` gives different results for the compiled form than for the module, while the module reproduces its own results even if
    uninitialized memory contains something else."""
    eager = _Watched(module)
    try:
        expected, actual = run(eager), run(compiled)
    except Exception:
        return Compared(broke=True)
    precise = None
    if not eager.drew:  # random numbers differ in float64
        with contextlib.suppress(Exception):  # integer-only operators and the like have no float64 form
            precise = run_precise()
    if precise is None and not rule.same(expected, actual):
        try:
            with noise.Jittered():
                moved = run(module)
        except Exception:
            return Compared(broke=True)
        found = rule.compare(expected, actual, None, moved)
    else:
        found = rule.compare(expected, actual, precise)
        if precise is not None and any(rounding.is_whole(one) for one in map(expected.__getitem__, found.wrong)):
            left = rounding.as_rounding_leaves(expected, lambda: run(module), most=True)
            found = rule.compare(expected, actual, [b if rounding.is_whole(b) else a for a, b in zip(precise, left, strict=False)])
    if not found.wrong:
        strictly = replace(rule, strict=True)
        return replace(found, whole=bool(_compare_results(module, compiled, run, run_precise, strictly).wrong)) if found.whole else found
    try:
        with made_to_differ(code_of(module)):
            return found if rule.same(expected, run(eager)) else replace(found, wrong=())
    except Exception:
        return replace(found, wrong=(), broke=True)


def tensors_of(tree: Any) -> list[torch.Tensor]:
    """The tensors in a `tree` of containers."""
    return [x for x in importlib.import_module("torch.utils._pytree").tree_leaves(tree) if isinstance(x, torch.Tensor)]


class _Watched:
    """A callable that records whether its calls drew random numbers."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.drew = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        before = random_state()
        result = self.function(*args, **kwargs)
        self.drew = self.drew or drew(before)
        return result


class _OnSameInputs:
    """Calls functions on copies of the same `inputs`; the first one is eager. `backward`: also computes gradients."""

    def __init__(self, inputs: Sequence[Any], backward: bool) -> None:
        self.inputs, self.backward = inputs, backward
        self.weighted = False  # gradients are those of a weighted sum
        self.returned = 0  # number of returned tensors
        self.written: tuple[int, ...] | None = None  # positions of the inputs that eager wrote to and does not return
        self.gradients_vanish = False
        self._gradients: list[Any] = []  # eager's

    def results(self, function: Callable[..., Any], inputs: Sequence[Any] | None = None) -> list[Any]:
        """The tensors that a call returns, the inputs that it wrote to (of `self.inputs` if None), and their gradients."""
        testing = importlib.import_module("torch._dynamo.testing")
        given = self.inputs if inputs is None else inputs
        with torch.random.fork_rng():
            torch.manual_seed(SEED)
            arguments = clones(given)
            tensors = [value for value in arguments if isinstance(value, torch.Tensor)]
            for value in tensors:
                if value.is_leaf:
                    value.grad = None
            out = function(*arguments)
            results = tensors_of(out)
            first = self.written is None
            if self.written is None:
                self.returned = len(results)
                places = [place for place, value in enumerate(arguments) if _was_written(value, given[place])]
                self.written = tuple(place for place in places if all(arguments[place] is not one for one in results))
            results += [arguments[place] for place in self.written]
            if self.backward and testing.requires_bwd_pass(out):
                for value in tensors:
                    if value.requires_grad and not value.is_leaf:
                        value.retain_grad()
                (_weighted_loss(out) if self.weighted else testing.reduce_to_scalar_loss(out)).backward()
                gradients = [x.grad for x in tensors if x.requires_grad and x.grad is not None]
                results += gradients
                self._gradients = gradients if first else self._gradients
            return [x.detach() for x in results]

    def note_exact(self, results: Sequence[Any]) -> None:
        """Record whether gradients vanish, given the `results` in float64: most of eager's are no more than its rounding."""
        count = len(self._gradients)
        pairs = list(zip(self._gradients, results[-count:], strict=False)) if count and len(results) > count else []
        self.gradients_vanish = 2 * sum(_is_rounding(ours, exact) for ours, exact in pairs) > count > 0
        self._gradients = []


def _was_written(value: Any, before: Any) -> bool:
    """Whether an input differs from `before`. Its version alone is not enough: batch_norm writes without autograd knowing."""
    if not isinstance(value, torch.Tensor) or (value.is_leaf and value.requires_grad):
        return False
    try:
        return not (torch.equal(value, before) or torch.allclose(value, before, rtol=0, atol=0, equal_nan=True))
    except Exception:  # a type or layout that nothing compares
        return False


def _weighted_loss(out: Any) -> Any:
    """A sum in which each number has its own weight. The plain sum of what a softmax or a normalization returns is constant."""
    tensors = [x for x in tensors_of(out) if x.requires_grad]
    return sum((x.abs() if x.is_complex() else x).flatten().double().cumsum(0).mean() / x.numel() for x in tensors if x.numel())


def _is_rounding(ours: Any, exact: Any) -> bool:
    """Whether a gradient of eager's is no farther from zero than its rounding error."""
    if ours.shape != exact.shape or ours.is_complex() or not ours.is_floating_point():
        return False
    return bool(exact.double().norm() <= _VANISHING * (ours.double() - exact.double()).norm())


@dataclass(frozen=True)
class ComparisonRule:
    """When two results differ.

    Without `tolerance`: PyTorch's rule, `same` with the configured tolerance. With one (`(rtol, atol)`, or `()` for the defaults of
    `torch.testing.assert_close`): the program's own if eager satisfies it against float64, otherwise PyTorch's. `strict`: integral and
    boolean tensors count too.
    """

    strict: bool = False
    tolerance: tuple[float, ...] | None = None

    def same(self, expected: Sequence[Any], actual: Sequence[Any], precise: Sequence[Any] | None = None) -> bool:
        """Whether the lists of tensors `expected` and `actual` agree; `precise` are the float64 results, if available."""
        expected, actual = ([_readable(one) for one in results] for results in (expected, actual))
        if len(expected) != len(actual):
            return False
        exact = self._exact(expected, precise)
        return all(
            self._same(one, other, None if exact is None else exact[place])
            for place, (one, other) in enumerate(zip(expected, actual, strict=True))
            if self._counts(one)
        )

    def compare(
        self, expected: Sequence[Any], actual: Sequence[Any], precise: Sequence[Any] | None, moved: Sequence[Any] | None = None
    ) -> Compared:
        """Which of the tensors `actual` are wrong; `expected` are eager's. `precise`: see `same`. `moved`, if float64 is not available:
        eager's results with each operation's result moved by a unit in its last place."""
        expected, actual = ([_readable(one) for one in results] for results in (expected, actual))
        if len(expected) != len(actual):
            return Compared(wrong=tuple(range(len(expected))) or (0,))
        exact = self._exact(expected, precise)
        reference = exact if exact is not None else self._exact(expected, moved and [_in_double(one) for one in moved])
        wrong: list[int] = []
        worst: tuple[float, float] | None = None
        own, near, differ = self.tolerance is not None, exact is not None, False
        for place, (one, other) in enumerate(zip(expected, actual, strict=True)):
            if not self._counts(one):
                differ = differ or _differ(one, other)
                continue
            if exact is not None:
                worst = errors.farther(worst, errors.of(one, other, exact[place]))
            # the noise shows how far off compiled may be, as eager's own error against float64 does
            known = None if reference is None else reference[place]
            if self._same(one, other, known) or not self._lets_rounding_pass(one, other, reference, place, known):
                continue
            wrong.append(place)
            own = own and (known is None or self._close([known.to(one.dtype)], [one]))
            near = near and _is_near(one, known)
        cast = any(isinstance(one, torch.Tensor) and one.is_floating_point() and one.dtype != torch.float64 for one in exact or ())
        unmeasured = cast or any(itertools.starmap(errors.beyond_measure, zip(expected, actual, strict=True)))
        return Compared(tuple(wrong), own, near or exact is None, worst, unmeasured, whole=differ)

    def _counts(self, tensor: Any) -> bool:
        return bool(self.strict or tensor.is_floating_point() or tensor.is_complex())

    def _exact(self, expected: Sequence[Any], precise: Sequence[Any] | None) -> Sequence[Any] | None:
        config = importlib.import_module("torch._dynamo.config")
        usable = precise is not None and len(precise) == len(expected) and config.same_two_models_use_fp64
        return precise if usable else None

    def _lets_rounding_pass(self, ours: Any, theirs: Any, reference: Sequence[Any] | None, place: int, exact: Any) -> bool:
        """Whether a result as accurate as eager's would pass; if not, a difference in `theirs` means nothing."""
        if reference is None or not isinstance(reference[place], torch.Tensor) or reference[place].shape != ours.shape:
            return True
        if not (ours.is_floating_point() or ours.is_complex()):
            # for example the index of the larger of two nearly equal numbers; only some of many numbers are that close
            moved = reference[place]
            return moved.dtype != ours.dtype or torch.equal(ours, moved) or rounding.is_beyond_rounding(ours, theirs, moved)
        # the program's own tolerance decides if eager satisfies it; otherwise the ratio of the two errors does
        if self.tolerance is not None and exact is not None and self._close([exact.to(ours.dtype)], [ours]):
            return True
        return self._same(ours, noise.stretched(ours, reference[place]), exact)

    def _same(self, ours: Any, theirs: Any, exact: Any) -> bool:
        if ours.shape != theirs.shape:
            return False  # torch's rule raises there
        if self.tolerance is not None:
            if self._close([theirs], [ours]):
                return True
            # eager itself has to be right by this tolerance, or it proves nothing
            if exact is None or self._close([exact.to(ours.dtype)], [ours]):
                return False
        utils, config = (importlib.import_module(f"torch._dynamo.{name}") for name in ("utils", "config"))
        return bool(utils.same(*beside_infinities(ours, theirs, exact), tol=config.repro_tolerance, equal_nan=True))

    def _close(self, actual: Sequence[Any], expected: Sequence[Any]) -> bool:
        given = dict(zip(("rtol", "atol"), self.tolerance or (), strict=False))
        try:
            torch.testing.assert_close(list(actual), list(expected), equal_nan=True, **given)
        except AssertionError:
            return False
        return True


def _differ(one: Any, other: Any) -> bool:
    """Whether two tensors of whole numbers differ; other layouts are not compared."""
    alike = (one.shape, one.dtype) == (other.shape, other.dtype)
    return not alike or (one.layout is torch.strided is other.layout and not torch.equal(one, other))


def _readable(tensor: Any) -> Any:
    # eight-bit types hold numbers, but nothing computes with them
    small = isinstance(tensor, torch.Tensor) and tensor.is_floating_point() and tensor.dtype.itemsize < 2
    return tensor.float() if small else tensor


def _in_double(tensor: Any) -> Any:
    # PyTorch's rule compares errors only if its reference is in float64
    return tensor.double() if isinstance(tensor, torch.Tensor) and tensor.is_floating_point() else tensor


# (rtol, atol) that a comparison of low-precision types allows.
_LOW = {torch.bfloat16: (1.6e-2, 1e-2), torch.float16: (1e-2, 1e-2)}


def _is_near(ours: Any, exact: Any) -> bool:
    """Whether eager is within a tolerance of float64 with room to spare."""
    if not isinstance(exact, torch.Tensor) or exact.shape != ours.shape or not ours.is_floating_point():
        return True
    tol = importlib.import_module("torch._dynamo.config").repro_tolerance
    rtol, atol = (max(tol, least) / noise.MARGIN for least in _LOW.get(ours.dtype, (0.0, 0.0)))
    # code that creates its own low-precision numbers does so in the float64 run as well
    pairs = zip(parts(ours), parts(exact), strict=True)
    return all(torch.allclose(one.double(), other.double(), rtol=rtol, atol=atol, equal_nan=True) for one, other in pairs)
