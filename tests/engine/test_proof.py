"""What fresh processes are asked, and what is made of their answers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bot.engine import proof
from bot.engine.evidence import verify as fresh
from bot.engine.evidence.verify import Verification
from bot.engine.proof import Prover
from bot.failure.outcome import Outcome
from bot.machine import doctor
from bot.models.failure import Kind, Phase, Signature
from bot.models.result import Rule

FAILURE = Signature(kind=Kind.EXCEPTION, phase=Phase.DYNAMO, exception=("Unsupported",), message="no")
HANG = Signature(kind=Kind.HANG, phase=Phase.DYNAMO)


@pytest.fixture
def prover(tmp_path: Path) -> Callable[..., Prover]:
    return lambda failure=FAILURE: Prover("python", failure, 300.0, Rule(), tmp_path, lambda: True, lambda line: None)


@pytest.mark.parametrize(("failure", "limit"), [(FAILURE, 300.0), (HANG, 60.0 + fresh.START)])
def test_a_hang_is_waited_for_no_longer_than_it_takes(
    prover: Callable[..., Prover], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, failure: Signature, limit: float
) -> None:
    limits = []

    def run(*_: Any, timeout: float, **__: Any) -> Outcome:
        limits.append(timeout)
        return Outcome(status="ok")

    monkeypatch.setattr(fresh, "run_fresh", run)
    assert not prover(failure).confirms("pass", tmp_path)
    assert limits == [limit]


def test_flaky_failures_are_run_more_often(prover: Callable[..., Prover], monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def verify(_: str, __: Path, ___: Signature, runs: int, **____: Any) -> Verification:
        asked.append(runs)
        return Verification(runs=runs, same=1, eager="passes")

    monkeypatch.setattr(fresh, "verify", verify)
    found = prover().proof("pass", 3)
    assert asked == [3, proof.FLAKY_RUNS - 3]
    assert (found.runs, found.same, found.eager) == (10, 2, "passes")


def test_the_latest_script_that_fails_alone(prover: Callable[..., Prover], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(Prover, "confirms", lambda _, text, __: int(text) < 6)
    texts = [str(number) for number in range(9)]
    assert prover().latest(texts, tmp_path) == 5
    assert prover().latest(texts[6:], tmp_path) is None
    assert prover().latest([], tmp_path) is None


class TestElsewhere:
    def test_the_same_failure(self, prover: Callable[..., Prover], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(doctor, "facts_of", lambda _: {"python": "3.13.1", "torch": "2.14.0", "cuda": None, "headers": True})
        monkeypatch.setattr(fresh, "verify", lambda *_, **__: Verification(runs=1, same=1, eager="passes"))
        found = prover().elsewhere("pass", "/other")
        assert (found.python, found.same, found.said) == ("/other", True, None)
        assert found.versions == {"python": "3.13.1", "torch": "2.14.0"}

    @pytest.mark.parametrize(("signatures", "said"), [((None,), "passes"), ((HANG,), "run 1: x")])
    def test_another(
        self, prover: Callable[..., Prover], monkeypatch: pytest.MonkeyPatch, signatures: tuple[Signature | None, ...], said: str
    ) -> None:
        monkeypatch.setattr(doctor, "facts_of", lambda _: {"python": "3.13.1", "torch": "2.14.0"})
        monkeypatch.setattr(
            fresh, "verify", lambda *_, **__: Verification(runs=1, same=0, eager="passes", signatures=signatures, differences=("run 1: x",))
        )
        found = prover().elsewhere("pass", "/other")
        assert (found.same, found.said) == (False, said)

    def test_an_interpreter_that_cannot_run_it(self, prover: Callable[..., Prover], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(doctor, "facts_of", lambda _: {"python": "3.13.1", "error": "No module named 'torch'"})
        found = prover().elsewhere("pass", "/other")
        assert (found.same, found.said) == (False, "could not be run: No module named 'torch'")
