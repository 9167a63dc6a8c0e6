"""The failing programs that both tools get: plain Python files, each by its name and a seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from benchlib import graphs, plant

AOT = {"TORCHDYNAMO_REPRO_AFTER": "aot", "TORCHDYNAMO_REPRO_LEVEL": "2"}
AOT_ACCURACY = {"TORCHDYNAMO_REPRO_AFTER": "aot", "TORCHDYNAMO_REPRO_LEVEL": "4"}
DYNAMO = {"TORCHDYNAMO_REPRO_AFTER": "dynamo", "TORCHDYNAMO_REPRO_LEVEL": "2"}
AOTI = {"DUMP_AOTI_MINIFIER": "1"}

COMPILE_ERROR = 'torch._inductor.config.cpp.inject_relu_bug_TESTING_ONLY = "compile_error"\n'
ACCURACY = 'torch._inductor.config.cpp.inject_relu_bug_TESTING_ONLY = "accuracy"\n'
# What the failing output says, of either tool's script.
CPP_SAYS = "CppCompileError|C\\+\\+ compile error"
ACCURACY_SAYS = "AccuracyError|not close|not equal"
POOL_SAYS = "max not supported for zero-dimension"
# Needed operations: none of them is among those that surround them, and each reaches post-grad as it is.
NEEDED = ("erf", "atan", "asinh")


@dataclass(frozen=True)
class Program:
    """A failing program.

    `env` turns PyTorch's dump on; `fault` is a sitecustomize for both tools ("": the program fails without one); `says` is a
    regular expression for what the failing output says; `optimum` is the least number of operations that can be left.
    `hang_after`: seconds after which a run of it counts as hanging, where that is not left to the limit.
    """

    name: str
    text: str
    says: str
    env: Mapping[str, str] = field(default_factory=lambda: AOT)
    fault: str = ""
    optimum: int = 1
    generated: bool = False
    seed: int = 0
    hang_after: float | None = None

    @property
    def modes(self) -> tuple[str, ...]:
        """How PyTorch's minifier can test candidates of this program; dynamo and AOTInductor know one way only."""
        return ("isolate", "no-isolate") if "aot" in self.env.values() else ("in-process",)


def _small_aot(_: int) -> Program:
    text = f"import torch\n\n{COMPILE_ERROR}\n\ndef f(x):\n    return torch.relu(x).cos()\n\n\ntorch.compile(f)(torch.randn(20))\n"
    return Program("small-aot", text, CPP_SAYS)


def _small_accuracy(_: int) -> Program:
    text = f"import torch\n\n{ACCURACY}\n\ndef f(x):\n    return torch.relu(x.sin()).cos() * 2\n\n\ntorch.compile(f)(torch.randn(20, 20))\n"
    return Program("small-accuracy", text, ACCURACY_SAYS, AOT_ACCURACY)


def _small_dynamo(_: int) -> Program:
    text = """\
import torch


@torch.compile(backend="relu_compile_error_TESTING_ONLY")
def f(x):
    for _ in range(10):
        x = torch.sin(x)
    x = torch.relu(x)
    for _ in range(10):
        x = torch.cos(x)
    return x


f(torch.randn(20, 20))
"""
    return Program("small-dynamo", text, "ReluCompileError", DYNAMO)


def _small_aoti(_: int) -> Program:
    text = f"""\
import torch

{COMPILE_ERROR}

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(10, 16), torch.nn.ReLU(), torch.nn.Sigmoid())

    def forward(self, x):
        return self.layers(x)


with torch.no_grad():
    program = torch.export.export(Model(), (torch.randn(8, 10),))
    torch._inductor.aoti_compile_and_package(program)
"""
    return Program("small-aoti", text, CPP_SAYS, AOTI)


def _graph(shape: str, n: int, needed: int, kind: str, seed: int) -> Program:
    """A graph of n operations of which `needed` matter.

    `kind`: accuracy, and cpp with one needed operation, are PyTorch's own testing hook; lowering is a real fault of Inductor;
    the others are planted.
    """
    name = f"{shape}-{n}-{needed}-{kind}"
    rng = random.Random(f"{name} {seed}")
    if kind == "lowering":
        names, says, head = ["fractional_max_pool2d"], POOL_SAYS, ""
    elif kind == "accuracy" or (kind == "cpp" and needed == 1):
        names, says, head = ["relu"], *((ACCURACY_SAYS, ACCURACY) if kind == "accuracy" else (CPP_SAYS, COMPILE_ERROR))
    else:
        names, says, head = list(NEEDED[:needed]), plant.MESSAGES[kind], ""
    fault = "" if head or kind == "lowering" else plant.fault(kind, [f"aten.{n}.default" for n in names])
    rng.shuffle(names)
    body = (graphs.chain if shape == "chain" else graphs.mixed)(n, names, rng)
    arguments = ["x"] if shape == "chain" else ["x", "y"]
    square = f"torch.randn({graphs.SIDE}, {graphs.SIDE})"
    lines = "".join(f"    {line}\n" for line in body)
    values = [square for _ in arguments]
    if kind == "lowering":
        arguments, values = [*arguments, "samples"], [*values, "torch.rand(1, 1, 2)"]
    text = (
        f"import torch\n\n{head}\n\ndef f({', '.join(arguments)}):\n{lines}\n\ntorch.manual_seed({seed})\n"
        f"torch.compile(f)({', '.join(values)})\n"
    )
    return Program(name, text, says, AOT_ACCURACY if kind == "accuracy" else AOT, fault, needed, generated=True, seed=seed)


