"""What `bot/inside` and the table of phases take from PyTorch without a promise that it stays: is it all where we look for it?

At run time a shortcut that finds its place empty steps aside, and a search takes longer than it should. So this fails instead.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import importlib.util
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import bot.inside  # noqa: E402
from bot.failure import phases  # noqa: E402
from bot.inside import warm  # noqa: E402
from bot.inside.protocol import SHORTCUT_FAILED  # noqa: E402
from bot.workers.pool import Pool, Question  # noqa: E402

VERSION = tuple(int(part) for part in re.findall(r"\d+", torch.__version__)[:2])


@dataclasses.dataclass(frozen=True)
class Api:
    """A name and what we rely on: its first parameters, and others that are passed by keyword."""

    module: str
    name: str
    first: tuple[str, ...] = ()
    by_name: tuple[str, ...] = ()


def rows(module: str, *names: str) -> list[Api]:
    """Each name with its parameters behind it: `same(ref, res; tol)`."""
    made = []
    for text in names:
        name, _, given = text.partition("(")
        first, _, by_name = given.rstrip(")").partition(";")
        made.append(Api(module, name, tuple(re.findall(r"\w+", first)), tuple(re.findall(r"\w+", by_name))))
    return made


TABLE = [
    # the program's own comparisons
    *rows("torch.testing._comparison", "not_close_error_metas(actual, expected)", "default_tolerances"),
    # the seams
    *rows("torch._dynamo.repro.after_dynamo", "WrapBackendDebug(unconfigured_compiler_fn, compiler_name)"),
    *rows("torch._dynamo.repro.after_dynamo", "WrapBackendDebug._torchdynamo_orig_backend", "WrapBackendDebug._compiler_name"),
    *rows("torch._dynamo.repro.after_dynamo", "wrap_backend_debug(unconfigured_compiler_fn, compiler_name)"),
    *rows("torch._dynamo.repro.after_dynamo", "dump_to_minify_after_dynamo(gm, args, compiler_name)"),
    *rows("torch._dynamo.repro.after_aot", "dump_to_minify(gm, args, compiler_name)"),
    *rows("torch._dynamo.repro.aoti", "dump_to_minify(exported_program, compiler_name)"),
    *rows("torch._inductor.compile_fx", "wrap_compiler_debug(unconfigured_compiler_fn, compiler_name)"),
    *rows("torch._inductor", "aoti_compile_and_package(exported_program; package_path, inductor_configs)", "aoti_load_package(path)"),
    *rows("torch.autograd.graph", "_engine_run_backward(t_outputs)"),
    *rows("torch.autograd", "_engine_run_backward(t_outputs)"),
    *rows("torch._higher_order_ops.wrap", "tag_activation_checkpoint", "wrap_activation_checkpoint"),
    *rows("torch._dynamo.convert_frame", "CatchErrorsWrapper", "CatchErrorsWrapper.__call__(self, frame, cache_entry, frame_state)"),
    *rows("torch.autograd", "_engine_run_backward"),
    *rows("torch.autograd.graph", "_engine_run_backward"),
    # kernels from a pool
    *rows("torch._inductor.async_compile", "AsyncCompile.triton(self, kernel_name, source_code)", "AsyncCompile.use_process_pool"),
    *rows("torch._inductor.async_compile", "CompiledTritonKernels.remove_future(kernel_src)", "LambdaFuture(result_fn)"),
    *rows("torch._inductor.config", "patch", "compile_threads"),
    # kernels in one configuration
    *rows("torch._inductor.runtime.triton_heuristics", "cached_autotune(size_hints, configs, triton_meta, heuristic_type)"),
    *rows("torch._inductor.runtime.hints", "HeuristicType.USER_AUTOTUNE", "HeuristicType.TEMPLATE"),
    # comparisons
    *rows("torch._dynamo.debug_utils", "clone_inputs_retaining_gradness(example_inputs)", "cast_to_fp64(model, inputs)"),
    *rows("torch._dynamo.testing", "requires_bwd_pass(out)", "reduce_to_scalar_loss(out)"),
    *rows("torch._dynamo.utils", "same(ref, res, fp64_ref; tol, equal_nan)"),
    # the compiler's entry points
    *rows("torch._dynamo", "optimize", "optimize_assert", "export", "reset"),
    *rows("torch._dynamo.eval_frame", "_optimize"),
    *rows("torch._inductor", "compile(gm)", "standalone_compile(gm)", "aot_compile(gm, args, kwargs)"),
    *rows("torch._inductor.compile_fx", "compile_fx(model_)", "compile_fx_aot"),
    *rows("torch._inductor.package", "load_package(path)", "package_aoti(archive_file, aoti_files)"),
    *rows("torch._inductor.package.package", "load_package(path)", "package_aoti(archive_file, aoti_files)"),
    *rows("torch._functorch.aot_autograd", "aot_function(fn)", "aot_module(mod)", "aot_module_simplified(mod)"),
    *rows("functorch.compile", "aot_function(fn)", "aot_module(mod)", "aot_module_simplified(mod)"),
    *rows("torch._export", "aot_compile(f, args, kwargs)", "aot_load(so_path)"),
    *rows("torch.export._trace", "_export(mod, args, kwargs)", "_export_for_training(mod, args, kwargs)"),
    *rows("torch.export", "export(mod, args, kwargs)", "draft_export(mod, args, kwargs)", "save(ep, f)", "load(f)", "unflatten(module)"),
    *rows("torch.nn", "Module._call_impl", "Module._compiled_call_impl"),
    # settings
    *rows("torch.utils._config_module", "ConfigModule", "ConfigModule.__delattr__(self, name)", "_ConfigEntry.default"),
    *rows("torch.utils._config_module", "_ConfigEntry.env_value_default", "_ConfigEntry.env_value_force", "_ConfigEntry.alias"),
    *rows("torch._dynamo.config", "_config", "patch", "assume_static_by_default", "automatic_dynamic_shapes", "debug_dir_root"),
    *rows("torch._dynamo.config", "disable", "repro_tolerance", "same_two_models_use_fp64"),
    *rows("torch._inductor.config", "_config", "patch", "fallback_random"),
    *rows("torch._functorch.config", "_config"),
    *rows("torch._inductor.codegen.common", "custom_backend_passes"),
    *rows("torch.backends.cuda", "flash_sdp_enabled", "mem_efficient_sdp_enabled", "math_sdp_enabled", "cudnn_sdp_enabled"),
    # graphs and what stands in them
    *rows("torch._ops", "OpOverload._schema", "OpOverloadPacket", "HigherOrderOperator"),
    *rows("torch._dynamo.variables.builder", "GraphArg.source", "GraphArg.pass_arg_as_tensor"),
    *rows("torch.fx.experimental.sym_node", "SymNode(expr)", "SymNode.hint", "SymNode._hint"),
    *rows("torch.utils._sympy.functions", "FloorDiv", "CleanDiv", "PythonMod", "Mod"),
    *rows("torch._higher_order_ops.triton_kernel_wrap", "kernel_side_table.get_kernel(idx)", "kernel_side_table.get_constant_args(idx)"),
    *rows("torch._higher_order_ops.triton_kernel_wrap", "triton_kernel_wrapper_mutation"),
    *rows("torch.export", "ExportedProgram.call_spec", "ExportedProgram.constants", "ExportedProgram.state_dict"),
    *rows(
        "torch.utils._pytree",
        "tree_map(func, tree)",
        "tree_leaves(tree; is_leaf)",
        "tree_flatten(tree)",
        "tree_unflatten(leaves, treespec)",
    ),
    *rows("torch.utils._python_dispatch", "TorchDispatchMode.supports_higher_order_operators", "is_traceable_wrapper_subclass(t)"),
    *rows("torch._subclasses", "FakeTensor"),
    *rows("torch", "_is_functional_tensor", "Tensor._version"),
    *rows("torch._C", "_DisableTorchDispatch", "_get_privateuse1_backend_name"),
    # the keys of graphs
    *rows("torch._inductor.codecache", "FxGraphCache.prepare_key(gm, example_inputs, fx_kwargs, inputs_to_check)", "torch_key()"),
    *rows("torch._inductor.codecache", "compiled_fx_graph_hash(gm, example_inputs, fx_kwargs, inputs_to_check)"),
    *rows("torch._inductor.codecache", "FxGraphHashDetails(gm, example_inputs, fx_kwargs, inputs_to_check)"),
    # shortcuts: leaving early
    *rows("torch._dynamo.output_graph", "OutputGraph.call_user_compiler(self, gm)"),
    *rows("torch._inductor.graph", "GraphLowering.codegen(self)", "GraphLowering.codegen_with_cpp_wrapper(self)"),
    *rows("torch._inductor.graph", "GraphLowering.compile_to_module(self)"),
    *rows("torch._inductor.cpp_builder", "_run_compile_cmd(cmd_line, cwd)"),
    *rows("torch._inductor.codecache", "AotCodeCompiler.compile", "CppCodeCache._load_library(path, key)"),
    # the kernel alone
    *rows("torch._inductor.codecache", "PyCodeCache.write(source_code)"),
    # shortcuts: what a refused kernel was made from
    *rows("torch._inductor.codegen.cpp", "CppScheduling.define_kernel(self, src_code, nodes)"),
    *rows("torch._inductor.codegen.triton", "TritonScheduling.define_kernel(self, src_code, node_schedule)"),
    *rows("torch._inductor.codegen.common", "CSE.generate(self, buffer, expr)", "Kernel.current_node"),
    *rows("torch._inductor.virtualized", "V.kernel", "V.interpreter"),
    # shortcuts: the warm parent
    *rows("torch._dynamo.trace_rules", "get_torch_obj_rule_map", "get_tensor_method", "get_legacy_mod_inlinelist", "get_mod_inlinelist"),
    *rows("torch._dynamo.backends.registry", "lookup_backend(compiler_fn)"),
    *rows("torch.overrides", "_get_overridable_functions"),
    *rows("torch._inductor.fx_passes.joint_graph", "lazy_init"),
    *rows("torch._inductor.fx_passes.post_grad", "lazy_init"),
    *rows("torch._inductor.runtime.triton_compat", "triton_key"),
    *rows("torch.utils._triton", "triton_hash_with_backend"),
    *rows("torch._inductor.codegen.common", "get_device_op_overrides(device)"),
    *rows("torch._inductor.cpu_vec_isa", "valid_vec_isa_list", "VecISA.check_build(self, code)", "VecISA.build_arch_flags(self)"),
    *rows("torch._inductor.ir", "IRNode"),
    *rows("torch._inductor.decomposition", "fast_random_decomps.cache_clear", "decompositions"),
    *rows("torch._subclasses.fake_tensor", "torch_decomp_decompositions.cache_clear"),
    # functions of the program's that the compiler holds
    *rows("torch._inductor.lowering", "lowerings", "register_lowering(aten_fn)"),
    *rows("torch._inductor.pattern_matcher", "PatternEntry"),
    # compiling for a GPU that isn't there
    *rows("torch._subclasses.fake_tensor", "FakeTensorMode.dispatch(self, func, types, args, kwargs)", "FakeTensorMode.avoid_device_init"),
    *rows("torch._inductor.compile_fx", "_compile_fx_inner(gm, example_inputs)"),
    *rows("torch._inductor.fx_passes.joint_graph", "UniformValueConstantFolder._deduce_value(self, node)"),
    *rows("torch._inductor.fx_passes.pad_mm", "_should_pad" if VERSION > (2, 9) else "_should_pad_bench"),
    *rows("torch._inductor.select_algorithm", "AlgorithmSelectorCache.benchmark_in_current_process(choices)"),
    *rows("torch._inductor.select_algorithm", "AlgorithmSelectorCache.benchmark_in_sub_process(choices)"),
    *rows("torch._inductor.runtime.triton_heuristics", "CachingAutotuner._make_launchers(self)", "CachingAutotuner.run(self)"),
    *rows("torch._inductor.runtime.triton_heuristics", "CachingAutotuner._dynamic_scale_rblock(self)"),
    *rows("torch.utils", "swap_tensors(t1, t2)"),
    *rows("torch", "ops.aten._local_scalar_dense.default"),
    *rows("torch.cuda", "_lazy_init", "_lazy_call", "_exchange_device", "_maybe_exchange_device"),
]


@pytest.mark.parametrize("api", TABLE, ids=lambda api: f"{api.module}.{api.name}")
def test_it_is_there(api: Api) -> None:
    found: Any = importlib.import_module(api.module)
    for part in api.name.split("."):
        assert holds(found, part), f"{api.module} of torch {torch.__version__} has no {api.name}: bot/inside must follow it"
        found = getattr(found, part, None)
    if api.first or api.by_name:
        parameters = list(inspect.signature(found).parameters)
        assert tuple(parameters[: len(api.first)]) == api.first
        assert set(api.by_name) <= set(parameters)


def holds(owner: Any, name: str) -> bool:
    """Whether it has an attribute of that name; a class: or its objects, from their beginning."""
    return hasattr(owner, name) or (
        isinstance(owner, type) and re.search(rf"(?m)^ +(?:self\.)?{name}\b.*[:=]", inspect.getsource(owner)) is not None
    )


# -- is the table whole? --------------------------------------------------------------------------------------------

IMPORTERS = {"import_module", "_module", "_find"}


@cache
def sources() -> tuple[ast.Module, ...]:
    directory = Path(bot.inside.__file__).parent
    return tuple(ast.parse(path.read_text(encoding="utf-8")) for path in sorted(directory.rglob("*.py")))


def imported(node: ast.AST | None) -> str | None:
    """The module of torch that an expression imports or names, with what it takes from it: `torch._ops.OpOverload`."""
    if isinstance(node, ast.Attribute):
        inner = imported(node.value)
        return None if inner is None else f"{inner}.{node.attr}"
    if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in IMPORTERS and node.args:
        given = node.args[0]
        return given.value if isinstance(given, ast.Constant) and isinstance(given.value, str) else None
    return "torch" if isinstance(node, ast.Name) and node.id == "torch" else None


def taken() -> Iterator[str]:
    """The dotted names of private things of torch that `bot/inside` names."""
    for tree in sources():
        for scope in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
            names: dict[str, str] = {}
            for node in ast.walk(scope):
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target if isinstance(node, ast.AnnAssign) else None
                module = imported(node.value) if isinstance(node, (ast.Assign, ast.AnnAssign)) else None
                if isinstance(target, ast.Name) and module is not None:
                    names[target.id] = module
            for node in ast.walk(scope):
                if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in names:
                    yield f"{names[node.value.id]}.{node.attr}"
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").startswith("torch"):
                yield from (f"{node.module}.{alias.name}" for alias in node.names)
            path = imported(node)
            if path is not None:
                yield path


def is_private(path: str) -> bool:
    return path.startswith("torch.") and any(part.startswith("_") and not part.startswith("__") for part in path.split("."))


@pytest.mark.parametrize("path", sorted({path for path in taken() if is_private(path)}))
def test_it_is_in_the_table(path: str) -> None:
    known = {f"{api.module}.{api.name}" for api in TABLE} | {*warm.MODULES, *warm.GENERATORS}
    # the beginning of a known one, as `torch._inductor.codecache`, or an attribute of it, as `torch.overrides._get().items`
    assert any(one == path or one.startswith(f"{path}.") or path.startswith(f"{one}.") for one in known), f"{path} is not in the table"


# -- do the shortcuts work with this torch? --------------------------------------------------------------------------

HEALTHY = "import torch\ntorch.compile(lambda x: torch.relu(x) + 1)(torch.ones(3))\n"
PHASES = ("inductor_lowering", "inductor_codegen", "cpp_compile", "export", "dynamo")


@pytest.mark.slow
def test_every_shortcut_is_taken(pool: Pool) -> None:
    """One that fails is passed over, and the log says so."""
    for task in ("run", "origins"):
        for phase in PHASES:
            outcome, _ = pool.ask(Question(HEALTHY, task, limit=100.0, stop_after=phase))
            assert outcome.status == ("ok" if phase in ("export", "dynamo") else "stopped"), outcome.text
    assert [line for line in pool.log.read_text(encoding="utf-8").splitlines() if line.startswith(SHORTCUT_FAILED)] == []


# -- the landmarks ----------------------------------------------------------------------------------------------------


@cache
def files() -> dict[str, str]:
    """The Python files of torch and triton, as tracebacks name them, with their text."""
    roots = [
        Path(place)
        for name in ("torch", "triton")
        if (spec := importlib.util.find_spec(name))
        for place in spec.submodule_search_locations or ()
    ]
    return {str(path.relative_to(root.parent)): path.read_text(encoding="utf-8") for root in roots for path in root.rglob("*.py")}


def alternatives(pattern: str) -> list[str]:
    """The patterns that one with groups of alternatives stands for."""
    group = re.search(r"\(\?:([^()]*)\)(?![?*])", pattern)
    if group is None:
        return [pattern]
    return [one for part in group[1].split("|") for one in alternatives(pattern[: group.start()] + part + pattern[group.end() :])]


LANDMARKS = [
    mark for mark in (*phases.LANDMARKS, *phases.HINTS, *phases.TRITON_KERNEL) if mark.path.pattern.startswith(("torch", "triton"))
]
# files that older versions have not
NEW = {r"torch/_functorch/_aot_autograd/subclass_codegen\.py": (2, 13)}
# files that only an older Triton has, which logs name
OLD = {r"triton/compiler\.py", r"triton/language\.py"}


@pytest.mark.parametrize("landmark", LANDMARKS, ids=lambda landmark: landmark.path.pattern)
def test_a_landmark_is_in_this_torch(landmark: phases.Landmark) -> None:
    if landmark.path.pattern.startswith("triton") and importlib.util.find_spec("triton") is None:
        pytest.skip("there is no triton here")
    there: list[str] = []
    for path in alternatives(landmark.path.pattern):
        file = re.sub(r"(?<=py):.*", "", path)  # a function that torch generates is named behind its generator's file
        found = [text for name, text in files().items() if re.fullmatch(file, name)]
        assert found or file in OLD or NEW.get(file, (2, 9)) > VERSION, (
            f"torch {torch.__version__} has no {file}: the table of phases must follow it"
        )
        there += found
    functions = {name for text in there for name in re.findall(r"\bdef (\w+)", text)}
    assert not there or any(map(landmark.function.fullmatch, functions)), landmark.function.pattern
