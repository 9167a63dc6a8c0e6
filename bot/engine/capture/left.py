"""Reads what the program's own process left in the capture's directory. Not trusted: the program can write anything there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeVar, cast

from bot.sandbox.files import read_plain
from bot.workers.declared import fits

# Bytes of one file of facts. The longest hold a traceback and the program's output.
LONGEST = 64 << 20

_Kind = TypeVar("_Kind")


def read_facts(path: Path, kind: type[_Kind]) -> _Kind | None:
    """The content of the file `path` if it is what the TypedDict `kind` declares; None if it is not, or if there is no such file."""
    found = read_json(path)
    return cast("_Kind", found) if fits(found, kind) else None


def read_json(path: Path) -> Any:
    """The parsed JSON in the file `path`, with lone surrogates escaped as Python prints them; None if it is not a plain file, too large, or
    not JSON."""
    try:
        raw = read_plain(path, LONGEST)
        found = json.loads(raw)
        return _encodable(found) if b"\\u" in raw else found
    except (OSError, ValueError, RecursionError):
        return None


def _encodable(value: Any) -> Any:
    """A parsed JSON `value` with lone surrogates, which cannot be encoded, escaped as Python prints them."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, list):
        return [_encodable(each) for each in value]
    return {_encodable(key): _encodable(each) for key, each in value.items()} if isinstance(value, dict) else value
