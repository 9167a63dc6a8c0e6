"""Programs with a planted error: one operator of a model that holds all ten is made wrong by a pass or a lowering of one's own, and its
healthy twin."""

from __future__ import annotations

import ast
import itertools
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

# Percent by which the results are too large.
SIZES = (1, 10, 100)
PRECISIONS = ("fp32", "tf32", "bf16", "fp16")
MODES = ("inference", "training")
# Blocks of the model: some 60, 250 and 550 operations.
DEPTHS = (2, 8, 18)


@dataclass(frozen=True)
class Operator:
    """What is made wrong: `targets` are names of graph nodes, at the pass `hook` or by a lowering; `words` are how a repro may call it."""

    hook: str
    targets: tuple[str, ...]
    words: str


_BEFORE, _AFTER, _LOWERED = "pre_grad_custom_pass", "post_grad_custom_post_pass", "lowering"
# What Inductor decomposes is made wrong before that, the rest after all its own passes, or where it is lowered.
OPERATORS = {
    "relu": Operator(_LOWERED, ("aten.relu.default",), r"relu"),
    "softmax": Operator(_BEFORE, ("softmax",), r"softmax"),
    "layer_norm": Operator(_BEFORE, ("layer_norm",), r"layer_norm|LayerNorm"),
    "matmul": Operator(_AFTER, ("aten.mm.default", "aten.bmm.default", "aten.addmm.default"), r"matmul|\bmm\b|bmm|addmm|linear|@|einsum"),
    "convolution": Operator(_AFTER, ("aten.convolution.default",), r"conv"),
    "batch_norm": Operator(_BEFORE, ("batch_norm",), r"batch_norm|BatchNorm"),
    "gelu": Operator(_BEFORE, ("gelu",), r"gelu|GELU"),
    "sum": Operator(_LOWERED, ("aten.sum.dim_IntList",), r"\bsum\b"),
    "cumsum": Operator(_LOWERED, ("aten.cumsum.default",), r"cumsum"),
    "index_put": Operator(_AFTER, ("aten.index_put.default", "aten.index_put_.default"), r"index_put|\]\s*="),
}

_PASS = """
class Planted(CustomGraphPass):
    def __call__(self, graph):
        graph = getattr(graph, "graph", graph)
        for node in list(graph.nodes):
            if node.op == "call_function" and (str(node.target) in {targets!r} or getattr(node.target, "__name__", "") in {targets!r}):
                with graph.inserting_after(node):
                    wrong = graph.call_function({multiply}, (node, {factor!r}))
                wrong.meta = dict(node.meta)
                node.replace_all_uses_with(wrong, delete_user_cb=lambda user: user is not wrong)

    def uuid(self):
        return b"planted"


config.{hook} = Planted()
"""

_LOWERING = """
plain = lowerings[torch.ops.{target}]


@register_lowering(torch.ops.{target}, type_promotion_kind=None)
def planted(*args, **kwargs):
    node = plain(*args, **kwargs)
    wrong = lowerings[torch.ops.aten.mul.Tensor](*(node, {factor!r}))
    return wrong
"""

_MODEL = """
def {rounded}(x):
    {rounding}


class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        def weights(*shape):
            return torch.nn.Parameter(torch.randn(*shape) / shape[0] ** 0.5)
        self.scale, self.shift = torch.nn.Parameter(torch.ones(width)), torch.nn.Parameter(torch.zeros(width))
        self.query, self.key, self.value = weights(width, width), weights(width, width), weights(width, width)
        self.up, self.down = weights(width, 2 * width), weights(2 * width, width)
        self.kernel = torch.nn.Parameter(torch.randn(width, width, 3) / (3 * width) ** 0.5)
        self.register_buffer("places", torch.tensor([0, 3, 5]))

    def forward(self, x):
        length, width = x.shape[1], x.shape[2]
        y = F.layer_norm(x, (width,), self.scale, self.shift)
        q, k, v = ({rounded}(y) @ {rounded}(w) for w in (self.query, self.key, self.value))
        x = x + torch.softmax({rounded}(q) @ {rounded}(k).transpose(-1, -2) / width ** 0.5, -1) @ {rounded}(v)
        y = torch.relu(F.batch_norm(x.transpose(1, 2), None, None, None, None, True))
        x = 0.5 * x + F.conv1d({rounded}(y), {rounded}(self.kernel), padding=1).transpose(1, 2)
        x = x + {rounded}(F.gelu({rounded}(x) @ {rounded}(self.up))) @ {rounded}(self.down)
        x = 0.5 * x + torch.cumsum(x, 1) / length
        x = x.index_put((torch.zeros_like(self.places), self.places), torch.tanh(x[1, self.places]))
        return x - x.sum(1, keepdim=True) / (2 * length)


torch.manual_seed({seed})
model = torch.nn.Sequential(*[Block(32) for _ in range({depth})]){cast}
x = torch.randn(4, 16, 32{made})
"""

