"""How much a run holds at once, of a script whose values do not fit together: each task in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

INSIDE = Path(__file__).parents[2] / "bot" / "inside"
# Answers one task as a worker's child does, with another bound on what `localize` holds, and says how much it held.
DRIVER = f"""
import json, re, sys
sys.path.insert(0, {str(INSIDE)!r})
import boot
boot.load_package()
from torch_minify_inside import worker
from torch_minify_inside.protocol import Question
from torch_minify_inside.tasks import localize
path, task, held = sys.argv[1:]
localize.HELD = int(held) or localize.HELD
saved, save, runs, run = [], localize.torch.save, [], localize._Program.returning
localize.torch.save = lambda value, file: (saved.append(file), save(value, file))
localize._Program.returning = lambda program, names, space: (runs.append(len(names)), run(program, names, space))[1]
facts = worker.TASKS[task](path, Question(""))
# Not getrusage's: what an exec begins with there is the peak of who started it, and a test process may have held more.
peak = int(re.search(r"VmHWM:\\s*(\\d+) kB", open("/proc/self/status").read())[1]) * 1024
print(json.dumps({{**facts, "peak": peak, "saved": len(saved), "batches": runs}}))
"""
# The backend computes `relu` and `log1p` wrongly; everything after `relu` is wrong too.
SCRIPT = """
import torch

def wrong(gm, inputs):
    for node in gm.graph.nodes:
        if node.target in (torch.relu, torch.log1p):
            with gm.graph.inserting_after(node):
                more = gm.graph.call_function(torch.add, (node, 1.0))
            node.replace_all_uses_with(more)
            more.args = (node, 1.0)
    gm.recompile()
    return gm

class Repro(torch.nn.Module):
    def forward(self, x):
        log1p = torch.log1p(x)
        split = torch.split(torch.sign(log1p), 512, 1)
        v0 = torch.cat(split, 1) + x
{chain}
        relu = torch.relu(v{middle})
{after}
        return after5 * 2

x = torch.full(({rows}, 1024), 0.5)
torch.compile(Repro(), backend=wrong)(x)
"""
KIB_PER_ROW, GIB = 4, 1 << 30


def script(values: int, rows: int) -> str:
    chain = "\n".join(f"        v{i} = torch.neg(v{i - 1})" for i in range(1, values - 8))
    after = "\n".join(f"        after{i} = torch.neg({f'after{i - 1}' if i else 'relu'})" for i in range(6))
    return SCRIPT.format(chain=chain, after=after, middle=values - 9, rows=rows)


def answer(directory: Path, text: str, task: str, held: int = 0) -> dict[str, Any]:
    path = directory / "repro.py"
    path.write_text(text)
    command = [sys.executable, "-c", DRIVER, str(path), task, str(held)]
    ran = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False, timeout=500)
    assert ran.returncode == 0, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    assert found["status"] == "ok", found
    return found


@pytest.mark.all
def test_a_bound_on_what_is_held_does_not_change_what_is_found(tmp_path: Path) -> None:
    text = script(values=24, rows=1)
    whole, batches, single = (answer(tmp_path, text, "localize", held) for held in (0, 5 * 4096, 1))
    assert (whole["first"], whole["saved"], len(whole["batches"])) == (["log1p", "relu"], 0, 1)
    assert whole["harmless"] == ["log1p"]
    assert batches["saved"] > 0
    assert len(batches["batches"]) > 3
    # a value that does not fit is held alone, with its views
    assert max(single["batches"]) <= 2
    for found in (batches, single):
        assert (found["first"], found["harmless"], sum(found["batches"])) == (whole["first"], whole["harmless"], sum(whole["batches"]))


# GiB; each takes half a minute, or two on a busy machine
_OTHERS = {"control_fp64": 1.2, "shapes": 1.0, "localize": 1.6}


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("task", "most"),
    [("control", 1.0), *(pytest.param(task, most, marks=pytest.mark.all) for task, most in _OTHERS.items())],
)
def test_three_gigabytes_of_values_are_never_all_held(tmp_path: Path, task: str, most: float) -> None:
    # 96 values of 32 MiB; torch itself takes a third of a GiB
    found = answer(tmp_path, script(values=96, rows=32 * 1024 // KIB_PER_ROW), task, 256 << 20)
    assert found["peak"] < most * GIB
