"""Reads an FX graph (Dynamo's, AOTAutograd's or an exported program's) into the JSON form of `bot.reduce.graph.form.Graph`.

What JSON has no form for is written as one-key objects: `{"$ref": name}`, `{"$code": text}`, `{"$slice": [a, b, c]}`,
`{"$tuple": [...]}`, `{"$map": [[key, value], ...]}`. A plain list is a list.
"""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.fx

from . import exported_call
from .fx_kernels import is_launch, launch
from .fx_targets import Unreadable, code_of, path_of
from .fx_values import hint, is_fake, is_plain, meta_of, symbol, value_of

__all__ = ["Unreadable", "read_exported", "read_graph"]


def read_graph(
    gm: torch.fx.GraphModule,
    example_inputs: Sequence[Any] | None,
    *,
    blob_dir: str | None,
    below_autograd: bool | None = None,
) -> dict[str, Any]:
    """The graph with its inputs as they were in the failing run.

    `example_inputs` are in the order of the placeholders, real or fake; real ones are dumped to `blob_dir` (raw bytes,
    without gaps; the inputs' values name the files). `below_autograd` is for what AOTAutograd hands to a compiler:
    nothing there requires grad, and parameters are plain inputs; by default the graph itself tells. Raises `Unreadable`.
    """
    reader = _Reader(blob_dir, _traced_by_aot(gm) if below_autograd is None else below_autograd)
    output = reader.top(gm, example_inputs)
    return reader.result(output)


def read_exported(
    ep: Any, args: Sequence[Any] | None = None, kwargs: Mapping[str, Any] | None = None, *, blob_dir: str | None
) -> dict[str, Any]:
    """An exported program as a module: its parameters, buffers and lifted constants are the constants.

    The inputs are the leaves of its arguments, in order; one that was passed by keyword keeps its keyword. `args` and
    `kwargs` default to the program's own example inputs. Raises `Unreadable`.
    """
    reader = _Reader(blob_dir, below_autograd=False)
    output = reader.exported(ep, args, kwargs)
    return reader.result(output)


