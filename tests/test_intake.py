"""What a capture and its eager control make of a program."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bot.capture.region import Capture
from bot.capture.run import Target
from bot.evidence import fresh
from bot.intake import START, Intake
from bot.models import Kind, Phase, Signature
from bot.options import Ended, Options
from bot.oracle.outcome import Outcome
from bot.progress import Progress
from bot.workspace import Workspace

Judge = Callable[..., Signature]


@pytest.fixture
def judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Judge:
    def run(kind: Kind, **control: Any) -> Signature:
        signature = Signature(kind=kind, phase=Phase.DYNAMO)
        found = Capture(outcome=Outcome(status="raised"), signature=signature, regions=(), versions={}, log=tmp_path / "log")
        eager = Outcome(**{"status": "ok", "calls": 1, "seconds": 2.0, **control})
        monkeypatch.setattr(Intake, "_captured", lambda _: found)
        monkeypatch.setattr(fresh, "run_control_fresh", lambda *_, **__: eager)
        options = Options(Target(tmp_path / "fail.py", None, ()), "python", tmp_path / "out")
        return Intake(options, Workspace(options.out), Progress(), tmp_path, lambda: True).run()[1]

    return run


def test_a_failure_that_eager_does_not_have(judge: Judge) -> None:
    assert judge(Kind.EXCEPTION).kind is Kind.EXCEPTION


@pytest.mark.parametrize(
    ("control", "said"),
    [
        ({"status": "raised", "text": "Traceback\nKeyError: 7"}, "fails in eager as well: KeyError: 7"),
        ({"status": "exit", "exit": 3}, r"fails in eager as well \(exit status 3\)"),
        ({"calls": 0}, "never reaches torch.compile"),
    ],
)
def test_what_is_no_failure_of_the_compiler(judge: Judge, control: dict[str, Any], said: str) -> None:
    with pytest.raises(Ended, match=said) as ended:
        judge(Kind.EXCEPTION, **control)
    assert ended.value.status == "not_reproduced"


def test_an_error_that_only_eager_raises(judge: Judge) -> None:
    assert judge(Kind.ACCURACY, raised=1).kind is Kind.NO_RAISE
    assert judge(Kind.ACCURACY, raised=0).kind is Kind.ACCURACY


def test_a_hang_is_fast_in_eager(judge: Judge) -> None:
    assert judge(Kind.HANG, seconds=START).kind is Kind.HANG
    with pytest.raises(Ended, match="--hang-after sets a longer one"):
        judge(Kind.HANG, seconds=START + 7)
