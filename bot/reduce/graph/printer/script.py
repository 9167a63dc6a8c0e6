"""Prints a program as the script that is searched, verified and posted: one text for all three."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from bot.reduce.graph.form import Arg, Graph, Input, Mapping, Meta, Node, Pipeline, Program, Recipe, Ref, is_launch, refs
from bot.reduce.graph.naming import canonical, is_legal
from bot.reduce.graph.printer.call import Call, in_call_order
from bot.reduce.graph.printer.contexts import Regions, called_under
from bot.reduce.graph.printer.expressions import arguments, combined, function_class, in_place, operation, quoted, scanned, spelled, text
from bot.reduce.graph.printer.tensors import make

_RANDOM = re.compile(
    r"(native_|alpha_|feature_|feature_alpha_)?dropout[123]?d?_?|rand(n|int|perm)?(_like)?|bernoulli_?|normal_?|uniform_|exponential_|cauchy_"
    r"|geometric_|log_normal_|multinomial|poisson|random_|rrelu_?|gumbel_softmax|inductor_(random|randint|seeds?)|fractional_max_pool[23]d"
)

# Operations that are kept for their side effects, not for their results.
_ACTS = ("_assert", "_check", "sym_constrain", "_set_", "_exit_", "manual_seed", "triton_kernel_wrapper_mutation")

# Modules that a script has to import before it can use their names.
_IMPORTS = (
    (r"\boperator\.", "import operator"),
    (r"\bmath\.", "import math"),
    (r"\bcopy\.", "import copy"),
    (r"\bbase64\.", "import base64"),
    (r"\bzlib\.", "import zlib"),
    (r"\bnumpy\.", "import numpy"),
    # operators that torch registers only when it compiles
    (r"\btorch\.ops\.prims\.(inductor_|_low_memory|_unsafe_index_put_|fma\b|prepare_softmax)", "import torch._inductor.inductor_prims"),
    (r"\btorch\.ops\._inductor_test\.", "import torch._inductor.test_operators"),
    (r"\btorch\.ops\.streams\.", "import torch._dynamo.variables.streams"),
    (r"\btorch\.ops\.mempool\.", "import torch._dynamo.variables.memory"),
    (r"\btorch\.ops\.flex_lib\.", "import torch._dynamo._trace_wrapped_higher_order_op"),
    (r"\btorch\.ops\.c10d_functional\.", "import torch.distributed._functional_collectives"),
    (r"\btorch\.ops\.symm_mem\.", "import torch.distributed._symmetric_memory"),
    (r"\btorch\.ops\.fsdp\.", "import torch.distributed.fsdp"),
    (r"\btorch\.ops\.quantized_decomposed\.", "import torch.ao.quantization.fx._decomposed"),
    (r"\btorch\.ops\.torchvision\.", "import torchvision"),
    (r"\btorch\.nn\.attention\.flex_attention\b|higher_order\.flex_attention", "import torch.nn.attention.flex_attention"),
    (r"\btorch\._inductor\.custom_graph_pass\b", "import torch._inductor.custom_graph_pass"),
    (r"\btorch\._functorch\.config\.", "import torch._functorch.config"),
)


def render(program: Program) -> str:
    """The script for `program`. Equal programs under canonical names have equal text."""
    graph = program.graph if is_legal(program.graph) else canonical(program.graph)
    recipe = program.recipe
    if recipe.accuracy and not recipe.strict:
        graph = replace(graph, output=_comparable(graph.output, graph.metas()))
    random = any(_RANDOM.fullmatch(_word(node)) for node in graph.all_nodes())
    config = list(recipe.config)
    if recipe.accuracy and random and all(name != "torch._inductor.config.fallback_random" for name, _ in config):
        config.append(("torch._inductor.config.fallback_random", "True"))
    settings = [*(f"{name} = {value}" for name, value in config), *recipe.setup]
    dtype_default = _default_dtype(recipe)
    call = Call(graph, recipe, random)
    first: list[str] = []
    if recipe.seed is not None and (recipe.accuracy or random or any(map(_draws, (*graph.inputs, *_held(graph))))):
        first.append(f"torch.manual_seed({recipe.seed})")
    first += [f"{item.name} = {make(item, dtype_default=dtype_default)}" for item in graph.inputs]
    marks = _marks(graph) if recipe.pipeline is Pipeline.COMPILE and recipe.dynamic is None else []
    future, imports, preamble = _split_preamble(program.preamble)
    blocks = [
        preamble,
        "\n".join(settings),
        *_functions(graph, recipe, dtype_default),
        _module(graph, recipe, dtype_default),
        *call.helpers(),
        "\n".join([*first, *_reason(program, graph), *marks, *call.lines()]),
    ]
    body = "\n".join(blocks)
    return _joined("\n".join([*future, *_imports(body, graph, imports)]), blocks)


def without_call(script: str) -> str:
    """A rendered `script` without its last statement, which compiles and calls the module."""
    last = ast.parse(script).body[-1]
    return "\n".join(script.split("\n")[: last.lineno - 1]) + "\n"


def lines(script: str) -> int:
    """Number of lines of `script` that are neither blank nor comments."""
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
    """The `__future__` imports, the other top-level imports (one line each), and the rest."""
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
    for node in graph.all_nodes():
        target = text(node.args[0], {}) if is_launch(node) else node.target
        root = target.split(".")[0]
        if node.op == "function" and root not in ("torch", "operator", "builtins", "math", "__main__") and "." in target:
            parts = target.split(".")[:-1]
            while len(parts) > 1 and parts[-1][:1].isupper():  # a class, not a module
                parts.pop()
            found.add("import " + ".".join(parts))
    plain = sorted(line for line in found if not line.startswith(("import torch", "from torch")))
    torch_lines = ["import torch", *sorted(line for line in found if line.startswith(("import torch", "from torch")))]
    have = set(body.split("\n"))
    plain, torch_lines = ([line for line in group if line not in have] for group in (plain, torch_lines))
    return [*plain, *([""] if plain else []), *torch_lines]


def _held(graph: Graph) -> Iterator[Input]:
    # The inputs of a body are not created by the script: only its constants have values.
    yield from graph.constants
    for _, body in graph.bodies:
        yield from _held(body)


def _draws(item: Input) -> bool:
    return item.value.kind in ("randn", "rand", "randint") or (item.value.kind == "expr" and "rand" in str(item.value.args[0]))


def _word(node: Node) -> str:
    """The name of a node's operation: `relu` for `torch.ops.aten.relu.default`."""
    parts = node.target.split(".")
    return parts[3] if node.target.startswith("torch.ops.") and len(parts) > 3 else parts[-1]


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
            elif recipe.pipeline is Pipeline.AOTI or recipe.against_float64:
                found.append(f"        self.register_buffer({quoted(item.name)}, {made})")
            else:
                found.append(f"        self.{item.name} = {made}")
        found.append("")
    inputs = in_call_order(graph.inputs)
    found.append(f"    def forward({', '.join(['self', *(item.name for item in inputs)])}):")
    found += [f"        {line}" for line in _statements(graph, recipe, names)]
    return "\n".join(found)


