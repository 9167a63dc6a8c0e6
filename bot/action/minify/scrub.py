"""Removes secrets and personal paths from files before they leave the machine."""

from __future__ import annotations

import json
from pathlib import PurePath

from bot.action.redaction import redact, redact_all

# These files contain tensors and machine code. All others are searched as text.
_NO_TEXTS = frozenset(
    {".pt2", ".pt", ".pth", ".bin", ".safetensors", ".npy", ".npz", ".pkl", ".pickle", ".so", ".o", ".a", ".cubin", ".fatbin", ".pyc"}
    | {".zip", ".gz", ".png"}
)
# Lists the texts of a result in which something was replaced, one per line: the originals were verified.
CHANGED = "redacted.txt"
# Bytes; a longer text is not searched, and so does not leave.
LONGEST = 64 << 20
# Bytes; a longer JSON text is treated as plain text: parsed, it may take sixty times as much memory.
_LONGEST_JSON = 4 << 20


def is_text(path: PurePath) -> bool:
    """Whether the file `path` is searched for secrets, judging by its suffix."""
    return path.suffix.lower() not in _NO_TEXTS


def is_program(path: PurePath) -> bool:
    """Whether the file `path` is an exported program, judging by its suffix: an archive whose texts are searched, but not changed."""
    return path.suffix.lower() == ".pt2"


def scrubbed(path: PurePath, content: bytes) -> bytes:
    """The `content` of the text file `path` without secrets; unchanged if there were none. JSON stays JSON."""
    text = content.decode("utf-8", errors="surrogateescape")
    if "\0" in text and redact(bare := text.replace("\0", "")) != bare:
        # two or four bytes per character, as other systems write texts; what is left without the secret is readable anyway
        return redact(bare).encode("utf-8", errors="surrogateescape")
    if path.suffix == ".json" and len(content) <= _LONGEST_JSON:
        try:
            held = json.loads(text)
            clean = redact_all(held)
            # compared as text, since NaN is not equal to itself; of two entries with the same name only the last is kept
            if json.dumps(clean) == json.dumps(held) and redact(text) == text:
                return content
            return (json.dumps(clean, indent=2) + "\n").encode("utf-8", errors="surrogateescape")
        except (ValueError, RecursionError):
            pass  # not JSON after all: plain text
    rows = text.splitlines(keepends=True) if path.suffix == ".jsonl" else [text]
    return "".join(redact(row) for row in rows).encode("utf-8", errors="surrogateescape")
