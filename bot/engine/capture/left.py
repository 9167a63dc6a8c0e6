"""What the program's own process left in the directory of its capture, where the program may have written what it likes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeVar, cast

from bot.sandbox.files import read_plain
from bot.workers.declared import fits

# Bytes of one file of facts; the longest hold a traceback and what was printed.
LONGEST = 64 << 20

_Kind = TypeVar("_Kind")


def read_facts(path: Path, kind: type[_Kind]) -> _Kind | None:
    """What the file `path` holds, if that is what the TypedDict `kind` declares; None where it is not, or where there is no such file."""
    found = read_json(path)
    return cast("_Kind", found) if fits(found, kind) else None


def read_json(path: Path) -> Any:
    """What the file `path` holds, with halves of characters as Python prints them; None where it is no plain file, too
    large, or no JSON."""
    try:
        raw = read_plain(path, LONGEST)
        found = json.loads(raw)
        return _encodable(found) if b"\\u" in raw else found
    except (OSError, ValueError, RecursionError):
        return None


def _encodable(value: Any) -> Any:
    """A parsed JSON `value` with halves of characters, which no file can hold, as Python prints them."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, list):
        return [_encodable(each) for each in value]
    return {_encodable(key): _encodable(each) for key, each in value.items()} if isinstance(value, dict) else value
