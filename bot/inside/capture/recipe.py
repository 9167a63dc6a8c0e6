"""How the user's program was compiled and called: what must not be lost on the way from a graph to a script.

Read from torch's state at the moment a graph is passed to a backend. Values are Python text.
"""

from __future__ import annotations

import contextlib
import importlib
import operator
import sys
import warnings
from typing import Any

import torch

from .. import environment
from . import definitions
from .literals import installed, text_of

# Settings of a machine or of a run, not of a program: they are never part of a repro.
_NOT_OURS = {
    "torch._inductor.config": {
        *("compile_threads", "worker_start_method", "fx_graph_cache", "fx_graph_remote_cache", "autotune_local_cache", "trace", "debug")
    },
    "torch._dynamo.config": {"verbose", "repro_after", "repro_level", "base_dir", "debug_dir_root"},
    "torch._functorch.config": {"enable_autograd_cache", "enable_remote_autograd_cache"},
}


def described(value: Any) -> dict[str, Any]:
    """A user's object `value`: its text if it has one, otherwise the names in the user's program that lead to it.

    `expressions` are Python texts to try, best first; `wanted` the top-level names that they need; `definitions` the statements that
    define it with what it closes over, for objects made inside a function.
    """
    text = text_of(value)
    if text is not None:
        return {"text": text, "name": text, "expressions": [text], "wanted": [], "definitions": []}
    main = vars(sys.modules["__main__"])
    wanted = [name for name, held in main.items() if held is value and name.isidentifier() and not name.startswith("__")]
    expressions = list(wanted)
    kind = value if isinstance(value, type) else type(value)
    if kind.__module__ == "__main__" and main.get(kind.__name__) is kind and not isinstance(value, type):
        expressions.append(f"{kind.__name__}()")
        wanted.append(kind.__name__)
    own = definitions.of(value)
    if own is not None:
        expressions.append(own["expression"])
    name = getattr(value, "__qualname__", None) or kind.__qualname__
    if wanted and not hasattr(value, "__qualname__") and installed(kind.__module__):
        name = wanted[0]  # a functools.partial or the like has no telling name; its name in the script does
    definitions_of = own["statements"] if own else []
    return {"text": None, "name": name.rsplit(".", 1)[-1], "expressions": expressions, "wanted": wanted, "definitions": definitions_of}


def config_entries() -> dict[str, Any]:
    """Each entry of the inductor, dynamo and functorch configs that differs from its default: full name -> description.

    The default is that of an environment without settings, since whoever runs the repro has none.
    """
    found: dict[str, Any] = {}
    for module_name, skipped in _NOT_OURS.items():
        module = importlib.import_module(module_name)
        entries = getattr(module, "_config", None)
        if entries is None:
            raise AttributeError(f"this torch's {module_name} has no _config table: bot/inside/capture/recipe.py must follow it")
        defaults = environment.defaults(module)
        for name, entry in entries.items():
            if name in skipped or name.split(".")[0] in skipped or getattr(entry, "alias", None):
                continue
            try:
                with warnings.catch_warnings():
                    # reading a deprecated entry warns, and the program may have turned warnings into errors
                    warnings.simplefilter("ignore")
                    value = operator.attrgetter(name)(module)
            except AttributeError:
                continue
            # environment variables that are not settings belong to the machine
            if not any(value is default or _equal(value, default) for default in environment.unassigned(defaults.get(name, entry))):
                found[f"{module_name}.{name}"] = described(value)
    return found


def _equal(a: Any, b: Any) -> bool:
    try:
        return type(a) is type(b) and bool(a == b)
    except Exception:
        return False


def contexts() -> list[str]:
    """The `with` expressions in force."""
    found = []
    if torch.is_inference_mode_enabled():
        found.append("torch.inference_mode()")
    elif not torch.is_grad_enabled():
        found.append("torch.no_grad()")
    for device in ("cpu", "cuda"):
        if torch.is_autocast_enabled(device):
            found.append(f'torch.autocast("{device}", dtype={torch.get_autocast_dtype(device)})')
    return found


# Switches of torch.backends that decide which kernels are used, with their initial values.
_SWITCHES = {
    "torch.backends.mkldnn.enabled": True,
    "torch.backends.mkldnn.deterministic": False,
    "torch.backends.opt_einsum.strategy": "auto",
    "torch.backends.cudnn.enabled": True,
    "torch.backends.cudnn.benchmark": False,
    "torch.backends.cudnn.deterministic": False,
    "torch.backends.cudnn.allow_tf32": True,
    "torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction": True,
    "torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction": True,
}
# Kernels of scaled_dot_product_attention; initially all of them are enabled.
_ATTENTIONS = ("flash", "mem_efficient", "math", "cudnn")


def setup() -> list[str]:
    """Statements for torch's global settings that differ from the defaults."""
    found = []
    if torch.get_default_dtype() != torch.float32:
        found.append(f"torch.set_default_dtype({torch.get_default_dtype()})")
    if torch.are_deterministic_algorithms_enabled():
        warns = ", warn_only=True" if torch.is_deterministic_algorithms_warn_only_enabled() else ""
        found.append(f"torch.use_deterministic_algorithms(True{warns})")
    # torch.backends.cuda.matmul.allow_tf32 is the same switch
    if torch.get_float32_matmul_precision() != "highest":
        found.append(f'torch.set_float32_matmul_precision("{torch.get_float32_matmul_precision()}")')
    for name, default in _SWITCHES.items():
        value = None
        with contextlib.suppress(AttributeError, RuntimeError):  # this torch has none of that name, or no single value for it
            value = operator.attrgetter(name.removeprefix("torch."))(torch)
        if type(value) is type(default) and value != default:
            found.append(f"{name} = {value!r}")
    for name in _ATTENTIONS:
        enabled = getattr(torch.backends.cuda, f"{name}_sdp_enabled", None)
        if enabled is not None and not enabled():
            found.append(f"torch.backends.cuda.enable_{name}_sdp(False)")
    return [*found, *_memory_caps(), *_process_group()]


def _memory_caps() -> list[str]:
    """How much of each GPU's memory the allocator may use, if that was set: this alone may make a program run out of memory."""
    cuda = torch.cuda
    if not hasattr(cuda, "get_per_process_memory_fraction") or not cuda.is_initialized():
        return []
    # torch computes the share it returns from a number of bytes
    shares = {device: round(cuda.get_per_process_memory_fraction(device), 6) for device in range(cuda.device_count())}
    return [f"torch.cuda.set_per_process_memory_fraction({share}, {device})" for device, share in shares.items() if 0 < share < 1]


def _process_group() -> list[str]:
    """A process group of the same size in which this process has the same rank, and no other process is needed."""
    distributed = torch.distributed
    if not distributed.is_available() or not distributed.is_initialized():
        return []
    store = "from torch.testing._internal.distributed.fake_pg import FakeStore"
    place = f"rank={distributed.get_rank()}, world_size={distributed.get_world_size()}"
    return [f'{store}\ntorch.distributed.init_process_group("fake", {place}, store=FakeStore())']


def backend_passes() -> dict[str, Any]:
    """Custom graph passes that were registered for a device's backend: device -> description."""
    common = importlib.import_module("torch._inductor.codegen.common")
    passes = getattr(common, "custom_backend_passes", {})
    return {device: described(value) for device, value in passes.items() if value is not None}