_TRANSFORMER = """\
import torch
import torch.nn.functional as F
from torch import nn

{head}
WIDTH, HEADS, DEPTH, MIDDLE = 32, 4, {depth}, {middle}


class Block(nn.Module):
    def __init__(self, number):
        super().__init__()
        self.number = number
        self.before, self.after = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.wide, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def attend(self, x):
        batch, length, _ = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4).unbind(0)
        scores = torch.softmax(torch.tanh(q @ k.transpose(-2, -1)), dim=-1)
        return self.out((scores @ v).transpose(1, 2).reshape(batch, length, WIDTH))

    def forward(self, x{more}):
        x = x + self.attend(self.before(x))
        hidden = self.wide(self.after(x))
        hidden = {activation}
        return x + self.narrow(hidden)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.head = nn.Embedding(100, WIDTH), nn.Linear(WIDTH, 100)
        self.blocks = nn.ModuleList(Block(i) for i in range(DEPTH))

    def forward(self, ids{more}):
        x = self.tokens(ids) * WIDTH**0.5
        for block in self.blocks:
            x = block(x{more})
        return self.head(x)


torch.manual_seed({seed})
model = torch.compile(Model())
ids = torch.randint(100, (2, 12))
"""
_FORWARD = "with torch.no_grad():\n    model(ids{values})\n"
_JOINT = "F.cross_entropy(model(ids).flatten(0, 1), torch.randint(100, (24,))).backward()\n"


def _transformer(name: str, depth: int, seed: int, *, lowering: bool, joint: bool) -> Program:
    """`depth` blocks with one operation in the middle that fails. Joint: the operation stands in the backward graph only."""
    head, says, fault, more, values, special = COMPILE_ERROR, CPP_SAYS, "", "", "", "F.relu(hidden)"
    if joint:
        # cosh is what the gradient of sinh needs
        kind = "lowering" if lowering else "cpp"
        head, says, fault = "", plant.MESSAGES[kind], plant.fault(kind, ["aten.cosh.default"])
        special = "torch.sinh(hidden * 0.1)"
    elif lowering:
        head, says, more, values = "", POOL_SAYS, ", samples", ", torch.rand(1, 2, 2)"
        special = "F.gelu(hidden) + F.fractional_max_pool2d(hidden[None], 0, output_size=(2, 3), _random_samples=samples).mean()"
    text = _TRANSFORMER.format(
        head=head,
        depth=depth,
        middle=depth // 2,
        more=more,
        activation=f"{special} if self.number == MIDDLE else F.gelu(hidden)",
        seed=seed,
    )
    return Program(name, text + (_JOINT if joint else _FORWARD.format(values=values)), says, AOT, fault, seed=seed)


Maker = Callable[[int], Program]


def _catalog() -> dict[str, Maker]:
    makers: dict[str, Maker] = {
        "small-dynamo": _small_dynamo,
        "small-aot": _small_aot,
        "small-accuracy": _small_accuracy,
        "small-aoti": _small_aoti,
    }
    for n in (50, 200, 1000):
        for shape in ("chain", "mixed"):
            for needed, kind in ((1, "cpp"), (1, "post_grad"), (2, "post_grad"), (3, "post_grad")):
                makers[f"{shape}-{n}-{needed}-{kind}"] = partial(_graph, shape, n, needed, kind)
        extra = [(1, "lowering"), *([(2, "cpp"), (1, "accuracy")] if n <= 200 else [])]
        for needed, kind in extra:
            makers[f"mixed-{n}-{needed}-{kind}"] = partial(_graph, "mixed", n, needed, kind)
    for size, depth in ((663, 8), (4000, 49)):
        makers[f"transformer-{size}-cpp"] = partial(_transformer, f"transformer-{size}-cpp", depth, lowering=False, joint=False)
        makers[f"transformer-{size}-lowering"] = partial(_transformer, f"transformer-{size}-lowering", depth, lowering=True, joint=False)
    for size, depth, kind in ((663, 8, "cpp"), (4000, 49, "lowering")):
        name = f"transformer-{size}-joint-{kind}"
        makers[name] = partial(_transformer, name, depth, lowering=kind == "lowering", joint=True)
    return makers


# In the order in which they are run: short ones first.
CATALOG = _catalog()
QUICK = ("small-dynamo", "small-aot")


def program(name: str, seed: int) -> Program:
    """The program of that name.

    Raises:
        KeyError: there is none.
    """
    return CATALOG[name](seed)
