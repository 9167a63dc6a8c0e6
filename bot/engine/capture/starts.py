"""From a captured region to the scripts to start from: each a whole program, best form first.

The oracle decides which of them fails as the original did; this module only writes them.
"""

from __future__ import annotations

import ast
import os
import stat
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bot.engine.capture.region import Object, Region
from bot.failure.device_errors import is_asynchronous, is_out_of_memory
from bot.models.failure import Kind, Signature, Stage
from bot.reduce.graph.codec import graph_from_json
from bot.reduce.graph.form import EAGER_ALONE, Code, Graph, Node, Pipeline, Program, Recipe, Ref, Value, is_launch, kernels, refs
from bot.reduce.graph.inline import flattened, on_one_stream
from bot.reduce.graph.keep import Policy, keep_only
from bot.reduce.graph.naming import bind_symbols, canonical
from bot.reduce.graph.oracle import GraphOracle
from bot.reduce.graph.passes import dtypes
from bot.reduce.graph.passes.outputs import without_dead
from bot.reduce.graph.printer.script import render
from bot.reduce.graph.rewrite import map_inputs
from bot.reduce.source.preamble import preambles
from bot.reduce.source.text.blocks import FUNCTIONS
from bot.reduce.source.text.names import names_of

# Operator namespaces that torch itself registers.
TORCH_NAMESPACES = frozenset(
    """aten prims prim inductor inductor_prims higher_order quantized quantized_decomposed mkldnn mkldnn_prepacked mkl onednn xnnpack
    c10d _c10d_functional rngprims debugprims profiler sparse fsdp""".split()  # noqa: SIM905
)
_AUGMENTED = frozenset("iadd isub imul itruediv ifloordiv imod ipow iand ior ixor ilshift irshift imatmul".split())  # noqa: SIM905
_READS = frozenset("item _local_scalar_dense tolist nonzero masked_select unique _unique2 unique_consecutive repeat_interleave".split())  # noqa: SIM905
_STAGES = {"aot": Stage.AOT, "dynamo": Stage.DYNAMO, "aoti": Stage.AOT_INDUCTOR}
# The deepest form that still fails is the smallest: a package before its parts, Inductor's graph before Dynamo's.
_ORDER = ("aoti", "aot", "dynamo")


@dataclass(frozen=True)
class Start:
    """A program to start from, and the form it is in."""

    stage: Stage
    program: Program
    names: tuple[tuple[str, str], ...] = ()  # the compiler's name of each operation, and the program's
    blamed: tuple[tuple[str, ...], ...] = ()  # see Region
    whole: Program | None = None  # the program that this one is a part of

    def named(self, nodes: Iterable[str]) -> frozenset[str]:
        """The program's names for nodes that the compiler names."""
        known = dict(self.names)
        return frozenset(known[node] for node in nodes if node in known)


def starts(
    regions: Sequence[Region],
    failure: Signature,
    source: str | None,
    failing_line: int | None,
    *,
    seed: int,
    installed: Sequence[str] = (),
) -> Iterator[Start]:
    """Programs made from the captured `regions`, in the order to try them, the smallest form first.

    `failure` is what they should show; `source` is the user's script, if there is one, and `failing_line` its line that called into torch;
    `installed` are functions of the script that torch had called when it failed. The scripts fix their random numbers with `seed`.
    """
    # of several failures at one hook point, the last one ended the program
    known = [region for region in reversed(regions) if region.hook in _ORDER and region.graph is not None]
    for region in sorted(known, key=_rank):
        assert region.graph is not None
        found = []
        for read in _of_wrong(graph_from_json(region.graph), region.wrong):
            located = _located(read, region.blobs)
            if located is None:
                break
            captured = bind_symbols(on_one_stream(located))
            graph = canonical(captured)
            names = tuple((a.name, b.name) for a, b in zip(captured.nodes, graph.nodes, strict=False))
            found += [
                Start(_STAGES[region.hook], Program(graph, variant, preamble), names, region.blamed)
                for preamble, recipe in _recipes(region, graph, source, failing_line, seed, installed)
                for variant in _variants(region.hook, region, graph, recipe, failure)
            ]
        yield from found
        if region.recipe.fullgraph and _reads_numbers(graph):
            for start in found:
                recipe = replace(start.program.recipe, fullgraph=True)
                yield replace(start, program=replace(start.program, recipe=recipe))


