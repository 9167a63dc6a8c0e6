"""Reads an FX graph (Dynamo's, AOTAutograd's or an exported program's) into the JSON form that `fx_form` describes."""

from __future__ import annotations

import operator
import sys
from collections.abc import Sequence
from typing import Any

import torch
import torch.fx

from . import exported_call
from .fx_arguments import Arguments, known_value, short_name
from .fx_form import Form, is_ref
from .fx_targets import Unreadable, path_of
from .fx_values import meta_of

__all__ = ["Unreadable", "read_exported", "read_graph"]

_LAUNCH = "triton_kernel_wrapper_"
MOST_STACKS = 10


def read_graph(gm: torch.fx.GraphModule, example_inputs: Sequence[Any] | None, *, blob_dir: str | None) -> dict[str, Any]:
    """The graph `gm` with its inputs as they were in the failing run.

    `example_inputs` are in the order of the placeholders, real or fake; real ones are dumped to `blob_dir` (raw bytes, contiguous; the
    inputs' values name the files). In graphs that AOTAutograd passes to a compiler, which the graph itself shows, nothing requires grad,
    and parameters are plain inputs. Raises `Unreadable`.
    """
    reader = _Reader(Form(blob_dir, _traced_by_aot(gm)))
    output = reader.top(gm, example_inputs)
    return reader.form.result(output)


def read_exported(ep: Any, *, blob_dir: str | None) -> dict[str, Any]:
    """An exported program `ep` as a module: its parameters, buffers and lifted constants are the constants.

    The inputs are the leaves of its own example arguments, in order; one that was passed by keyword keeps its keyword. `blob_dir` as for
    `read_graph`. Raises `Unreadable`.
    """
    reader = _Reader(Form(blob_dir, below_autograd=False))
    output = reader.exported(ep)
    return reader.form.result(output)


