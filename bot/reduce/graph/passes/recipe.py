"""Drops what the script says about compiling and calling, as far as the failure does not need it.

Proposes each of these, all at once in the batch, then by halves: mode, contexts, setup lines, fullgraph, cloned inputs, waiting for the
GPU, dynamic shapes (sizes become plain numbers), the backward, the user's definitions that nothing uses any more, and the seed (unless the
numbers matter). The backend stays. Config entries and options come last and separately, since someone who changed a compiler setting
usually needs it. So does replacing the comparison with float64 by one with eager within a tolerance. Cost: one query if nothing is needed,
about 2 log2 n for each needed entry of n. The idea is that of Inductor's config fuzzer and bisector, turned around: whatever can go, goes.
"""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from typing import Any

from bot.reduce.graph.edits import GraphEdit
from bot.reduce.graph.form import EAGER_ALONE, Arg, Program
from bot.reduce.graph.numbers import known_numbers
from bot.reduce.graph.passes.outputs import without_dead
from bot.reduce.graph.rewrite import drop_unused, map_inputs, substitute

_SETTINGS = ("config", "options")
_LISTS = ("contexts", "setup")
_PLAINER = ("against_float64", "weighted")
_PLAIN = {"mode": None, "fullgraph": False, "freshness": False, "synchronize": False, "frees": False}


def settings(program: Program) -> list[GraphEdit]:
    """One edit for each compiler setting in `program`, one for a plain comparison instead of the one with float64, and one for the
    gradients of a plain sum."""
    plain = [_with(name, False) for name in _PLAINER if getattr(program.recipe, name)]
    kept = EAGER_ALONE if program.recipe.eager_alone else None  # it defines what the script's comparison means
    return [*plain, *(_without(name, entry) for name in _SETTINGS for entry in getattr(program.recipe, name) if entry != kept)]


def edits(program: Program, *, keep_seed: bool = False) -> list[GraphEdit]:
    """One edit for each other entry of `program`. `keep_seed`: the failure depends on the numbers, or may."""
    recipe = program.recipe
    found: list[GraphEdit] = [_without(name, entry) for name in _LISTS for entry in getattr(recipe, name)]
    found += [_with(name, plain) for name, plain in _PLAIN.items() if getattr(recipe, name) != plain]
    if recipe.dynamic is not None or any(i.meta.dynamic or i.meta.kind == "int" for i in program.graph.inputs):
        found.append(static)
    if recipe.backward:
        found.append(_forward_only)
    if program.preamble:
        found.append(_without_preamble)
    return found if keep_seed else [*found, *seed(program)]


def seed(program: Program) -> list[GraphEdit]:
    """The edit that drops the seed from `program`, unless its numbers are compared."""
    return [_with("seed", None)] if program.recipe.seed is not None and not program.recipe.accuracy else []


def _with(name: str, value: Any) -> GraphEdit:
    changed = {name: value}
    return lambda program: replace(program, recipe=replace(program.recipe, **changed))


def _without(name: str, entry: object) -> GraphEdit:
    return lambda program: _with(name, tuple(e for e in getattr(program.recipe, name) if e != entry))(program)


def static(program: Program) -> Program | None:
    """The `program` with plain numbers for all sizes."""
    graph = program.graph
    numbers: dict[str, Arg] = dict(known_numbers(graph))
    plain = map_inputs(graph, lambda item: replace(item, meta=replace(item.meta, dynamic=(), symbols=())))
    fixed = without_dead(program.with_graph(substitute(plain, numbers)))
    return replace(fixed, graph=drop_unused(fixed.graph), recipe=replace(fixed.recipe, dynamic=None), static_passes=None)


def _forward_only(program: Program) -> Program | None:
    graph = map_inputs(program.graph, lambda i: replace(i, requires_grad=False, leaf=True))
    return replace(program, graph=graph, recipe=replace(program.recipe, backward=False))


def _without_preamble(program: Program) -> Program | None:
    return None if names_used(program) & defined(program.preamble) else replace(program, preamble="")


def defined(preamble: str) -> set[str]:
    """Names that the definitions in `preamble` bind, and the namespaces of the operators that it registers."""
    names: set[str] = set(re.findall(r"[\"'](\w+)::\w+", preamble)) | set(re.findall(r"Library\(\s*[\"'](\w+)", preamble))
    for node in ast.walk(ast.parse(preamble)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.alias):
            names.add((node.asname or node.name).split(".")[0])
    return names - {"torch"}


def names_used(program: Program) -> set[str]:
    """Every word in the recipe and the operations of `program`."""
    recipe = program.recipe
    texts = [recipe.backend or "", *recipe.contexts, *recipe.setup]
    texts += [value for pairs in (recipe.options, recipe.config) for _, value in pairs]
    texts += [repr(i.value.args) for i in program.graph.sources]
    texts += [f"{n.target} {n.args!r} {n.kwargs!r}" for n in program.graph.all_nodes()]
    return {word for text in texts for word in re.findall(r"\w+", text)}
