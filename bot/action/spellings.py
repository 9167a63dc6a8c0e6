"""The ways in which programs write a text that they were given: a secret of the machine is looked for in all of them."""

from __future__ import annotations

import html
import json
import shlex
import urllib.parse
from collections.abc import Callable, Iterator

# Of a text with more lines, each is looked for only in these.
_MOST_LINES = 500
# Characters of a line that is as good as a secret by itself: with a digit in it, or of a word in it.
_SHORTEST, _LONG = 8, 32


def spellings(text: str) -> set[str]:
    """The `text`, and what it becomes in Python, JSON, HTML, a shell and an address, also in Python or JSON in one of these; and the same
    of its lines that nobody could guess."""
    return {form for part in (text, *_lines(text)) for form in _forms(part)}


def _lines(text: str) -> Iterator[str]:
    rows = [row.strip() for row in text.splitlines()[:_MOST_LINES]]
    for row in rows if len(rows) > 1 else ():
        if (len(row) >= _SHORTEST and any(map(str.isdigit, row))) or any(len(word) >= _LONG for word in row.split()):
            yield row


def _forms(text: str) -> set[str]:
    once = {text, *(form for write in _WRITERS for form in write(text))}
    return once | {form for inner in once for write in (_python, _json) for form in write(inner)}


def _python(text: str, write: Callable[[str], str] = lambda part: repr(part)[1:-1]) -> set[str]:
    # which of the quotation marks it escapes depends on what else stands in the string
    return {
        single.join(double.join(write(part) for part in between.split('"')) for between in text.split("'"))
        for single in ("'", "\\'")
        for double in ('"', '\\"')
    }


def _ascii(text: str) -> set[str]:
    return _python(text, lambda part: ascii(part)[1:-1])


def _bytes(text: str) -> set[str]:
    return _python(text, lambda part: repr(part.encode("utf-8", "surrogateescape"))[2:-1])


def _json(text: str) -> set[str]:
    return {json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]}


def _html(text: str) -> set[str]:
    return {html.escape(text), html.escape(text, quote=False)}


def _shell(text: str) -> set[str]:
    return {shlex.quote(text), shlex.quote(text).strip("'")}


def _address(text: str) -> set[str]:
    raw = text.encode("utf-8", "surrogateescape")
    return {urllib.parse.quote(raw), urllib.parse.quote(raw, safe=""), urllib.parse.quote_plus(raw)}


_WRITERS = (_python, _ascii, _bytes, _json, _html, _shell, _address)
