"""GitHub's Markdown, written so that embedded text stays text.

Hostile text is only put in fences, code spans, `<code>` and `<pre>`: there GitHub makes no mention, reference, link or HTML of it.
GitHub's parsers support code spans of at most 80 backticks (github/cmark-gfm 0.29.0.gfm.13, src/inlines.c, MAXBACKTICKS; comrak,
src/parser/inlines.rs) and fences of at most 255 (src/blocks.c, fence_length): longer ones end early, or never begin.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

from bot.action.report.render.text import beginning, clean, cut, one_line, safe_url, size

_TICKS = re.compile(r"`+")
# Maximum number of consecutive backticks that a delimiter would have to exceed.
_MOST_TICKS = 60
_MANY_TICKS = re.compile(rf"`{{{_MOST_TICKS + 1},}}")


def _longest(text: str) -> int:
    return max(map(len, _TICKS.findall(text)), default=0)


def code(text: str, most: int = 300) -> str:
    """A code span with `text` on one line of at most `most` characters; a long run of backticks in it is shortened."""
    words = _MANY_TICKS.sub("`" * _MOST_TICKS + "…", one_line(text, most))
    if not words:
        return "–"
    ticks = "`" * (_longest(words) + 1)
    pad = " " if words[0] == "`" or words[-1] == "`" else ""
    return f"{ticks}{pad}{words}{pad}{ticks}"


def _block(text: str, language: str) -> tuple[str, str, str]:
    """The beginning, content and end of a code block for `text`."""
    words = clean(text).strip("\n")
    ticks = max(3, _longest(words) + 1)
    if ticks > _MOST_TICKS:
        return f'<pre lang="{language}">\n', html.escape(words, quote=False), "\n</pre>"
    return f"{'`' * ticks}{language}\n", words, f"\n{'`' * ticks}"


def fence(text: str, language: str = "text") -> str:
    """A code block of `text` in `language`: its fence is longer than any run of backticks inside, or HTML if that would be too long."""
    return "".join(_block(text, language))


def fence_within(text: str, room: int, language: str = "text") -> str:
    """A `fence` with as many whole lines of `text` as fit into `room` bytes, and the number of those left out; empty if none fit.

    `language` is as for `fence`.
    """
    begins, words, ends = _block(text, language)
    if size(begins) + size(words) + size(ends) <= room:
        return begins + words + ends
    note = "\n\n{} more lines are in the run's files."
    kept = cut(words, room - size(begins) - size(ends) - size(note) - 10)
    if not kept.strip():
        return ""
    left = words.count("\n") - kept.count("\n")
    return begins + kept + ends + note.format(left)


def fold(summary: str, body: str) -> str:
    """A fold that shows `body` on a click on `summary`, which is ours and not escaped."""
    return f"<details><summary>{summary}</summary>\n\n{body}\n\n</details>"


def fold_within(summary: str, head: str, text: str, room: int) -> str:
    """A fold under `summary` with `head` (both ours) and a block of plain `text`, as much of it as fits into `room` bytes.

    Empty if not even the head fits.
    """
    empty = fold(summary, head)
    if size(empty) > room:
        return ""
    block = fence_within(text, room - size(empty) - 2, "text")
    return fold(summary, "\n\n".join(part for part in (head, block) if part)) if block or head else ""


def table(rows: Iterable[tuple[str, str]]) -> str:
    """A two-column HTML table with `rows`: the left column is ours, the right one comes from `cell`. It has no blank line, so it stays one
    block."""
    body = "\n".join(f"<tr><td>{name}</td><td>{value}</td></tr>" for name, value in rows)
    return f"<table>\n{body}\n</table>"


def cell(text: str, most: int = 300) -> str:
    """Hostile `text` for a table, in at most `most` characters."""
    return f"<code>{html.escape(one_line(text, most))}</code>"


def cell_lines(text: str, most_lines: int = 12) -> str:
    """Hostile `text` of several lines for a table, at most `most_lines` of them."""
    rows = [row for row in clean(beginning(text, 20_000)).split("\n") if row.strip()]
    shown = [cell(row) for row in rows[:most_lines]]
    return "<br>".join([*shown, *(["…"] if len(rows) > most_lines else [])]) or "–"


def link(words: str, url: str | None) -> str:
    """A link to `url` with `words` of ours; only the words if the URL is not an ordinary one."""
    return f"[{words}]({url})" if safe_url(url) else words
