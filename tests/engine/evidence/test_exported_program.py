"""The minimal module as an exported program, and whether it fails alike once it is loaded again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bot.engine.evidence.exported_program import loading, write
from bot.failure.outcome import Outcome
from bot.failure.signature import signature_of
from bot.inside.protocol import Question
from bot.models.failure import Signature
from bot.workers.pool import Pool
from tests.oracle.fakes import FAILS, OTHER, FakePool

SCRIPT = '''import torch


class Repro(torch.nn.Module):
    """One \x0c line."""

    def forward(self, x):
        return torch.relu(x) + 1


x = torch.randn(3)
torch.compile(Repro())(x)
'''


LOWERING = """import torch
from torch._inductor import lowering


@lowering.register_lowering(torch.ops.aten.relu.default)
def broken(x):
    raise KeyError(7)


"""


def test_the_class_gives_way_to_the_file() -> None:
    text = loading(SCRIPT, "saved.pt2")
    assert text is not None
    assert text.split("\n")[3:5] == ["def Repro():", "    return torch.export.load('saved.pt2').module()"]
    assert "forward" not in text
    assert text.endswith("x = torch.randn(3)\ntorch.compile(Repro())(x)\n")
    compile(text, "repro.py", "exec")
    assert loading("import torch\n", "saved.pt2") is None


Write = Callable[..., Any]


@pytest.fixture
def written(tmp_path: Path) -> Write:
    """`write` in a world where the export ends as `exported` says, and the reloaded script as `reloaded`."""

    def run(exported: dict[str, Any], reloaded: dict[str, Any], *, saves: bool = True) -> Any:
        path = tmp_path / "saved.pt2"

        def answer(question: Question) -> dict[str, Any]:
            assert (question.task, question.save) == ("export", str(path))
            if saves:
                path.write_bytes(b"")
            return exported

        def observe(text: str) -> tuple[Outcome, Signature | None]:
            assert "torch.export.load" in text
            outcome = Outcome(**reloaded)
            return outcome, signature_of(outcome)

        reference = signature_of(Outcome(**FAILS))
        assert reference is not None
        return write(SCRIPT, path, FakePool(answer).ask, 9.0, reference.same_across_forms, observe)  # type: ignore[arg-type]

    return run


OK = {"status": "ok"}


@pytest.mark.parametrize(
    ("exported", "reloaded", "same", "reason"),
    [
        (OK, FAILS, True, None),
        (OK, OTHER, False, "fails otherwise: exception in"),
        (OK, OK, False, "the reloaded program passes"),
        (OK, {"status": "infra"}, False, "the reloaded program was not seen to its end: infra"),
        (
            {"status": "raised", "text": "Traceback\nUserError: data-dependent\n"},
            FAILS,
            False,
            "cannot export the module: UserError: data-dep",
        ),
        ({"status": "timeout"}, FAILS, False, "the export was not seen to its end: timeout"),
    ],
)
def test_what_is_said(written: Write, exported: Any, reloaded: Any, same: bool, reason: str | None) -> None:
    found = written(exported, reloaded)
    assert found.same_signature is same
    assert (found.reason is None) if reason is None else (reason in found.reason)


def test_an_export_that_leaves_no_file(written: Write) -> None:
    assert written(OK, FAILS, saves=False).same_signature is False


def test_for_real(pool: Pool, tmp_path: Path) -> None:
    """A lowering that raises raises for the saved program as well."""
    script = LOWERING + SCRIPT

    def observe(text: str) -> tuple[Outcome, Signature | None]:
        outcome = pool.ask(Question(text, limit=100.0))[0]
        return outcome, signature_of(outcome)

    reference = observe(script)[1]
    assert reference is not None
    found = write(script, tmp_path / "saved.pt2", pool.ask, 100.0, reference.same_across_forms, observe)
    assert found is not None
    assert (found.same_signature, found.reason) == (True, None)