class _Reader:
    """Walks a graph and fills a `form`."""

    def __init__(self, form: Form) -> None:
        self.form = form
        self.arguments = Arguments(form, self._body)

    def top(self, gm: torch.fx.GraphModule, examples: Sequence[Any] | None) -> Any:
        places = gm.graph.find_nodes(op="placeholder")
        if examples is not None and len(examples) != len(places):
            raise Unreadable(f"{len(examples)} example inputs for {len(places)} placeholders")
        given = [None] * len(places) if examples is None else examples
        env = {node: self.arguments.placeholder(node, example) for node, example in zip(places, given, strict=True)}
        output = self._walk(gm, env, "")
        one = output.get("$tuple") if isinstance(output, dict) else output
        # A single result is returned directly, as people write it.
        return one[0] if isinstance(one, list) and len(one) == 1 and is_ref(one[0]) else output

    def body(self, gm: torch.fx.GraphModule) -> Any:
        return self._walk(gm, {node: self.arguments.unknown(node) for node in gm.graph.find_nodes(op="placeholder")}, "")

    def exported(self, ep: Any) -> Any:
        gm, signature = ep.graph_module, ep.graph_signature
        args, kwargs = ep.example_inputs or (None, None)
        leaves = exported_call.leaves(ep, args, kwargs)
        keywords = exported_call.keywords(ep)
        specs = {spec.arg.name: spec for spec in signature.input_specs}
        env: dict[torch.fx.Node, Any] = {}
        user = 0
        for node in gm.graph.find_nodes(op="placeholder"):
            spec = specs[node.name]
            kind = spec.kind.name
            if kind == "USER_INPUT":
                example = leaves[user] if leaves is not None else None
                word = keywords[user]
                user += 1
                if type(spec.arg).__name__ == "ConstantArgument":
                    env[node] = self.arguments.encode(spec.arg.value)
                    continue
                env[node] = self.arguments.placeholder(node, example, keyword_name=word, plain=True)
            elif kind in ("PARAMETER", "BUFFER", "CONSTANT_TENSOR"):
                env[node] = self.form.add_constant(short_name(spec.target), exported_call.held_by(ep, spec), parameter=kind == "PARAMETER")
            else:
                raise Unreadable(f"an exported program's input of kind {kind}")
        results = self._walk(gm, env, "")
        return self._exported_output(ep, results, {n.name: env[n] for n in env}, specs)

    def _exported_output(self, ep: Any, results: Any, env: dict[str, Any], specs: dict[str, Any]) -> Any:
        flat = results.get("$tuple", results) if isinstance(results, dict) else results
        flat = flat if isinstance(flat, list) else [flat]
        by_target = {spec.target: env[name] for name, spec in specs.items() if spec.target is not None}
        user = []
        for spec, value in zip(ep.graph_signature.output_specs, flat, strict=True):
            kind = spec.kind.name
            if kind == "USER_OUTPUT":
                user.append(value)
            elif kind in ("BUFFER_MUTATION", "USER_INPUT_MUTATION", "PARAMETER_MUTATION"):
                changed = by_target[spec.target] if spec.target in by_target else env[spec.target]
                self.form.add_node("function", "torch.ops.aten.copy_.default", [changed, value], {}, {"kind": "other"}, "copy_")
            else:
                raise Unreadable(f"an exported program's output of kind {kind}")
        return exported_call.nested(ep, user)

    def _walk(self, gm: torch.fx.GraphModule, env: dict[torch.fx.Node, Any], prefix: str) -> Any:
        for node in gm.graph.nodes:
            if node.op == "placeholder":
                continue
            if node.op == "output":
                return self.arguments.encode(node.args[0], env)
            if node.op == "get_attr":
                env[node] = self._attribute(gm, node)
            elif node.op == "call_module":
                env[node] = self._module_call(gm, node, env, prefix)
            elif node.op == "call_method":
                env[node] = self._method(node, env, prefix)
            elif node.op == "call_function":
                env[node] = self._function(node, env, prefix)
            else:
                raise Unreadable(f"a node of sort {node.op}")
        raise Unreadable("a graph without an output")

    def _method(self, node: torch.fx.Node, env: dict[torch.fx.Node, Any], prefix: str) -> Any:
        receiver = self.arguments.encode(node.args[0], env)
        if node.target == "item" and not is_ref(receiver):
            return receiver  # see _number_in_a_tensor
        if node.target == "item" and any(i["name"] == receiver["$ref"] and i["meta"]["kind"] == "float" for i in self.form.inputs):
            return receiver
        return self._call("method", str(node.target), node, env, prefix)

    def _function(self, node: torch.fx.Node, env: dict[torch.fx.Node, Any], prefix: str) -> Any:
        if str(node.target).startswith(_LAUNCH):
            kernel, grid, given = _launch(node)
            args = [{"$code": kernel}, {"$code": grid} if isinstance(grid, str) else self.arguments.encode(grid, env)]
            named = {key: self.arguments.encode(item, env) for key, item in given.items()}
            return self.form.add_node("function", path_of(node.target), args, named, meta_of(None), prefix + node.name)
        return self._call("function", path_of(node.target), node, env, prefix)

    def _call(self, op: str, target: str, node: torch.fx.Node, env: dict[torch.fx.Node, Any], prefix: str) -> Any:
        args, kwargs = self._given(node, env)
        known = known_value(node)
        made = self.form.add_node(op, target, args, kwargs, meta_of(known), prefix + node.name, _writes(node))
        self.arguments.symbols.note(known, made)
        return made

    def _given(self, node: torch.fx.Node, env: dict[torch.fx.Node, Any]) -> tuple[list[Any], dict[str, Any]]:
        kwargs = {key: self.arguments.encode(item, env) for key, item in node.kwargs.items()}
        return [self.arguments.encode(item, env) for item in node.args], kwargs

    def _attribute(self, gm: torch.fx.GraphModule, node: torch.fx.Node) -> Any:
        found = operator.attrgetter(str(node.target))(gm)
        if isinstance(found, torch.fx.GraphModule):
            return self._body(found, node.name)
        if isinstance(found, torch.Tensor):
            return self.form.add_constant(short_name(str(node.target)), found, parameter=isinstance(found, torch.nn.Parameter))
        return self.arguments.encode(found)

    def _body(self, gm: torch.fx.GraphModule, name: str) -> Any:
        if id(gm) not in self.form.held:
            name = self.form.fresh(name)
            inner = _Reader(Form(self.form.blob_dir, self.form.below_autograd, f"{self.form.prefix}{name}_"))
            output = inner.body(gm)
            self.form.bodies.append([name, inner.form.result(output)])
            self.form.held[id(gm)] = {"$ref": name}
        return self.form.held[id(gm)]

    def _module_call(self, gm: torch.fx.GraphModule, node: torch.fx.Node, env: dict[torch.fx.Node, Any], prefix: str) -> Any:
        if node.target == "_guards_fn":
            return None  # checks of the exported program's own inputs: they compute nothing
        module = gm.get_submodule(str(node.target))
        inner = module if isinstance(module, torch.fx.GraphModule) else _traced(module)
        places = inner.graph.find_nodes(op="placeholder")
        given, named = self._given(node, env)
        inside: dict[torch.fx.Node, Any] = dict(zip(places, given, strict=False))
        for place in places[len(given) :]:
            if place.target in named:
                inside[place] = named[place.target]
            elif place.args:
                inside[place] = self.arguments.encode(place.args[0])
            else:
                raise Unreadable(f"a call of module {node.target} without its argument {place.target}")
        return self._walk(inner, inside, f"{prefix}{node.name}_")


