"""What the warm parent loads: everything that a first compile would import or build, and not a single kernel."""

from __future__ import annotations

import abc
import contextlib
import importlib
import inspect
import os
import platform
from typing import Any

from . import cache, graph_keys, shortcuts
from .protocol import CUDA_ARCH
from .shortcuts import shortcut


def _modules(table: str) -> tuple[str, ...]:
    """The full names in a `table` whose lines contain the name of a package, then those of its modules."""
    return tuple(f"{package}.{name}" for package, *names in map(str.split, table.strip().splitlines()) for name in names)


# Imported in this order; those that a torch version lacks are skipped.
MODULES = _modules("""
    torch                     _dynamo export testing _refs _decomp.decompositions_for_rng _subclasses.schema_check_mode
    torch                     distributed.tensor.experimental utils.cpp_extension utils._cpp_embed_headers
    torch                     _higher_order_ops.passes.inline_invoke_subgraph
    torch._inductor           compile_fx scheduler lowering mkldnn_lowerings mkldnn_ir jagged_lowerings quantized_lowerings package
    torch._inductor           hooks kernel_template_choice runtime.caching bounds extern_node_serializer
    torch._inductor.codegen   cpp cpp_wrapper_cpu wrapper memory_planning segmented_tree
    torch._inductor.fx_passes joint_graph post_grad pre_grad fuse_attention mkldnn_fusion freezing_patterns pad_mm misc_patterns
    torch._inductor.fx_passes serialized_patterns efficient_conv_bn_eval apply_gumbel_max_trick
    torch._functorch          aot_autograd _aot_autograd.collect_metadata_analysis _aot_autograd.subclass_codegen
    torch._functorch          _activation_checkpointing.remat_using_tags_for_fwd_loss_bwd_graph_pass
    torch._refs               nn.functional special linalg fft
    torch._export             non_strict_utils passes._node_metadata_hook
    torch.export              _leakage_detection_utils _trace _unlift
    torch.fx.experimental     proxy_tensor symbolic_shapes validator
    torch._dynamo             debug_utils repro.after_dynamo repro.after_aot dce_extra_outputs
    sympy                     combinatorics.tensor_can tensor.tensor
""")
# The code generators of all devices, which the first compile imports whatever the device is. Not with CUDA: a parent that calls the driver
# could not fork any more.
GENERATORS = _modules("""
    torch._inductor.codegen   cpp_wrapper_cpu_array_ref cpp_wrapper_gpu cpp_wrapper_mps cuda_combined_scheduling halide mps pallas
    torch._inductor.codegen   python_wrapper_mtia wrapper_fxir xpu.xpu_combined_scheduling
""")
# Device files of GPU drivers: NVIDIA's, WSL's, AMD's.
GPU_DEVICES = ("/dev/nvidiactl", "/dev/dxg", "/dev/kfd")


def warm_up() -> dict[str, Any]:
    """Import the compiler; returns the versions that were found. Raises ImportError if there is no torch."""
    import torch

    shortcuts.log_here()
    for name in (*MODULES, *(() if sees_gpu() else GENERATORS)):
        with shortcut(f"importing {name}"), contextlib.suppress(ImportError):
            importlib.import_module(name)
    tables = _initialize_dynamo, _initialize_passes, _initialize_triton, _initialize_classes
    for save in (*tables, cache.remember_compiled, cache.remember_instructions, graph_keys.make_keys):
        with shortcut(save.__name__.strip("_")):
            save()
    with shortcut("forgetting tables"):
        _forget_tables()
    return versions(torch)


def versions(torch: Any) -> dict[str, Any]:
    """The versions of Python, `torch`, triton and the accelerator runtime, as strings."""
    found = {"python": platform.python_version(), "torch": str(torch.__version__), "git": str(torch.version.git_version or "")}
    if torch.version.cuda:
        found["cuda"] = str(torch.version.cuda)
    with contextlib.suppress(ImportError):
        found["triton"] = str(importlib.import_module("triton").__version__)
    return found


def _initialize_dynamo() -> None:
    # Tables that Dynamo builds at its first frame; building them runs no kernel.
    trace_rules = importlib.import_module("torch._dynamo.trace_rules")
    for name in ("get_torch_obj_rule_map", "get_tensor_method", "get_legacy_mod_inlinelist", "get_mod_inlinelist"):
        build = getattr(trace_rules, name, None)
        if build is not None:
            build()
    importlib.import_module("torch._dynamo.backends.registry").lookup_backend("inductor")
    importlib.import_module("torch.overrides")._get_overridable_functions()


