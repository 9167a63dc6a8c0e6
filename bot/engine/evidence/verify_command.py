"""`torch-minify verify`: runs a repro alone and compares it with what its `result.json` says, for anybody who doubts it."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from bot.engine.evidence import verify
from bot.engine.target import Launch
from bot.machine import gpu
from bot.models.failure import Signature
from bot.models.result import UNUSABLE, Result
from bot.sandbox.aside import ask
from bot.sandbox.files import Scratch
from bot.sandbox.order import NO_NETWORK
from bot.sandbox.sandbox import NoSandbox, Sandbox
from bot.units import cuda_arch
from bot.workers.absent_gpu import put_up
from bot.workflow_commands import harmless

# Seconds for one run; a cold compile takes 5-20 s.
LIMIT = 300.0
# The longest hang, in seconds, that a result may ask to wait for: no GitHub job takes longer.
_LONGEST_HANG = 5 * 86_400.0


class CannotCheck(Exception):
    """A repro was not run, or says nothing here; `words` say why. `status`: 2 if its files cannot be used, 1 if it cannot be run here."""

    def __init__(self, words: str, status: int) -> None:
        super().__init__(words)
        self.status = status


@dataclass(frozen=True)
class Checked:
    """What a repro's result `recorded`, the `proof` from fresh runs, and the sandbox `layers` that were on."""

    recorded: Result
    signature: Signature
    proof: verify.Verification
    layers: Sequence[str]

    def rows(self) -> list[str]:
        """The evidence, for people."""
        proof, sandbox = self.proof, self.recorded.sandbox
        rows = [
            f"sandbox: {', '.join(self.layers) or 'none'}",
            f"expected: {self.signature.line()}",
            f"same failure in {proof.same} of {proof.runs} fresh processes; eager control: {proof.eager}",
            *proof.differences,
        ]
        if not proof.proven and NO_NETWORK in self.layers and sandbox and NO_NETWORK not in sandbox:
            rows.append("it was proven with the network: --network on lets it have that")
        return rows


def recorded(repro: Path, result: Path) -> Result:
    """What the file `result` says about the script `repro`.

    Raises:
        CannotCheck: one of them cannot be used.
    """
    try:
        found = Result.model_validate_json(result.read_text(encoding="utf-8"))
    except (OSError, ValidationError, ValueError) as error:
        raise CannotCheck(f"cannot read {result}: {error}", UNUSABLE) from error
    if not os.path.isfile(repro):
        raise CannotCheck(f"there is no file {repro}", UNUSABLE)
    if found.signature is None:
        raise CannotCheck(f"{result} records no failure", UNUSABLE)
    hang_after = found.verification.rule.hang_after
    if not 0 < hang_after <= _LONGEST_HANG:
        raise CannotCheck(f"{result} records a hang after {hang_after:g} s, which is no time to wait", UNUSABLE)
    return found


def check(repro: Path, result: Path, python: str, runs: int, *, network: bool = False) -> Checked:
    """Run the script `repro` `runs` times with the interpreter `python`, and compare with the file `result`. With `network`, it may use the
    network.

    Raises:
        CannotCheck: it was not run, or fails without the compiler as well, for want of a GPU.
    """
    told = recorded(repro, result)
    assert told.signature is not None
    try:
        arch = cuda_arch(told.versions.get("cuda_arch", "")) if told.compile_only else 0
    except argparse.ArgumentTypeError as error:
        raise CannotCheck(f"{result} names no architecture to compile for: {error}", UNUSABLE) from error
    script = repro.resolve()
    expected = verify.Expected(told.signature, told.verification.rule, LIMIT)
    with Scratch(prefix="torch-minify-verify-") as scratch:
        box = Sandbox(Path(scratch), python, (script, script.parent), network)
        try:
            layers = box.layers
            why = put_up(box, python, arch) if told.compile_only else None
        except NoSandbox as error:
            raise CannotCheck(str(error), 1) from error
        if why is not None:
            raise CannotCheck(f"the repro was only compiled, and here that cannot be done: {why}", 1)
        try:
            proof = verify.verify(Launch(python, script.parent, os.environ, box=box), script, expected, runs)
        except verify.NotRun as error:
            raise CannotCheck(f"the repro could not be run: {error}", 1) from error
    if proof.eager == "fails" and not told.compile_only and "cuda" in script.read_text(encoding="utf-8", errors="replace"):
        why = gpu.missing(python, LIMIT, ask)
        if why is not None:
            raise CannotCheck(f"the repro names CUDA, but {why}", 1)
    return Checked(told, told.signature, proof, layers)


def main(repro: Path, result: Path, python: str, runs: int, *, network: bool = False) -> int:
    """Do what `check` does with `repro`, `result`, `python`, `runs` and `network`, and print the evidence.

    Exit status: 0 the same failure every time, and eager passes; 5 sometimes, and eager passes; 4 otherwise; 2 unusable files; 1 it cannot
    be run here.
    """
    try:
        checked = check(repro, result, python, runs, network=network)
    except CannotCheck as error:
        sys.stderr.write(harmless(f"torch-minify: {error}\n"))
        return error.status
    sys.stdout.write(harmless("".join(f"{row}\n" for row in checked.rows())))
    if checked.proof.proven:
        return 0
    return 5 if 0 < checked.proof.same < checked.proof.runs and checked.proof.eager == "passes" else 4
