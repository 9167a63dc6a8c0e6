"""Which call fails, and where: a later one, one in a pool of the compiler's, one whose process dies, one of several ranks."""

from __future__ import annotations

import signal
import sys
import textwrap
from pathlib import Path

import pytest

from bot.cli import main
from tests.e2e.e2e_harness import REPRO_LIMIT, Answer, environment, minify, run, run_alone
from tests.e2e.test_inputs import CRASH, LOWERING, PLANTED

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1500)]

# The lowering refuses what only the second call has: a size that is a symbol.
OTHER_SHAPES = """\
import torch
from torch._inductor.lowering import lowerings

known = lowerings[torch.ops.aten.tanh.default]


def tanh(x):
    if any(not str(size).isdigit() for size in x.get_size()):
        raise RuntimeError("no symbols, please")
    return known(x)


lowerings[torch.ops.aten.tanh.default] = tanh


@torch.compile
def step(x):
    return torch.tanh(torch.sin(x) + 1).sum()


for rows in (8, 5, 13):
    print(step(torch.randn(rows, 4)))
"""
# Takes another branch once the first iteration has left something.
SECOND_ITERATION = """\
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)
        self.kept = None

    def forward(self, x):
        y = torch.tanh(self.linear(x))
        if self.kept is not None:
            y = torch.ops.aten.avg_pool2d_backward(y, self.kept, [1], [1], [0], False, True, None)
        self.kept = y.detach()
        return torch.relu(y)


step = torch.compile(Net())
with torch.no_grad():
    for _ in range(3):
        print(step(torch.randn(2, 3, 4, 8)).mean())
"""
AFTER_A_BREAK = """\
import torch


def f(x):
    y = torch.sin(x) + 1
    print("mean", y.mean().item())
    z = torch.ops.aten.avg_pool2d_backward(y, y, [1], [1], [0], False, True, None)
    return torch.relu(z) * 2


with torch.no_grad():
    print(torch.compile(f)(torch.randn(2, 3, 8, 8)).shape)
"""
# No call fails alone: the first one is needed.
COMPILED_AGAIN = """\
import torch

torch._dynamo.config.error_on_recompile = True


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x, scale):
        return torch.relu(self.linear(x)) * scale


net = torch.compile(Net())
for scale in (2, 2, None):
    print(net(torch.randn(3, 4), 1 if scale is None else scale).sum())
"""
# Of each program: what the repro has, what it lacks, and what its failure says.
LATER = {
    "other_shapes": (OTHER_SHAPES, ("torch.tanh(x)", "mark_dynamic("), ("for rows", "torch.sin"), "no symbols, please"),
    "second_iteration": (SECOND_ITERATION, ("avg_pool2d_backward",), ("for ", "kept", "Linear"), "avg_pool2d_backward"),
    "after_a_break": (AFTER_A_BREAK, ("avg_pool2d_backward",), ("print", "sin"), "avg_pool2d_backward"),
    "compiled_again": (COMPILED_AGAIN, ("error_on_recompile", "for "), ("Linear", "relu"), "Recompil"),
}


def minified(tmp: Path, *arguments: str | Path) -> Answer:
    out = tmp / "minified"
    return Answer(out, minify(*arguments, "--out", out, "--verify-runs", "1", cwd=tmp))


def fails_alone(answer: Answer, said: str) -> None:
    assert answer.process.status == 0, answer.described()
    done = run_alone(answer.directory / "repro.py")
    assert (done.status, said in done.err) == (1, True), done.text[-3000:]


@pytest.mark.parametrize("name", [pytest.param(name, marks=[] if name == "other_shapes" else [pytest.mark.all]) for name in LATER])
def test_an_earlier_call_stays_only_where_it_is_needed(tmp_path: Path, name: str) -> None:
    script, has, lacks, said = LATER[name]
    (tmp_path / "fail.py").write_text(script, encoding="utf-8")
    answer = minified(tmp_path, tmp_path / "fail.py")
    fails_alone(answer, said)
    assert all(word in answer.repro for word in has), answer.repro
    assert not [word for word in lacks if word in answer.repro], answer.repro


