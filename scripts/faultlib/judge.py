"""What came of a fault: the same answer, an honest error, or something that must not be."""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from faultlib.catalog import Fault
from faultlib.runs import OVER, Ran, Seen

# By the contract of the command line.
EXITS = {"minimized": 0, "error": 1, "reproduced": 3, "not_reproduced": 4, "flaky": 5}
PROVEN = ("minimized", "reproduced")
LEAST_RUNS = 3
GOOD = ("same", "resumed", "honest", "honest, resumed")
# Nothing was done to it, or it could not be seen to its end: it says nothing.
NOTHING = ("missed", "cut")
BAD = ("LOST", "FALSE", "CRASH", "LEFT", "LATE", "STUCK", "OTHER", "BROKEN")
_CRASH = re.compile(r"^Traceback \(most recent call last\)|torch-minify itself failed|^Exception in thread|^Exception ignored in", re.M)


@dataclass(frozen=True)
class Reference:
    """What the undisturbed runs of a program gave: its repro as far as it has to be the same, and how many operations are left."""

    key: str
    ops: int | None


@dataclass(frozen=True)
class Judgment:
    """The `outcome`, one of `GOOD`, `NOTHING` or `BAD`, and `why`. BROKEN: this suite failed itself."""

    outcome: str
    why: str = ""


def judge(seen: Seen, fault: Fault, reference: Reference, budget: float) -> Judgment:
    """What came of `seen`, which the `fault` was done to.

    Args:
        seen: The runs.
        fault: What was done.
        reference: What comes of it without the fault.
        budget: Of each run, in seconds.
    """
    if seen.cut:
        return Judgment("cut")
    if not seen.runs or not seen.runs[0].hits:
        return Judgment("missed")
    best: int | None = None
    for ran in seen.runs:
        # the run that is killed while it is resumed may be killed before it has begun
        killed = fault.engine and (ran.status == -signal.SIGKILL or _ended_unheard(ran))
        bad = _harm(ran, budget, killed) or _claims(ran, fault, killed)
        if bad is not None:
            return bad
        if ran.repro is not None:
            size = len(seen.program.key(ran.repro).splitlines())
            if best is not None and size > best:
                return Judgment("LOST", f"the repro grew from {best} to {size} lines")
            best = size
        elif best is not None:
            return Judgment("LOST", "the repro that was there is no more")
    return _ending(seen, reference)


def _ended_unheard(ran: Ran) -> bool:
    """Whether SIGTERM ended a run that had not begun to listen for it, and so had said nothing."""
    return ran.status == -signal.SIGTERM and not (ran.out or ran.err) and ran.result is None


def _harm(ran: Ran, budget: float, killed: bool) -> Judgment | None:
    """What must never be, whatever was done."""
    if ran.status is None or ran.own > budget + OVER:
        return Judgment("LATE", f"{ran.own:.0f} s for a budget of {budget:.0f} s")
    if found := _CRASH.search(ran.err) or _CRASH.search(ran.out):
        text = ran.err if _CRASH.search(ran.err) else ran.out
        return Judgment("CRASH", " | ".join(text[found.start() :].splitlines())[:1500])
    if ran.status < 0 and not killed:
        return Judgment("CRASH", f"the engine died of signal {-ran.status}")
    if ran.left:
        return Judgment("LEFT", "; ".join(said[:120] for said in ran.left))
    if ran.lost_repro:
        return Judgment("LOST", "a repro was on the disk, and is no more")
    return None


def _claims(ran: Ran, fault: Fault, killed: bool) -> Judgment | None:
    """What is said that is not so."""
    if isinstance(ran.result, str):
        return Judgment("FALSE", f"result.json cannot be read: {ran.result}")
    if ran.repro is not None and not ran.fails_alone:
        return Judgment("FALSE", "the repro on the disk does not fail alone")
    if ran.result is None:
        return Judgment("FALSE", "minimized, and no result.json") if ran.status == 0 else None
    status = ran.result.get("status")
    if not killed and EXITS.get(str(status)) != ran.status and not (ran.status == 1 and _is_older(ran.result)):
        return Judgment("FALSE", f"left with {ran.status}, and result.json says {status}")
    named = ran.result.get("files", {}).get("repro")
    if named is not None and ran.repro is None:
        return Judgment("FALSE", f"result.json names {named}, which is not there")
    facts = ran.result.get("verification", {})
    if status in PROVEN and (named is None or facts.get("same", 0) < LEAST_RUNS or facts.get("eager") != "passes"):
        return Judgment("FALSE", f"{status}, with {facts.get('same')} runs the same, eager {facts.get('eager')}, repro {named}")
    # of a process that hangs it may be said that the program does
    of_a_hang = fault.hangs and (status == "flaky" or ran.result.get("reason_code") == "fails_in_eager")
    if status in ("not_reproduced", "flaky") and not of_a_hang:
        return Judgment("FALSE", f"{status}: {ran.result.get('reason')}")
    return None


def _is_older(result: Mapping[str, Any]) -> bool:
    """Whether a result is that of the state before the end, which could not be written any more."""
    return result.get("status") in ("error", *PROVEN)


def _ending(seen: Seen, reference: Reference) -> Judgment:
    """How it ended, where nothing that is said is untrue."""
    last = seen.runs[-1]
    why = "" if not isinstance(seen.runs[0].result, dict) else str(seen.runs[0].result.get("reason") or "")
    if last.status != 0:
        result = last.result if isinstance(last.result, dict) else {}
        said = f"resumed, and ended with {last.status}: {result.get('reason') or last.err[-300:]}"
        return Judgment("STUCK", f"{said} (first: {why})") if len(seen.runs) > 1 else Judgment("honest", why)
    if len(seen.runs) > 1 and seen.runs[-2].status == 0:
        return Judgment("resumed")
    assert last.repro is not None
    assert isinstance(last.result, dict)
    ops = last.result.get("reduction", {}).get("ops_after")
    if seen.program.key(last.repro) != reference.key:
        said = f"{ops} operations, and not {reference.ops}" if ops != reference.ops else "another text"
        return Judgment("OTHER", f"{said}, ended by {last.result.get('ended_by')}: {last.repro}")
    if len(seen.runs) == 1:
        return Judgment("same")
    first = seen.runs[0].status
    return Judgment("resumed" if first is not None and first < 0 else "honest, resumed", why)
