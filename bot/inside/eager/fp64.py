"""Evaluates a function in float64 in place of its compiled form: is eager right by the program's own tolerance?

Parameters, inputs and whatever else the function touches are cast to double, and the results are cast back to the types that eager
returns. If that is no longer the same program (random numbers, code that depends on bits of a type, kernels without a double variant),
`Fp64Impossible` is raised: nothing is guessed.
"""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from ..protocol import Fp64Impossible, Precision
from . import noise, rounding
from .finite import overflows
from .python_state import PythonState
from .reachable import reachable
from .result_objects import with_lowered
from .result_views import ResultPlace, ResultViews, copied, is_given, places
from .types_met import PLAIN, Retold, TypesMet, cast_to, default_told

_LOW = (torch.float32, torch.float16, torch.bfloat16)
_RAISED = {torch.complex64: torch.complex128, torch.complex32: torch.complex128, **dict.fromkeys(_LOW, torch.float64)}
# These casts say in their name that the result has lower precision.
_CASTS = frozenset({"float", "half", "bfloat16", "cfloat", "chalf"})
# A call may put something into these, and the caller sees it there.
_FILLED = (list, dict, collections.deque)
# Up to this many bytes are copied for a part of them.
_MOST_BETWEEN = 64 << 20


class _Raised:
    """The tensors that existed before the run, with their doubles.

    Each tensor is cast once, so that writes and views still refer to one tensor. What the run creates is not included. A program that
    asks for a type is told what eager was (`retold`), if that is known.
    """

    def __init__(self, retold: Retold) -> None:
        self.pairs: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self._memories: _Memories = {}
        self.retold = retold

    def up(self, value: Any) -> Any:
        """`value` in double, whatever it is."""
        if isinstance(value, torch.dtype):
            return _RAISED.get(value, value)
        if not isinstance(value, torch.Tensor) or value.dtype not in _RAISED:
            return value
        if id(value) not in self.pairs:
            with torch.enable_grad():  # its next use may be one that needs the gradient
                self.pairs[id(value)] = (value, _copied(value, _RAISED[value.dtype], self._memories))
        return self.pairs[id(value)][1]

    def made(self, result: Any) -> Any:
        """The result of a call, in which a tensor that was created in lower precision after all is replaced by its double, and not
        tracked."""

        def double(value: Any) -> Any:
            return value.to(_RAISED[value.dtype]) if self._is_new(value) else value

        return pytree.tree_map(double, result) if any(map(self._is_new, pytree.tree_leaves(result))) else result

    def _is_new(self, value: Any) -> bool:
        return isinstance(value, torch.Tensor) and value.dtype in _RAISED and id(value) not in self.pairs

    def write_back(self, result: Any) -> Any:
        """Copy what was written into doubles back to the original tensors, and return these instead of their doubles."""
        written = [(low, high) for low, high in self.pairs.values() if _was_written(low, high)]
        places = collections.defaultdict(set)
        for low, high in self.pairs.values():
            places[low.untyped_storage().data_ptr()].add(high.untyped_storage().data_ptr())
        for low, high in written:
            if high.requires_grad or low.requires_grad:
                raise Fp64Impossible("a tensor that needs a gradient is written to")
            if len(places[low.untyped_storage().data_ptr()]) > 1:
                raise Fp64Impossible("tensors that share memory are written to")
            with torch.no_grad():
                low.copy_(high)
        originals = {id(high): low for low, high in written}
        return pytree.tree_map(lambda value: originals.get(id(value), value), result) if originals else result


def _was_written(low: torch.Tensor, high: torch.Tensor) -> bool:
    if not high.is_inference() and high._version:
        return True
    # inference tensors have no version, and batch_norm writes its running statistics without autograd knowing: compare values then
    return not (high.requires_grad or torch.allclose(high, low.to(high.dtype), rtol=0, atol=0, equal_nan=True))


