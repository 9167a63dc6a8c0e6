"""Programs attached to a comment or an issue: files and gists. Their content is a stranger's, and is only examined here."""

from __future__ import annotations

import codecs
import gzip
import io
import re
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol
from urllib.parse import unquote

from bot.action.archives import UNREADABLE, beginning
from bot.action.ci.python_words import HEADER
from bot.action.gate.code_blocks import IMPORTS_TORCH, Found, in_utf_8, parses
from bot.action.gate.page import shown_text
from bot.action.gate.requests import Refusal
from bot.action.github.resources import Gist
from bot.action.github.transport import GitHubError
from bot.action.report.render.markdown import code

# Maximum size of a file as sent and of the program in it, number of files examined, and of members of an archive.
MOST_SENT, MOST_TEXT, MOST_FILES, MOST_MEMBERS = 16 << 20, 1 << 20, 5, 500
# Characters of texts that are parsed, in all: a MiB takes a second.
MOST_PARSED = 8 << 20
# Maximum size of a packed stream, and number of files named in an answer.
_MOST_UNPACKED, _MOST_NAMED = 64 << 20, 5
# After the address of the server; an enterprise may have its own.
_FILE = (
    r"/(?:user-attachments/files|[\w.-]{1,40}/[\w.-]{1,100}/files)/\d{1,12}"
    r"/(?P<name>[\w.%+-]{1,120}\.\w{1,20})\b"
)
# After the address of gists, which an enterprise server has at one of two places (GitHub's documentation of subdomain isolation).
_GIST = (
    r"/(?:[\w-]{1,40}/)?(?P<id>[0-9a-f]{20,40})(?:/(?:raw/)?(?P<revision>[0-9a-f]{7,64}))?\b"
    r"(?P<file>(?:/raw)?/[\w.%+-]{1,200}|#file-[\w-]{1,200})?"
)
_GISTS, _RAW_GISTS = "https://gist.github.com", "https://gist.githubusercontent.com"
# A file in a repository, possibly at a commit.
_IN_REPOSITORY = re.compile(
    r"https://(?:github\.com/[\w.-]{1,40}/[\w.-]{1,100}/(?:blob|raw)|raw\.githubusercontent\.com)/[^\s?#]{1,1000}/(?P<name>[^\s?#/]{1,200}\.(?:py|ipynb|txt|log))\b"
)
# How records in a structured log begin; see bot/engine/inputs/trace.py.
_TRACE = re.compile(r"^V\d{4} [0-9:.]{8,20} +\d+ [^\]\n]{1,400}:\d+\] \{", re.MULTILINE)
# What comes instead of a file if a login is required.
_PAGE = re.compile(rb"(?:\xef\xbb\xbf)?\s*<(?:!doctype\s+html|html)\b", re.IGNORECASE)
_PACKED = (".zip", ".gz", ".tgz")
_TARRED, _LOOKED_AT = (".tgz", ".tar.gz"), (".py", ".ipynb", ".json", ".log", ".txt")
_NO_PROGRAM = "no program that imports torch, no log of `TORCH_TRACE`"
_EMPTY = "nothing in it is a kind of file that is looked at"
_TOO_LARGE, _UNREADABLE, _NOT_GIVEN = f"more than {MOST_TEXT >> 20} MiB", "it cannot be read", "GitHub does not give it"
_NOT_PARSED = "there is too much before it that may be a program: call it `.py`"

ONLY_A_TRACEBACK = (
    "There is a traceback here, but not the program that it came from. Add the program as a Python block, or attach one of these: the "
    "script, `fx_graph_runnable.py` (run it with `TORCH_COMPILE_DEBUG=1`), or the log of `TORCH_TRACE=DIRECTORY`."
)


