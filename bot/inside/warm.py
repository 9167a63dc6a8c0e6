"""What the warm parent loads: everything a first compile would import or build, and not one kernel."""

from __future__ import annotations

import abc
import contextlib
import importlib
import inspect
import os
import platform
from typing import Any

from . import cache, shortcuts
from .shortcuts import shortcut

# Imported in this order; those a torch version lacks are passed over.
MODULES = (
    "torch",
    "torch._dynamo",
    "torch._inductor.compile_fx",
    "torch._inductor.codegen.cpp",
    "torch._inductor.codegen.cpp_wrapper_cpu",
    "torch._inductor.codegen.wrapper",
    "torch._inductor.scheduler",
    "torch._inductor.lowering",
    "torch._inductor.mkldnn_lowerings",
    "torch._inductor.mkldnn_ir",
    "torch._inductor.fx_passes.joint_graph",
    "torch._inductor.fx_passes.post_grad",
    "torch._inductor.fx_passes.pre_grad",
    "torch._inductor.fx_passes.fuse_attention",
    "torch._inductor.fx_passes.mkldnn_fusion",
    "torch._inductor.fx_passes.freezing_patterns",
    "torch._inductor.jagged_lowerings",
    "torch._inductor.quantized_lowerings",
    "torch._inductor.package",
    "torch._functorch.aot_autograd",
    "torch._functorch._aot_autograd.collect_metadata_analysis",
    "torch._refs",
    "torch._refs.nn.functional",
    "torch._refs.special",
    "torch._refs.linalg",
    "torch._refs.fft",
    "torch._decomp.decompositions_for_rng",
    "torch._export.non_strict_utils",
    "torch.export",
    "torch.fx.experimental.proxy_tensor",
    "torch.fx.experimental.symbolic_shapes",
    "torch.testing",
    "torch._dynamo.debug_utils",
    "torch._dynamo.repro.after_dynamo",
    "torch._dynamo.repro.after_aot",
    "torch._inductor.hooks",
    "torch._inductor.kernel_template_choice",
    "torch._inductor.runtime.caching",
    "torch._inductor.fx_passes.pad_mm",
    "torch._inductor.fx_passes.misc_patterns",
    "torch._inductor.fx_passes.serialized_patterns",
    "torch._inductor.fx_passes.efficient_conv_bn_eval",
    "torch._subclasses.schema_check_mode",
    "torch.distributed.tensor.experimental",
    "torch.export._leakage_detection_utils",
    "torch.export._trace",
    "torch.export._unlift",
    "torch.fx.experimental.validator",
    "torch.utils.cpp_extension",
    "torch.utils._cpp_embed_headers",
    "sympy",
    "sympy.combinatorics.tensor_can",
    "sympy.tensor.tensor",
    "torch._dynamo.dce_extra_outputs",
    "torch._export.passes._node_metadata_hook",
    "torch._functorch._activation_checkpointing.remat_using_tags_for_fwd_loss_bwd_graph_pass",
    "torch._functorch._aot_autograd.subclass_codegen",
    "torch._higher_order_ops.passes.inline_invoke_subgraph",
    "torch._inductor.bounds",
    "torch._inductor.extern_node_serializer",
    "torch._inductor.fx_passes.apply_gumbel_max_trick",
    "torch._inductor.codegen.memory_planning",
    "torch._inductor.codegen.segmented_tree",
)

# The code generators of all devices, which the first compile imports whatever the device is. Not where there is CUDA: a
# parent that asked the driver could not fork any more.
GENERATORS = (
    "torch._inductor.codegen.cpp_wrapper_cpu_array_ref",
    "torch._inductor.codegen.cpp_wrapper_gpu",
    "torch._inductor.codegen.cpp_wrapper_mps",
    "torch._inductor.codegen.cuda_combined_scheduling",
    "torch._inductor.codegen.halide",
    "torch._inductor.codegen.mps",
    "torch._inductor.codegen.pallas",
    "torch._inductor.codegen.python_wrapper_mtia",
    "torch._inductor.codegen.wrapper_fxir",
    "torch._inductor.codegen.xpu.xpu_combined_scheduling",
)
# What a GPU's driver makes: NVIDIA's, WSL's, AMD's.
GPU_DEVICES = ("/dev/nvidiactl", "/dev/dxg", "/dev/kfd")


