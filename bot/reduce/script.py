"""Prints a program as the script that is searched, proven and posted: one text for all three."""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from bot.reduce.expressions import arguments, function_class, in_place, operation, quoted, spelled, text
from bot.reduce.graph import Arg, Graph, Input, Mapping, Meta, Node, Program, Recipe, Ref, refs
from bot.reduce.naming import bind_symbols, canonical, is_legal
from bot.reduce.tensors import embed_blobs, make

__all__ = ["bind_symbols", "canonical", "embed_blobs", "lines", "render"]

_RANDOM = re.compile(
    r"(native_|alpha_|feature_|feature_alpha_)?dropout[123]?d?_?|rand(n|int|perm)?(_like)?|bernoulli_?|normal_?|uniform_|exponential_|cauchy_"
    r"|geometric_|log_normal_|multinomial|poisson|random_|rrelu_?|gumbel_softmax|inductor_(random|randint|seeds?)|fractional_max_pool[23]d"
)

# Operations that are there for what they do, not for what they return.
_ACTS = ("_assert", "_check", "sym_constrain", "_set_", "_exit_", "manual_seed")

_QUOTES = ("'", '"')

# Modules that a script has to import before it may say their names.
_IMPORTS = (
    (r"\boperator\.", "import operator"),
    (r"\bmath\.", "import math"),
    (r"\bcopy\.", "import copy"),
    (r"\bbase64\.", "import base64"),
    (r"\bzlib\.", "import zlib"),
    (r"\bnumpy\.", "import numpy"),
    (r"\btorch\.ops\.prims\.inductor_|\btorch\.ops\.prims\.(_low_memory|prepare_softmax)", "import torch._inductor.inductor_prims"),
    (r"\btorch\.ops\.quantized_decomposed\.", "import torch.ao.quantization.fx._decomposed"),
    (r"\btorch\.ops\.torchvision\.", "import torchvision"),
    (r"\btorch\.nn\.attention\.flex_attention\b|higher_order\.flex_attention", "import torch.nn.attention.flex_attention"),
    (r"\btorch\._inductor\.custom_graph_pass\b", "import torch._inductor.custom_graph_pass"),
    (r"\btorch\._functorch\.config\.", "import torch._functorch.config"),
)


def render(program: Program, *, header: Sequence[str] = ()) -> str:
    """The script. `header` lines become comments at its top. Equal programs under canonical names have equal text."""
    graph = program.graph if is_legal(program.graph) else canonical(program.graph)
    recipe = program.recipe
    if recipe.accuracy and not recipe.strict:
        graph = replace(graph, output=_comparable(graph.output, graph.metas()))
    random = any(_is_random(node) for node in _all_nodes(graph))
    config = list(recipe.config)
    if recipe.accuracy and random and all(name != "torch._inductor.config.fallback_random" for name, _ in config):
        config.append(("torch._inductor.config.fallback_random", "True"))
    settings = [*(f"{name} = {value}" for name, value in config), *recipe.setup]
    dtype_default = _default_dtype(recipe)
    call = _Call(graph, recipe, random)
    first: list[str] = []
    if recipe.seed is not None and (recipe.accuracy or random or any(_draws(item) for item in _all_values(graph))):
        first.append(f"torch.manual_seed({recipe.seed})")
    first += [f"{item.name} = {make(item, dtype_default=dtype_default)}" for item in graph.inputs]
    marks = _marks(graph) if recipe.pipeline == "compile" and recipe.dynamic is None else []
    future, imports, preamble = _split_preamble(program.preamble)
    blocks = [
        preamble,
        "\n".join(settings),
        *_functions(graph, dtype_default),
        _module(graph, recipe, dtype_default),
        *call.helpers(),
        "\n".join([*first, *marks, *call.lines()]),
    ]
    body = "\n".join(blocks)
    top = [f"# {line}".rstrip() for line in header] + future + _imports(body, graph, imports)
    return _joined("\n".join(top), blocks)


def lines(script: str) -> int:
    """Lines that are neither blank nor comments."""
    return sum(1 for line in script.splitlines() if line.strip() and not line.strip().startswith("#"))