def _functions(graph: Graph, recipe: Recipe, dtype_default: str | None) -> Iterator[str]:
    """The bodies of higher-order operations, inner ones first, with the tensors they own."""
    regions = {n.args[0].name for n in graph.nodes if n.target.endswith(".invoke_subgraph") and n.args and isinstance(n.args[0], Ref)}
    scans = {text(n.args[0], {}): shape for n in graph.nodes if (shape := scanned(n)) is not None}
    combines = {text(n.args[0], {}): count for n in graph.nodes if (count := combined(n)) is not None}
    for name, body in graph.bodies:
        yield from _functions(body, recipe, dtype_default)
        # Module-level names: two bodies may own tensors with the same name.
        names = {item.name: f"{name}_{item.name}" for item in body.constants}
        held = [f"{names[item.name]} = {make(item, dtype_default=dtype_default)}" for item in body.constants]
        if held:
            yield "\n".join(held)
        parameters = [item.name for item in body.inputs]
        first: list[str] = []
        if name in scans:
            carried, over = scans[name]
            flat = _flat(body.output)
            parameters, first = _of_two(parameters, ("carry", "xs"), (carried, over))
            body = replace(body, output=(flat[:carried], flat[carried:]))
        elif name in combines:
            parameters, first = _of_two(parameters, ("left", "right"), (combines[name], combines[name]))
            body = replace(body, output=_flat(body.output))
        own = [f"    {line}" for line in (*first, *_statements(body, recipe, names))]
        marks = ["@torch.compiler.nested_compile_region"] if name in regions else []
        yield "\n".join([*marks, f"def {name}({', '.join(parameters)}):", *own])
    for node in graph.nodes:
        if node.target == "torch.ops.higher_order.autograd_function_apply" and all(isinstance(arg, Ref) for arg in node.args[:2]):
            yield _autograd_function(*(text(arg, {}) for arg in node.args[:2]))


def _flat(output: Arg) -> list[Arg]:
    return list(output) if isinstance(output, (list, tuple)) else [output]


def _of_two(names: list[str], words: tuple[str, str], counts: tuple[int, int]) -> tuple[list[str], list[str]]:
    """Parameters of a body whose first values come as two lists, as the public function calls it, and statements
    that unpack these lists."""
    middle, end = counts[0], sum(counts)
    taken = [f"[{', '.join(part)}] = {whole}" for part, whole in zip((names[:middle], names[middle:end]), words, strict=True)]
    return [*words, *names[end:]], taken


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


