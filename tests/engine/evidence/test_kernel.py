"""The kernel alone: what is left of a generated module, and when it counts."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path

import pytest

from bot.engine.evidence.kernel import compiled_part, find
from bot.failure.outcome import Outcome
from bot.inside.protocol import Facts, Question

KERNEL = """cpp_fused_relu_0 = async_compile.cpp_pybinding(['const float*'], r'''
extern "C" void kernel(const float* in_ptr0)
{
    auto tmp1 = compile error!;
}
''')"""

# As Inductor of torch 2.13 writes it, shortened.
MODULE = f"""# AOT ID: ['0_inference']
from ctypes import c_void_p, c_long
import torch
import os
from torch._inductor.async_compile import AsyncCompile
from torch._inductor.select_algorithm import extern_kernels

aten = torch.ops.aten
empty_strided_cpu = torch._C._dynamo.guards._empty_strided_cpu
async_compile = AsyncCompile()


# kernel path: /tmp/torchinductor_somebody/ab/cab.py
{KERNEL}


async_compile.wait(globals())
del async_compile

def call(args):
    return cpp_fused_relu_0(empty_strided_cpu((4, ), (1, ), torch.float32))
"""
LEFT = f"""# AOT ID: ['0_inference']
from torch._inductor.async_compile import AsyncCompile

async_compile = AsyncCompile()


{KERNEL}


async_compile.wait(globals())
"""


def test_what_has_the_kernels_compiled_is_left() -> None:
    text = compiled_part(MODULE)
    assert text is not None
    head, _, rest = text.partition("\n")
    assert head.startswith("# ")
    assert rest == LEFT


@pytest.mark.parametrize("module", ["import torch\n\ndef call(args):\n    return args\n", "x = (\n", "", "\0"])
def test_what_compiles_no_kernel_has_none(module: str) -> None:
    assert compiled_part(module) is None


@pytest.mark.parametrize(
    ("module", "alike", "counts"),
    [(MODULE, [True], True), (MODULE, [False], False), (None, [], False), ("import torch\n", [], False), ("#" * (1 << 21), [], False)],
)
def test_only_what_fails_as_the_script_does_counts(tmp_path: Path, module: str | None, alike: Sequence[bool], counts: bool) -> None:
    path, left = tmp_path / "generated.py", list(alike)

    def answer(question: Question) -> tuple[Outcome, Facts]:
        assert (question.text, question.task, question.save, question.limit) == ("script", "generated", str(path), 9.0)
        if module is not None:
            path.write_text(module)
        return Outcome(status="raised"), {}

    found = find("script", path, answer, 9.0, lambda _: left.pop(0))
    assert (found is not None) is counts
    assert left == []
    if found is not None:
        ast.parse(found)
