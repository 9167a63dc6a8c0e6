"""The programs that fail, each quickly: what the faults are tried on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

# The variable that names the pipe on which the program called `hanging` hangs, while there is one.
HANG = "FAULT_HANG"

_LOWERING = """
import torch
import torch.nn.functional as F


class Head(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.stem = torch.nn.Conv2d(3, width, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(width)
        self.pool = torch.nn.FractionalMaxPool2d(0, output_size=(4, 4))
        self.out = torch.nn.Linear(width * 16, 5)

    def forward(self, x):
        h = F.gelu(self.norm(self.stem(x)))
        h = self.pool(h).flatten(1)
        return F.log_softmax(self.out(h), dim=-1)


torch.manual_seed(0)
with torch.no_grad():
    print(torch.compile(Head(6).eval())(torch.randn(2, 3, 8, 8)))
"""

_ACCURACY = """
import torch

torch._inductor.config.cpp.inject_relu_bug_TESTING_ONLY = "accuracy"


def f(x, w):
    h = (x @ w).tanh()
    h = torch.relu(h - 0.25)
    return h.exp().mean(dim=1)


torch.manual_seed(0)
out = torch.compile(f)(torch.randn(6, 5), torch.randn(5, 7))
print(out.shape)
"""

# Nothing in the message says which operations it takes, so they are searched for. SPOIL runs in each process that compiles.
_PASS = """
import torch
import torch._inductor.config as inductor


def refuse_three(graph):
    names = {str(n.target).split(".")[1] for n in graph.nodes if n.op == "call_function" and "." in str(n.target)}
SPOIL    if {"sin", "tanh", "sigmoid"} <= names:
        raise RuntimeError("sin, tanh and sigmoid do not go together")


def chain(x):
    x = torch.relu(x).cos() * 0.5
    x = torch.sin(x.exp().neg().abs())
    x = torch.tanh(torch.relu(x * 2).cos())
    return torch.sigmoid(x.exp().neg().abs()) + 1


inductor.post_grad_custom_post_pass = refuse_three
torch.compile(chain)(torch.linspace(-1, 1, 8))
"""

_HANG = f"""
    import os, signal, ctypes
    if os.path.exists(os.environ.get("{HANG}") or "/nowhere"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        library = ctypes.PyDLL(None)
        library.open(os.environ["{HANG}"].encode(), 0)
        while True:
            library.pause()
"""

# Neither in the whole program nor in what is to come of it, where some versions of torch fail by that alone.
_SOMETIMES = """
    import zlib
    candidate = len(graph.nodes) < 18 and CANDIDATE
    if candidate and zlib.crc32(f"SALT {sorted(names)} {len(graph.nodes)}".encode()) % 3 == 0:
        import ctypes, inspect, os, signal, subprocess, sys, threading
"""

# Where it may do so: in any candidate, or only in one that passes without it, since some versions of torch fail by it alone. That is told
# apart from the failure that is searched for, and is as much of a no.
_ANY, _PASSING = 'names != {"sin", "tanh", "sigmoid"}', 'not {"sin", "tanh", "sigmoid"} <= names'
_FAILS_BY_ITSELF = ("device",)

# What a candidate does to its own process.
SPOILS: Mapping[str, str] = {
    "torch": "torch.relu = torch.sin = torch.Tensor.relu = torch.nn.Module.__call__ = None",
    "config": "inductor.freezing = inductor.max_autotune = True; torch._dynamo.config.recompile_limit = 1",
    "dtype": "torch.set_default_dtype(torch.float64)",
    "device": "torch.set_default_device('meta')",
    "thread": "threading.Thread(target=lambda: any(False for _ in iter(int, 1)), daemon=True).start()",
    "process": "subprocess.Popen(['sleep', '600'], start_new_session=True)",
    "cwd": "os.chdir('/')",
    "stdout": "os.close(1)",
    "signals": "[signal.signal(n, signal.SIG_IGN) for n in (2, 6, 10, 14, 15, 17)]",
    "recursion": "sys.setrecursionlimit(len(inspect.stack(0)) + 120)",
    "environ": "os.environ.clear()",
}


@dataclass(frozen=True)
class Program:
    """A failing program. What it says when it fails, alone and reduced, is `message`; `env` are variables that it is run with.

    `whole`: its repros are compared as a whole, else without what stands before their module.
    """

    name: str
    text: str
    message: str
    whole: bool = True
    env: Mapping[str, str] = field(default_factory=dict)

    def on(self, device: str) -> Program:
        """The program with its tensors on that `device`, cpu or cuda."""
        if device == "cpu":
            return self
        text = self.text.replace("import torch\n", f'import torch\n\ntorch.set_default_device("{device}")\n', 1)
        return replace(self, text=text.replace("config.cpp.inject", "config.triton.inject"))

    def key(self, repro: str) -> str:
        """What of a `repro` must be the same from run to run: not the comments in front, which say how often it failed."""
        lines = repro.splitlines()
        while lines and lines[0].startswith("#"):
            del lines[0]
        text = "\n".join(lines)
        return text if self.whole else text[max(text.find("class Repro"), 0) :]


_THREE = "sin, tanh and sigmoid do not go together"
LOWERING = Program("lowering", _LOWERING, "max not supported for zero-dimension tensors")
ACCURACY = Program("accuracy", _ACCURACY, "Tensor-likes are not close")
THREE = Program("three", _PASS.replace("SPOIL", ""), _THREE, whole=False)
HANGING = Program("hanging", _PASS.replace("SPOIL", _HANG.lstrip("\n")), _THREE, whole=False)
# Those that faults are tried on, by turns.
USUAL = (THREE, ACCURACY, LOWERING)


def spoiling(name: str, salt: int) -> Program:
    """The program `three` that spoils its process as `name` says; `salt` decides for which of its candidates."""
    where = _PASSING if name in _FAILS_BY_ITSELF else _ANY
    body = _SOMETIMES.replace("SALT", str(salt)).replace("CANDIDATE", where).lstrip("\n") + f"        {SPOILS[name]}\n"
    return Program(f"spoil-{name}", _PASS.replace("SPOIL", body), _THREE, whole=False)
