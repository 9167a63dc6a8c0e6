"""Files without secrets and personal paths, for what leaves the machine."""

from __future__ import annotations

import json
from pathlib import PurePath

from bot.action.redaction import redact, redact_all

# These files hold tensors and machine code. Of all others the text is searched.
_NO_TEXTS = frozenset(
    {".pt2", ".pt", ".pth", ".bin", ".safetensors", ".npy", ".npz", ".pkl", ".pickle", ".so", ".o", ".a", ".cubin", ".fatbin", ".pyc"}
    | {".zip", ".gz", ".png"}
)
# Of a result, the names of the texts in which something was replaced, a line each: what is proven is what they were before.
CHANGED = "redacted.txt"
# Bytes; a longer text is not searched, and so does not leave.
LONGEST = 64 << 20
# Bytes; a longer JSON text is a text like others: what it says may take sixty times as much memory.
_LONGEST_JSON = 4 << 20


def is_text(path: PurePath) -> bool:
    """Whether the file `path` is, by its suffix, searched for secrets."""
    return path.suffix.lower() not in _NO_TEXTS


def is_program(path: PurePath) -> bool:
    """Whether the file `path` is, by its suffix, an exported program: an archive whose texts are searched, but not changed."""
    return path.suffix.lower() == ".pt2"


def scrubbed(path: PurePath, content: bytes) -> bytes:
    """The `content` of the text file `path` without secrets; unchanged where there were none. JSON stays JSON."""
    text = content.decode("utf-8", errors="surrogateescape")
    if "\0" in text and redact(bare := text.replace("\0", "")) != bare:
        # two or four bytes for each character, as other systems write texts; what is left of it without a secret is read all the same
        return redact(bare).encode("utf-8", errors="surrogateescape")
    if path.suffix == ".json" and len(content) <= _LONGEST_JSON:
        try:
            held = json.loads(text)
            clean = redact_all(held)
            # compared as text: NaN is not equal to itself. Of two entries with one name only the last is held.
            if json.dumps(clean) == json.dumps(held) and redact(text) == text:
                return content
            return (json.dumps(clean, indent=2) + "\n").encode("utf-8", errors="surrogateescape")
        except (ValueError, RecursionError):
            pass  # no JSON after all: a text like others
    rows = text.splitlines(keepends=True) if path.suffix == ".jsonl" else [text]
    return "".join(redact(row) for row in rows).encode("utf-8", errors="surrogateescape")
