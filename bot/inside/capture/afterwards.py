"""Comparing the compiled regions of a program once it has ended, on what each was first called with.

A program whose numbers are wrong ends well, or in its own comparison. To run it once more, with each region compared at its first call
(`check`), costs as much as the program. So its first run keeps what the first calls got, while that fits, and they are made again at its
end. Where one cannot be made again as it was, nothing is said here, and the program does run once more.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from ..eager import accuracy, drawing
from . import recipe
from .captured_graph import CapturedGraph

# Of the machine's memory that was free when it was kept, and of a GPU's, the share that may be held; and bytes at most.
SHARE, SHARE_OF_GPU, MOST = 1 / 8, 1 / 16, 1 << 30


class _FirstCall(NamedTuple):
    region: CapturedGraph
    compiled: Callable[..., Any]
    inputs: Sequence[Any]
    boxed: bool
    modes: _CallModes


@dataclass(frozen=True)
class _CallModes:
    """What decides how torch computes and is not in a graph."""

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
        """Whether these modes are in force in the body: settings stay as they are."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(torch.inference_mode(self.inference))
            stack.enter_context(torch.set_grad_enabled(self.grad))
            for device, dtype in self.autocast:
                stack.enter_context(torch.autocast(device, dtype=dtype))
            yield self == _CallModes.now()


class Afterwards:
    """First calls, kept for the end of the program."""

    def __init__(self) -> None:
        self._calls: list[_FirstCall] = []
        self._bytes = 0
        self.whole = True  # every call is here, and can be made again

    def keep(self, region: CapturedGraph, compiled: Callable[..., Any], inputs: Sequence[Any], *, boxed: bool) -> None:
        """Keep these `inputs`, copies, with which a `region` was called first; `compiled` is what was called, `boxed` how."""
        if not self.whole:
            return
        try:
            self._bytes += sum(_bytes(value) for value in inputs)
            if self._bytes > min(MOST, _room(inputs)) or drawing.draws(region.graph.graph):
                self.forget()
            else:
                self._calls.append(_FirstCall(region, compiled, inputs, boxed, _CallModes.now()))
        except Exception:  # in the middle of the program: no error of ours may be its failure
            self.forget()

    def forget(self) -> None:
        """Something cannot be compared here: hold nothing from here on."""
        self.whole = False
        self._calls.clear()

    def compare(self, rule: accuracy.ComparisonRule, judged: Callable[[CapturedGraph, accuracy.Compared, Sequence[Any]], None]) -> bool:
        """Compare each call by this `rule`; what was found is told to `judged`, with the inputs. Whether all of them could be compared."""
        place = 0
        # a backward that the program never called is compiled here, and joins the others
        while self.whole and place < len(self._calls):
            call = self._calls[place]
            place += 1
            with call.modes.in_force() as same:
                found = _compared(call, rule) if same else None
            if found is None or found.broke:
                self.forget()
            else:
                judged(call.region, found, call.inputs)
        return self.whole


def _compared(call: _FirstCall, rule: accuracy.ComparisonRule) -> accuracy.Compared:
    region = call.region
    backward = region.hook == "dynamo"
    return accuracy.compare_graph(
        region.graph, call.compiled, call.inputs, boxed=call.boxed, backward=backward, rule=rule, backend=region.backend
    )


def _bytes(value: Any) -> int:
    try:
        return int(value.untyped_storage().nbytes()) if isinstance(value, torch.Tensor) else 0
    except (NotImplementedError, RuntimeError):  # of a layout without one storage
        return int(value.numel() * value.element_size())


def _room(inputs: Sequence[Any]) -> float:
    """Bytes that may be held where the tensors of `inputs` are: of what is free on the machine, or of the smallest of their GPUs."""
    devices = {value.device for value in inputs if isinstance(value, torch.Tensor) and value.device.type == "cuda"}
    if devices:
        # what is free there is not asked: the program may be recording a CUDA graph
        return SHARE_OF_GPU * min(torch.cuda.get_device_properties(device).total_memory for device in devices)
    with open("/proc/meminfo", encoding="ascii") as file:
        return SHARE * next(1024 * int(line.split()[1]) for line in file if line.startswith("MemAvailable:"))
