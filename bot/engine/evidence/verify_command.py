"""`torch-minify verify`: run a repro alone and compare it with what its `result.json` says, for anybody who doubts."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from pydantic import ValidationError

from bot.engine.evidence import verify
from bot.engine.target import Launch
from bot.models.result import Result
from bot.sandbox.files import Scratch
from bot.sandbox.order import NO_NETWORK
from bot.sandbox.sandbox import NoSandbox, Sandbox
from bot.units import cuda_arch
from bot.workers.absent_gpu import put_up
from bot.workflow_commands import harmless

# Seconds for one run; a cold compile takes 5-20 s.
LIMIT = 300.0
# Seconds after which a run hangs, as a result says: nobody waits longer than a job of GitHub's may take.
_LONGEST_HANG = 5 * 86_400.0


def main(repro: Path, result: Path, python: str, runs: int, *, network: bool = False) -> int:
    """Run the script `repro` so many times (`runs`) with the interpreter `python`, and compare with the file `result`. `network`: it may
    use the network.

    Exit status: 0 the same failure every time, 4 it does not reproduce, 5 sometimes, 2 unusable files, 1 it cannot be run here.
    """
    try:
        recorded = Result.model_validate_json(result.read_text(encoding="utf-8"))
    except (OSError, ValidationError, ValueError) as error:
        sys.stderr.write(harmless(f"torch-minify: cannot read {result}: {error}\n"))
        return 2
    if not repro.is_file():
        sys.stderr.write(f"torch-minify: there is no file {repro}\n")
        return 2
    if recorded.signature is None:
        sys.stderr.write(f"torch-minify: {result} records no failure\n")
        return 2
    if not 0 < recorded.verification.rule.hang_after <= _LONGEST_HANG:
        sys.stderr.write(
            f"torch-minify: {result} records a hang after {recorded.verification.rule.hang_after:g} s, which is no time to wait\n"
        )
        return 2
    try:
        arch = cuda_arch(recorded.versions.get("cuda_arch", "")) if recorded.compile_only else 0
    except argparse.ArgumentTypeError as error:
        sys.stderr.write(harmless(f"torch-minify: {result} names no architecture to compile for: {error}\n"))
        return 2
    script = repro.resolve()
    expected = verify.Expected(recorded.signature, recorded.verification.rule, LIMIT)
    with Scratch(prefix="torch-minify-verify-") as scratch:
        box = Sandbox(Path(scratch), python, (script, script.parent), network)
        try:
            layers = box.layers
            why = put_up(box, python, arch) if recorded.compile_only else None
        except NoSandbox as error:
            sys.stderr.write(f"torch-minify: {error}\n")
            return 1
        if why is not None:
            sys.stderr.write(f"torch-minify: the repro was only compiled, and here that cannot be done: {why}\n")
            return 1
        try:
            proof = verify.verify(Launch(python, script.parent, os.environ, box=box), script, expected, runs)
        except verify.NotRun as error:
            sys.stderr.write(harmless(f"torch-minify: the repro could not be run: {error}\n"))
            return 1
    rows = [
        f"sandbox: {', '.join(layers) or 'none'}",
        f"expected: {recorded.signature.line()}",
        f"same failure in {proof.same} of {proof.runs} fresh processes; eager control: {proof.eager}",
        *proof.differences,
    ]
    sandbox = recorded.sandbox
    if not proof.proven and NO_NETWORK in layers and sandbox and NO_NETWORK not in sandbox:
        rows.append("it was proven with the network: --network on lets it have that")
    sys.stdout.write(harmless("".join(f"{row}\n" for row in rows)))
    if proof.proven:
        return 0
    return 5 if 0 < proof.same < proof.runs else 4