class _Double(TorchFunctionMode):
    """Passes floating tensors in double to every call, and creates doubles where lower precision was asked for."""

    def __init__(self, raised: _Raised) -> None:
        super().__init__()
        self.raised = raised

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self.raised.retold.told(func, self._called(func, args, kwargs or {}))

    def _called(self, func: Any, args: Any, kwargs: Any) -> Any:
        name = getattr(func, "__name__", "")
        if (narrow := cast_to(name, args, kwargs)) and overflows(self.raised.up(args[0]), narrow):
            raise Fp64Impossible(f"a number is too large for {narrow}")
        if name in _CASTS and args and isinstance(args[0], torch.Tensor):
            return self.raised.up(args[0]).to(torch.complex128 if name.startswith("c") else torch.float64)
        if name == "view" and any(isinstance(value, torch.dtype) for value in (*args[1:], *kwargs.values())):
            raise Fp64Impossible("the bits of a tensor are read as another type")
        if name == "element_size" or getattr(func, "__self__", None) is torch.Tensor.itemsize:
            return self.raised.retold.in_place_of(args[0].dtype).itemsize
        if name not in PLAIN:
            args, kwargs = pytree.tree_map(self.raised.up, (args, kwargs))
        result = func(*args, **kwargs)
        if isinstance(result, torch.dtype):
            return self.raised.retold.in_place_of(result)
        return result if name in PLAIN else self.raised.made(result)


@contextmanager
def _default_double(raised: _Raised) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with default_told(before, torch.float64), _Double(raised):
            yield
    finally:
        torch.set_default_dtype(before)


@contextmanager
def untouched(call: Callable[..., Any], *given: Any) -> Iterator[PythonState]:
    """Run `call` inside this context to leave its tensors, what it and the `given` objects hold, the random state and the default type
    unchanged. Yields the state as it was before."""
    state = PythonState(call, *(one for one in given if not isinstance(one, torch.Tensor)))
    with keeping_tensors(call, state.tensors):
        try:
            yield state
        finally:
            state.put_back()


@contextmanager
def keeping_tensors(call: Callable[..., Any], others: Iterable[torch.Tensor] = ()) -> Iterator[None]:
    """Run `call` inside this context to leave its tensors, the `others` and the random state unchanged; what it puts elsewhere stays."""
    # an expanded tensor cannot be written to, nor can a lazy one without elements
    found = (tensor for tensor in (*reachable(call), *others) if not torch.nn.parameter.is_lazy(tensor))
    tensors = {id(tensor): tensor for tensor in found if 0 not in _strides(tensor)}
    saved = [(tensor, tensor.detach().clone()) for tensor in tensors.values()]
    random = random_state()
    try:
        yield
    finally:
        for tensor, copy in saved:
            with suppress(RuntimeError):  # overlapping elements, or inference mode: the run could not write to them either
                tensor.data.copy_(copy)
        restore(random)


def _strides(tensor: torch.Tensor) -> tuple[int, ...]:
    return tuple(tensor.stride()) if tensor.layout is torch.strided else ()


def random_state() -> list[torch.Tensor]:
    """The states of the random number generators; `drew` tells whether they were used since."""
    return [torch.get_rng_state(), *(torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else [])]


def restore(states: Sequence[torch.Tensor]) -> None:
    """Set the generators to the `states` that `random_state` returned; an empty sequence leaves them unchanged."""
    if states:
        torch.set_rng_state(states[0])
    if states[1:]:
        torch.cuda.set_rng_state_all(list(states[1:]))


def drew(before: list[torch.Tensor]) -> bool:
    """Whether random numbers were drawn since `before` was the `random_state`."""
    return any(not torch.equal(old, new) for old, new in zip(before, random_state(), strict=False))


# Copies of memory, by address and the type in which it was read.
_Memories = dict[tuple[int, torch.dtype], torch.Tensor]


def clones(values: Any) -> Any:
    """Copies of all tensors in the tree `values`; a leaf that requires a gradient stays one, and those that share memory share it again."""
    return pytree.tree_map(functools.partial(_clone, {}), values)