class _Reader:
    """One graph in the making; each body of a higher-order operation has its own."""

    def __init__(self, blob_dir: str | None, below_autograd: bool, prefix: str = "") -> None:
        self.blob_dir = blob_dir
        self.below_autograd = below_autograd
        self.prefix = prefix  # keeps the names of a body's blobs apart
        self.inputs: list[dict[str, Any]] = []
        self.nodes: list[dict[str, Any]] = []
        self.constants: list[dict[str, Any]] = []
        self.bodies: list[list[Any]] = []
        self.taken: set[str] = set()
        self.symbols: dict[str, Any] = {}  # text of a symbolic size -> what stands for it
        self.held: dict[int, Any] = {}  # id of a module's tensor or body -> its reference

    def result(self, output: Any) -> dict[str, Any]:
        parts = {"inputs": self.inputs, "nodes": self.nodes, "output": output, "constants": self.constants, "bodies": self.bodies}
        return {key: value for key, value in parts.items() if value or key in ("inputs", "nodes", "output")}

    # -- whole graphs ---------------------------------------------------------------------------------------------

    def top(self, gm: torch.fx.GraphModule, examples: Sequence[Any] | None) -> Any:
        places = [n for n in gm.graph.nodes if n.op == "placeholder"]
        if examples is not None and len(examples) != len(places):
            raise Unreadable(f"{len(examples)} example inputs for {len(places)} placeholders")
        env: dict[torch.fx.Node, Any] = {}
        for i, node in enumerate(places):
            env[node] = self._placeholder(node, None if examples is None else examples[i])
        output = self._walk(gm, env, "")
        one = output.get("$tuple") if isinstance(output, dict) else output
        # A single result is returned as itself: that is how people write it.
        return one[0] if isinstance(one, list) and len(one) == 1 and _is_ref(one[0]) else output

    def body(self, gm: torch.fx.GraphModule) -> Any:
        env: dict[torch.fx.Node, Any] = {}
        for node in gm.graph.nodes:
            if node.op == "placeholder":
                known = _known(node)
                self._note_symbols(node.name, known)
                env[node] = self._add_input(node.name, {"meta": meta_of(known), "value": {"kind": "randn"}})
        return self._walk(gm, env, "")

    def exported(self, ep: Any, args: Sequence[Any] | None, kwargs: Mapping[str, Any] | None) -> Any:
        gm, signature = ep.graph_module, ep.graph_signature
        if args is None and kwargs is None and ep.example_inputs is not None:
            args, kwargs = ep.example_inputs
        leaves = exported_call.leaves(ep, args, kwargs)
        keywords = exported_call.keywords(ep)
        specs = {spec.arg.name: spec for spec in signature.input_specs}
        env: dict[torch.fx.Node, Any] = {}
        user = 0
        for node in (n for n in gm.graph.nodes if n.op == "placeholder"):
            spec = specs[node.name]
            kind = spec.kind.name
            if kind == "USER_INPUT":
                example = leaves[user] if leaves is not None else None
                word = keywords[user]
                user += 1
                if type(spec.arg).__name__ == "ConstantArgument":
                    env[node] = self.arg(spec.arg.value)
                    continue
                env[node] = self._placeholder(node, example, keyword_name=word, plain=True)
            elif kind in ("PARAMETER", "BUFFER", "CONSTANT_TENSOR"):
                env[node] = self._constant(_short_name(spec.target), exported_call.held_by(ep, spec), parameter=kind == "PARAMETER")
            else:
                raise Unreadable(f"an exported program's input of kind {kind}")
        results = self._walk(gm, env, "")
        return self._exported_output(ep, results, {n.name: env[n] for n in env}, specs)

    def _exported_output(self, ep: Any, results: Any, env: dict[str, Any], specs: dict[str, Any]) -> Any:
        flat = results["$tuple"] if isinstance(results, dict) and "$tuple" in results else results
        flat = flat if isinstance(flat, list) else [flat]
        by_target = {spec.target: env[name] for name, spec in specs.items() if spec.target is not None}
        user = []
        for spec, value in zip(ep.graph_signature.output_specs, flat, strict=True):
            kind = spec.kind.name
            if kind == "USER_OUTPUT":
                user.append(value)
            elif kind in ("BUFFER_MUTATION", "USER_INPUT_MUTATION", "PARAMETER_MUTATION"):
                changed = by_target[spec.target] if spec.target in by_target else env[spec.target]
                self._node("function", "torch.ops.aten.copy_.default", [changed, value], {}, {"kind": "other"}, "copy_")
            else:
                raise Unreadable(f"an exported program's output of kind {kind}")
        return exported_call.nested(ep, user)

    # -- inputs and constants -------------------------------------------------------------------------------------

    def _placeholder(self, node: torch.fx.Node, example: Any, *, keyword_name: str | None = None, plain: bool = False) -> Any:
        known = _known(node)
        known = example if known is None else known
        data = known if example is None else example
        self._note_symbols(node.name, known)
        if _is_wrapped_number(node, known):
            return self._number_in_a_tensor(node, data)
        if isinstance(known, torch.Tensor):
            if not is_plain(known):
                raise Unreadable(f"input {node.name} is a {type(known).__name__} of layout {known.layout}")
            if not plain and not self.below_autograd and _held_by_module(node, data):
                parameter = isinstance(data, torch.nn.Parameter)
                return self._constant(_short_name(_source(node) or node.name), data, parameter=parameter, known=known)
            return self._add_input(node.name, self._tensor_input(node.name, known, data, keyword_name))
        if isinstance(known, (int, float, bool, torch.SymInt, torch.SymFloat, torch.SymBool)):
            number = hint(data)
            entry: dict[str, Any] = {"meta": meta_of(known), "value": {"kind": "literal", "args": [self._text(number)]}}
            if keyword_name:
                entry["keyword"] = keyword_name
            return self._add_input(node.name, entry)
        if not node.users:
            return self._add_input(node.name, {"meta": {"kind": "other"}, "value": {"kind": "literal", "args": ["None"]}})
        raise Unreadable(f"input {node.name} is a {type(known).__name__}")

    def _tensor_input(self, name: str, known: torch.Tensor, data: Any, keyword_name: str | None) -> dict[str, Any]:
        # Hints are compared: comparing a symbolic size itself would make the compiler specialize on it.
        fits = isinstance(data, torch.Tensor) and [hint(d) for d in data.shape] == [hint(d) for d in known.shape]
        source = data if fits else known
        meta = meta_of(known)
        if source is not known and not is_fake(source):
            meta["stride"] = [int(s) for s in source.stride()] or meta.get("stride", [])
            meta = {k: v for k, v in meta.items() if v != []}
        entry: dict[str, Any] = {"meta": meta, "value": value_of(self.prefix + name, source, self.blob_dir)}
        if source.requires_grad and not self.below_autograd:
            entry["requires_grad"] = True
            if not source.is_leaf:
                entry["leaf"] = False
        if keyword_name:
            entry["keyword"] = keyword_name
        return entry

    def _number_in_a_tensor(self, node: torch.fx.Node, data: Any) -> Any:
        # Dynamo passes a Python float as a tensor and reads it back with `.item()`; the script passes the float.
        if not isinstance(data, torch.Tensor) or is_fake(data):
            raise Unreadable(f"input {node.name} is a Python number of unknown value")
        number = data.item()
        if (_source(node) or "").startswith("L["):
            entry = {"meta": meta_of(number), "value": {"kind": "literal", "args": [self._text(number)]}}
            return self._add_input(node.name, entry)
        return self.arg(number)

    def _constant(self, name: str, tensor: Any, *, parameter: bool, known: torch.Tensor | None = None) -> Any:
        known = tensor if known is None else known
        if not isinstance(tensor, torch.Tensor) or not is_plain(tensor):
            raise Unreadable(f"the module holds {name}, a {type(tensor).__name__}")
        if id(tensor) in self.held:
            return self.held[id(tensor)]
        name = self._fresh(name)
        entry: dict[str, Any] = {"name": name, "meta": meta_of(known), "value": value_of(self.prefix + name, tensor, self.blob_dir)}
        if tensor.requires_grad and not self.below_autograd:
            entry["requires_grad"] = True
        if parameter:
            entry["parameter"] = True
        self.constants.append(entry)
        self.held[id(tensor)] = {"$ref": name}
        return self.held[id(tensor)]

    def _add_input(self, name: str, entry: dict[str, Any]) -> Any:
        name = self._fresh(name)
        self.inputs.append({"name": name, **entry})
        return {"$ref": name}

    def _note_symbols(self, name: str, known: Any) -> None:
        text = symbol(known)
        if text is not None:
            self.symbols.setdefault(text, {"$ref": name})
        if isinstance(known, torch.Tensor) and is_plain(known):
            for dim, size in enumerate(known.shape):
                text = symbol(size)
                if text is not None:
                    self.symbols.setdefault(text, (name, dim))

    # -- nodes ----------------------------------------------------------------------------------------------------

    def _walk(self, gm: torch.fx.GraphModule, env: dict[torch.fx.Node, Any], prefix: str) -> Any:
        for node in gm.graph.nodes:
            if node.op == "placeholder":
                continue
            if node.op == "output":
                return self.arg(node.args[0], env)
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
        receiver = self.arg(node.args[0], env)
        if node.target == "item" and not _is_ref(receiver):
            return receiver  # see _number_in_a_tensor
        if node.target == "item" and any(i["name"] == receiver["$ref"] and i["meta"]["kind"] == "float" for i in self.inputs):
            return receiver
        return self._call("method", str(node.target), node, env, prefix)

    def _function(self, node: torch.fx.Node, env: dict[torch.fx.Node, Any], prefix: str) -> Any:
        if is_launch(node):
            kernel, grid, given = launch(node)
            args = [{"$code": kernel}, self.arg(grid, env)]
            named = {key: self.arg(item, env) for key, item in given.items()}
            return self._node("function", path_of(node.target), args, named, meta_of(None), prefix + node.name)
        return self._call("function", path_of(node.target), node, env, prefix)

    def _call(self, op: str, target: str, node: torch.fx.Node, env: dict[torch.fx.Node, Any], prefix: str) -> Any:
        args = [self.arg(item, env) for item in node.args]
        kwargs = {key: self.arg(item, env) for key, item in node.kwargs.items()}
        known = _known(node)
        made = self._node(op, target, args, kwargs, meta_of(known), prefix + node.name)
        text = symbol(known)
        if text is not None:
            self.symbols.setdefault(text, made)
        return made

    def _node(self, op: str, target: str, args: list[Any], kwargs: dict[str, Any], meta: dict[str, Any], name: str) -> Any:
        name = self._fresh(name)
        entry: dict[str, Any] = {"name": name, "op": op, "target": target, "args": args, "meta": meta}
        if kwargs:
            entry["kwargs"] = [[key, value] for key, value in kwargs.items()]
        self.nodes.append(entry)
        return {"$ref": name}

    def _attribute(self, gm: torch.fx.GraphModule, node: torch.fx.Node) -> Any:
        found: Any = gm
        for part in str(node.target).split("."):
            found = getattr(found, part)
        if isinstance(found, torch.fx.GraphModule):
            return self._body(found, node.name)
        if isinstance(found, torch.Tensor):
            return self._constant(_short_name(str(node.target)), found, parameter=isinstance(found, torch.nn.Parameter))
        return self.arg(found)

    def _body(self, gm: torch.fx.GraphModule, name: str) -> Any:
        if id(gm) not in self.held:
            name = self._fresh(name)
            inner = _Reader(self.blob_dir, self.below_autograd, f"{self.prefix}{name}_")
            output = inner.body(gm)
            self.bodies.append([name, inner.result(output)])
            self.held[id(gm)] = {"$ref": name}
        return self.held[id(gm)]

    def _module_call(self, gm: torch.fx.GraphModule, node: torch.fx.Node, env: dict[torch.fx.Node, Any], prefix: str) -> Any:
        if node.target == "_guards_fn":
            return None  # checks of the exported program's own inputs: they compute nothing
        module = gm.get_submodule(str(node.target))
        inner = module if isinstance(module, torch.fx.GraphModule) else _traced(module)
        places = [n for n in inner.graph.nodes if n.op == "placeholder"]
        given = [self.arg(item, env) for item in node.args]
        named = {key: self.arg(item, env) for key, item in node.kwargs.items()}
        inside: dict[torch.fx.Node, Any] = dict(zip(places, given, strict=False))
        for place in places[len(given) :]:
            if place.target in named:
                inside[place] = named[place.target]
            elif place.args:
                inside[place] = self.arg(place.args[0])
            else:
                raise Unreadable(f"a call of module {node.target} without its argument {place.target}")
        return self._walk(inner, inside, f"{prefix}{node.name}_")

    # -- arguments ------------------------------------------------------------------------------------------------

    def arg(self, value: Any, env: dict[torch.fx.Node, Any] | None = None) -> Any:
        """An argument in JSON form."""
        if isinstance(value, torch.fx.Node):
            return (env or {})[value]
        if value is None or isinstance(value, (bool, str)):
            return value
        if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            return self._symbolic(value.node.expr, hint(value))
        if type(value) is int or (type(value) is float and math.isfinite(value)):
            return value
        if isinstance(value, slice):
            return {"$slice": [self.arg(part, env) for part in (value.start, value.stop, value.step)]}
        if isinstance(value, tuple):
            return {"$tuple": [self.arg(item, env) for item in value]}
        if isinstance(value, list):
            return [self.arg(item, env) for item in value]
        if isinstance(value, dict):
            if not all(isinstance(key, str) for key in value):
                raise Unreadable("a dict argument whose keys are no strings")
            return {"$map": [[key, self.arg(item, env)] for key, item in value.items()]}
        if isinstance(value, torch.Tensor):
            return self._constant("tensor_constant", value, parameter=False)
        if isinstance(value, torch.fx.GraphModule):
            return self._body(value, "body")
        text = code_of(value)
        if text is not None:
            return {"$code": text}
        if isinstance(value, int):
            return int(value)
        raise Unreadable(f"an argument of type {type(value).__module__}.{type(value).__qualname__}")

    def _symbolic(self, expr: Any, number: Any) -> Any:
        """A size expression: the input that holds it, or nodes that compute it, or (out of words) the number it had."""
        known = self.symbols.get(str(expr))
        if isinstance(known, tuple):
            name, dim = known
            meta = {"kind": "int", "symbols": [str(expr)]}
            made = self._node("function", "torch.ops.aten.sym_size.int", [{"$ref": name}, dim], {}, meta, "sym_size")
            self.symbols[str(expr)] = made
            return made
        if known is not None:
            return known
        if getattr(expr, "is_Integer", False):
            return int(expr)
        made = self._compute(expr)
        if made is None:
            return number
        self.symbols[str(expr)] = made
        return made

    def _compute(self, expr: Any) -> Any:
        word = _SYMPY.get(type(expr).__name__)
        if word is None or len(expr.args) < 2 or (word == "pow" and not (expr.args[1].is_Integer and expr.args[1] > 0)):
            return None
        # Constants come first in sympy's order; people write them last.
        parts = sorted(expr.args, key=lambda a: bool(a.is_Integer)) if word in ("add", "mul") else list(expr.args)
        values = [self._symbolic(part, None) for part in parts]
        if any(value is None for value in values):
            return None
        made = values[0]
        for value in values[1:]:
            made = self._node("function", f"operator.{word}", [made, value], {}, {"kind": "int"}, word)
        return made

    def _text(self, number: Any) -> str:
        encoded = self.arg(number)
        return str(encoded["$code"]) if isinstance(encoded, dict) else repr(encoded)

    def _fresh(self, name: str) -> str:
        base = re.sub(r"\W", "_", name)
        base = f"_{base}" if base[:1].isdigit() or not base or keyword.iskeyword(base) else base
        found, i = base, 0
        while found in self.taken:
            i += 1
            found = f"{base}_{i}"
        self.taken.add(found)
        return found


