"""The comments at the head of a repro: what it shows, where, and how often."""

from __future__ import annotations

import re
from collections.abc import Mapping

from bot.models.failure import Signature
from bot.models.result import VerificationFacts
from bot.workflow_commands import visible

# Where a message names a line of the repro: `repro.py:12`, or the file's name followed by `line 12` or `line number: 12`.
_OWN_LINE = re.compile(r"(\brepro\.py(?::|\b(?:(?!\.py\b).)*?\bline(?: number:)? ))(\d+)")
# The packages whose versions a repro's header names.
_NAMED = ("torch", "triton", "python")


def with_header(text: str, failure: Signature, facts: VerificationFacts, versions: Mapping[str, str], nearness: str = "") -> str:
    """The script `text` below the header comments of a repro: its `failure`, the `versions`, what fresh runs showed (`facts`), and the
    `nearness` of a reproduction. Line numbers of the script in the failure take the header into account."""
    header = [
        " ".join(visible(failure.line()).splitlines()),
        ", ".join(f"{name} {versions[name]}" for name in _NAMED if versions.get(name)),
        f"failed in {facts.same} of {facts.runs} fresh processes",
    ]
    if nearness:
        header.append(nearness)
    if arch := versions.get("cuda_arch"):
        header.append(f"compile-only, no GPU was used: compiled for sm_{arch}")
    header[0] = _OWN_LINE.sub(lambda named: f"{named[1]}{int(named[2]) + len(header)}", header[0])
    return "".join(f"# {line}\n" for line in header) + text
