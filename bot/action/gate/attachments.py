"""Programs that are attached to a comment or an issue: files and gists. What is in them is somebody's, and only looked at here."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator
from datetime import datetime
from typing import Protocol

from bot.action.archives import UNREADABLE, beginning
from bot.action.gate.code_blocks import IMPORTS_TORCH, Found
from bot.action.gate.requests import Refusal
from bot.action.github.resources import Gist
from bot.action.github.transport import GitHubError

# Of one file as it is sent, of the program in it, files that are looked at, and members of an archive.
MOST_SENT, MOST_TEXT, MOST_FILES, MOST_MEMBERS = 16 << 20, 1 << 20, 5, 500
_FILE = re.compile(
    r"https://github\.com/(?:user-attachments/files|[\w.-]{1,40}/[\w.-]{1,100}/files)/\d{1,12}/(?P<name>[\w.%+-]{1,120}\.(?:py|ipynb|zip|log|txt))\b"
)
_GIST = re.compile(r"https://gist\.github\.com/(?:[\w-]{1,40}/)?(?P<id>[0-9a-f]{20,40})\b")
# How the records of a structured log begin, see bot/engine/inputs/trace.py.
_TRACE = re.compile(r"^V\d{4} [0-9:.]{8,20} +\d+ [^\]\n]{1,400}:\d+\] \{", re.MULTILINE)
_TRACEBACK = re.compile(r"^\S*\s?Traceback \(most recent call last\):", re.MULTILINE)

ONLY_A_TRACEBACK = (
    "There is a traceback here, but not the program that it came from. Add the program as a Python block, or attach one of these: the "
    "script, `fx_graph_runnable.py` (run it with `TORCH_COMPILE_DEBUG=1`), or the log of `TORCH_TRACE=DIRECTORY`."
)


class AttachedFiles(Protocol):
    """Where attached files come from."""

    def attachment(self, url: str, limit: int) -> bytes | None:
        """The file behind the address `url`; None where it has more than `limit` bytes."""
        ...

    def gist(self, name: str) -> Gist:
        """The gist `name`."""
        ...


def is_traceback(body: str) -> bool:
    """Whether `body` shows a traceback."""
    return _TRACEBACK.search(body) is not None


def find(body: str, files: AttachedFiles, asked_at: datetime) -> Found | None:
    """The first program among what is attached to `body`, which `files` fetches: a script, a notebook, or a structured log.

    A file that GitHub does not give is passed over.

    Raises:
        Refusal: a gist was changed after `asked_at`. What is attached as a file stays as it is.
    """
    for name, text in _texts(body, files, asked_at):
        if _is_program(name, text):
            return Found(text, f"the attached file {name}")
    return None


def _texts(body: str, files: AttachedFiles, asked_at: datetime) -> Iterator[tuple[str, str]]:
    links = sorted([*_FILE.finditer(body), *_GIST.finditer(body)], key=lambda match: match.start())
    for match in links[:MOST_FILES]:
        try:
            if match.re is _GIST:
                gist = files.gist(match["id"])
                if gist.updated_at > asked_at:
                    raise Refusal(f"The gist {match['id']} was changed after the request. Look at it, then ask again.")
                yield from gist.texts.items()
            else:
                raw = files.attachment(match[0], MOST_SENT)
                yield from _unpacked(match["name"], raw) if raw is not None else ()
        except GitHubError:
            continue


def _unpacked(name: str, raw: bytes) -> Iterator[tuple[str, str]]:
    if not name.endswith(".zip"):
        if len(raw) <= MOST_TEXT:
            yield name, _decoded(raw)
        return
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            for entry in archive.infolist()[:MOST_MEMBERS]:
                last = entry.filename.rpartition("/")[2]
                if not last.endswith((".py", ".ipynb", ".log", ".txt")):
                    continue
                inner = beginning(archive, entry, MOST_TEXT + 1)
                if len(inner) <= MOST_TEXT:
                    yield f"{last} in {name}", _decoded(inner)
    except UNREADABLE:
        return


def _decoded(raw: bytes) -> str:
    return raw.decode("utf-8", "replace").replace("\0", "\ufffd")


def _is_program(name: str, text: str) -> bool:
    kind = name.partition(" in ")[0].rpartition(".")[2]
    if not text.strip() or len(text) > MOST_TEXT:
        return False
    if kind == "ipynb":
        return '"nbformat"' in text and "torch" in text
    return _TRACE.search(text) is not None or (kind == "py" and IMPORTS_TORCH.search(text) is not None)