def _joined(top: str, blocks: list[str]) -> str:
    found = top
    for block in blocks:
        if not block:
            continue
        apart = block.startswith(("class ", "def ", "@")) or found.rstrip().rsplit("\n", 1)[-1].startswith(" ")
        found += ("\n\n\n" if apart else "\n\n") + block
    return found + "\n"


def _split_preamble(preamble: str) -> tuple[list[str], list[str], str]:
    """Its `__future__` imports, its other imports at the top level (one line each), and the rest."""
    rows = preamble.split("\n")
    future: list[str] = []
    imports: list[str] = []
    for statement in ast.parse(preamble).body:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            alone = statement.lineno == statement.end_lineno and ";" not in rows[statement.lineno - 1]
            if alone:
                line, rows[statement.lineno - 1] = rows[statement.lineno - 1].split("#")[0].rstrip(), ""
                (future if line.startswith("from __future__ ") else imports).append(line)
    return future, imports, re.sub(r"\n{3,}", "\n\n\n", "\n".join(rows)).strip("\n")


def _imports(body: str, graph: Graph, given: Sequence[str]) -> list[str]:
    found = {line for pattern, line in _IMPORTS if re.search(pattern, body)} | set(given) - {"import torch"}
    for node in _all_nodes(graph):
        root = node.target.split(".")[0]
        if node.op == "function" and root not in ("torch", "operator", "builtins", "math", "__main__") and "." in node.target:
            parts = node.target.split(".")[:-1]
            while len(parts) > 1 and parts[-1][:1].isupper():  # a class, not a module
                parts.pop()
            found.add("import " + ".".join(parts))
    plain = sorted(line for line in found if not line.startswith(("import torch", "from torch")))
    torch_lines = ["import torch", *sorted(line for line in found if line.startswith(("import torch", "from torch")))]
    have = set(body.split("\n"))
    plain, torch_lines = ([line for line in group if line not in have] for group in (plain, torch_lines))
    return [*plain, *([""] if plain else []), *torch_lines]


def _all_nodes(graph: Graph) -> Iterator[Node]:
    yield from graph.nodes
    for _, body in graph.bodies:
        yield from _all_nodes(body)


def _all_values(graph: Graph) -> Iterator[Input]:
    yield from graph.inputs
    yield from _held(graph)


def _held(graph: Graph) -> Iterator[Input]:
    # A body's inputs are made by nobody: only its constants have values.
    yield from graph.constants
    for _, body in graph.bodies:
        yield from _held(body)


def _draws(item: Input) -> bool:
    return item.value.kind in ("randn", "rand", "randint") or (item.value.kind == "expr" and "rand" in str(item.value.args[0]))


def _word(node: Node) -> str:
    """What a node does, in a word: `relu` of `torch.ops.aten.relu.default`."""
    parts = node.target.split(".")
    return parts[3] if node.target.startswith("torch.ops.") and len(parts) > 3 else parts[-1]


def _is_random(node: Node) -> bool:
    return _RANDOM.fullmatch(_word(node)) is not None


def _default_dtype(recipe: Recipe) -> str | None:
    for line in recipe.setup:
        found = re.search(r"set_default_dtype\(torch\.(\w+)\)", line)
        if found:
            return found.group(1)
    return None if any("set_default_tensor_type" in line for line in recipe.setup) else "float32"


# -- the module ---------------------------------------------------------------------------------------------------


def _module(graph: Graph, recipe: Recipe, dtype_default: str | None) -> str:
    found = ["class Repro(torch.nn.Module):"]
    names = {item.name: f"self.{item.name}" for item in graph.constants}
    if graph.constants:
        found += ["    def __init__(self):", "        super().__init__()"]
        for item in graph.constants:
            made = make(item if not item.parameter else replace(item, requires_grad=False), dtype_default=dtype_default)
            if item.parameter:
                frozen = "" if item.requires_grad else ", requires_grad=False"
                found.append(f"        self.{item.name} = torch.nn.Parameter({made}{frozen})")
            elif recipe.pipeline in ("export", "aoti"):
                found.append(f"        self.register_buffer({quoted(item.name)}, {made})")
            else:
                found.append(f"        self.{item.name} = {made}")
        found.append("")
    inputs = _in_call_order(graph.inputs)
    found.append(f"    def forward({', '.join(['self', *(item.name for item in inputs)])}):")
    found += [f"        {line}" for line in _statements(graph, names)]
    return "\n".join(found)


