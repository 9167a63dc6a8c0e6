"""Which phase of the compiler a stack lies in.

The compiler's own names are the evidence. Everything that happens in a phase passes through a few of its functions (landmarks), so the
innermost landmark decides. Helpers that several phases share say nothing and are left out. If a dump is cut off before any landmark, the
file alone decides (hints). Written for torch 2.9 to 2.15.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from bot.failure.traceback import Frame
from bot.models.failure import Phase


@dataclass(frozen=True)
class Landmark:
    """Frames of one phase, with one of them as an `example`, `path:function`.

    `path` and `function` are matched as a whole; the first row of a table that matches a frame counts.
    """

    path: re.Pattern[str]
    function: re.Pattern[str]
    phase: Phase
    example: str

    def matches(self, frame: Frame) -> bool:
        """Whether `frame` is one of these."""
        return bool(self.path.fullmatch(frame.path) and self.function.fullmatch(frame.function))


def is_generated(path: str) -> bool:
    """Whether the file at `path` is code that Inductor generated."""
    return _OF_INDUCTOR.fullmatch(path) is not None


def _at(path: str, function: str, phase: Phase, example: str) -> Landmark:
    """A row. If `path` names one file, the function is enough of an example."""
    place = example if ":" in example else path.replace("\\", "") + ":" + example
    return Landmark(re.compile(path), re.compile(function), phase, place)


# Inductor writes its kernels to <cache>/<two characters>/c<hash of the source>.py; the name starts with c.
_GENERATED = r"(?:.*/)?(?:torchinductor_[^/]+/(?:.*/)?[^/]+|[a-z0-9]{2}/c[a-z0-9]{20,})\.py"

_OF_INDUCTOR = re.compile(_GENERATED)

_ANY = r".*"
# How the exporter decomposes composite operations: every tracer with Inductor's decompositions passes through it.
_SHARED = "_special_op_to_decompose_cia"

_INDUCTOR = r"torch/_inductor/"
_AOT = r"torch/_functorch/_aot_autograd/"

# fmt: off
LANDMARKS = (
    # generated code: its body is the run, its top level is the loading of what was compiled
    _at(_GENERATED, "<module>", Phase.LOAD, "/tmp/torchinductor_me/ab/cabc.py:<module>"),
    _at(_GENERATED, _ANY, Phase.RUN, "/tmp/torchinductor_me/ab/cabc.py:call"),
    _at(r"triton/(?:compiler|language)(?:/.*|\.py)", _ANY, Phase.TRITON_COMPILE, "triton/compiler/compiler.py:compile"),
    _at(r"triton/runtime/(?:jit|autotuner|build|interpreter)\.py", "_build|ast_to_ttir|.*[cC]ompile.*",
        Phase.TRITON_COMPILE, "triton/runtime/jit.py:_build"),
    _at(r"triton/backends/.*/compiler\.py", _ANY, Phase.TRITON_COMPILE, "triton/backends/nvidia/compiler.py:make_ptx"),
    _at(r"triton/.*", _ANY, Phase.RUN, "triton/runtime/jit.py:run"),
    # inductor, from the inside out
    _at(_INDUCTOR + r"(?:cpp_builder|cpu_vec_isa)\.py", _ANY, Phase.CPP_COMPILE, "torch/_inductor/cpp_builder.py:build"),
    _at(_INDUCTOR + r"compile_worker/.*", _ANY, Phase.TRITON_COMPILE, "torch/_inductor/compile_worker/subproc_pool.py:do_job"),
    _at(_INDUCTOR + r"runtime/compile_tasks\.py", "_worker_compile_triton|_set_triton.*", Phase.TRITON_COMPILE, "_worker_compile_triton"),
    _at(_INDUCTOR + r"runtime/compile_tasks\.py", _ANY, Phase.LOAD, "_reload_python_module"),
    _at(_INDUCTOR + r"runtime/triton_heuristics\.py",
        "_?precompile.*|_?make_launchers?|_dynamic_scale_rblock|_create_compile_meta|compile_by_disabling_pipelining",
        Phase.TRITON_COMPILE, "_create_compile_meta"),
    _at(_INDUCTOR + r"runtime/triton_heuristics\.py", "run|bench|benchmark_.*|autotune_to_one_config|_?coordinate_descent.*",
        Phase.RUN, "run"),
    _at(_INDUCTOR + r"codecache\.py", "_?compile_file|_worker_compile_cpp|_?compile_command|_precompile_header|compile",
        Phase.CPP_COMPILE, "compile_file"),
    _at(_INDUCTOR + r"codecache\.py", "_?load.*|get_result|result|open|close|__init__|future|task", Phase.LOAD, "load_by_key_path"),
    _at(_INDUCTOR + r"async_compile\.py", "triton|_worker_compile.*", Phase.TRITON_COMPILE, "triton"),
    _at(_INDUCTOR + r"async_compile\.py", "wait|_wait_futures|_load_kernel_wrapper|reload_kernel_in_parent", Phase.LOAD, "wait"),
    _at(_INDUCTOR + r"cudagraph_trees\.py", _ANY, Phase.RUN, "run"),
    _at(_INDUCTOR + r"output_code\.py", "__call__", Phase.RUN, "__call__"),
    _at(_INDUCTOR + r"output_code\.py", "post_compile|.*cudagraph.*", Phase.LOAD, "post_compile"),
    _at(_INDUCTOR + r"scheduler\.py", _ANY, Phase.INDUCTOR_CODEGEN, "codegen"),
    _at(_INDUCTOR + r"graph\.py", "codegen.*|_?compile_to.*|_update_scheduler|count_bytes|init_wrapper_code|save_output_code",
        Phase.INDUCTOR_CODEGEN, "compile_to_module"),
    _at(_INDUCTOR + r"graph\.py", "run|run_node|call_function|call_module|call_method|placeholder|get_attr|output|finalize|make_subgraph",
        Phase.INDUCTOR_LOWERING, "run_node"),
    _at(_INDUCTOR + r"fx_passes/pre_grad\.py", "(?:run_)?pre_grad_passes|_run_pre_dispatch_passes", Phase.PRE_GRAD, "pre_grad_passes"),
    _at(_INDUCTOR + r"fx_passes/joint_graph\.py", "joint_graph_passes", Phase.JOINT, "joint_graph_passes"),
    _at(_INDUCTOR + r"fx_passes/post_grad\.py", "post_grad_passes", Phase.POST_GRAD, "post_grad_passes"),
    _at(_INDUCTOR + r"compile_fx\.py", "_?(?:recursive_|run_)?pre_grad_passes", Phase.PRE_GRAD, "_recursive_pre_grad_passes"),
    _at(_INDUCTOR + r"compile_fx\.py", "_?(?:recursive_)?joint_graph_passes|partition_fn", Phase.JOINT, "_recursive_joint_graph_passes"),
    _at(_INDUCTOR + r"compile_fx\.py", "_?(?:recursive_)?post_grad_passes|view_to_reshape|fake_tensor_prop",
        Phase.POST_GRAD, "_recursive_post_grad_passes"),
    _at(_INDUCTOR + r"(?:freezing|constant_folding)\.py", "freeze|constant_fold.*", Phase.POST_GRAD, "torch/_inductor/freezing.py:freeze"),
    _at(_INDUCTOR + r"compile_fx\.py",
        r"_?(?:fx_)?codegen_and_compile|_?compile_fx_inner|compile_fx_(?:forward|backward)|[fb]w_compiler(?:_\w+)?"
        "|inference_compiler",
        Phase.INDUCTOR_LOWERING, "bw_compiler"),
    # packages: what runs, what loads
    _at(r"torch/(?:_inductor/package/package|export/pt2_archive/_package)\.py", "__call__",
        Phase.RUN, "torch/export/pt2_archive/_package.py:__call__"),
    _at(r"torch/(?:_inductor/package/package|export/pt2_archive/_package)\.py", "_?load_.*",
        Phase.LOAD, "torch/export/pt2_archive/_package.py:load_pt2"),
    _at(_INDUCTOR + r"__init__\.py", "aoti_load_package", Phase.LOAD, "aoti_load_package"),
    _at(r"torch/_export/__init__\.py", "aot_load", Phase.LOAD, "aot_load"),
    _at(r"torch/export/_unlift\.py", "_check_input.*|forward|__call__|_guards_fn|.*pre_hook.*", Phase.RUN, "forward"),
    _at(r"torch/export/unflatten\.py", "forward|__call__|run_node|process_forward_inputs", Phase.RUN, "forward"),
    # AOTAutograd: its wrappers stay around the compiled code and are the run
    _at(_AOT + r"subclass_codegen\.py:codegen.*", _ANY, Phase.RUN, "torch/_functorch/_aot_autograd/subclass_codegen.py:codegen_1:inner"),
    _at(_AOT + r"runtime_wrappers\.py",
        "_?runtime_wrapper|inner_fn|wrapper|wrapped_flat_fn|debugged_compiled_fn|forward|backward|_backward_impl"
        "|_double_backward|run|__call__|call_compiled_backward|_compiled_backward|_compiled_forward|__torch_dispatch__"
        "|process_runtime_tangent|maybe_coerce|_?unpack_synthetic_bases|rng_functionalization_wrapper"
        "|_raise_tangent_metadata_error|_validate_compiled_output_arity|_apply_input_mutations|_replay_.*",
        Phase.RUN, "run"),
    _at(_AOT + r"utils\.py", "call_func_at_runtime_with_args|g", Phase.RUN, "call_func_at_runtime_with_args"),
    _at(_AOT + r".*", _ANY, Phase.AOT_AUTOGRAD, "torch/_functorch/_aot_autograd/graph_compile.py:aot_stage1_graph_capture"),
    _at(r"torch/_functorch/aot_autograd\.py", "forward|boxed_forward|returned_function|flat_forward", Phase.RUN, "forward"),
    _at(r"torch/_functorch/(?:aot_autograd|partitioners|compilers)\.py", _ANY,
        Phase.AOT_AUTOGRAD, "torch/_functorch/partitioners.py:min_cut_rematerialization_partition"),
    _at(_INDUCTOR + r"compile_fx\.py", r"_?compile_fx\w*|_maybe_wrap_and_compile_fx_main|get_\w+_(?:dict|config)",
        Phase.PRE_GRAD, "compile_fx"),
    # export
    _at(r"torch/_?export/.*", rf"(?!{_SHARED}$).*", Phase.EXPORT, "torch/export/_trace.py:_export"),
    # Dynamo: functions that every call of a compiled function passes through, or that are used from outside, say nothing
    _at(r"torch/_dynamo/eval_frame\.py",
        r"get_compiler_fn|_?optimize(?:_assert)?|check_(?:if|for)_\w+|explain|export|rewrite_signature|argument_names"
        r"|fail_callback",
        Phase.DYNAMO, "export"),
    _at(r"torch/_dynamo/utils\.py",
        "run_node|get_fake_values?|_get_fake_value_impl|_wrap_graph_break_with_torch_runtime_err|wrap_fake_exception",
        Phase.DYNAMO, "run_node"),
    _at(r"torch/_dynamo/(?:variables/.*|(?:backends/registry|convert_frame|symbolic_convert|output_graph|bytecode_\w+)\.py)", _ANY,
        Phase.DYNAMO, "torch/_dynamo/symbolic_convert.py:step"),
    _at(r"torch/_dynamo/(?:codegen|guards|side_effects|resume_execution|functional_export|aot_compile|package|compiled_autograd)\.py", _ANY,
        Phase.DYNAMO, "torch/_dynamo/guards.py:build_guards"),
    _at(r"torch/_dynamo/(?:graph_\w+|pgo|source|trace_rules|cache_size|exc|types)\.py", _ANY,
        Phase.DYNAMO, "torch/_dynamo/source.py:reconstruct"),
    _at(r"torch/__init__\.py", "compile", Phase.DYNAMO, "compile"),
)

HINTS = (
    _at(_INDUCTOR + r"(?:lowering|\w+_lowerings?|ir|mkldnn_ir|loop_body|index_propagation|select_algorithm|kernel/.*)(?:\.py)?", _ANY,
        Phase.INDUCTOR_LOWERING, "torch/_inductor/lowering.py:scatter"),
    _at(_INDUCTOR + r"(?:codegen/.*|(?:dependencies|memory|optimize_indexing|shape_propagation)\.py)", _ANY,
        Phase.INDUCTOR_CODEGEN, "torch/_inductor/codegen/cpp.py:codegen_kernel"),
    _at(_INDUCTOR + r"(?:fx_passes/.*|pattern_matcher\.py)", _ANY, Phase.POST_GRAD, "torch/_inductor/pattern_matcher.py:apply"),
    _at(_INDUCTOR + r".*", _ANY, Phase.INDUCTOR_LOWERING, "torch/_inductor/decomposition.py:mm"),
    _at(r"torch/fx/experimental/proxy_tensor\.py", _ANY, Phase.AOT_AUTOGRAD, "proxy_call"),
)

BACKWARD = (
    _at(_AOT + r"(?:runtime_wrappers|graph_compile|subclass_codegen)\.py.*", "(?:.*_)?backward(?:_.*)?|.*_bw_.*|get_or_compile",
        Phase.AOT_AUTOGRAD, "torch/_functorch/_aot_autograd/runtime_wrappers.py:get_or_compile"),
    _at(_INDUCTOR + r"compile_fx\.py", "bw_compiler.*|.*_backward", Phase.AOT_AUTOGRAD, "bw_compiler"),
    _at(r"torch/_dynamo/compiled_autograd\.py", _ANY, Phase.AOT_AUTOGRAD, "end_capture"),
    _at(r"torch/autograd/(?:__init__|graph)\.py", "backward|grad|_engine_run_backward",
        Phase.AOT_AUTOGRAD, "torch/autograd/__init__.py:backward"),
)
# fmt: on

# Loading the source of one kernel is a part of compiling it: it was generated for Triton.
TRITON_KERNEL = (
    _at(_INDUCTOR + r"codecache\.py", "_load_triton_kernel_from_source", Phase.TRITON_COMPILE, "_load_triton_kernel_from_source"),
    _at(_INDUCTOR + r"async_compile\.py", "triton", Phase.TRITON_COMPILE, "triton"),
    _at(_INDUCTOR + r"runtime/compile_tasks\.py", "_worker_compile_triton", Phase.TRITON_COMPILE, "_worker_compile_triton"),
    # max-autotune times a kernel before anything is built from it
    _at(_INDUCTOR + r"codegen/triton\.py", "benchmark_.*", Phase.TRITON_COMPILE, "benchmark_fused_nodes"),
)

# These classes are raised in one phase only, whoever re-raises them.
_TRITON_CLASSES = ("CompilationError", "CompileTimeAssertionFailure", "PTXASError", "TritonMissing", "NoTritonConfigsError")
_BY_CLASS = {
    **dict.fromkeys(("CppCompileError", "CUDACompileError", "InvalidCxxCompiler"), Phase.CPP_COMPILE),
    **dict.fromkeys(_TRITON_CLASSES, Phase.TRITON_COMPILE),
    **dict.fromkeys(("LoweringException", "MissingOperatorWithDecomp", "MissingOperatorWithoutDecomp"), Phase.INDUCTOR_LOWERING),
}

_EXPORTER = re.compile(r"torch/(?:export/(?:_trace|_draft_export|exported_program)|_export/.*)(?:\.py)?")
_EXPORTING = frozenset({Phase.DYNAMO, Phase.AOT_AUTOGRAD})
# Raising helpers: every graph break ends in them, so they do not tell failures apart.
_RAISERS = re.compile(r"torch/(?:_dynamo/exc|_utils_internal|_utils)\.py|torch/testing/.*")


def _first(frames: Sequence[Frame], table: Sequence[Landmark]) -> Phase | None:
    """The phase of the innermost frame that the table knows."""
    return next((landmark.phase for frame in reversed(frames) for landmark in table if landmark.matches(frame)), None)


def phase_of(frames: Sequence[Frame], classes: Sequence[str] = ()) -> Phase:
    """The phase of a stack (`frames`, outermost first) and of the exception `classes` raised in it.

    `run` if no frame belongs to the compiler. Failures of the tracers that `torch.export` uses count as `export`: they concern whoever
    called the exporter, not `torch.compile`.
    """
    for name in classes:
        if name in _BY_CLASS:
            return _BY_CLASS[name]
    phase = _first(frames, LANDMARKS) or _first(frames, HINTS)
    if phase is None:
        return Phase.RUN
    if phase is Phase.LOAD and _first(frames, TRITON_KERNEL):
        return Phase.TRITON_COMPILE
    if phase in _EXPORTING and any(_EXPORTER.fullmatch(frame.path) and frame.function != _SHARED for frame in frames):
        return Phase.EXPORT
    return phase


def is_backward(frames: Sequence[Frame]) -> bool:
    """Whether the backward graph was being traced, compiled or run in a stack (`frames`, outermost first)."""
    return _first(frames, BACKWARD) is not None


def innermost(frames: Sequence[Frame]) -> str | None:
    """The innermost of the `frames` that is in torch, as `torch/_inductor/lowering.py:scatter`; None if there is none."""
    return next((str(frame) for frame in reversed(frames) if frame.in_torch and not _RAISERS.fullmatch(frame.path)), None)
