"""Hostile text made harmless: what no Markdown can undo is taken out here, before any Markdown is written."""

from __future__ import annotations

import re

from bot.action.redaction import redact
from bot.workflow_commands import visible

# How every marker of ours begins. Nobody else's text may hold it: a comment is found again by it.
MARKER_START = "<!-- torch-minify"
_FORGED = re.compile(r"<!--(?=\s*torch-minify)", re.IGNORECASE)
_SURROGATE = re.compile("[\ud800-\udfff]")
# no two dashes in it, which would end the comment early
_MARKER = re.compile(rf"{MARKER_START}:[A-Za-z0-9]+(?:[ ._:/#-][A-Za-z0-9]+)* -->")
_LONGEST_SECRET = 3_000  # characters
_URL = re.compile(r"https?://[A-Za-z0-9.-]+(?::\d{1,5})?(?:/[A-Za-z0-9._~/#?=&%+-]*)?")


def size(text: str) -> int:
    """Bytes of `text` in UTF-8: never fewer than GitHub counts characters."""
    return len(text.encode("utf-8", errors="replace"))


def clean(text: str) -> str:
    """`text` with line ends as newlines, all that is in it `visible`, without secrets and personal paths, and without a marker of ours."""
    return _FORGED.sub("<!- -", visible(_SURROGATE.sub("\ufffd", redact(text))))


def beginning(text: str, most: int) -> str:
    """The first `most` characters of `text`, without a word that is cut off there: a secret of which a part is missing is not found."""
    start = text[:most]
    if len(text) <= most or text[most].isspace() or start[-1:].isspace():
        return start
    last = len(start.split()[-1])
    # of a longer word the patterns of secrets know the beginning
    return start[:-last] if last < _LONGEST_SECRET else start


def one_line(text: str, most: int = 300) -> str:
    """`text` cleaned, in one line, of at most `most` characters."""
    # a secret that begins within what is shown ends within what is looked at
    words = " ".join(clean(beginning(text, 4 * most + _LONGEST_SECRET).replace("\u2028", " ").replace("\u2029", " ")).split())
    return words if len(words) <= most else words[: most - 1] + "…"


def marker_line(marker: str) -> str:
    """The marker, if it is one: an HTML comment of ours in one line, which GitHub does not show. Raises ValueError where it is not."""
    if len(marker) > 300 or not _MARKER.fullmatch(marker):
        raise ValueError(f"not a marker: {marker[:100]!r}")
    return marker


def safe_url(url: str | None) -> str | None:
    """`url` if it is an ordinary one that no Markdown can be hidden in; else None."""
    return url if url is not None and len(url) <= 1000 and _URL.fullmatch(url) else None


def number(value: float) -> str:
    """`value` for people: `18,292`, `2.3`. What is out of all bounds is said to be so: a number may come from a hostile file."""
    if not -1e12 < value < 1e12:
        return "(no sensible number)"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"


def span(seconds: float) -> str:
    """A time of so many `seconds` for people: `42 s`, `4 min 12 s`, `1 h 02 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{max(whole, 1)} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600:,} h {whole % 3600 // 60:02} min"


def cut(text: str, room: int) -> str:
    """The first whole lines of `text`, at most `room` bytes of them."""
    if size(text) <= room:
        return text
    start = text.encode("utf-8", errors="replace")[: max(room, 0)].decode("utf-8", errors="ignore")
    return start[: start.rfind("\n") + 1].rstrip("\n")
