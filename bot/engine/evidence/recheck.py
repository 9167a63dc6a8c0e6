"""`torch-minify recheck` and `suite`: whether repros still fail, with another torch, say.

Only what was seen is reported: a repro is fixed if it passes in each fresh process, with the compiler called, and in eager as well; it has
changed if it fails in another way in each. Anything else cannot be verified, and the output says why.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

from bot.engine.evidence.verify_command import CannotCheck, Checked, check
from bot.models.failure import Kind
from bot.models.result import UNUSABLE
from bot.workflow_commands import harmless

RecheckVerdict = Literal["still", "fixed", "changed", "cannot_verify"]
RECHECK_STATUS: dict[RecheckVerdict, int] = {"still": 0, "fixed": 4, "changed": 5, "cannot_verify": 1}


def verdict(checked: Checked) -> tuple[RecheckVerdict, str]:
    """The verdict on a recorded failure from the fresh runs in `checked`, and the reason in one line."""
    proof = checked.proof
    if proof.fault is not None:
        return "cannot_verify", f"the machine is at fault: {proof.fault}"
    if proof.eager != "passes":
        return "cannot_verify", "it does not pass without the compiler here, so how it ends with it says nothing"
    if proof.same:
        return "still", f"the same failure in {proof.same} of {proof.runs} fresh processes"
    ended = set(proof.signatures)
    before = checked.recorded.verification
    if None in ended and before.same < before.runs:
        return "cannot_verify", f"it failed in {before.same} of {before.runs} fresh processes before, so those that pass now say little"
    if ended == {None}:
        return "fixed", f"it passes in {proof.runs} of {proof.runs} fresh processes, and without the compiler"
    if None in ended:
        return "cannot_verify", "it passes in some fresh processes and fails in another way in others"
    (first, *others) = [signature for signature in proof.signatures if signature is not None]
    if not all(first.same(other) for other in others) or first.signal == "MEMORY" or first.kind is Kind.HANG:
        return "cannot_verify", "it fails in another way, and not so that one could say how"
    return "changed", f"it fails in another way in each of {proof.runs} fresh processes: {first.line()}"


def recheck(repro: Path, result: Path, python: str, runs: int, *, network: bool = False) -> int:
    """Run the script `repro` `runs` times with the interpreter `python`, and print what became of the failure that the file `result`
    records, with the evidence. With `network`, it may use the network.

    Exit status: 0 it still fails, 4 fixed, 5 changed, 1 it cannot be verified here, 2 unusable files.
    """
    try:
        checked = check(repro, result, python, runs, network=network)
    except CannotCheck as error:
        if error.status == UNUSABLE:
            sys.stderr.write(harmless(f"torch-minify: {error}\n"))
            return UNUSABLE
        sys.stdout.write(harmless(f"cannot_verify: {error}\n"))
        return RECHECK_STATUS["cannot_verify"]
    word, why = verdict(checked)
    sys.stdout.write(harmless("".join(f"{row}\n" for row in (f"{word}: {why}", *checked.rows()))))
    return RECHECK_STATUS[word]


def suite(directory: Path, python: str, runs: int, *, network: bool = False) -> int:
    """Recheck each repro below the `directory` that has its `result.json` next to it, with `python`, `runs` and `network` as in `recheck`,
    and print a line for each.

    Exit status: 0 all still fail, 4 one or more do not or cannot be verified, 2 there are none.
    """
    found = sorted(path for path in directory.rglob("result.json") if (path.parent / "repro.py").is_file())
    if not found:
        sys.stderr.write(harmless(f"torch-minify: no directory below {directory} holds a repro.py and its result.json\n"))
        return UNUSABLE
    words: list[RecheckVerdict] = []
    for result in found:
        try:
            word, why = verdict(check(result.parent / "repro.py", result, python, runs, network=network))
        except CannotCheck as error:
            word, why = "cannot_verify", str(error).partition("\n")[0]
        words.append(word)
        sys.stdout.write(harmless(f"{word} {result.parent.relative_to(directory)}: {why}\n"))
        sys.stdout.flush()
    sys.stdout.write(f"{words.count('still')} of {len(words)} still fail\n")
    return 0 if set(words) == {"still"} else 4