def sees_gpu() -> bool:
    """Whether this torch may find a GPU: it was built for one, and the system has the driver's device, or an emulated one. Does not call
    the driver."""
    import torch

    found = CUDA_ARCH in os.environ or any(os.path.exists(device) for device in GPU_DEVICES)
    return found and bool(torch.version.cuda or torch.version.hip)


def runs_device() -> bool:
    """Whether a device's runtime is running in this process: we start none, but a plug-in of torch or the site's own set-up may."""
    import torch

    names = ("cuda", "xpu", "mtia", str(torch._C._get_privateuse1_backend_name()))
    modules = (getattr(torch, name, None) for name in names)
    return any(is_up() for module in modules if (is_up := getattr(module, "is_initialized", None)) is not None)


def _initialize_passes() -> None:
    import torch

    # The pattern tables of the graph passes, otherwise 0.3 s in each child. Their example tensors are empty ones, made without a kernel; a
    # test forks afterwards and runs a parallel operation.
    joint_graph: Any = importlib.import_module("torch._inductor.fx_passes.joint_graph")
    post_grad: Any = importlib.import_module("torch._inductor.fx_passes.post_grad")
    if CUDA_ARCH in os.environ:
        initialize_for_gpu()
    elif not sees_gpu():
        # torch 2.9 takes no device
        joint_graph.lazy_init(*[torch.device("cpu")][: len(inspect.signature(joint_graph.lazy_init).parameters)])
        post_grad.lazy_init()
        # Its cache is keyed by the device of the first input: a graph without inputs would register everything twice.
        joint_graph.lazy_init = lambda *_: None
        importlib.import_module("torch._inductor.codegen.common").get_device_op_overrides("cpu")
        # the available vector instructions: processes that compile and load a probe take 0.1 s in each child even if it is built already
        with contextlib.suppress(Exception):  # no compiler: whoever needs one will report that
            importlib.import_module("torch._inductor.cpu_vec_isa").valid_vec_isa_list()


def initialize_for_gpu() -> None:
    """Do what the first compile for the GPU does once per process: in a process that waits with the GPU started, or if there is no GPU.

    Raises:
        Exception: whatever private parts of torch raise.
    """
    import torch

    joint_graph: Any = importlib.import_module("torch._inductor.fx_passes.joint_graph")
    first = torch.device("cuda", 0)
    joint_graph.lazy_init(*[first][: len(inspect.signature(joint_graph.lazy_init).parameters)])
    importlib.import_module("torch._inductor.fx_passes.post_grad").lazy_init()
    importlib.import_module("torch._inductor.codegen.common").get_device_op_overrides("cuda")
    _forget_tables()


def _initialize_triton() -> None:
    # the hash of all parts of Triton, otherwise a second in each child; Triton caches it itself
    if sees_gpu():
        importlib.import_module("torch._inductor.runtime.triton_compat").triton_key()
        build_gpu_driver()


def build_gpu_driver() -> None:
    """Have Triton's module for the CUDA driver compiled into its cache, which would otherwise take half a second in each of the first
    children.

    It is done in a separate process, since Triton loads what it compiled; if that fails, a child will report why. Raises OSError if the
    system has no more processes.
    """
    import torch

    if CUDA_ARCH in os.environ or not torch.version.cuda:
        return
    pid = os.fork()
    if pid == 0:
        try:
            importlib.import_module("triton.backends.nvidia.driver").CudaUtils()
        finally:
            os._exit(0)
    os.waitpid(pid, 0)


def _forget_tables() -> None:
    # Copies of tables that a program may change before its first compile. With a cached copy, the change would go unnoticed.
    importlib.import_module("torch._inductor.decomposition").fast_random_decomps.cache_clear()
    importlib.import_module("torch._subclasses.fake_tensor").torch_decomp_decompositions.cache_clear()


def _initialize_classes() -> None:
    # isinstance() on Inductor's abstract classes walks all subclasses once: 0.2 s
    ir = importlib.import_module("torch._inductor.ir")
    # before Python 3.11, list[int] claims to be a type
    classes = [c for c in vars(ir).values() if isinstance(c, type) and not hasattr(c, "__origin__")]
    for base in classes:
        # a protocol is for type checkers, and may reject the check
        if isinstance(base, abc.ABCMeta) and not getattr(base, "_is_protocol", False):
            for one in classes:
                issubclass(one, base)