def _functions(graph: Graph, dtype_default: str | None) -> Iterator[str]:
    """The bodies of higher-order operations, inner ones first, with the tensors they hold."""
    regions = {n.args[0].name for n in graph.nodes if n.target.endswith(".invoke_subgraph") and n.args and isinstance(n.args[0], Ref)}
    for name, body in graph.bodies:
        yield from _functions(body, dtype_default)
        # Module-level names: two bodies may hold tensors of one name.
        names = {item.name: f"{name}_{item.name}" for item in body.constants}
        held = [f"{names[item.name]} = {make(item, dtype_default=dtype_default)}" for item in body.constants]
        if held:
            yield "\n".join(held)
        own = [f"    {line}" for line in _statements(body, names)]
        marks = ["@torch.compiler.nested_compile_region"] if name in regions else []
        yield "\n".join([*marks, f"def {name}({', '.join(item.name for item in body.inputs)}):", *own])
    for node in graph.nodes:
        if node.target == "torch.ops.higher_order.autograd_function_apply" and all(isinstance(arg, Ref) for arg in node.args[:2]):
            yield _autograd_function(*(text(arg, {}) for arg in node.args[:2]))


def _autograd_function(forward: str, backward: str) -> str:
    return f"""class {function_class(forward)}(torch.autograd.Function):
    @staticmethod
    def forward(ctx, *args):
        out, saved = {forward}(*args)
        ctx.save_for_backward(*saved)
        return out

    @staticmethod
    def backward(ctx, *grads):
        return {backward}(*grads, *ctx.saved_tensors)"""


def _in_call_order(inputs: tuple[Input, ...]) -> list[Input]:
    return [item for item in inputs if item.keyword is None] + [item for item in inputs if item.keyword is not None]


def _statements(graph: Graph, names: dict[str, str]) -> list[str]:
    names = dict(names)
    metas = graph.metas()
    uses: dict[str, int] = {}
    for node in graph.nodes:
        for used in node.uses():
            uses[used] = uses.get(used, 0) + 1
    for used in refs(graph.output):
        uses[used] = uses.get(used, 0) + 1
    regions = _Regions(graph.nodes)
    found: list[str] = []

    def put(line: str) -> None:
        found.append("    " * regions.depth + line)

    for i, node in enumerate(graph.nodes):
        if regions.handles(i):
            found.extend(regions.at(i))
            continue
        first = node.args[0] if node.args else None
        owner = metas.get(first.name, Meta()) if isinstance(first, Ref) else Meta()
        statement = in_place(node, owner.kind == "tensor", names)
        if statement is not None:
            put(statement)
            # `x += y` is x; the other statements have no value
            same = isinstance(first, Ref) and node.target.startswith("operator.i")
            names[node.name] = text(first, names) if same else "None"
            continue
        region = _called_under(node)
        if region is not None:
            context, call = region
            put(f"with {context}:")
            put(f"    {node.name} = {spelled(text(call[0], names))}({arguments(call[1:], (), names)})")
            continue
        shown = operation(node, names)
        last = i == len(graph.nodes) - 1
        if last and graph.output == Ref(node.name) and uses.get(node.name) == 1:
            put(f"return {shown}")
            return _filled(found)
        put(shown if not uses.get(node.name) and _only_acts(node) else f"{node.name} = {shown}")
    regions.depth = regions.open_depth()
    put(f"return {_returned(graph.output, names)}")
    return _filled(found)


def _returned(output: Arg, names: dict[str, str]) -> str:
    if isinstance(output, tuple) and len(output) > 1:
        return ", ".join(text(item, names) for item in output)
    return text(output, names)


def _filled(found: list[str]) -> list[str]:
    # A `with` whose operations were all removed is left out.
    kept: list[str] = []
    for line in reversed(found):
        depth = len(line) - len(line.lstrip())
        if line.lstrip().startswith("with ") and (not kept or len(kept[-1]) - len(kept[-1].lstrip()) <= depth):
            continue
        kept.append(line)
    return list(reversed(kept))


def _only_acts(node: Node) -> bool:
    name = _word(node)
    return (name.endswith("_") and not name.endswith("__")) or name.startswith(_ACTS)


