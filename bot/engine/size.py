"""Whether a program is so large that its user should know."""

from __future__ import annotations

from pathlib import Path

# Beyond this a script is no longer something that a person has read.
LARGE_LINES, LARGE_BYTES = 10_000, 1_000_000


def large(name: str | Path | None) -> str:
    """What to say about the file called `name` if it is large; empty if it is not, or is not a file."""
    if name is None or not Path(name).is_file():
        return ""
    raw = Path(name).read_bytes()
    rows = raw.count(b"\n")
    if rows <= LARGE_LINES and len(raw) <= LARGE_BYTES:
        return ""
    return f"{Path(name).name} has {rows:,} lines, {len(raw):,} bytes: reducing the script itself may take long"