def _clone(memories: _Memories, value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    # memory shared with a tensor that requires a gradient is not cached: the other tensor would require one, too
    copy = _copied(value.detach() if value.is_leaf else value, value.dtype, {} if value.requires_grad else memories)
    return copy.requires_grad_(value.requires_grad) if value.is_leaf else copy


def _copied(value: torch.Tensor, dtype: torch.dtype, memories: _Memories) -> torch.Tensor:
    """A copy of a tensor as `dtype`, including the memory between its elements, which a program may access with strides of its own.
    `memories` are the copies so far: a write to one tensor is seen in all that share its memory."""
    with suppress(Exception):  # not every kind of tensor has memory of its own
        there, own = value.untyped_storage().nbytes(), value.numel() * value.element_size()
        if value.requires_grad or value.layout is not torch.strided or not own <= there <= max(_MOST_BETWEEN, 4 * own):
            return value.to(dtype, copy=True)
        place = (value.untyped_storage().data_ptr(), value.dtype)
        if place not in memories:
            whole = value if own == there else value.as_strided((there // value.element_size(),), (1,), 0)
            copy = whole.to(dtype, copy=True)
            if own == there and copy.stride() != value.stride():
                return copy
            memories[place] = copy
            if own == there:
                return copy
        return memories[place].as_strided(value.shape, value.stride(), value.storage_offset())
    return value.to(dtype, copy=True)


def evaluate(call: Callable[..., Any], args: Any, kwargs: Any, margin: float = 0.0, *, rounded: bool = True) -> Any:
    """`call(*args, **kwargs)` with everything in float64, with results in the types that eager returns.

    With a `margin`, results are moved away from eager's as far as `noise.stretched` says. If `rounded`, whole numbers that rounding
    decides come out differently than in eager. Gradients flow to the inputs and parameters as usual. Raises `Fp64Impossible`; an error
    that eager itself raises propagates unchanged.
    """
    (eager, drawn, state, where), met = _eager_and_types(call, args, kwargs)
    if drawn:
        raise Fp64Impossible("random numbers are not the same in float64")
    leaves = pytree.tree_leaves(eager)
    left = rounding.as_rounding_leaves(leaves, lambda: pytree.tree_leaves(_eager(call, args, kwargs)[0])) if rounded else leaves
    raised = _Raised(retold := Retold(met, _RAISED))
    double = in_double(call, args, kwargs, raised)
    state.settle(_as_low)
    # what is made only once was there already
    if met and not (retold.went_like(met) or retold.went_like(_met_again(call, args, kwargs))):
        raise Fp64Impossible("the code does something else in float64 than in eager")
    whole = [None if b is a else b for a, b in zip(leaves, left, strict=True)]
    return _like(eager, double, whole, ResultViews(raised.pairs.values(), where, margin))


def _as_low(low: Any, high: Any) -> Any:
    """The value kept in double, in the type in which eager keeps it."""
    leaves, spec = pytree.tree_flatten(low)
    others, other_spec = pytree.tree_flatten(high)
    if spec != other_spec or not any(map(_is_raised, leaves, others)):
        return high
    kept = [b.to(a.dtype) if _is_raised(a, b) else b for a, b in zip(leaves, others, strict=True)]
    return pytree.tree_unflatten(kept, spec)


def _is_raised(low: Any, high: Any) -> bool:
    return isinstance(low, torch.Tensor) and isinstance(high, torch.Tensor) and _RAISED.get(low.dtype) is high.dtype


def _eager(
    call: Callable[..., Any], args: Any, kwargs: Any, met: TypesMet | None = None
) -> tuple[Any, bool, PythonState, list[ResultPlace | None]]:
    """The result of a call without its autograd history, whether it drew random numbers, the state that it leaves, and where it has its
    results. `met` sees it."""
    with untouched(call, *args, *kwargs.values()) as state:
        before = random_state()
        given, named = _each(functools.partial(_clone, {}), args, kwargs)
        known = (*pytree.tree_leaves((given, named)), *reachable(call))
        with met or nullcontext():
            made = call(*given, **named)
        where = places(pytree.tree_leaves(made), known)
        # only its types and shapes are needed: drop what autograd saved
        eager = pytree.tree_map(lambda value: value.detach() if isinstance(value, torch.Tensor) else value, made)
        return eager, drew(before), state, where


def _eager_and_types(
    call: Callable[..., Any], args: Any, kwargs: Any
) -> tuple[tuple[Any, bool, PythonState, list[ResultPlace | None]], TypesMet | None]:
    """The same, and the types that eager met; None if it cannot be watched."""
    with suppress(Exception):  # not everything lets itself be looked at
        met = TypesMet()
        return _eager(call, args, kwargs, met), met
    return _eager(call, args, kwargs), None


def _met_again(call: Callable[..., Any], args: Any, kwargs: Any) -> TypesMet:
    met = TypesMet()
    with suppress(Exception):  # then it did something else, too
        _eager(call, args, kwargs, met)
    return met


def _each(change: Callable[[Any], Any], args: Any, kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call, with each tensor changed. Containers that the call may fill are passed as they are, since the caller holds
    them."""

    def changed(value: Any) -> Any:
        return pytree.tree_map(change, value, is_leaf=lambda node: isinstance(node, _FILLED))

    return tuple(map(changed, args)), {name: changed(value) for name, value in kwargs.items()}


def in_double(call: Callable[..., Any], args: Any, kwargs: Any, raised: _Raised | None = None) -> Any:
    """`call(*args, **kwargs)` with everything in float64, with the results as they come out. `raised` gets what existed before. Raises
    Fp64Impossible if that cannot be done."""
    raised = raised or _Raised(Retold())
    try:
        high_args, high_kwargs = _each(raised.up, args, kwargs)
        with _default_double(raised):
            result = call(*high_args, **high_kwargs)
        return raised.write_back(result)
    except Fp64Impossible:
        raise
    except Exception as error:
        raise Fp64Impossible(f"{type(error).__name__}: {str(error)[:300]}") from error


def stand_in(call: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """A substitute for float64: `call(*args, **kwargs)` in eager with each operation's result moved by a unit in its last place, and the
    outcome moved away from eager's as far as `noise.stretched` says."""
    eager, _, _, where = _eager(call, args, kwargs)
    with noise.Jittered():
        moved = call(*args, **kwargs)
    leaves, spec = pytree.tree_flatten(eager)
    others = pytree.tree_leaves(moved)
    return moved if len(leaves) != len(others) else pytree.tree_unflatten(list(map(_away, leaves, others, where)), spec)


def _away(low: Any, other: Any, place: ResultPlace | None) -> Any:
    tensors = isinstance(low, torch.Tensor) and isinstance(other, torch.Tensor) and low.layout is torch.strided
    if not tensors or is_given(place) or low.dtype not in (*_RAISED, torch.float64) or low.shape != other.shape:
        return other
    return noise.stretched(low, other)


Evaluate = Callable[[Callable[..., Any], Any, Any], Any]
EVALUATORS: dict[Precision, Evaluate] = {
    "fp64": evaluate,
    "spread": functools.partial(evaluate, margin=noise.MARGIN),
    "moved": stand_in,
    "exact": functools.partial(evaluate, rounded=False),
    "eager": lambda call, args, kwargs: call(*args, **kwargs),
    "copied": lambda call, args, kwargs: copied(call(*args, **kwargs)),
}


def _like(eager: Any, double: Any, instead: Sequence[Any], views: ResultViews) -> Any:
    """The results of `double` in the types of `eager`, except where `instead` has a replacement."""
    leaves, spec = pytree.tree_flatten(eager)
    others, other_spec = pytree.tree_flatten(double)
    if len(leaves) != len(others) or str(spec) != str(other_spec):
        raise Fp64Impossible("the result has another structure in float64")
    given = [_as(*pair, functools.partial(views.low, position)) for position, pair in enumerate(zip(leaves, others, strict=True))]
    return pytree.tree_unflatten([a if b is None else b for a, b in zip(given, instead, strict=True)], spec)


def _as(low: Any, high: Any, lower: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> Any:
    if not isinstance(low, torch.Tensor):
        if isinstance(low, (int, str, bool, type(None))) and low != high:
            raise Fp64Impossible(f"a result is {high!r} in float64 and {low!r} in eager")
        if type(low) is not type(high):
            raise Fp64Impossible(f"a result is a {type(high).__name__} in float64")
        return with_lowered(low, high, lower)
    if not isinstance(high, torch.Tensor) or low.shape != high.shape:
        raise Fp64Impossible("a result has another shape in float64")
    if low.dtype == high.dtype:
        return high
    if _RAISED.get(low.dtype) is not high.dtype:
        raise Fp64Impossible(f"a result is {high.dtype} in float64 and {low.dtype} in eager")
    return lower(low, high)
