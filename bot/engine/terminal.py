"""What a terminal shows at the end of a job: the beginning of the repro, without data, and how the job ended."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from bot.models.result import Result
from bot.workflow_commands import harmless

MOST_LINES = 40
# A line is cut after this many characters, and a word of at least this many is data.
MOST_CHARACTERS, DATA = 160, 64
_DATA = re.compile(rf"(?<![A-Za-z0-9+/=_-])[A-Za-z0-9+/=_-]{{{DATA},}}")


def shown(result: Result, repro: Path, out: Path) -> str:
    """The text for a `result` whose script is the file `repro`, if there is one; `out` is the result directory as the user named it."""
    rows: list[str] = []
    if result.files.repro and repro.exists():
        rows.append(excerpt(repro.read_text(encoding="utf-8"), str(out / repro.name)))
    # not part of the reason: others repeat that, and this is an option of the command line
    resumed = result.status == "error" and result.signature is not None and result.ended_by != "fixed_point"
    hint = "; --resume goes on from here" if resumed and "--budget" not in (result.reason or "") else ""
    reason = f": {result.reason}{hint}" if result.reason else ""
    rows.append(f"{result.status} (ended by: {result.ended_by}){reason}")
    for other in result.evidence.elsewhere:
        version = other.versions.get("torch", "no torch")
        rows.append(f"with {other.python} (torch {version}): {'the same failure' if other.same else other.said or 'another end'}")
    if result.culprit:
        rows.append(f"to blame: {result.culprit}")
    rows.append(f"files: {out}")
    return harmless("\n".join(rows) + "\n")


def remarks(lines: Iterable[str]) -> str:
    """Our `lines` about what others wrote, for standard error."""
    return harmless("".join(f"torch-minify: {line}\n" for line in lines))


def excerpt(text: str, name: str) -> str:
    """At most `MOST_LINES` lines of the script `text`, with notes on what is left out that give the `name` of the file that has it."""
    rows = text.rstrip("\n").split("\n")
    short = [_row(row, name) for row in rows]
    if len(short) > MOST_LINES:
        short = [*short[: MOST_LINES - 1], f"# ... {len(rows) - MOST_LINES + 1:,} more lines are in {name}"]
    return "\n".join(short) + "\n"


def _row(row: str, name: str) -> str:
    row = _DATA.sub(lambda word: f"<{len(word[0]):,} characters of data, in {name}>" if _is_data(word[0]) else word[0], row)
    if len(row) <= MOST_CHARACTERS:
        return row
    return f"{row[:MOST_CHARACTERS]} ... <{len(row) - MOST_CHARACTERS:,} more characters are in {name}>"


def _is_data(word: str) -> bool:
    """Whether a long word is encoded bytes rather than a name that somebody wrote."""
    return all(any(test(character) for character in word) for test in (str.isupper, str.islower, str.isdigit))