def _called_under(node: Node) -> tuple[str, tuple[Arg, ...]] | None:
    """Export's calls of a body under a grad mode or autocast: the context, and the body with its arguments."""
    name = node.target.removeprefix("torch.ops.higher_order.")
    if name == "wrap_with_set_grad_enabled" and len(node.args) >= 2 and isinstance(node.args[0], bool):
        return _grad_mode(node.args[0]), node.args[1:]
    if name == "wrap_with_autocast" and len(node.args) >= 5:
        return _autocast(node.args[:4]), node.args[4:]
    return None


def _grad_mode(on: bool) -> str:
    return "torch.enable_grad()" if on else "torch.no_grad()"


def _autocast(args: tuple[Arg, ...]) -> str:
    device, dtype, enabled, cache = (*args, None, None, None, None)[:4]
    shown = [text(device, {})]
    shown += [f"dtype={text(dtype, {})}"] if dtype is not None else []
    shown += [f"enabled={text(enabled, {})}"] if enabled not in (True, None) else []
    shown += [f"cache_enabled={text(cache, {})}"] if cache is not None else []
    return f"torch.autocast({', '.join(shown)})"


_ENTER_AUTOCAST = "torch.amp.autocast_mode._enter_autocast"
_EXIT_AUTOCAST = "torch.amp.autocast_mode._exit_autocast"
_ENTER_INFERENCE = "torch.autograd.grad_mode._enter_inference_mode"
_EXIT_INFERENCE = "torch.autograd.grad_mode._exit_inference_mode"
_GRAD = ("torch._C._set_grad_enabled", "torch.set_grad_enabled")


class _Regions:
    """Turns the calls by which Dynamo records contexts into `with` blocks, where they nest."""

    def __init__(self, nodes: tuple[Node, ...]) -> None:
        self.depth = 0
        self._events: dict[int, list[tuple[int, str | None]]] = {}  # at a node: depth after it, and the block it opens
        self._last = 0
        stack: list[tuple[str, bool]] = []  # name of the entering call ("" for a grad mode), and the grad mode outside
        mode, nests = True, True
        for i, node in enumerate(nodes):
            if node.target in (_ENTER_AUTOCAST, _ENTER_INFERENCE):
                on = node.args[0] if node.args else True
                inference = f"torch.inference_mode({'' if on is True else text(on, {})})"
                context = _autocast(node.args) if node.target == _ENTER_AUTOCAST else inference
                self._events[i] = [(len(stack), context)]
                stack.append((node.name, mode))
            elif node.target in (_EXIT_AUTOCAST, _EXIT_INFERENCE):
                entered = node.args[0].name if node.args and isinstance(node.args[0], Ref) else ""
                if stack and stack[-1][0] == entered:
                    stack.pop()
                elif any(name == entered for name, _ in stack):
                    nests = False
                self._events[i] = [(len(stack), None)]
            elif node.target in _GRAD and node.op == "function" and node.args and isinstance(node.args[0], bool):
                wanted = node.args[0]
                if stack and stack[-1][0] == "" and stack[-1][1] == wanted:
                    mode = stack.pop()[1]
                    self._events[i] = [(len(stack), None)]
                else:
                    self._events[i] = [(len(stack), _grad_mode(wanted))]
                    stack.append(("", mode))
                    mode = wanted
        self._last = len(stack)
        if not nests:
            self._events, self._last = {}, 0

    def handles(self, i: int) -> bool:
        return i in self._events

    def at(self, i: int) -> Iterator[str]:
        for depth, context in self._events[i]:
            if context is not None:
                yield "    " * depth + f"with {context}:"
            self.depth = depth + (context is not None)

    def open_depth(self) -> int:
        # What is returned is computed: a block that is still open need not hold it.
        return 0


# -- the call -----------------------------------------------------------------------------------------------------


def _comparable(output: Arg, metas: dict[str, Meta]) -> Arg:
    """The outputs that are compared: None is equal to nothing for `assert_close`, and a number may come back as a tensor."""

    def counts(item: Arg) -> bool:
        if isinstance(item, Ref):
            return metas.get(item.name, Meta()).kind not in ("int", "float", "bool")
        return item is not None and not isinstance(item, (int, float))

    if isinstance(output, (tuple, list)):
        kept = [_comparable(item, metas) for item in output if counts(item)]
        return tuple(kept) if isinstance(output, tuple) else kept
    if isinstance(output, Mapping):
        return Mapping(tuple((key, _comparable(item, metas)) for key, item in output.items if counts(item)))
    return output


