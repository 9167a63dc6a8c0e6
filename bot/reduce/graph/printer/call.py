"""The last lines of a script: compile, call, differentiate, compare."""

from __future__ import annotations

import keyword
from collections.abc import Sequence

from bot.reduce.graph.form import Graph, Input, Meta, Pipeline, Recipe, Ref, refs
from bot.reduce.graph.printer import comparison
from bot.reduce.graph.printer.expressions import quoted

_QUOTES = ("'", '"')


def in_call_order(inputs: tuple[Input, ...]) -> list[Input]:
    """The `inputs` in the order in which `forward` takes them: keyword ones come last."""
    return [item for item in inputs if item.keyword is None] + [item for item in inputs if item.keyword is not None]


class Call:
    """The last lines of the script for `graph`, according to `recipe`. `random`: an operation draws random numbers."""

    def __init__(self, graph: Graph, recipe: Recipe, random: bool) -> None:
        self.graph = graph
        self.recipe = recipe
        self.inputs = in_call_order(graph.inputs)
        self.metas = graph.metas()
        self.reseeds = recipe.accuracy and random
        self.copies = recipe.accuracy and recipe.freshness and bool(graph.constants)
        self.wrt = [item.name for item in self.inputs if item.requires_grad] + [
            f"model.{item.name}" for item in graph.constants if item.requires_grad
        ]

    def helpers(self) -> list[str]:
        """Functions and classes that these lines use, each as one block."""
        found = [comparison.FLOAT64] if self.exactly and comparison.names_types(self.graph) else []
        if self.differentiated:
            found.append("\n".join(self._run()))
        return found

    @property
    def exactly(self) -> bool:
        """Whether the comparison is with float64."""
        return self.recipe.accuracy and self.recipe.against_float64

    @property
    def differentiated(self) -> bool:
        """Whether gradients are compared."""
        return bool(self.recipe.accuracy and self.recipe.backward and self.wrt and self.recipe.pipeline is Pipeline.COMPILE)

    def _run(self) -> list[str]:
        """The function that calls and differentiates. For the comparison with float64 it also takes the inputs."""
        seed = [f"    torch.manual_seed({self.recipe.seed or 0})"] if self.reseeds else []
        wrt = ", ".join(name.replace("model.", "module.") for name in self.wrt)
        wrt = f"({wrt},)" if len(self.wrt) == 1 else f"({wrt})"
        given = f", {', '.join(item.name for item in self.inputs)}" if self.exactly and self.inputs else ""
        gradients = f"torch.autograd.grad({self._loss()}, {wrt}, materialize_grads=True)"
        # The compiled module forwards its attributes, so its parameters are the module's own.
        return [
            f"def run(module{given}):",
            *seed,
            f"    out = module({self._arguments()})",
            f"    return [{self._leaves()}, *{gradients}]" if self.exactly else f"    return out, {gradients}",
        ]

    def _leaves(self) -> str:
        output = self.graph.output
        if isinstance(output, Ref):
            return "out"
        flat = isinstance(output, (tuple, list)) and all(isinstance(item, Ref) for item in output)
        return "*out" if flat and isinstance(output, (tuple, list)) and len(output) > 1 else "*torch.utils._pytree.tree_leaves(out)"

    def lines(self) -> list[str]:
        """The lines from making the module to the comparison."""
        found = self._aoti() if self.recipe.pipeline is Pipeline.AOTI else self._compile()
        if self.recipe.synchronize:
            found.append("torch.cuda.synchronize()")
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
        if self.differentiated:
            given = f", {', '.join(item.name for item in self.inputs)}" if self.exactly and self.inputs else ""
            expected, actual = [f"expected = run({model}{given})"], [f"actual = run({self._compiled(model)}{given})"]
        else:
            seed = [f"torch.manual_seed({recipe.seed or 0})"] if self.reseeds else []
            expected = [*seed, f"expected = {model}({self._arguments()})"]
            actual = [*seed, f"actual = {self._compiled(model)}({self._arguments()})"]
        return ["model = Repro()", *expected, *actual, *self._compared()]

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
        return ["model = Repro()", *expected, *found, *seed, f"actual = {call}", *self._compared()]

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
        if any(item.meta.dynamic and item.meta.is_tensor for item in self.inputs):
            parts.append("dynamic_shapes={" + ", ".join(f"{quoted(item.name)}: {_dims(item.meta)}" for item in self.inputs) + "}")
        return f"torch.export.export({', '.join(parts)})"

    def _arguments(self) -> str:
        fresh = self.recipe.freshness
        return self._given([f"{item.name}.clone()" if fresh and item.meta.is_tensor else item.name for item in self.inputs])

    def _given(self, values: Sequence[str]) -> str:
        """The arguments of a call, with these values for the inputs."""
        shown = []
        for item, value in zip(self.inputs, values, strict=True):
            word = item.keyword
            named = word is not None and keyword.iskeyword(word)
            shown.append(value if word is None else f"**{{{quoted(word)}: {value}}}" if named else f"{word}={value}")
        return ", ".join(shown)

    def _loss(self) -> str:
        output = self.graph.output
        if isinstance(output, Ref):
            return self._summed("out", self.metas.get(output.name, Meta()))
        if isinstance(output, (tuple, list)) and all(isinstance(item, Ref) for item in output):
            metas = [self.metas.get(item.name, Meta()) for item in output if isinstance(item, Ref)]
            if len(metas) == 1:
                return self._summed("out[0]", metas[0])
            if all(meta.is_tensor and not meta.dtype.startswith("complex") for meta in metas):
                return f"sum({self._sum_of('o')} for o in out if o.requires_grad)"
        some = f"{self._sum_of('o.abs()')} for o in torch.utils._pytree.tree_leaves(out)"
        return f"sum({some} if isinstance(o, torch.Tensor) and o.requires_grad)"

    def _summed(self, name: str, meta: Meta) -> str:
        if meta.dtype.startswith("complex"):
            return self._sum_of(f"{name}.abs()")
        return name if meta.is_tensor and meta.shape == () else self._sum_of(name)

    def _sum_of(self, value: str) -> str:
        return f"{value}.flatten().double().cumsum(0).sum()" if self.recipe.weighted else f"{value}.sum()"

    def _compared(self) -> list[str]:
        recipe, output = self.recipe, self.graph.output
        if not self.exactly:
            named = {*refs(output), *(item.name for item in self.inputs if self.differentiated and item.requires_grad)}
            return comparison.within(comparison.tolerance(recipe, (self.metas[name].dtype for name in named if name in self.metas)))
        model = "copy.deepcopy(model).double()" if self.copies else "model.double()" if self.graph.constants else "model"
        positional = [comparison.in_float64(item, recipe.freshness) for item in self.inputs]
        if self.differentiated:
            exact = f"exact = run({', '.join([model, *positional])})"
        else:
            exact = f"exact = {model}({self._given(positional)})"
        lines = ["with Float64():", f"    {exact}"] if comparison.names_types(self.graph) else [exact]
        return [*lines, *comparison.against_float64(recipe, output, self.metas, self.differentiated)]


def _dims(meta: Meta) -> str:
    if not meta.dynamic:
        return "None"
    return "{" + ", ".join(f"{dim}: torch.export.Dim.DYNAMIC" for dim in meta.dynamic) + "}"


def _options(options: tuple[tuple[str, str], ...]) -> str:
    return "{" + ", ".join(f"{quoted(key)}: {value}" for key, value in options) + "}"