def _rank(region: Region) -> int:
    """The place of `region` among those to try. AOTAutograd calls an operator that writes to its arguments through another one, which
    returns copies; as Dynamo recorded it, it is called as people do."""
    assert region.graph is not None
    indirect = any("auto_functionalized" in node.target for node in graph_from_json(region.graph).all_nodes())
    return _ORDER.index(region.hook) + (len(_ORDER) if indirect else 0)


def flat(start: Start, oracle: GraphOracle) -> Iterator[Start]:
    """The program of `start`. If numbers are compared, it first comes with the bodies of its higher-order operations inlined; `oracle`
    knows which branches are taken."""
    program = start.program
    changed = flattened(program, render, oracle.shapes) if program.recipe.accuracy and program.graph.bodies else None
    if changed is not None:
        yield replace(start, program=changed, whole=start.whole or program)
    yield start


def parts(start: Start, guesses: Sequence[Collection[str]], *, upstream: bool = False) -> Iterator[Start]:
    """The operations of `start` that each of the `guesses` names, on their own, with what they read as inputs; each also in float32, since
    half precision hides small errors. With `upstream`, also the program that ends at these operations: a wrong value may come from another
    that is wrong by too little to be noticed."""
    for names in guesses:
        part = keep_only(start.program, set(names), Policy.CUT)
        for form in (part, dtypes.in_float32(part)) if part is not None else ():
            if form is not None:
                yield replace(start, program=form, whole=start.program)
    for names in guesses if upstream else ():
        known = start.program.graph.metas()
        ends = tuple(Ref(name) for name in names if name in known and known[name].is_tensor)
        if ends:
            program = without_dead(replace(start.program, graph=replace(start.program.graph, output=ends)))
            yield replace(start, program=program, whole=start.program)


def _of_wrong(graph: Graph, wrong: Sequence[int]) -> Iterator[Graph]:
    """The graph with only its wrong outputs, if it has others, and the graph as it is: its other outputs say nothing about the failure, and
    may be just as wrong in eager."""
    metas = graph.metas()
    tensors = [name for name in refs(graph.output) if metas[name].is_tensor]
    kept = list(dict.fromkeys(tensors[place] for place in wrong if place < len(tensors)))
    if kept and len(kept) < len(dict.fromkeys(tensors)):
        yield replace(graph, output=tuple(Ref(name) for name in kept))
    yield graph


def _variants(hook: str, region: Region, graph: Graph, recipe: Recipe, failure: Signature) -> Iterator[Recipe]:
    """The ways in which the call may have to be made for the failure to show, simplest first."""
    if failure.kind is Kind.ACCURACY:
        recipe = replace(recipe, accuracy=True, strict=region.rule.strict, tolerance=region.rule.tolerance, weighted=region.weighted)
        recipe = replace(recipe, repro_tolerance=_repro_tolerance(recipe))
        if recipe.tolerance is None and EAGER_ALONE in recipe.config:
            yield from _called(hook, region, graph, replace(recipe, eager_alone=True), failure)
            return
        if recipe.tolerance is None and not recipe.strict and not region.against_float64:
            yield from _called(hook, region, graph, recipe, failure)
        recipe = replace(recipe, against_float64=recipe.tolerance is None and not recipe.strict)
    if is_asynchronous(failure):
        recipe = replace(recipe, synchronize=True)
    if is_out_of_memory(failure):
        recipe = replace(recipe, frees=True)
    yield from _called(hook, region, graph, recipe, failure)
    if kernels(graph) and not failure.kind.is_wrong_result:
        # the program's own eager run passed, so it launches these kernels only when compiled
        yield from _called(hook, region, graph, replace(recipe, launch_when_compiled=True), failure)


def _called(hook: str, region: Region, graph: Graph, recipe: Recipe, failure: Signature) -> Iterator[Recipe]:
    """The recipe with and without a backward, the likelier first; unchanged if nothing can be differentiated."""
    trains = any(i.requires_grad for i in (*graph.inputs, *graph.constants))
    if hook != "dynamo" or not trains:
        yield recipe
        return
    forward, both = replace(recipe, has_backward=failure.backward), replace(recipe, backward=True)
    of_gradients = failure.backward or (failure.kind is Kind.ACCURACY and (region.backward or region.weighted))
    yield from (both, forward) if of_gradients else (forward, both)