class AttachedFiles(Protocol):
    """Fetches attached files."""

    def attachment(self, url: str, limit: int) -> bytes | None:
        """The file at the address `url`; None if it has more than `limit` bytes."""
        ...

    def gist(self, name: str, revision: str | None = None) -> Gist:
        """The gist `name`, as it is or as it was in a `revision`."""
        ...


def is_traceback(body: str) -> bool:
    """Whether `body` shows a traceback."""
    return HEADER in body


@dataclass
class Attachments:
    """What is attached to a conversation on `server`. `files` fetches it; gists must not have been changed after `asked_at`."""

    files: AttachedFiles
    asked_at: datetime
    server: str
    traceback: bool = field(default=False, init=False)
    _in_vain: list[str] = field(default_factory=list, init=False)
    _left: int = field(default=0, init=False)
    _parsed: int = field(default=0, init=False)

    def find(self, body: str) -> Found | None:
        """The first program attached to `body` where a reader sees it: a script, a notebook, or a structured log.

        A file that GitHub does not deliver is skipped.

        Raises:
            Refusal: a gist was changed after the request. Attached files cannot be changed.
        """
        for name, text, why in self._texts(body):
            if text is not None and not (why := self._why_not(name, text)):
                return Found(text if _TRACE.search(text) else in_utf_8(text), f"the attached file {name}")
            self.traceback = self.traceback or is_traceback(text or "")
            said = f"{code(name, 100)} ({why})"
            self._in_vain += [said] if said not in self._in_vain else []
        return None

    def _why_not(self, name: str, text: str) -> str:
        """Why the file `name` with that `text` is not taken; empty if it is."""
        suffix = name.partition(" in ")[0].rpartition(".")[2]
        if not text.strip() or len(text) > MOST_TEXT:
            return _NO_PROGRAM
        if suffix in ("ipynb", "json"):
            taken = '"nbformat"' in text and "torch" in text
        elif _TRACE.search(text):
            taken = True
        elif suffix not in ("py", "txt") or not IMPORTS_TORCH.search(text):
            taken = False
        elif suffix == "txt":
            self._parsed += len(text)
            if self._parsed > MOST_PARSED:
                return _NOT_PARSED
            taken = parses(text)
        else:
            taken = True
        return "" if taken else _NO_PROGRAM

    def in_vain(self) -> str:
        """What is linked but not a program, and how much was not examined, in sentences; empty if there was nothing."""
        more = len(self._in_vain) - _MOST_NAMED
        named = ", ".join([*self._in_vain[:_MOST_NAMED], *([f"{more} more"] if more > 0 else [])])
        left = f" Of each text only the first {MOST_FILES} files are looked at, so {self._left} more were not." if self._left else ""
        return f" Linked, but not taken: {named}.{left}" if named else ""

    def _gists(self) -> tuple[str, ...]:
        """Where the gists are that the server knows; an enterprise server may use the same id for a different gist."""
        scheme, _, host = self.server.partition("://")
        own = (f"{scheme}://gist.{host}",)
        return (*own, _RAW_GISTS) if own == (_GISTS,) else (*own, f"{self.server}/gist")

    def _texts(self, body: str) -> Iterator[tuple[str, str | None, str]]:
        """The name of each file, and its text, or why there is none."""
        shown = shown_text(body)
        files = re.finditer(f"(?:https://github\\.com|{re.escape(self.server)}){_FILE}", shown)
        gists = re.finditer(f"(?P<place>{'|'.join(map(re.escape, {_GISTS, _RAW_GISTS, *self._gists()}))}){_GIST}", shown)
        links = sorted([*files, *gists], key=lambda match: match.start())
        others = [match["name"] for match in links if "name" in match.re.groupindex and not match["name"].endswith((*_LOOKED_AT, *_PACKED))]
        links = [match for match in links if "id" in match.re.groupindex or match["name"] not in others]
        yield from ((name, None, "no kind of file that is looked at") for name in others)
        yield from ((found["name"], None, "of a repository: attach it, or paste it") for found in _IN_REPOSITORY.finditer(shown))
        self._left += max(len(links) - MOST_FILES, 0)
        for match in links[:MOST_FILES]:
            is_gist = "id" in match.re.groupindex
            name = f"gist {match['id']}" if is_gist else match["name"]
            try:
                if is_gist and match["place"] not in self._gists():
                    yield name, None, "it is not on this server"
                elif is_gist:
                    # a reader sees the revision in the address
                    gist = self.files.gist(match["id"], match["revision"])
                    if gist.updated_at >= self.asked_at:  # GitHub reports whole seconds
                        late = "was changed after the request, or in the same second"
                        raise Refusal(f"The gist {match['id']} {late}. Look at it, then ask again.")
                    # if there are several, the one that the address points to comes first
                    texts = sorted(gist.texts.items(), key=lambda item: _anchor(item[0]) != _anchor(match["file"] or ""))
                    yield from ((file, text, "") for file, text in texts) if texts else [(name, None, _EMPTY)]
                else:
                    raw = self.files.attachment(match[0], MOST_SENT)
                    if raw is None:
                        yield name, None, f"more than {MOST_SENT >> 20} MiB"
                    elif _PAGE.match(raw):
                        yield name, None, "what came is a page of HTML"
                    else:
                        yield from list(_unpacked(name, raw)) or [(name, None, _EMPTY)]
            except GitHubError:
                yield name, None, _NOT_GIVEN