# Where the pool's processes are spawned they import the program again.
def guarded(script: str) -> str:
    definitions, rest = script.split("torch.manual_seed")
    return definitions + "if __name__ == '__main__':\n" + textwrap.indent(f"torch.manual_seed{rest}", "    ")


POOLS = {
    **{
        method: (PLANTED.format("compile_error"), f"TORCHINDUCTOR_COMPILE_THREADS=4 TORCHINDUCTOR_WORKER_START={method}", "CppCompileError")
        for method in ("subprocess", "fork", "spawn")
    },
    "compiles_there": (LOWERING, "TORCHINDUCTOR_FX_COMPILE_MODE=SUBPROCESS", "AssertionError"),
    "two_at_a_time": (LOWERING, "TORCHINDUCTOR_COMPILE_THREADS=2 TORCHINDUCTOR_FX_COMPILE_MODE=SUBPROCESS", "AssertionError"),
}


@pytest.mark.parametrize("name", [pytest.param(name, marks=[] if name == "compiles_there" else [pytest.mark.all]) for name in POOLS])
def test_what_a_pool_of_the_compiler_s_raises(tmp_path: Path, name: str) -> None:
    script, variables, error = POOLS[name]
    (tmp_path / "fail.py").write_text(guarded(script), encoding="utf-8")
    answer = minified(tmp_path, "--command", f"{variables} {sys.executable} fail.py")
    fails_alone(answer, error)
    assert answer.result["signature"]["exception"][-1] == error
    assert answer.result["signature"]["phase"] == ("inductor_lowering" if script == LOWERING else "cpp_compile")
    # nothing of the pool is needed
    assert answer.result["reduction"]["ops_after"] == 1
    assert "SUBPROCESS" not in answer.repro


@pytest.mark.all
def test_a_step_that_dies_is_left_by_the_snippet_and_minimized(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["snippet"]) == 0
    (tmp_path / "save_repro.py").write_text(capsys.readouterr().out, encoding="utf-8")
    inside = CRASH.replace(
        "torch.manual_seed(0)\nwith torch.no_grad():", 'from save_repro import save_repro\n\nwith save_repro("out"), torch.no_grad():'
    )
    (tmp_path / "train.py").write_text(inside, encoding="utf-8")
    done = run([sys.executable, "train.py"], cwd=tmp_path, env=environment(ours=False), limit=REPRO_LIMIT)
    assert done.status == -signal.SIGSEGV, done.text[-3000:]
    (line,) = (line for line in done.err.splitlines() if line.startswith("save_repro: "))
    answer = minified(tmp_path, Path(line.split("torch-minify run ")[1]))
    assert answer.process.status == 0, answer.described()
    assert (answer.result["signature"]["kind"], answer.result["input"]["taken_as"]) == ("crash", "runnable")
    assert run_alone(answer.directory / "repro.py").status == -signal.SIGSEGV


RANKS = """\
import torch
from accelerate import Accelerator


def f(x):
    y = torch.cos(x)
    return torch.ops.aten.avg_pool2d_backward(y, y, [1], [1], [0], False, True, None) + 1


accelerator = Accelerator(cpu=True)
total = accelerator.reduce(torch.randn(2, 3, 8, 8).sum())
with torch.no_grad():
    print(accelerator.process_index, torch.compile(f)(torch.randn(2, 3, 8, 8) + total).shape)
"""


@pytest.mark.all
def test_accelerate_s_ranks_are_followed(tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    (tmp_path / "train.py").write_text(RANKS, encoding="utf-8")
    launch = f"{sys.executable} -m accelerate.commands.launch --multi_gpu --num_processes 2 train.py"
    answer = minified(tmp_path, "--command", launch)
    fails_alone(answer, "avg_pool2d_backward")
    assert "it failed in a process that the program started: rank " in answer.process.err
    assert not [word for word in ("accelerate", "reduce", "cos") if word in answer.repro.replace("avg_pool2d_backward", "")], answer.repro
