"""Programs with a planted error and their healthy twins: a repro holds the wrong operator and passes without the plant, or there is none.

The rows are those of `scripts/bench truth`; here are the smallest models.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from benchlib.planted import OPERATORS, Row
from benchlib.truth import ending

from tests.e2e.e2e_harness import minify_script

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1500)]
BUDGET = 600.0

# In the small types and in training: there eager itself misses every usual tolerance.
QUICK = (Row("relu", 100, "bf16", "training", 1), Row("softmax", 100, "tf32", "inference", 1))
HEALTHY = (Row("none", 0, "bf16", "training", 1), Row("none", 0, "tf32", "inference", 1), Row("none", 0, "fp16", "inference", 1))
REST = tuple(
    Row(name, (1, 10, 100)[place % 3], ("fp32", "bf16", "tf32", "fp16")[place % 4], ("inference", "training")[place % 2], 1)
    for place, name in enumerate(OPERATORS)
)


@pytest.mark.parametrize("row", [pytest.param(row, marks=pytest.mark.all) for row in (*QUICK, *REST)], ids=lambda row: row.name)
def test_planted(row: Row, tmp_path: Path) -> None:
    found = ending(row, "cpu", sys.executable, tmp_path, BUDGET)
    assert found.verdict in ("found", "refused"), found
    if row in QUICK:
        assert (found.verdict, found.status, found.ops_after) == ("found", "minimized", 1), found


@pytest.mark.parametrize("row", [pytest.param(row, marks=pytest.mark.all) for row in HEALTHY], ids=lambda row: row.name)
def test_healthy_twin(row: Row, tmp_path: Path) -> None:
    found = ending(row, "cpu", sys.executable, tmp_path, BUDGET)
    assert (found.verdict, found.status) == ("quiet", "not_reproduced"), found


TIGHT = """\
import torch

torch.manual_seed(0)


def f(x):
    return torch.sin(x * 1.1 + 0.3) * 2.0 + x


x = torch.randn(64, 64, dtype=torch.bfloat16)
{}
"""
ASSERTS = "torch.testing.assert_close(torch.compile(f)(x), f(x), rtol=1e-6, atol=1e-6)"
RAISES = "if not torch.allclose(torch.compile(f)(x), f(x), 1e-6, 1e-6):\n    raise ValueError('they differ')"


@pytest.mark.all
@pytest.mark.parametrize("ends", [ASSERTS, RAISES], ids=["asserts", "raises"])
def test_a_tolerance_that_eager_misses_as_well(tmp_path: Path, ends: str) -> None:
    """Wrong by its own words: one rounding where eager has four. The result says that compiled is nearer to float64."""
    script = tmp_path / "tight.py"
    script.write_text(TIGHT.format(ends), encoding="utf-8")
    answer = minify_script(script, tmp_path)
    assert (answer.process.status, answer.result["status"]) == (4, "not_reproduced"), answer.described()
    assert "compiled is nearer to float64 than eager" in answer.result["reason"]


PRINTS = """\
import torch


@torch.compile(backend="eager")
def double(x):
    return x * (2 if torch.compiler.is_compiling() else 1)


print("sum", double(torch.ones(3)).sum().item())
"""


@pytest.mark.all
def test_results_that_no_graph_shows_are_told_where_they_are_printed(tmp_path: Path) -> None:
    script = tmp_path / "prints.py"
    script.write_text(PRINTS, encoding="utf-8")
    answer = minify_script(script, tmp_path)
    assert (answer.process.status, answer.result["reason_code"]) == (4, "passes"), answer.described()
    assert "it prints 'sum 6.0' each time, and 'sum 3.0' without the compiler" in answer.result["reason"]


RANDOM = """\
import torch

net = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.Dropout(0.3))
x = torch.randn(4, 16)
torch.manual_seed(0)
expected = net(x)
torch.manual_seed(0)
assert torch.allclose(torch.compile(net)(x), expected, atol=1e-5), "they differ"
"""
CHECKPOINTED = """\
import torch
from torch.utils.checkpoint import checkpoint

torch.manual_seed(1)
body = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Dropout(0.2), torch.nn.Linear(16, 8))
x = torch.randn(16, 8)


def f(x):
    return x + checkpoint(body, x, use_reentrant=False)


def gradients(f):
    torch.manual_seed(0)
    return torch.autograd.grad(f(x).square().mean(), list(body.parameters()))


for ours, theirs in zip(gradients(f), gradients(torch.compile(f))):
    assert torch.allclose(ours, theirs, atol=1e-5), "they differ"
"""


@pytest.mark.all
@pytest.mark.parametrize("text", [RANDOM, CHECKPOINTED], ids=["forward", "checkpointed"])
def test_other_random_numbers_are_no_wrong_ones(tmp_path: Path, text: str) -> None:
    """Compiled code draws from a generator of its own, as documented, unless it is told not to."""
    script = tmp_path / "draws.py"
    script.write_text(text, encoding="utf-8")
    answer = minify_script(script, tmp_path)
    assert (answer.process.status, answer.result["reason_code"]) == (4, "passes"), answer.described()
    assert "fallback_random = True it passes" in answer.result["reason"]


LOWERING = """\
import torch
from torch._inductor.lowering import lowerings, register_lowering

plain = lowerings[torch.ops.aten.sigmoid.default]


@register_lowering(torch.ops.aten.sigmoid.default)
def scaled(x):
    return lowerings[torch.ops.aten.mul.Tensor](plain(x), 1.1)
"""
CALLS = """\
import plants
import torch


class Gate(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.left, self.right = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)

    def forward(self, x):
        return torch.tanh(self.left(x)) * torch.sigmoid(self.right(x)) + x


torch.manual_seed(0)
gate, x = Gate(), torch.randn(4, 8)
torch.testing.assert_close(torch.compile(gate)(x), gate(x))
"""


@pytest.mark.parametrize("stage", ["", pytest.param("source", marks=pytest.mark.all)])
@pytest.mark.slow
def test_a_lowering_of_a_module_beside_the_script_stays_as_wrong_as_it_was(tmp_path: Path, stage: str) -> None:
    (tmp_path / "plants.py").write_text(LOWERING, encoding="utf-8")
    script = tmp_path / "main.py"
    script.write_text(CALLS, encoding="utf-8")
    answer = minify_script(script, tmp_path, *(["--stage", stage] if stage else []))
    assert (answer.process.status, answer.result["status"]) == (0, "minimized"), answer.described()
    assert "lowerings[torch.ops.aten.mul.Tensor](plain(x), 1.1)" in answer.repro
    assert "tanh" not in answer.repro