_SYMPY = {"Add": "add", "Mul": "mul", "Pow": "pow", "FloorDiv": "floordiv", "CleanDiv": "floordiv", "PythonMod": "mod", "Mod": "mod"}


def _is_ref(value: Any) -> bool:
    return isinstance(value, dict) and "$ref" in value


def _known(node: torch.fx.Node) -> Any:
    for key in ("val", "example_value"):
        if key in node.meta:
            return node.meta[key]
    return None


def _traced_by_aot(gm: torch.fx.GraphModule) -> bool:
    # make_fx notes values under "val", Dynamo under "example_value".
    places = [n for n in gm.graph.nodes if n.op == "placeholder"]
    return any("val" in n.meta for n in places) and not any("example_value" in n.meta for n in places)


def _source(node: torch.fx.Node) -> str | None:
    """How Dynamo reached an input (`L['self']._modules['fc']._parameters['weight']`), where it still says so."""
    source = getattr(node.meta.get("grapharg"), "source", None) or getattr(node, "_dynamo_source", None)
    name = getattr(source, "name", None)  # a property now, a method before 2.10
    found = name() if callable(name) else name
    return found if isinstance(found, str) else None


def _held_by_module(node: torch.fx.Node, data: Any) -> bool:
    if isinstance(data, torch.nn.Parameter):
        return True
    return bool(re.search(r"\._(parameters|buffers)\[[^\]]*\]$", _source(node) or ""))


