"""`--cuda-arch` by the real command line: programs for a GPU, on a machine that may have none. Needs a torch built for CUDA, and Triton:
this interpreter's, or that of an environment beside it, as `scripts/setup --torch` makes them."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.e2e.e2e_harness import ROOT, Answer, command, environment, minify_script, run


def has_cuda(places: Iterable[Path]) -> bool:
    """Whether one of these directories of packages has a torch built for CUDA, with Triton."""
    return any((place / "torch/lib/libtorch_cuda.so").exists() and (place / "triton").is_dir() for place in places)


def python_with_cuda() -> str | None:
    if has_cuda(map(Path, sys.path)):
        return sys.executable
    # what was broken off while it was installed has no stamp
    whole = [stamp.parent for stamp in sorted(ROOT.glob(".venv-*/.stamp"))]
    return next((str(venv / "bin/python") for venv in whole if has_cuda(venv.glob("lib/*/site-packages"))), None)


PYTHON = python_with_cuda()
_PLANTED = 'import torch\n\ntorch._inductor.config.triton.inject_relu_bug_TESTING_ONLY = "compile_error"\n'

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1500)]
with_cuda = pytest.mark.skipif(PYTHON is None, reason="needs a torch built for CUDA, and Triton")
# one of each sort is enough where all else is run with another torch
beside = [pytest.mark.all] if sys.executable != PYTHON else []


def program(place: Path, text: str) -> Path:
    script = place / "program.py"
    script.write_text(textwrap.dedent(text), encoding="utf-8")
    return script


def minified(place: Path, text: str) -> Answer:
    return minify_script(program(place, text), place, "--cuda-arch", "90", "--python", str(PYTHON))


TRAINING = (
    _PLANTED
    + """
class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first, self.last = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)
        self.norm = torch.nn.LayerNorm(width)

    def forward(self, x):
        x = self.norm(x)
        heads = x[:, None, None, :].expand(-1, 4, 8, -1)
        x = x + torch.nn.functional.scaled_dot_product_attention(heads, heads, heads).mean((1, 2))
        return x + self.last(torch.relu(self.first(x)))


torch.manual_seed(0)
net = torch.nn.Sequential(Block(32), Block(32)).cuda()
optimizer = torch.optim.AdamW(net.parameters())
step = torch.compile(net)
with torch.autocast("cuda", dtype=torch.bfloat16):
    loss = step(torch.randn(8, 32, device="cuda")).float().pow(2).mean()
loss.backward()
optimizer.step()
torch.cuda.synchronize()
print(loss.item())
"""
)
KERNEL = """\
import torch
import triton
import triton.language as tl


@triton.jit
def wrong(source, target, count, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(source + place, mask=place < count) + tl.arange(0, 3)
    tl.store(target + place, value, mask=place < count)


def doubled(x):
    out = torch.empty_like(x)
    if torch.compiler.is_compiling():
        wrong[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)
    return out


@torch.compile
def f(x):
    return torch.softmax(doubled(torch.tanh(x)) + 1, dim=-1)


with torch.no_grad():
    print(f(torch.randn(8, 64, device="cuda")).sum().item())
"""


@with_cuda
@pytest.mark.parametrize(
    ("text", "said", "lacks"),
    [
        pytest.param(TRAINING, "torch.relu(", "LayerNorm", id="training"),
        pytest.param(KERNEL, "tl.arange(0, 3)", "softmax", id="kernel", marks=beside),
    ],
)
def test_what_does_not_compile_is_minimized(tmp_path: Path, text: str, said: str, lacks: str) -> None:
    answer = minified(tmp_path, text)
    assert answer.result["status"] == "minimized", answer.described()
    assert answer.result["signature"]["phase"] == "triton_compile"
    assert answer.result["compile_only"] is True
    assert answer.result["reduction"]["ops_after"] == 1
    assert said in answer.repro
    assert lacks not in answer.repro
    assert 'device="cuda"' in answer.repro
    assert "# compile-only, no GPU was used: compiled for sm_90\n" in answer.repro
    again = run(
        command(
            "verify", answer.directory / "repro.py", "--result", answer.directory / "result.json", "--runs", "1", "--python", str(PYTHON)
        ),
        cwd=tmp_path,
        env=environment(ours=True),
        limit=600.0,
    )
    assert again.status == 0, again.text


@with_cuda
@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            "import torch\nprint(torch.compile(torch.nn.Linear(4, 4).cuda())(torch.randn(2, 4, device='cuda')).sum().item())\n",
            id="healthy",
        ),
        pytest.param(
            "import torch\nx = torch.randn(4, device='cuda')\ny = torch.compile(torch.sin)(x)\ny.cpu().numpy()\n",
            id="reads data",
            marks=beside,
        ),
        pytest.param(
            "import torch\n@torch.compile\ndef f(x):\n    return torch.nonzero(x) + 1\nf(torch.ones(4, device='cuda'))\n",
            id="sizes from data",
            marks=beside,
        ),
        pytest.param(
            "import torch\n"
            "torch._inductor.aoti_compile_and_package(torch.export.export(torch.nn.ReLU(), (torch.ones(3, device='cuda'),)))\n",
            id="export",
            marks=beside,
        ),
    ],
)
def test_what_needs_the_gpu_is_not_judged(tmp_path: Path, text: str) -> None:
    answer = minified(tmp_path, text)
    assert (answer.result["status"], answer.result["reason_code"]) == ("not_reproduced", "needs_hardware"), answer.described()


@pytest.mark.skipif(sys.executable == PYTHON, reason="needs a torch without CUDA")
def test_a_torch_without_cuda_says_what_to_install(tmp_path: Path) -> None:
    answer = minify_script(program(tmp_path, TRAINING), tmp_path, "--cuda-arch", "90")
    assert answer.result["status"] == "error"
    assert "built without CUDA" in answer.result["reason"]
