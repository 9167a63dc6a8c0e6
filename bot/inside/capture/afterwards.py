"""Compares the compiled regions of a program after it has ended, with the inputs of each region's first call.

A program with wrong numbers ends normally, or in its own comparison. Running it again with each region compared at its first call
(`check`) costs as much as the program. So the first run keeps the inputs of first calls, as long as they fit, and repeats these calls at
the end. If one cannot be repeated exactly, nothing is concluded, and the program does run again.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from ..eager import accuracy, drawing
from . import recipe
from .captured_graph import CapturedGraph

# The shares of free machine memory, at the time of keeping, and of GPU memory that may be held; and the maximum in bytes.
SHARE, SHARE_OF_GPU, MOST = 1 / 8, 1 / 16, 1 << 30


class _FirstCall(NamedTuple):
    region: CapturedGraph
    compared: Callable[[accuracy.ComparisonRule], accuracy.Compared]
    inputs: Sequence[Any] | None
    modes: _CallModes


@dataclass(frozen=True)
class _CallModes:
    """State that determines how torch computes and is not in a graph."""

    grad: bool
    inference: bool
    autocast: tuple[tuple[str, Any], ...]
    settings: tuple[str, ...]

    @staticmethod
    def now() -> _CallModes:
        autocast = tuple((device, torch.get_autocast_dtype(device)) for device in ("cpu", "cuda") if torch.is_autocast_enabled(device))
        return _CallModes(
            torch.is_grad_enabled(), torch.is_inference_mode_enabled(), autocast, (*recipe.setup(), str(torch.get_default_device()))
        )

    @contextlib.contextmanager
    def in_force(self) -> Iterator[bool]:
        """Enter these modes; yields whether all of them are in force, since settings are left as they are."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(torch.inference_mode(self.inference))
            stack.enter_context(torch.set_grad_enabled(self.grad))
            for device, dtype in self.autocast:
                stack.enter_context(torch.autocast(device, dtype=dtype))
            yield self == _CallModes.now()


class Afterwards:
    """First calls, kept until the end of the program."""

    def __init__(self) -> None:
        self._calls: list[_FirstCall] = []
        self._bytes = 0
        self.whole = True  # every call is here and can be repeated

    def keep(self, region: CapturedGraph, compiled: Callable[..., Any], inputs: Sequence[Any], *, boxed: bool) -> None:
        """Keep these `inputs`, which are copies, of the first call of a `region`; `compiled` is the callable, `boxed` its calling
        convention."""

        def compared(rule: accuracy.ComparisonRule) -> accuracy.Compared:
            backward = region.hook == "dynamo"
            return accuracy.compare_graph(region.graph, compiled, inputs, boxed=boxed, backward=backward, rule=rule, backend=region.backend)

        with self._no_error_of_ours():
            if self.whole and drawing.draws(region.graph.graph):
                self.forget()
            elif self.whole:
                self._keep(_FirstCall(region, compared, inputs, _CallModes.now()), inputs)

    def keep_package(self, region: CapturedGraph, load: Callable[[], Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Keep the arguments `args` and `kwargs` of the package that `load` returns, made from the program of the `region`."""
        with self._no_error_of_ours():
            if not self.whole:
                return
            given = copy.deepcopy((args, dict(kwargs)))

            def compared(rule: accuracy.ComparisonRule) -> accuracy.Compared:
                return accuracy.compare_package(region.graph, load(), *given, rule)

            self._keep(_FirstCall(region, compared, None, _CallModes.now()), torch.utils._pytree.tree_leaves(given))

    def _keep(self, call: _FirstCall, values: Sequence[Any]) -> None:
        """Keep a `call` that holds these `values`, as long as there is room."""
        self._bytes += sum(_bytes(value) for value in values)
        if self._bytes > min(MOST, _room(values)):
            self.forget()
        else:
            self._calls.append(call)

    @contextlib.contextmanager
    def _no_error_of_ours(self) -> Iterator[None]:
        """Suppress our own errors: they would become the program's failure, since it is still running."""
        try:
            yield
        except Exception:
            self.forget()

    def forget(self) -> None:
        """Give up and hold nothing from here on, since something cannot be compared."""
        self.whole = False
        self._calls.clear()

    def compare(
        self, rule: accuracy.ComparisonRule, judged: Callable[[CapturedGraph, accuracy.Compared, Sequence[Any] | None], None]
    ) -> bool:
        """Compare each call by this `rule`; `judged` gets the region, the result and the inputs. Returns whether all calls could be
        compared."""
        place = 0
        # a backward that the program never called is compiled here, and is appended to the calls
        while self.whole and place < len(self._calls):
            call = self._calls[place]
            place += 1
            if call.region.failed == "accuracy":
                continue  # both the package that was made and the one loaded from it are compared
            with call.modes.in_force() as same:
                found = call.compared(rule) if same else None
            if found is None or found.broke:
                self.forget()
            else:
                judged(call.region, found, call.inputs)
        return self.whole


def _bytes(value: Any) -> int:
    try:
        return int(value.untyped_storage().nbytes()) if isinstance(value, torch.Tensor) else 0
    except (NotImplementedError, RuntimeError):  # of a layout without a single storage
        return int(value.numel() * value.element_size())


def _room(inputs: Sequence[Any]) -> float:
    """Bytes that may be held where the tensors of `inputs` are: a share of the free machine memory, or of the smallest of their GPUs."""
    devices = {value.device for value in inputs if isinstance(value, torch.Tensor) and value.device.type == "cuda"}
    if devices:
        # free GPU memory is not queried, since the program may be recording a CUDA graph
        return SHARE_OF_GPU * min(torch.cuda.get_device_properties(device).total_memory for device in devices)
    with open("/proc/meminfo", encoding="ascii") as file:
        return SHARE * next(1024 * int(line.split()[1]) for line in file if line.startswith("MemAvailable:"))