def warm_up() -> dict[str, Any]:
    """Import the compiler; versions of what was found.

    Raises:
        ImportError: there is no torch here.
    """
    import torch

    shortcuts.log_here()
    for name in (*MODULES[1:], *(() if sees_gpu() else GENERATORS)):
        with shortcut(f"importing {name}"), contextlib.suppress(ImportError):
            importlib.import_module(name)
    for save in (_initialise_dynamo, _initialise_passes, _initialise_classes, cache.remember_compiled, cache.remember_instructions):
        with shortcut(save.__name__.strip("_")):
            save()
    return versions(torch)


def versions(torch: Any) -> dict[str, Any]:
    """Python, torch, triton and the accelerator runtime, as strings."""
    found = {"python": platform.python_version(), "torch": str(torch.__version__), "git": str(torch.version.git_version or "")}
    if torch.version.cuda:
        found["cuda"] = str(torch.version.cuda)
    with contextlib.suppress(ImportError):
        found["triton"] = str(importlib.import_module("triton").__version__)
    return found


def _initialise_dynamo() -> None:
    # Tables that Dynamo builds at its first frame: building them runs no kernel.
    trace_rules = importlib.import_module("torch._dynamo.trace_rules")
    for name in ("get_torch_obj_rule_map", "get_tensor_method", "get_legacy_mod_inlinelist", "get_mod_inlinelist"):
        build = getattr(trace_rules, name, None)
        if build is not None:
            build()
    importlib.import_module("torch._dynamo.backends.registry").lookup_backend("inductor")
    importlib.import_module("torch.overrides")._get_overridable_functions()


def sees_gpu() -> bool:
    """Whether this torch may find a GPU: it was built for one, and the system has the driver's device. Asks no driver."""
    import torch

    return bool(torch.version.cuda or torch.version.hip) and any(os.path.exists(device) for device in GPU_DEVICES)


def runs_device() -> bool:
    """Whether a device's runtime is up in this process: not by us, but a plug-in of torch or the site's own set-up may start one."""
    import torch

    names = ("cuda", "xpu", "mtia", str(torch._C._get_privateuse1_backend_name()))
    modules = (getattr(torch, name, None) for name in names)
    return any(is_up() for module in modules if (is_up := getattr(module, "is_initialized", None)) is not None)


def _initialise_passes() -> None:
    import torch

    # The pattern tables of the graph passes, 0.3 s in each child otherwise. Their example tensors are empty ones, made
    # without a kernel; a test forks afterwards and runs a parallel operation.
    joint_graph: Any = importlib.import_module("torch._inductor.fx_passes.joint_graph")
    post_grad: Any = importlib.import_module("torch._inductor.fx_passes.post_grad")
    if not sees_gpu():
        # torch 2.9 asks for no device
        joint_graph.lazy_init(*[torch.device("cpu")][: len(inspect.signature(joint_graph.lazy_init).parameters)])
        post_grad.lazy_init()
        # Its memo is keyed by the device of the first input: a graph without inputs would register everything twice.
        joint_graph.lazy_init = lambda *_: None
        importlib.import_module("torch._inductor.codegen.common").get_device_op_overrides("cpu")
        # which vector instructions there are: processes that compile and load a probe, 0.1 s in each child even where it is built
        with contextlib.suppress(Exception):  # no compiler: whoever needs one will say so
            importlib.import_module("torch._inductor.cpu_vec_isa").valid_vec_isa_list()


def _initialise_classes() -> None:
    # isinstance() on Inductor's abstract classes walks all subclasses once: 0.2 s
    ir = importlib.import_module("torch._inductor.ir")
    # before Python 3.11 list[int] calls itself a type
    classes = [c for c in vars(ir).values() if isinstance(c, type) and not hasattr(c, "__origin__")]
    for base in classes:
        # a protocol is for type checkers, and may refuse the question
        if isinstance(base, abc.ABCMeta) and not getattr(base, "_is_protocol", False):
            for one in classes:
                issubclass(one, base)
