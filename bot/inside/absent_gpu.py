"""A CUDA device that is not there: enough of one to compile for it.

Every tensor is fake (shapes and dtypes, no data), torch.cuda answers as if there were one device of a given architecture, Triton compiles
for it and loads nothing, and a compiled graph returns fake results. Nothing runs, so only failures up to the end of Triton's compilation
can be seen. What torch asks the CUDA runtime in C++ is answered by `absent_gpu.c`, which must be preloaded.
"""

from __future__ import annotations

import copy
import functools
import importlib
import importlib.util
import os
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from .children import after
from .protocol import CUDA_ARCH

_SHARED = {80: 166_912, 86: 101_376, 87: 166_912, 89: 101_376, 90: 232_448, 100: 232_448, 103: 232_448, 120: 101_376}  # bytes per block
_PROCESSORS = 132
_REGISTERS, _WARP, _THREADS = 65_536, 32, 2048


def put_up() -> None:
    """Make this process see one device of the compute capability in CUDA_ARCH (90 for 9.0), permanently."""
    arch = int(os.environ[CUDA_ARCH])
    shared = _SHARED.get(arch, 101_376)
    _cuda(arch, shared)
    if importlib.util.find_spec("triton") is not None:
        _triton(arch, shared)
    after("torch._inductor.compile_fx", _give_back_fakes)
    after("torch._inductor.runtime.triton_heuristics", _load_nothing)
    after("torch._inductor.fx_passes.joint_graph", _fold_on_cpu)
    after("torch._inductor.fx_passes.pad_mm", _pad_nothing)
    after("torch._inductor.select_algorithm", _time_nothing)
    # moving a module swaps its parameters, which fails if they have weak references, and the fake mode keeps some
    torch.utils.swap_tensors = _become
    # torch believes that the device is there, but nothing may initialize it
    FakeTensorMode.avoid_device_init = True
    sys.modules[FakeTensorMode.__module__].init_gpu_context = lambda *_: None  # type: ignore[attr-defined]
    _Numbers(allow_non_fake_inputs=True).__enter__()