def _repro_tolerance(recipe: Recipe) -> float:
    try:
        return float(dict(recipe.config)["torch._dynamo.config.repro_tolerance"])
    except (KeyError, ValueError):  # not set, or not a number
        return recipe.repro_tolerance


def _recipes(
    region: Region, graph: Graph, source: str | None, failing_line: int | None, seed: int, installed: Sequence[str]
) -> Iterator[tuple[str, Recipe]]:
    """Preambles, each with the recipe that goes with it."""
    how = region.recipe
    base = Recipe(
        pipeline=Pipeline.AOTI if region.hook == "aoti" else Pipeline.COMPILE,
        mode=how.mode,
        dynamic=_dynamic(region, graph),
        contexts=how.contexts if region.hook != "aot" else (),
        setup=how.setup,
        seed=seed,
        fullgraph=False,
        freshness=_mutates(graph),
    )
    if region.hook == "dynamo" and how.backend is not None and how.backend.text is not None:
        base = replace(base, backend=how.backend.text)
    plain_config = tuple((name, o.text) for name, o in how.config.items() if o.text is not None)
    plain_options = tuple((name, o.text) for name, o in how.options.items() if o.text is not None)
    base = replace(base, config=plain_config, options=plain_options)
    objects = [("config", name, o) for name, o in how.config.items() if o.text is None]
    objects += [("options", name, o) for name, o in how.options.items() if o.text is None]
    if region.hook == "dynamo" and how.backend is not None and how.backend.text is None:
        objects.append(("backend", "", how.backend))
    objects += [("pass", device, o) for device, o in how.custom_backend_passes.items()]
    # a kernel with a dotted name is imported
    namespaces, launched = _namespaces(graph), {name for name in kernels(graph) if "." not in name}
    if not objects and not namespaces and not launched:
        # nothing fails without what torch called
        yield from ((preamble, base) for preamble in _installing(source, installed, failing_line))
        yield "", base
        return
    yield from dict.fromkeys(_with_objects(base, objects, namespaces, launched, source, failing_line))


def _installing(source: str | None, installed: Sequence[str], failing_line: int | None) -> Iterator[str]:
    """Preambles that install these functions where torch finds them: by a decorator, or by a statement that names one."""
    if source is None or not installed:
        return
    for preamble in preambles(source, installed, (), failing_line):
        body = ast.parse(preamble).body
        defined = [one for one in body if isinstance(one, (*FUNCTIONS, ast.ClassDef)) and one.name in installed]
        named = (names_of(one).uses.intersection(installed) for one in body if one not in defined)
        if any(one.decorator_list for one in defined) or any(named):
            yield preamble


def _with_objects(
    base: Recipe,
    objects: list[tuple[str, str, Object]],
    namespaces: set[str],
    launched: set[str],
    source: str | None,
    failing_line: int | None,
) -> Iterator[tuple[str, Recipe]]:
    defined = list(dict.fromkeys(line for _, _, o in objects for line in o.definitions))
    reachable = bool(objects) and all(o.definitions or len(o.expressions) > 0 for _, _, o in objects)
    if reachable and not namespaces and not launched and all(o.definitions for _, _, o in objects):
        yield "\n".join(defined), _use(base, [(kind, name, o.expressions[-1]) for kind, name, o in objects])
    if source is None:
        return
    wanted = [*(name for _, _, o in objects for name in o.wanted), *sorted(launched)]
    settings = [name.rsplit(".", 1)[-1] for kind, name, _ in objects if kind in ("config", "options")]
    registered = ["register_backend_for_device", "init_backend_registration"] if any(kind == "pass" for kind, _, _ in objects) else []
    try:
        # the script's own assignments of the settings may bring the object along
        carried = preambles(source, wanted, [*settings, *registered, *sorted(namespaces)], failing_line)
        named = preambles(source, wanted, [*registered, *sorted(namespaces)], failing_line)
        imports = _imports(source)
    except SyntaxError:
        return
    named_uses = [(kind, name, o.expressions[0]) for kind, name, o in objects if o.expressions and kind != "pass"]
    for preamble in named:
        if len(named_uses) == sum(kind != "pass" for kind, _, _ in objects):
            yield preamble, _use(base, named_uses)
    for preamble in carried:
        yield preamble, _use(base, [use for use in named_uses if use[0] == "backend"])
    if namespaces:
        yield imports, _use(base, named_uses)
        for preamble in named:
            yield f"{imports}\n{preamble}", _use(base, named_uses)
    # a class that only a constructor call in the script leads to
    for preamble in named:
        yield preamble, _use(base, [(kind, name, o.expressions[-1]) for kind, name, o in objects if o.expressions])