def _is_wrapped_number(node: torch.fx.Node, known: Any) -> bool:
    wrapped = getattr(node.meta.get("grapharg"), "pass_arg_as_tensor", False)
    return bool(wrapped) and isinstance(known, torch.Tensor) and known.dim() == 0 and all(_reads_number(user) for user in node.users)


def _reads_number(user: torch.fx.Node) -> bool:
    return user.op == "call_method" and user.target == "item"


def _short_name(source: str) -> str:
    """`weight` of `L['self']._modules['fc']._parameters['weight']` or of `fc.weight`; `fc_weight` in the latter."""
    if "[" not in source:
        return source.replace(".", "_")
    parts = re.findall(r"\['([^']*)'\]|\.([A-Za-z]\w*)", source)
    words = [a or b for a, b in parts]
    named = [w for w in words[1:] if w and not w.isdigit()]
    return "_".join(named[-2:]) or "constant"


class _Everything(torch.fx.Tracer):
    def is_leaf_module(self, m: torch.nn.Module, module_qualified_name: str) -> bool:
        return False


def _traced(module: torch.nn.Module) -> torch.fx.GraphModule:
    try:
        graph = _Everything().trace(module)
    except Exception as error:
        raise Unreadable(f"a call of {type(module).__name__}, which torch.fx cannot trace: {error}") from error
    return torch.fx.GraphModule(module, graph)
