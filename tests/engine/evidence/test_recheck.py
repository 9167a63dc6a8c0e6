"""`torch-minify recheck` and `suite`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bot.cli import main
from bot.engine.evidence import recheck
from bot.engine.evidence import verify as fresh
from bot.engine.evidence.verify_command import Checked
from bot.models.failure import Kind, Phase, Signature, Stage
from bot.models.result import Result, Rule, VerificationFacts

FAILURE = Signature(kind=Kind.EXCEPTION, phase=Phase.INDUCTOR_LOWERING, exception=("InductorError", "KeyError"), message="7")
OTHER = FAILURE.model_copy(update={"exception": ("InductorError", "IndexError")})
THIRD = FAILURE.model_copy(update={"exception": ("InductorError", "TypeError")})
HANG = Signature(kind=Kind.HANG, phase=Phase.RUN)
RECORDED = Result(
    status="minimized", stage=Stage.AOT, signature=FAILURE, verification=VerificationFacts(runs=3, same=3, eager="passes", rule=Rule())
)


def seen(*signatures: Signature | None, eager: Any = "passes", fault: str | None = None) -> Checked:
    same = sum(signature is FAILURE for signature in signatures)
    proof = fresh.Verification(runs=len(signatures), same=same, eager=eager, signatures=signatures, fault=fault)
    return Checked(RECORDED, FAILURE, proof, ())


@pytest.mark.parametrize(
    ("checked", "word"),
    [
        (seen(FAILURE, FAILURE, FAILURE), "still"),
        (seen(FAILURE, None, OTHER), "still"),
        (seen(None, None, None), "fixed"),
        (seen(OTHER, OTHER, OTHER), "changed"),
        (seen(None, None, OTHER), "cannot_verify"),
        (seen(OTHER, THIRD, OTHER), "cannot_verify"),
        (seen(HANG, HANG), "cannot_verify"),
        (seen(None, None, None, eager="fails"), "cannot_verify"),
        (seen(OTHER, OTHER, fault="no C++ compiler"), "cannot_verify"),
    ],
)
def test_only_what_was_seen_is_said(checked: Checked, word: str) -> None:
    assert recheck.verdict(checked)[0] == word


def test_of_what_failed_now_and_then_a_pass_says_little() -> None:
    flaky = RECORDED.model_copy(update={"verification": VerificationFacts(runs=10, same=3, eager="passes", rule=Rule())})
    assert recheck.verdict(replace(seen(None, None, None), recorded=flaky))[0] == "cannot_verify"
    assert recheck.verdict(replace(seen(None, FAILURE), recorded=flaky))[0] == "still"


@pytest.fixture
def repro(tmp_path: Path) -> Path:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "repro.py").write_text("pass\n")
    (tmp_path / "a" / "result.json").write_text(RECORDED.to_json())
    return tmp_path / "a" / "repro.py"


@pytest.mark.parametrize(
    ("signature", "status", "first"),
    [
        (FAILURE, 0, "still: the same failure in 2 of 2 fresh processes"),
        (None, 4, "fixed: it passes in 2 of 2"),
        (OTHER, 5, "changed: it fails in another way in each of 2 fresh processes: exception in inductor_lowering: InductorError: Index"),
    ],
)  # fmt: skip
def test_the_word_comes_first_then_what_shows_it(
    repro: Path, monkeypatch: Any, capsys: Any, signature: Signature | None, status: int, first: str
) -> None:
    monkeypatch.setattr(fresh, "verify", lambda *_: seen(signature, signature).proof)
    words = ["recheck", str(repro), "--result", str(repro.with_name("result.json")), "--runs", "2"]
    assert main(words) == status
    rows = capsys.readouterr().out.splitlines()
    assert rows[0].startswith(first)
    assert rows[2] == f"expected: {FAILURE.line()}"


def test_what_cannot_be_run_is_not_said_to_be_fixed(repro: Path, capsys: Any) -> None:
    words = ["recheck", str(repro), "--result", str(repro.with_name("result.json")), "--python", str(repro.with_name("none"))]
    assert main(words) == 1
    assert capsys.readouterr().out.startswith("cannot_verify: the repro could not be run")
    assert main(["recheck", "none.py", "--result", "none.json"]) == 2


def test_a_suite_has_a_line_for_each(repro: Path, monkeypatch: Any, capsys: Any) -> None:
    top = repro.parents[1]
    (top / "b" / "c").mkdir(parents=True)
    (top / "b" / "c" / "repro.py").write_text("")
    (top / "b" / "c" / "result.json").write_text("{}")
    (top / "alone.py").write_text("")
    monkeypatch.setattr(fresh, "verify", lambda *_: seen(FAILURE).proof)
    assert main(["suite", str(top)]) == 4
    first, second, last = capsys.readouterr().out.splitlines()
    assert first == "still a: the same failure in 1 of 1 fresh processes"
    assert second.startswith("cannot_verify b/c: ")
    assert last == "1 of 2 still fail"
    assert main(["suite", str(top / "a")]) == 0
    assert main(["suite", str(top / "b" / "none")]) == 2
