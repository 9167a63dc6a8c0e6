"""The last lines of a script: compile, call, differentiate, compare."""

from __future__ import annotations

import keyword

from bot.reduce.graph.form import Graph, Input, Meta, Pipeline, Recipe, Ref, refs
from bot.reduce.graph.printer.expressions import quoted

_QUOTES = ("'", '"')
# (rtol, atol) below which a difference is one of rounding: two operations that are fused round once, eager rounds twice.
_LOW_PRECISION = {"bfloat16": (1.6e-2, 1e-2), "float16": (1e-2, 1e-2)}


def in_call_order(inputs: tuple[Input, ...]) -> list[Input]:
    """The inputs as `forward` takes them: the ones by keyword come last."""
    return [item for item in inputs if item.keyword is None] + [item for item in inputs if item.keyword is not None]


class Call:
    """The last lines of the script for `graph`, as the `recipe` says. `random`: an operation draws random numbers."""

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
        """Functions that the lines call, each a block of its own."""
        if not (self.recipe.accuracy and self.recipe.backward and self.wrt and self.recipe.pipeline is Pipeline.COMPILE):
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
        """From making the module to the comparison."""
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
        if any(item.meta.dynamic and item.meta.kind == "tensor" for item in self.inputs):
            parts.append("dynamic_shapes={" + ", ".join(f"{quoted(item.name)}: {_dims(item.meta)}" for item in self.inputs) + "}")
        return f"torch.export.export({', '.join(parts)})"

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
        rule = self._usual_tolerance() if self.recipe.tolerance is None else self.recipe.tolerance
        given = "".join(f"{name}={_scientific(value)}, " for name, value in zip(("rtol", "atol"), rule))  # noqa: B905 - both or neither
        return f"torch.testing.assert_close(actual, expected, {given}equal_nan=True)"

    def _usual_tolerance(self) -> tuple[float, float]:
        """The configured tolerance, or more where a value that is compared has so few digits that one of them is more."""
        named = {*refs(self.graph.output), *(item.name for item in self.inputs if self.helpers() and item.requires_grad)}
        dtypes = {self.metas[name].dtype for name in named if name in self.metas}
        rules = [_LOW_PRECISION[dtype] for dtype in sorted(dtypes) if dtype in _LOW_PRECISION]
        usual = self.recipe.repro_tolerance
        return max([usual, *(rtol for rtol, _ in rules)]), max([usual, *(atol for _, atol in rules)])


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