def _statements(graph: Graph, recipe: Recipe, names: dict[str, str]) -> list[str]:
    names = dict(names)
    metas = graph.metas()
    uses = Counter([*(used for node in graph.nodes for used in node.uses()), *refs(graph.output)])
    regions = Regions(graph.nodes)
    found: list[str] = []

    def put(line: str) -> None:
        found.append("    " * regions.depth + line)

    for i, node in enumerate(graph.nodes):
        if regions.handles(i):
            found.extend(regions.at(i))
            continue
        first = node.args[0] if node.args else None
        owner = metas.get(first.name, Meta()) if isinstance(first, Ref) else Meta()
        statement = in_place(node, owner.is_tensor, names)
        if statement is not None:
            put(statement)
            # `x += y` evaluates to x; the other statements have no value
            same = isinstance(first, Ref) and node.target.startswith("operator.i")
            names[node.name] = text(first, names) if same else "None"
            continue
        region = called_under(node)
        if region is not None:
            context, call = region
            put(f"with {context}:")
            put(f"    {node.name} = {spelled(text(call[0], names))}({arguments(call[1:], (), names)})")
            continue
        shown = operation(node, names)
        if is_launch(node) and recipe.launch_when_compiled:
            guarded = i > 0 and is_launch(graph.nodes[i - 1]) and not regions.handles(i - 1)
            if not guarded:
                put("if torch.compiler.is_compiling():")
            put(f"    {shown}")
            names[node.name] = "None"
            continue
        last = i == len(graph.nodes) - 1
        if last and graph.output == Ref(node.name) and uses[node.name] == 1:
            put(f"return {shown}")
            return _finished(found, recipe)
        put(shown if not uses[node.name] and _only_acts(node) else f"{node.name} = {shown}")
    # The return value is computed already, so it can stay outside a block that is still open.
    found.append(f"return {_returned(graph.output, names)}")
    return _finished(found, recipe)


def _finished(found: list[str], recipe: Recipe) -> list[str]:
    return _freed(_filled(found)) if recipe.frees else _filled(found)


def _returned(output: Arg, names: dict[str, str]) -> str:
    if isinstance(output, tuple) and len(output) > 1:
        return ", ".join(text(item, names) for item in output)
    return text(output, names)


def _filled(found: list[str]) -> list[str]:
    # Drop a `with` whose operations were all removed.
    kept: list[str] = []
    for line in reversed(found):
        depth = len(line) - len(line.lstrip())
        if line.lstrip().startswith("with ") and (not kept or len(kept[-1]) - len(kept[-1].lstrip()) <= depth):
            continue
        kept.append(line)
    return list(reversed(kept))


def _freed(found: list[str]) -> list[str]:
    """The statements, with each value deleted after the last one that uses it."""
    bound = {match[1] for line in found if (match := re.match(r" *(\w+) = ", line))}
    last = {word: number for number, line in enumerate(found) for word in re.findall(r"\w+", line) if word in bound}
    kept: list[str] = []
    for number, line in enumerate(found):
        kept.append(line)
        dead = [word for word, at in last.items() if at == number]
        if dead and number < len(found) - 1:
            kept.append(f"{' ' * (len(line) - len(line.lstrip()))}del {', '.join(dead)}")
    return kept


def _only_acts(node: Node) -> bool:
    name = _word(node)
    return bool(node.writes) or (name.endswith("_") and not name.endswith("__")) or name.startswith(_ACTS)


def _comparable(output: Arg, metas: dict[str, Meta]) -> Arg:
    """The outputs that are compared: `assert_close` rejects None, and a number may come back as a tensor."""

    def counts(item: Arg) -> bool:
        if isinstance(item, Ref):
            return not metas.get(item.name, Meta()).is_number
        return item is not None and not isinstance(item, (int, float))

    if isinstance(output, (tuple, list)):
        kept = [_comparable(item, metas) for item in output if counts(item)]
        return tuple(kept) if isinstance(output, tuple) else kept
    if isinstance(output, Mapping):
        return Mapping(tuple((key, _comparable(item, metas)) for key, item in output.items if counts(item)))
    return output


def _reason(program: Program, graph: Graph) -> list[str]:
    """The comment on why the script has dynamic sizes, if that was found out."""
    if program.static_passes != program.preamble:
        return []
    sizes = [f"{item.name}.size({dim})" for item in graph.inputs if item.meta.is_tensor for dim in item.meta.dynamic]
    needed = "dynamic=True is needed" if program.recipe.dynamic else f"{' and '.join(sizes)} must be dynamic"
    return [f"# {needed}: with static sizes this passes"]


def _marks(graph: Graph) -> list[str]:
    tensors = (item for item in graph.inputs if item.meta.is_tensor)
    return [f"torch._dynamo.mark_dynamic({item.name}, {dim})" for item in tensors for dim in item.meta.dynamic]
