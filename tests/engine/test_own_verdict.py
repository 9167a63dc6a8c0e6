"""What of a program's own conditions its repro keeps."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bot.engine.capture.source import Source
from bot.engine.own_verdict import keeps_of
from bot.failure.outcome import Outcome
from bot.failure.signature import signature_of

PROGRAM = """\
import torch


def backend(gm, inputs):
    if len(inputs) > 3:
        raise RuntimeError("too many inputs")
    return gm.forward


def f(*x):
    if x[0].sum() > 2:
        raise KeyError(x)


torch.compile(f, backend=backend)(*x)
"""
ALWAYS = PROGRAM.replace("    if len(inputs) > 3:\n        raise", "    raise")
OF_TORCH = '  File "/p/site-packages/torch/_dynamo/output_graph.py", line 700, in call_user_compiler\n    {}\n'


def said(*frames: str, error: str) -> str:
    return "Traceback (most recent call last):\n" + "".join(frames) + error + "\n"


CALL = '  File "/a/fail.py", line 14, in <module>\n    torch.compile(f, backend=backend)(*x)\n'
RAISE = '  File "/a/fail.py", line 6, in backend\n    raise RuntimeError("too many inputs")\n'
BY_BACKEND = said(CALL, OF_TORCH.format("compiled = backend(gm, inputs)"), RAISE, error="RuntimeError: too many inputs")
BY_TORCH = said(CALL, OF_TORCH.format("raise Unsupported"), error="torch._dynamo.exc.Unsupported: no")


@pytest.mark.parametrize(
    ("text", "lines", "candidate", "kept"),
    [
        (BY_BACKEND, (6, 14), PROGRAM, True),
        (BY_BACKEND, (6, 14), ALWAYS, False),
        (BY_BACKEND, (6, 14), PROGRAM.replace("> 3", ""), False),
        # what torch refuses is no verdict, and the condition that led there may go
        (BY_TORCH, (12, 14), PROGRAM.replace("    if x[0].sum() > 2:\n        raise", "    raise"), True),
    ],
)
def test_what_a_backend_refuses_it_refuses_on_its_condition(text: str, lines: tuple[int, ...], candidate: str, kept: bool) -> None:
    outcome = Outcome(status="raised", text=text)
    failure = signature_of(outcome, script="fail.py")
    capture = SimpleNamespace(outcome=outcome, own_verdict=False, regions=())
    reproduction: Any = SimpleNamespace(failure=failure, capture=capture, source=Source(PROGRAM, Path("/a/fail.py")), eager_error="")
    assert keeps_of(reproduction, PROGRAM, PROGRAM, lines)(candidate) is kept


EXPORTED = """\
import torch


def softplus(x, beta):
    return torch.log1p(torch.exp(x * beta))


ep = torch.export.export(net, (x,)).run_decompositions({torch.ops.aten.softplus.default: softplus})
if (net(x) - ep.module()(x)).abs().max() > 1e-4:
    raise RuntimeError("off")
"""


@pytest.mark.parametrize(("own_verdict", "kept"), [(True, False), (False, True)])
def test_where_a_program_judges_numbers_what_the_compiler_calls_computes_the_same(own_verdict: bool, kept: bool) -> None:
    outcome = Outcome(status="raised", text=said('  File "/a/lib.py", line 1, in check\n    raise error\n', error="RuntimeError: off"))
    capture = SimpleNamespace(outcome=outcome, own_verdict=own_verdict, regions=(), installed=(4,), beside=())
    failure = signature_of(outcome, script="fail.py")
    reproduction: Any = SimpleNamespace(failure=failure, capture=capture, source=Source(EXPORTED, Path("/a/fail.py")), eager_error="")
    keeps = keeps_of(reproduction, EXPORTED, EXPORTED, (10,))
    assert keeps(EXPORTED)
    assert keeps(EXPORTED.replace("torch.log1p(torch.exp(x * beta))", "x")) is kept


@pytest.mark.parametrize(("own_verdict", "kept"), [(True, False), (False, True)])
def test_where_a_program_judges_numbers_neither_side_of_a_choice_changes(own_verdict: bool, kept: bool) -> None:
    text = "def back(g):\n    if torch.compiler.is_compiling():\n        return g * m\n    return g * n\n\n\ncheck(torch.compile(back))\n"
    outcome = Outcome(status="exit", exit=1)
    capture = SimpleNamespace(outcome=outcome, own_verdict=own_verdict, regions=(), installed=(), beside=())
    source = Source(text, Path("/a/fail.py"))
    reproduction: Any = SimpleNamespace(failure=signature_of(outcome), capture=capture, source=source, eager_error="")
    assert keeps_of(reproduction, text, text, ())(text.replace("g * n", "g")) is kept


def test_what_a_program_shows_of_its_failure_is_what_it_measured() -> None:
    text = "if not torch.allclose(ref, got):\n    raise SystemExit(f'off by {(ref - got).abs().max()}')\n"
    capture = SimpleNamespace(outcome=Outcome(status="exit", exit=1), own_verdict=True, regions=(), installed=(), beside=())
    failure = signature_of(Outcome(status="exit", exit=1))
    reproduction: Any = SimpleNamespace(failure=failure, capture=capture, source=Source(text, Path("/a/fail.py")), eager_error="")
    keeps = keeps_of(reproduction, text, text, ())
    assert keeps(text)
    assert not keeps(text.replace("(ref - got).abs().max()", "ref.max()"))


@pytest.mark.parametrize(("error", "kept"), [("IndexError: N is out of range", False), ("", True)])
def test_where_a_program_misses_an_error_what_misses_it_is_read(error: str, kept: bool) -> None:
    text = "def fn(x):\n    y = torch.take(x, i)\n    return y\n\n\ntorch.compile(fn)(x)\nraise SystemExit(1)\n"
    outcome = Outcome(status="exit", exit=1)
    capture = SimpleNamespace(outcome=outcome, own_verdict=True, regions=(), installed=(), beside=())
    source = Source(text, Path("/a/fail.py"))
    reproduction: Any = SimpleNamespace(failure=signature_of(outcome), capture=capture, source=source, eager_error=error)
    assert keeps_of(reproduction, text, text, ())(text.replace("    return y\n", "    return x\n")) is kept


@pytest.mark.parametrize(
    ("error", "kept"),
    [("UserError: Constraints violated (s)! For more information, run with TORCH_LOGS", False), ("UserError: other", True)],
)
def test_where_a_size_became_a_constant_no_other_is_made_one(error: str, kept: bool) -> None:
    text = "def fn(x):\n    s = x.shape[0]\n    return x.reshape(s // 4, 4)\n\n\nexport(fn, (x,))\n"
    raised = '  File "/a/fail.py", line 6, in <module>\n    export(fn, (x,))\n  File "/a/lib.py", line 1, in export\n    raise error\n'
    outcome = Outcome(status="raised", text=said(raised, error=error))
    capture = SimpleNamespace(outcome=outcome, own_verdict=False, regions=(), installed=(), beside=())
    failure = signature_of(outcome, script="fail.py")
    reproduction: Any = SimpleNamespace(failure=failure, capture=capture, source=Source(text, Path("/a/fail.py")), eager_error="")
    assert keeps_of(reproduction, text, text, (6,))(text.replace("s // 4, 4", "4, 4")) is kept
