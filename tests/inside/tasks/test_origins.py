"""Which values went into the code that a compiler refused."""

from __future__ import annotations

import textwrap

import pytest

from bot.inside.protocol import Question
from bot.workers.pool import Pool

REPRO = """
    import torch
    import torch._inductor.config as config
    config.cpp.inject_relu_bug_TESTING_ONLY = "compile_error"

    class Repro(torch.nn.Module):
        def forward(self, x, w):
            sin = torch.sin(x)
            mm = torch.mm(sin, w)
            relu = torch.relu(mm)
            exp = torch.exp(relu)
            return exp + 1

    torch.compile(Repro())(torch.ones(4, 4), torch.ones(4, 4))
"""


def asked(pool: Pool, text: str) -> list[list[str]]:
    _, facts = pool.ask(Question(textwrap.dedent(text), "origins", 100.0))
    return list(facts["guesses"])


@pytest.mark.slow
def test_a_cpp_error_points_at_its_operation_and_its_kernel(pool: Pool) -> None:
    first, *_, last = asked(pool, REPRO)
    assert first == ["relu"]
    assert set(last) >= {"exp", "relu", "return"}
    assert "mm" not in last


def test_what_is_no_error_of_generated_code_points_at_nothing(pool: Pool) -> None:
    assert asked(pool, "import torch\nraise KeyError(7)\n") == []
