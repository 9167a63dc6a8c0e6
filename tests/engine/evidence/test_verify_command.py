"""`torch-minify verify`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bot.engine.evidence import verify as fresh
from bot.engine.evidence import verify_command
from bot.engine.target import Launch
from bot.machine import gpu
from bot.models.failure import Kind, Phase, Signature, Stage
from bot.models.result import Result, Rule, VerificationFacts
from bot.sandbox.sandbox import Sandbox

SIGNATURE = Signature(kind=Kind.EXCEPTION, phase=Phase.INDUCTOR_LOWERING, exception=("InductorError", "KeyError"), message="7")
RULE = Rule(hang_after=20.0)  # as the search found that it has to be


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    repro, result = tmp_path / "repro.py", tmp_path / "result.json"
    repro.write_text("pass\n")
    proof = VerificationFacts(runs=3, same=3, eager="passes", rule=RULE)
    result.write_text(Result(status="minimized", stage=Stage.AOT, signature=SIGNATURE, verification=proof).to_json())
    return repro, result


@pytest.mark.parametrize(
    ("same", "eager", "status"),
    [(3, "passes", 0), (2, "passes", 5), (0, "passes", 4), (3, "fails", 4), (3, "not_applicable", 4), (1, "fails", 4), (1, "passes", 5)],
)
def test_exit_status(files: tuple[Path, Path], monkeypatch: Any, capsys: Any, same: int, eager: Any, status: int) -> None:
    def verify(launch: Launch, script: Path, expected: fresh.Expected, runs: int) -> fresh.Verification:
        assert (launch.python, launch.cwd, script, runs) == ("python", files[0].parent, files[0].resolve(), 3)
        assert (expected.signature, expected.rule) == (SIGNATURE, RULE)
        return fresh.Verification(runs=3, same=same, eager=eager, differences=("run 2: did not fail",) if same < 3 else ())

    monkeypatch.setattr(fresh, "verify", verify)
    assert verify_command.main(*files, "python", 3) == status
    said = capsys.readouterr().out
    assert "expected: exception in inductor_lowering: InductorError: KeyError: 7" in said
    assert f"same failure in {same} of 3 fresh processes; eager control: {eager}" in said
    assert ("run 2: did not fail" in said) is (same < 3)


@pytest.mark.parametrize(
    ("text", "same", "eager", "why", "status"),
    [
        ("torch.ones(1, device='cuda')", 0, "fails", "there is none", 1),
        ("torch.ones(1, device='cuda')", 0, "fails", None, 4),
        ("torch.ones(1)", 0, "fails", "there is none", 4),
        # what passes without the compiler needs none, though it names it
        ("torch.backends.cuda.matmul.allow_tf32 = True", 0, "passes", "there is none", 4),
        ("torch.backends.cuda.matmul.allow_tf32 = True", 3, "passes", "there is none", 0),
    ],
)
def test_a_repro_that_needs_a_gpu_cannot_be_checked_without_one(
    files: tuple[Path, Path], monkeypatch: Any, capsys: Any, text: str, same: int, eager: Any, why: str | None, status: int
) -> None:
    monkeypatch.setattr(fresh, "verify", lambda *_: fresh.Verification(runs=3, same=same, eager=eager))
    monkeypatch.setattr(gpu, "missing", lambda *_: why)
    files[0].write_text(text)
    assert verify_command.main(*files, "python", 3) == status
    assert ("the repro names CUDA, but there is none" in capsys.readouterr().err) is (status == 1)


def test_words_of_others_are_no_commands(files: tuple[Path, Path], monkeypatch: Any, capsys: Any) -> None:
    """What is verified is a stranger's, on somebody's own terminal."""
    hostile = "\x1b]0;x\x07\n::error::x"
    said = SIGNATURE.model_copy(update={"exception": (hostile,), "message": hostile})
    files[1].write_text(Result(status="minimized", signature=said).to_json())
    monkeypatch.setattr(fresh, "verify", lambda *_: fresh.Verification(runs=3, same=0, eager="passes", differences=(hostile,)))
    assert verify_command.main(*files, "python", 3) == 4
    shown = capsys.readouterr().out
    assert shown.count("::error::x") == 2
    assert all(character == "\n" or character.isprintable() for character in shown)
    assert not any(line.startswith("::") for line in shown.splitlines())


@pytest.mark.parametrize(
    ("sandbox", "network", "told"),
    [(("rlimits",), False, True), (("rlimits",), True, False), (("rlimits", "no-network"), False, False), ((), False, False)],
)
def test_a_repro_that_was_proven_with_the_network(
    files: tuple[Path, Path], monkeypatch: Any, capsys: Any, sandbox: tuple[str, ...], network: bool, told: bool
) -> None:
    given = []

    def verify(launch: Launch, *_: object) -> fresh.Verification:
        assert launch.box is not None
        given.append(launch.box.network)
        return fresh.Verification(runs=1, same=0, eager="passes", differences=("run 1: URLError",))

    monkeypatch.setattr(fresh, "verify", verify)
    monkeypatch.setattr(Sandbox, "layers", ("rlimits",) if network else ("rlimits", "no-network"))
    files[1].write_text(Result(status="minimized", signature=SIGNATURE, sandbox=sandbox).to_json())
    assert verify_command.main(*files, "python", 1, network=network) == 4
    assert given == [network]
    assert ("--network on" in capsys.readouterr().out) is told


def test_what_cannot_be_run_is_not_said_to_pass(files: tuple[Path, Path], capsys: Any) -> None:
    assert verify_command.main(*files, str(files[0].parent / "none"), 1) == 1
    said = capsys.readouterr()
    assert "could not be run: cannot start" in said.err
    assert not said.out


def spoil_json(path: Path, *words: str) -> None:
    text = path.read_text()
    for old, new in zip(words[::2], words[1::2], strict=True):
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda repro, result: repro.unlink(), "no file"),
        (lambda repro, result: result.unlink(), "cannot read"),
        (lambda repro, result: result.write_text("{"), "cannot read"),
        (lambda repro, result: result.write_text('{"status": "unheard of"}'), "cannot read"),
        (lambda repro, result: result.write_bytes(b"\xff"), "cannot read"),
        (lambda repro, result: result.write_text(Result(status="error").to_json()), "records no failure"),
        *(
            (lambda repro, result, seconds=seconds: spoil_json(result, '"hang_after": 20.0', f'"hang_after": {seconds}'), "no time to wait")
            for seconds in ("1e400", "-1", "0", "NaN", "1e9")
        ),
        (lambda repro, result: spoil_json(result, '"compile_only": false', '"compile_only": true'), "names no architecture"),
        (
            lambda repro, result: spoil_json(
                result, '"versions": {}', '"versions": {"cuda_arch": "x"}', '"compile_only": false', '"compile_only": true'
            ),
            "names no architecture to compile for: 'x' is not one of",
        ),
    ],
)
def test_unusable_files(files: tuple[Path, Path], capsys: Any, spoil: Any, words: str) -> None:
    spoil(*files)
    assert verify_command.main(*files, "python", 3) == 2
    assert words in capsys.readouterr().err