class _Numbers(FakeTensorMode):
    """Fake tensors. Every number that a program reads from one is 1: what it prints or compares is not what fails to compile."""

    def dispatch(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """A number if one is asked for, otherwise the operation's fake result."""
        if func is torch.ops.aten.equal.default:
            return True
        if func is torch.ops.aten._local_scalar_dense.default and getattr(args[0], "constant", None) is None:
            dtype = args[0].dtype
            return True if dtype is torch.bool else 1.0 if dtype.is_floating_point else 1 + 0j if dtype.is_complex else 1
        return super().dispatch(func, types, args, kwargs or {})


def _become(one: Any, other: Any) -> None:
    """Turn the fake tensor `one` into the `other`."""
    one.data = other
    one.fake_device = other.fake_device


def _cuda(arch: int, shared: int) -> None:
    cuda: Any = torch.cuda
    major, minor = divmod(arch, 10)
    properties = AbsentProperties(
        name=f"no GPU (compiling for sm_{arch})",
        major=major,
        minor=minor,
        total_memory=80 << 30,
        multi_processor_count=_PROCESSORS,
        warp_size=_WARP,
        regs_per_multiprocessor=_REGISTERS,
        max_threads_per_multi_processor=_THREADS,
        max_threads_per_block=1024,
        shared_memory_per_block=49_152,
        shared_memory_per_block_optin=shared,
        shared_memory_per_multiprocessor=shared + 1024,
        L2_cache_size=50 << 20,
        gcnArchName="",
        is_integrated=0,
        clock_rate=1_500_000,
        memory_clock_rate=2_000_000,
        memory_bus_width=5120,
    )
    answers: dict[str, Callable[..., Any]] = {
        "_lazy_init": lambda: None,
        "_lazy_call": lambda *_, **__: None,
        "_exchange_device": lambda _: 0,
        "_maybe_exchange_device": lambda _: 0,
        "is_available": lambda: True,
        "is_current_stream_capturing": lambda: False,
        "is_bf16_supported": lambda *_, **__: arch >= 80,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "set_device": lambda _: None,
        "synchronize": lambda *_: None,
        "empty_cache": lambda: None,
        "get_device_properties": lambda *_: properties,
        "get_device_capability": lambda *_: (major, minor),
        "get_device_name": lambda *_: properties.name,
        "current_stream": lambda *_: AbsentStream(),
        "default_stream": lambda *_: AbsentStream(),
        "set_stream": lambda _: None,
        "get_rng_state": lambda *_: torch.zeros(16, dtype=torch.uint8),
        "set_rng_state": lambda *_, **__: None,
        "memory_allocated": lambda *_: 0,
        "max_memory_allocated": lambda *_: 0,
        "reset_peak_memory_stats": lambda *_: None,
        "mem_get_info": lambda *_: (80 << 30, 80 << 30),
        "Stream": AbsentStream,
        "Event": AbsentEvent,
    }
    for name, answer in answers.items():
        old = getattr(cuda, name, None)
        for module in (cuda, *(held for key, held in list(sys.modules.items()) if key.startswith("torch.cuda."))):
            if old is not None and getattr(module, name, None) is old:
                setattr(module, name, answer)
    # checkpointing saves the state of the device's generator
    cuda.default_generators = (torch.Generator(),)
    native: dict[str, Callable[..., Any]] = {
        "_cuda_getDevice": lambda: 0,
        "_cuda_setDevice": lambda _: None,
        "_cuda_exchangeDevice": lambda _: 0,
        "_cuda_maybeExchangeDevice": lambda _: 0,
        "_cuda_getDeviceCount": lambda: 1,
        "_cuda_getCurrentRawStream": lambda _: 0,
        "_cuda_synchronize": lambda: None,
    }
    for name, answer in native.items():
        if hasattr(torch._C, name):
            setattr(torch._C, name, answer)


class AbsentProperties(types.SimpleNamespace):
    """The device's properties. Asking for any other raises an error with this class's name, which says that there is no device."""


class AbsentStream:
    """A stream on which nothing runs."""

    cuda_stream, device_index, stream_id, device_type = 0, 0, 0, 1
    device = torch.device("cuda", 0)

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __enter__(self) -> AbsentStream:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def query(self) -> bool:
        """Everything is done."""
        return True

    def synchronize(self, *_: Any) -> None:
        """There is nothing to wait for."""

    wait_stream = wait_event = synchronize

    def record_event(self, *_: Any) -> AbsentEvent:
        """An event that has already happened."""
        return AbsentEvent()


class AbsentEvent(AbsentStream):
    """An event that has already happened."""

    record = wait = AbsentStream.synchronize

    def elapsed_time(self, _: Any) -> float:
        """Always zero."""
        return 0.0


def _triton(arch: int, shared: int) -> None:
    """Make Triton compile for the architecture and load nothing."""
    target = importlib.import_module("triton.backends.compiler").GPUTarget("cuda", arch, _WARP)
    limits = {
        "max_shared_mem": shared,
        "multiprocessor_count": _PROCESSORS,
        "warpSize": _WARP,
        "max_num_regs": _REGISTERS,
        "max_threads_per_sm": _THREADS,
    }
    loaded = (0, 0, 0, 0, 1024)  # module, function, registers, spills, maximum threads

    class AbsentDriver:
        utils = AbsentProperties(get_device_properties=lambda _: limits, load_binary=lambda *_: loaded)

        def get_current_target(self) -> Any:
            return target

        def get_current_device(self) -> int:
            return 0

        def set_current_device(self, _: int) -> None:
            pass

        def get_current_stream(self, _: int | None = None) -> int:
            return 0

        def get_active_torch_device(self) -> torch.device:
            return torch.device("cuda", 0)

        def get_device_interface(self) -> Any:
            return torch.cuda

        def get_device_capability(self, _: int = 0) -> tuple[int, int]:
            return divmod(arch, 10)

        @staticmethod
        def is_active() -> bool:
            return True

        def launcher_cls(self, *_: Any) -> Callable[..., None]:
            return lambda *_, **__: None

    backends = importlib.import_module("triton.backends").backends
    backends["nvidia"] = types.SimpleNamespace(compiler=backends["nvidia"].compiler, driver=AbsentDriver)
    importlib.import_module("triton.runtime.driver").driver.set_active(AbsentDriver())


class _Launcher:
    """Replaces a compiled kernel: nothing is loaded, and a launch does nothing."""

    n_regs, n_spills, shared, cache_hash = 32, 0, 0, ""

    def __init__(self, config: Any) -> None:
        self.config = config

    def __call__(self, *_: Any, **__: Any) -> None:
        pass


def _load_nothing(heuristics: Any) -> None:
    """Do not load compiled kernels: a launcher needs the device."""
    tuner = heuristics.CachingAutotuner

    def launchers(self: Any) -> None:
        self.launchers = [_Launcher(result.config) for result in self.compile_results]

    tuner._make_launchers = launchers
    tuner._dynamic_scale_rblock = lambda _: None
    # `run` would time the configs and launch the best one; nothing can run here
    tuner.run = lambda *_, **__: None


def _give_back_fakes(compile_fx: Any) -> None:
    """Make a compiled graph return the fake results of its operations instead of running the compiled code."""
    original = compile_fx._compile_fx_inner

    @functools.wraps(original)
    def inner(gm: Any, example_inputs: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
        kept = torch.fx.GraphModule(gm, copy.deepcopy(gm.graph))
        compiled = original(gm, example_inputs, *args, **kwargs)
        if hasattr(compiled, "current_callable"):

            def call(inputs: list[Any]) -> Any:
                given = list(inputs)
                inputs.clear()
                return list(kept(*given))

            compiled.current_callable = call
        return compiled

    compile_fx._compile_fx_inner = inner


class _OnCpu(TorchDispatchMode):
    """Creates on the CPU what would be created on the device."""

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> Any:
        def moved(value: Any) -> Any:
            return torch.device("cpu") if isinstance(value, torch.device) and value.type == "cuda" else value

        return func(*map(moved, args), **{name: moved(value) for name, value in (kwargs or {}).items()})


def _fold_on_cpu(joint_graph: Any) -> None:
    """Fold constants on the CPU: Inductor evaluates them with real tensors and reads the number."""
    folder = joint_graph.UniformValueConstantFolder
    original = folder._deduce_value

    @functools.wraps(original)
    def deduce(self: Any, node: Any) -> Any:
        with _OnCpu():
            return original(self, node)

    folder._deduce_value = deduce


def _pad_nothing(pad_mm: Any) -> None:
    """Never pad a matrix product: whether it pays off is measured, which is impossible here."""
    for name in ("_should_pad", "_should_pad_bench"):  # torch 2.9 has the second
        if hasattr(pad_mm, name):
            setattr(pad_mm, name, lambda *_, **__: False)


def _time_nothing(select_algorithm: Any) -> None:
    """Give all choices the same time, since none can be measured: the first will do."""

    def equal(_cls: Any, choices: Sequence[Any], *_: Any, **__: Any) -> dict[Any, float]:
        return dict.fromkeys(choices, 1.0)

    for name in ("benchmark_in_current_process", "benchmark_in_sub_process"):
        if hasattr(select_algorithm.AlgorithmSelectorCache, name):
            setattr(select_algorithm.AlgorithmSelectorCache, name, classmethod(equal))
