"""Operations that take functions, without the compiler: the same as their eager form where that works."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import torch._higher_order_ops as control_flow  # noqa: E402
import torch.nn.attention.flex_attention as flex  # noqa: E402

from bot.inside.eager import plain_forms  # noqa: E402
from bot.inside.protocol import read_reached  # noqa: E402
from tests.inside.forked import Forks  # noqa: E402

pytestmark = pytest.mark.slow  # the eager forms compile
X = torch.arange(12.0).reshape(4, 3)


@pytest.fixture(autouse=True)
def fresh() -> None:
    """What was compiled in this process before is not found again."""
    torch._dynamo.reset()


def test_while_loop() -> None:
    given = (lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (torch.tensor(0), X))
    torch.testing.assert_close(plain_forms.while_loop(*given), torch.while_loop(*given))


@pytest.mark.parametrize("pred", [True, torch.tensor(False)])
def test_cond(pred: object) -> None:
    given = (pred, lambda x: x.sin(), lambda x: x.cos(), (X,))
    torch.testing.assert_close(plain_forms.cond(*given), torch.cond(*given))


def test_map() -> None:
    given = (lambda row, y: {"a": row["x"] + y}, {"x": X}, torch.ones(3))
    torch.testing.assert_close(plain_forms.map_over(*given), control_flow.map(*given))


@pytest.mark.parametrize("reverse", [False, True])
def test_scans(reverse: bool) -> None:
    given = (lambda carry, row: (carry + row, carry * 2), torch.zeros(3), X)
    torch.testing.assert_close(plain_forms.scan(*given, reverse=reverse), control_flow.scan(*given, reverse=reverse))
    for dim in (0, 1):
        added = (lambda x, y: x + y, X, dim)
        found, eager = plain_forms.associative_scan(*added, reverse=reverse), control_flow.associative_scan(*added, reverse, "generic")
        torch.testing.assert_close(found, eager)


def test_flex_attention() -> None:
    query, key, value = torch.randn(3, 2, 4, 8, 5).unbind()
    bias = torch.randn(4, 8)
    mask = flex.create_block_mask(lambda b, h, q, k: q >= k, None, None, 8, 8, device="cpu", BLOCK_SIZE=4)
    given = {"score_mod": lambda score, b, h, q, k: score + bias[h, q - k], "block_mask": mask, "scale": 0.7, "return_lse": True}
    expected = flex.flex_attention(query, key[:, :2], value[:, :2], enable_gqa=True, **given)
    found = plain_forms.flex_attention(query, key[:, :2], value[:, :2], enable_gqa=True, **given)
    torch.testing.assert_close(found, expected)


def test_flex_attention_of_rows_without_scores() -> None:
    query, key, value = torch.randn(3, 1, 1, 4, 2).unbind()
    mask = flex.create_block_mask(lambda b, h, q, k: q > k, None, None, 4, 4, device="cpu", BLOCK_SIZE=2)
    given = (query, key, value, None, mask)
    torch.testing.assert_close(plain_forms.flex_attention(*given), flex.flex_attention(*given))


def test_flex_attention_may_branch_on_a_score() -> None:
    query, key, value = torch.randn(3, 1, 2, 4, 3).unbind()

    def branches(score: torch.Tensor, b: object, h: object, q: object, k: object) -> torch.Tensor:
        return score * 2 if score > 0 else score

    expected = flex.flex_attention(query, key, value, lambda score, *_: torch.where(score > 0, score * 2, score))
    torch.testing.assert_close(plain_forms.flex_attention(query, key, value, branches), expected)
    with pytest.raises(torch._dynamo.exc.Unsupported):
        flex.flex_attention(query, key, value, branches)


ALIAS = """
    import torch
    def f(x):
        return torch.while_loop(lambda i, v: i < 2, lambda i, v: (i + 1, {body}), (torch.tensor(0), x))
    print({call})
"""


@pytest.mark.parametrize(
    ("body", "call", "status", "said"),
    [
        ("v", "torch.compile(f)(torch.ones(2))", 0, "tensor([1., 1.])"),  # an output that is its input, which the compiler refuses
        ("v", "f(torch.ones(2))", 0, "tensor([1., 1.])"),  # not even called by the program
        ("v @ v @ v.x", "torch.compile(f)(torch.ones(2))", 1, "AttributeError: 'Tensor' object has no attribute 'x'"),
    ],
)
def test_a_control_whose_operation_cannot_be_compiled(tmp_path: Path, forks: Forks, body: str, call: str, status: int, said: str) -> None:
    script = tmp_path / "fail.py"
    script.write_text(textwrap.dedent(ALIAS).format(body=body, call=call))
    plain = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert plain.returncode == 1, "the eager form fails where the compiler does"
    done = forks.run("control", str(script), cwd=tmp_path, env=os.environ)
    assert done.returncode == status, done.stderr
    assert said in done.stdout + done.stderr
    assert read_reached(done.stderr)[0].calls > 0


REFUSED = """
    import torch
    from torch.nn.attention.flex_attention import flex_attention
    torch.compile(lambda: 0)()
    x = torch.ones({shape}, requires_grad={grad})
    try:
        flex_attention(x, x, x)
    except {error} as error:
        print("refused:", error)
"""


@pytest.mark.parametrize(
    ("shape", "grad", "error", "said"),
    [
        ((1, 1, 4, 2), True, "NotImplementedError", "does not support backward on CPU"),
        ((4, 2), False, "NotImplementedError", "must be 4D"),
    ],
)
def test_what_an_operation_refuses_before_it_compiles_is_refused_in_the_control(
    tmp_path: Path, forks: Forks, shape: tuple[int, ...], grad: bool, error: str, said: str
) -> None:
    script = tmp_path / "fail.py"
    script.write_text(textwrap.dedent(REFUSED).format(shape=shape, grad=grad, error=error))
    plain = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    control = forks.run("control", str(script), cwd=tmp_path, env=os.environ)
    for done in (plain, control):
        assert done.returncode == 0, done.stderr
        assert "refused:" in done.stdout
        assert said in done.stdout
    assert read_reached(control.stderr)[0].calls == 2, "torch.compile and what it gives, not the operation"