def _marks(graph: Graph) -> list[str]:
    found = []
    for item in graph.inputs:
        if item.meta.kind == "tensor":
            found += [f"torch._dynamo.mark_dynamic({item.name}, {dim})" for dim in item.meta.dynamic]
    return found


class _Call:
    """The last lines of the script: compile, call, differentiate, compare."""

    def __init__(self, graph: Graph, recipe: Recipe, random: bool) -> None:
        self.graph = graph
        self.recipe = recipe
        self.inputs = _in_call_order(graph.inputs)
        self.metas = graph.metas()
        self.reseeds = recipe.accuracy and random
        self.copies = recipe.accuracy and recipe.freshness and bool(graph.constants)
        self.wrt = [item.name for item in self.inputs if item.requires_grad] + [
            f"model.{item.name}" for item in graph.constants if item.requires_grad
        ]

    def helpers(self) -> list[str]:
        if not (self.recipe.accuracy and self.recipe.backward and self.wrt and self.recipe.pipeline == "compile"):
            return []
        seed = [f"    torch.manual_seed({self.recipe.seed or 0})"] if self.reseeds else []
        wrt = ", ".join(name.replace("model.", "module.") for name in self.wrt)
        wrt = f"({wrt},)" if len(self.wrt) == 1 else f"({wrt})"
        # The compiled module forwards its attributes, so its parameters are the module's own.
        body = [
            "def run(module):",
            *seed,
            f"    out = module({self._arguments()})",
            f"    return out, torch.autograd.grad({self._loss()}, {wrt}, materialize_grads=True)",
        ]
        return ["\n".join(body)]

    def lines(self) -> list[str]:
        own = {"compile": self._compile, "aoti": self._aoti, "export": self._export}.get(self.recipe.pipeline)
        if own is None:
            raise ValueError(f"no such pipeline: {self.recipe.pipeline}")
        found = own()
        if not self.recipe.contexts:
            return found
        outside = [line for line in found if line.startswith("model = ")]
        inside = [f"    {line}" for line in found if line not in outside]
        return [*outside, f"with {', '.join(self.recipe.contexts)}:", *inside]

    def _compile(self) -> list[str]:
        recipe = self.recipe
        if not recipe.accuracy:
            call = f"{self._compiled('Repro()')}({self._arguments()})"
            if not recipe.backward:
                return [call]
            return [f"out = {call}", f"{self._loss()}.backward()"]
        model = "copy.deepcopy(model)" if self.copies else "model"
        if self.helpers():
            expected, actual = [f"expected = run({model})"], [f"actual = run({self._compiled(model)})"]
        else:
            seed = [f"torch.manual_seed({recipe.seed or 0})"] if self.reseeds else []
            expected = [*seed, f"expected = {model}({self._arguments()})"]
            actual = [*seed, f"actual = {self._compiled(model)}({self._arguments()})"]
        return ["model = Repro()", *expected, *actual, self._compared()]

    def _aoti(self) -> list[str]:
        recipe = self.recipe
        model = "model" if recipe.accuracy else "Repro()"
        seed = [f"torch.manual_seed({recipe.seed or 0})"] if self.reseeds else []
        given = "copy.deepcopy(model)" if self.copies else model
        found = [f"ep = {self._exported(given)}"]
        options = f", inductor_configs={_options(recipe.options)}" if recipe.options else ""
        found.append(f"path = torch._inductor.aoti_compile_and_package(ep{options})")
        call = f"torch._inductor.aoti_load_package(path)({self._arguments()})"
        if not recipe.accuracy:
            return [*found, call]
        expected = [*seed, f"expected = {given}({self._arguments()})"]
        return ["model = Repro()", *expected, *found, *seed, f"actual = {call}", self._compared()]

    def _export(self) -> list[str]:
        if not self.recipe.accuracy:
            return [self._exported("Repro()")]
        seed = [f"torch.manual_seed({self.recipe.seed or 0})"] if self.reseeds else []
        given = "copy.deepcopy(model)" if self.copies else "model"
        return [
            "model = Repro()",
            *seed,
            f"expected = {given}({self._arguments()})",
            f"ep = {self._exported(given)}",
            *seed,
            f"actual = ep.module()({self._arguments()})",
            self._compared(),
        ]

    def _compiled(self, model: str) -> str:
        recipe = self.recipe
        parts = [model]
        if recipe.backend is not None:
            parts.append(f"backend={recipe.backend}")
        if recipe.mode is not None:
            parts.append(f"mode={recipe.mode if recipe.mode[:1] in _QUOTES else quoted(recipe.mode)}")
        if recipe.options:
            parts.append(f"options={_options(recipe.options)}")
        if recipe.dynamic is not None:
            parts.append(f"dynamic={recipe.dynamic}")
        if recipe.fullgraph:
            parts.append("fullgraph=True")
        return f"torch.compile({', '.join(parts)})"

    def _exported(self, model: str) -> str:
        positional = [item.name for item in self.inputs if item.keyword is None]
        args = f"({positional[0]},)" if len(positional) == 1 else f"({', '.join(positional)})"
        parts = [model, args]
        named = [(item.keyword, item.name) for item in self.inputs if item.keyword is not None]
        if named:
            parts.append("kwargs={" + ", ".join(f"{quoted(str(key))}: {name}" for key, name in named) + "}")
        given = dict(self.recipe.export_kwargs)
        dynamic = [item for item in self.inputs if item.meta.dynamic and item.meta.kind == "tensor"]
        if dynamic and "dynamic_shapes" not in given:
            given["dynamic_shapes"] = "{" + ", ".join(f"{quoted(item.name)}: {_dims(item.meta)}" for item in self.inputs) + "}"
        return f"torch.export.export({', '.join([*parts, *(f'{key}={value}' for key, value in given.items())])})"

    def _arguments(self) -> str:
        shown = []
        for item in self.inputs:
            name = f"{item.name}.clone()" if self.recipe.freshness and item.meta.kind == "tensor" else item.name
            word = item.keyword
            shown.append(name if word is None else f"{word}={name}" if not keyword.iskeyword(word) else f"**{{{quoted(word)}: {name}}}")
        return ", ".join(shown)

    def _loss(self) -> str:
        output = self.graph.output
        if isinstance(output, Ref):
            return self._summed("out", self.metas.get(output.name, Meta()))
        if isinstance(output, (tuple, list)) and all(isinstance(item, Ref) for item in output):
            metas = [self.metas.get(item.name, Meta()) for item in output if isinstance(item, Ref)]
            if len(metas) == 1:
                return self._summed("out[0]", metas[0])
            if all(meta.kind == "tensor" and not meta.dtype.startswith("complex") for meta in metas):
                return "sum(o.sum() for o in out if o.requires_grad)"
        return "sum(o.abs().sum() for o in torch.utils._pytree.tree_leaves(out) if isinstance(o, torch.Tensor) and o.requires_grad)"

    def _summed(self, name: str, meta: Meta) -> str:
        if meta.dtype.startswith("complex"):
            return f"{name}.abs().sum()"
        return name if meta.kind == "tensor" and meta.shape == () else f"{name}.sum()"

    def _compared(self) -> str:
        rule = (1e-3, 1e-3) if self.recipe.tolerance is None else self.recipe.tolerance
        given = "".join(f"{name}={_scientific(value)}, " for name, value in zip(("rtol", "atol"), rule))  # noqa: B905 - both or neither
        return f"torch.testing.assert_close(actual, expected, {given}equal_nan=True)"


def _dims(meta: Meta) -> str:
    if not meta.dynamic:
        return "None"
    return "{" + ", ".join(f"{dim}: torch.export.Dim.DYNAMIC" for dim in meta.dynamic) + "}"


def _options(options: tuple[tuple[str, str], ...]) -> str:
    return "{" + ", ".join(f"{quoted(key)}: {value}" for key, value in options) + "}"


def _scientific(value: float) -> str:
    mantissa, exponent = f"{value:.15e}".split("e")
    short = mantissa.rstrip("0").rstrip(".")
    return f"{short}e{int(exponent)}" if abs(int(exponent)) > 2 else repr(value)