def _anchor(file: str) -> str:
    """The name of a gist's `file` in an address, after its last slash or as `#file-NAME`, in a canonical form."""
    return re.sub("[^a-z0-9]+", "-", unquote(file).rpartition("/")[2].lower().removeprefix("#file-"))


def _unpacked(name: str, raw: bytes) -> Iterator[tuple[str, str | None, str]]:
    try:
        if name.endswith(".zip"):
            for last, content in _zipped(raw):
                inner = f"{last} in {name}"
                yield _text(inner, content) if content is not None else (inner, None, _UNREADABLE)
        elif name.endswith((".gz", ".tgz")):
            with gzip.GzipFile(fileobj=io.BytesIO(raw)) as stream:
                raw = stream.read(_MOST_UNPACKED + 1)
            if len(raw) > _MOST_UNPACKED:
                yield name, None, f"unpacked more than {_MOST_UNPACKED >> 20} MiB"
            elif name.endswith(_TARRED):
                yield from (_text(f"{last} in {name}", content) for last, content in _tarred(raw))
            else:
                yield _text(f"{name.removesuffix('.gz')} in {name}", raw)
        else:
            yield _text(name, raw)
    except (*UNREADABLE, tarfile.TarError):
        yield name, None, _UNREADABLE


def _zipped(raw: bytes) -> Iterator[tuple[str, bytes | None]]:
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        for entry in archive.infolist()[:MOST_MEMBERS]:
            last = entry.filename.rpartition("/")[2]
            if last.endswith(_LOOKED_AT):
                try:
                    content = beginning(archive, entry, MOST_TEXT + 1)
                except UNREADABLE:
                    content = None
                yield last, content


def _tarred(raw: bytes) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(fileobj=io.BytesIO(raw), mode="r:") as archive:
        for _, entry in zip(range(MOST_MEMBERS), archive, strict=False):
            last = entry.name.rpartition("/")[2]
            stream = archive.extractfile(entry) if entry.isfile() and last.endswith(_LOOKED_AT) else None
            if stream is not None:
                yield last, stream.read(MOST_TEXT + 1)


def _text(name: str, raw: bytes) -> tuple[str, str | None, str]:
    return (name, _decoded(raw), "") if len(raw) <= MOST_TEXT else (name, None, _TOO_LARGE)


def _decoded(raw: bytes) -> str:
    # as Windows editors and shells write it
    written = "utf-16" if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    return raw.decode(written, "replace").replace("\0", "\ufffd")