def _writes(node: torch.fx.Node) -> list[int | str]:
    """Positions and keywords of the arguments that the operator of `node` writes to by its schema, unless its name says that it writes: an
    operator of the user's may have any name."""
    packet = getattr(node.target, "overloadpacket", node.target)
    if str(getattr(packet, "__name__", "_")).endswith("_"):
        return []
    schema = getattr(node.target, "_schema", None) or getattr(getattr(node.target, "default", None), "_schema", None)
    written = [one.alias_info is not None and one.alias_info.is_write for one in getattr(schema, "arguments", ())]
    names = [one.name for one, is_written in zip(getattr(schema, "arguments", ()), written, strict=True) if is_written]
    places = [place for place, is_written in enumerate(written[: len(node.args)]) if is_written]
    return [*places, *(name for name in names if name in node.kwargs)]


def _traced_by_aot(gm: torch.fx.GraphModule) -> bool:
    # make_fx records values under "val", Dynamo under "example_value".
    places = gm.graph.find_nodes(op="placeholder")
    return any("val" in n.meta for n in places) and not any("example_value" in n.meta for n in places)


class _Everything(torch.fx.Tracer):
    def is_leaf_module(self, m: torch.nn.Module, module_qualified_name: str) -> bool:
        return False


def _traced(module: torch.nn.Module) -> torch.fx.GraphModule:
    try:
        graph = _Everything().trace(module)
    except Exception as error:
        raise Unreadable(f"a call of {type(module).__name__}, which torch.fx cannot trace: {error}") from error
    return torch.fx.GraphModule(module, graph)


def launch_stacks(gm: torch.fx.GraphModule) -> list[str]:
    """The stacks from which the graph `gm`, and the graphs inside it, launch the user's own Triton kernels: frames as Python prints them,
    outermost first, without duplicates, at most `MOST_STACKS`."""
    graphs = [module.graph for module in gm.modules() if isinstance(module, torch.fx.GraphModule)]
    launches = (node for graph in graphs for node in graph.nodes if str(node.target).startswith(_LAUNCH))
    stacks = dict.fromkeys(str(node.meta.get("stack_trace") or "") for node in launches)
    return [stack for stack in stacks if stack][:MOST_STACKS]


def _launch(node: torch.fx.Node) -> tuple[str, Any, dict[str, Any]]:
    """For the launch of a user's Triton kernel: its name in the script, its grid, and its arguments by name, as the launch has them.

    Dynamo records indices into a table of this process: which kernel, and which arguments could not be in a graph. Raises `Unreadable` for
    grids that no parameter distinguishes, descriptors made on the host, a kernel that no name leads to, and for AOTAutograd's form of a
    launch, which returns copies that no script can express.
    """
    if str(node.target) != f"{_LAUNCH}mutation":
        raise Unreadable("a launch of a Triton kernel that returns copies of what it changes")
    from torch._higher_order_ops.triton_kernel_wrap import kernel_side_table

    told = dict(node.kwargs)
    if told.get("tma_descriptor_metadata"):
        raise Unreadable("a launch of a Triton kernel with descriptors")
    kernel = kernel_side_table.get_kernel(told["kernel_idx"])
    grids: Any = told["grid"]
    constants = kernel_side_table.get_constant_args(told["constant_args_idx"])
    given: Any = told["kwargs"]
    name = next((name for name, value in vars(sys.modules["__main__"]).items() if value is kernel), None) or path_of(kernel)
    return name, _grid(kernel, [tuple(grid) for grid in grids]), {**given, **constants}


def _grid(kernel: Any, grids: list[tuple[Any, ...]]) -> Any:
    """The grid of a launch; Dynamo records one for each configuration of the kernel's autotune table.

    If they differ, it is the text of a function of the parameter that distinguishes them, as people write it. Raises `Unreadable` if no
    parameter does.
    """
    if all(grid == grids[0] for grid in grids):
        return grids[0]
    configs = [config.kwargs for config in getattr(kernel, "configs", ())]
    if len(configs) == len(grids) and all(type(size) is int for grid in grids for size in grid):
        for name in configs[0]:
            table = {config.get(name): grid for config, grid in zip(configs, grids, strict=True)}
            if all(table[config.get(name)] == grid for config, grid in zip(configs, grids, strict=True)):
                return f'lambda meta: {table!r}[meta["{name}"]]'
    raise Unreadable("a launch of a Triton kernel with a grid for each configuration, which no parameter tells apart")