_CALLS = {
    "inference": "with torch.no_grad():\n    print(torch.compile(model)(x).shape)\n",
    "training": "loss = torch.compile(model)(x).float().square().mean()\nloss.backward()\nprint(loss.item())\n",
}
# A float32 number in eleven bits, as tensor cores take it: the arithmetic is exact in float64.
_TF32 = "c = x * 8193.0\n    return c - (c - x)"
_FACTOR = re.compile(r"(?m)^(\s+)(wrong = .*\(node, )[0-9.]+(\)\))")


@dataclass(frozen=True)
class Row:
    """One program: `operator` is wrong by `percent` (0: the healthy twin)."""

    operator: str
    percent: int
    precision: str
    mode: str
    depth: int

    @property
    def name(self) -> str:
        """As `--only` takes it."""
        how = f"{self.percent}" if self.percent else "healthy"
        return f"{self.operator}-{how}-{self.precision}-{self.mode}-{self.depth}"

    def text(self, device: str = "cpu") -> str:
        """The program, for this `device`. On cuda tf32 is the tensor cores' own."""
        imports, planted = "import torch\nimport torch.nn.functional as F\n", ""
        if self.percent:
            more, planted = _planted(OPERATORS[self.operator], 1 + self.percent / 100)
            imports += more
        dtype = {"bf16": "bfloat16", "fp16": "float16"}.get(self.precision)
        model = _MODEL.format(
            rounded="rounded",
            rounding=_TF32 if self.precision == "tf32" and device == "cpu" else "return x",
            seed=len(self.name),
            depth=self.depth,
            cast=f".to({', '.join([repr(device), *([f'torch.{dtype}'] if dtype else [])])})",
            made=f", device={device!r}" + (f", dtype=torch.{dtype}" if dtype else ""),
        )
        if device != "cpu":
            imports += f"torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = {self.precision == 'tf32'}\n"
        return imports + planted + model + _CALLS[self.mode]


def _planted(operator: Operator, factor: float) -> tuple[str, str]:
    """The imports and the statements that multiply what the operator gives by the `factor`."""
    if operator.hook == _LOWERED:
        (target,) = operator.targets
        return "from torch._inductor.lowering import lowerings, register_lowering\n", _LOWERING.format(target=target, factor=factor)
    multiply = "torch.mul" if operator.hook == _BEFORE else "torch.ops.aten.mul.Tensor"
    planted = _PASS.format(targets=operator.targets, factor=factor, hook=operator.hook, multiply=multiply)
    return "import torch._inductor.config as config\nfrom torch._inductor.custom_graph_pass import CustomGraphPass\n", planted


def rows(depths: Sequence[int] = DEPTHS) -> list[Row]:
    """All of them, the healthy twins last; models of these `depths` take turns."""
    turns = itertools.cycle(depths)
    planted = [Row(*row, next(turns)) for row in itertools.product(OPERATORS, SIZES, PRECISIONS, MODES)]
    return [
        *planted,
        *(Row("none", 0, precision, mode, depth) for precision, mode, depth in itertools.product(PRECISIONS, MODES, sorted(set(depths)))),
    ]


def sample(found: Sequence[Row], count: int, seed: int = 0) -> list[Row]:
    """So many of the planted rows and half as many healthy ones, drawn by `seed` so that operators come equally often."""
    chance = random.Random(seed)
    planted = [row for row in found if row.percent]
    chance.shuffle(planted)
    turns = [[row for row in planted if row.operator == name] for name in OPERATORS]
    dealt = [row for turn in itertools.zip_longest(*turns) for row in turn if row is not None]
    healthy = [row for row in found if not row.percent]
    chance.shuffle(healthy)
    return [*dealt[:count], *healthy[: (count + 1) // 2]]


def healed(repro: str) -> str:
    """The repro with the planted pass or lowering multiplying by one."""
    return _FACTOR.sub(r"\g<1>\g<2>1.0\g<3>", repro)


def holds(repro: str, operator: str) -> bool:
    """Whether what the repro compiles calls the operator; what was planted, which names it too, does not count."""
    return re.search(OPERATORS[operator].words, "\n".join(_outside(repro))) is not None


def _outside(repro: str) -> Iterator[str]:
    for statement in ast.parse(repro).body:
        named = getattr(statement, "name", "")
        found = [target.id for target in getattr(statement, "targets", ()) if isinstance(target, ast.Name)]
        if named not in ("Planted", "planted") and "plain" not in found:
            yield ast.unparse(statement)
