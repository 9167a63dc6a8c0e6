"""Makes hostile text harmless: what Markdown cannot neutralize is removed here, before any Markdown is written."""

from __future__ import annotations

import re

from bot.action.redaction import redact
from bot.workflow_commands import visible

# The beginning of each of our markers. Nobody else's text may contain it, since comments are found by it.
MARKER_START = "<!-- torch-minify"
_FORGED = re.compile(r"<!--(?=\s*torch-minify)", re.IGNORECASE)
_SURROGATE = re.compile("[\ud800-\udfff]")
# without two consecutive dashes, which would end the comment early
_MARKER = re.compile(rf"{MARKER_START}:[A-Za-z0-9]+(?:[ ._:/#-][A-Za-z0-9]+)* -->")
_LONGEST_SECRET = 3_000  # characters
_URL = re.compile(r"https?://[A-Za-z0-9.-]+(?::\d{1,5})?(?:/[A-Za-z0-9._~/#?=&%+-]*)?")


def size(text: str) -> int:
    """Bytes of `text` in UTF-8: never fewer than the characters that GitHub counts."""
    return len(text.encode("utf-8", errors="replace"))


def clean(text: str) -> str:
    """`text` with newlines as line ends, everything in it `visible`, without secrets and personal paths, and without a marker of ours."""
    return _FORGED.sub("<!- -", visible(_SURROGATE.sub("\ufffd", redact(text))))


def beginning(text: str, most: int) -> str:
    """The first `most` characters of `text`, without a word that is cut off there: part of a secret would not be recognized."""
    start = text[:most]
    if len(text) <= most or text[most].isspace() or start[-1:].isspace():
        return start
    last = len(start.split()[-1])
    # the patterns for secrets recognize the beginning of a longer word
    return start[:-last] if last < _LONGEST_SECRET else start


def one_line(text: str, most: int = 300) -> str:
    """`text` cleaned, on one line, with at most `most` characters."""
    # a secret that begins in the shown part ends in the examined part
    words = " ".join(clean(beginning(text, 4 * most + _LONGEST_SECRET).replace("\u2028", " ").replace("\u2029", " ")).split())
    return words if len(words) <= most else words[: most - 1] + "…"


def marker_line(marker: str) -> str:
    """The `marker`, if it is one: an HTML comment of ours on one line, which GitHub does not show. Raises ValueError if it is not."""
    if len(marker) > 300 or not _MARKER.fullmatch(marker):
        raise ValueError(f"not a marker: {marker[:100]!r}")
    return marker


def safe_url(url: str | None) -> str | None:
    """`url` if it is an ordinary one in which no Markdown can hide, otherwise None."""
    return url if url is not None and len(url) <= 1000 and _URL.fullmatch(url) else None


def number(value: float) -> str:
    """`value` for people: `18,292`, `2.3`. An absurd number is reported as such, since it may come from a hostile file."""
    if not -1e12 < value < 1e12:
        return "(no sensible number)"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"


def span(seconds: float) -> str:
    """A time of `seconds` for people: `42 s`, `4 min 12 s`, `1 h 02 min`."""
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