def _use(base: Recipe, uses: Iterable[tuple[str, str, str]]) -> Recipe:
    recipe = base
    for kind, name, expression in uses:
        if kind == "config":
            recipe = replace(recipe, config=(*recipe.config, (name, expression)))
        elif kind == "options":
            recipe = replace(recipe, options=(*recipe.options, (name, expression)))
        elif kind == "backend":
            recipe = replace(recipe, backend=expression)
        else:
            parts = f'common.get_scheduling_for_device("{name}"), common.get_wrapper_codegen_for_device("{name}")'
            lines = (
                "from torch._inductor.codegen import common",
                "common.init_backend_registration()",
                f'common.register_backend_for_device("{name}", {parts}, device_custom_pass={expression})',
            )
            recipe = replace(recipe, setup=(*recipe.setup, *lines))
    return recipe


def _dynamic(region: Region, graph: Graph) -> bool | None:
    symbolic = any(i.meta.dynamic or i.meta.kind == "int" for i in graph.inputs)
    if region.hook == "aot":
        return True if symbolic else None
    return True if symbolic and region.recipe.dynamic is None and region.hook == "dynamo" else region.recipe.dynamic


def _mutates(graph: Graph) -> bool:
    """Whether a call changes its inputs, so that each call needs fresh ones."""
    return any(map(_in_place, graph.all_nodes()))


def _reads_numbers(graph: Graph) -> bool:
    """Whether the compiler may have to read numbers out of tensors, which it accepts if graph breaks are not allowed."""
    words = {word for node in graph.nodes for word in node.target.split(".")}
    return bool(graph.bodies) or not words.isdisjoint(_READS)


def _in_place(node: Node) -> bool:
    parts = node.target.split(".")
    if is_launch(node) or node.writes or any(name == "inplace" and value is True for name, value in node.kwargs):
        return True
    if parts[:2] == ["torch", "ops"]:
        return len(parts) > 3 and parts[3].endswith("_") and not parts[3].endswith("__")
    if parts[0] == "operator":
        return parts[-1] in ("setitem", "delitem") or (parts[-1].startswith("i") and parts[-1] in _AUGMENTED)
    return parts[-1].endswith("_") and not parts[-1].endswith("__")


def _is_plain(path: Path) -> bool:
    facts = path.lstat()
    return stat.S_ISREG(facts.st_mode) and facts.st_nlink == 1


def _located(graph: Graph, blobs: Path) -> Graph | None:
    """The graph with full paths, below `blobs`, for the files of its recorded inputs; None if one is not a file of this capture: a program
    can write anything there, and what is named here may be posted."""
    foreign = False

    def place(value: Value) -> Value:
        nonlocal foreign
        if value.kind != "blob":
            return value
        path = blobs / Path(str(value.args[0])).name
        foreign = foreign or blobs.is_symlink() or (os.path.lexists(path) and not _is_plain(path))
        return Value("blob", (str(path), *value.args[1:]))

    located = map_inputs(graph, lambda item: replace(item, value=place(item.value)))
    bodies = [(name, _located(body, blobs)) for name, body in located.bodies]
    known = tuple((name, body) for name, body in bodies if body is not None)
    return None if foreign or len(known) < len(bodies) else replace(located, bodies=known)


def _namespaces(graph: Graph) -> set[str]:
    # an operator may be an argument too: functionalization calls whatever writes through a higher-order operation
    named = (one.text for node in graph.all_nodes() for one in node.leaves() if isinstance(one, Code))
    targets = (path.split(".") for path in (*(node.target for node in graph.all_nodes()), *named))
    return {parts[2] for parts in targets if parts[:2] == ["torch", "ops"] and len(parts) > 2} - TORCH_NAMESPACES


def _imports(source: str) -> str:
    """The top-level imports of a script that may register operators."""
    kept = []
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.Import):
            names = [alias.name.split(".")[0] for alias in statement.names]
        elif isinstance(statement, ast.ImportFrom) and statement.level == 0:
            names = [(statement.module or "").split(".")[0]]
        else:
            continue
        if any(name not in sys.stdlib_module_names and name != "torch" for name in names):
            kept.append(ast.unparse(statement))
    return "\n".join(kept)
