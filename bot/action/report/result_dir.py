"""Reads result directories as what they are: files that somebody else's program may have written.

No link is followed, only regular files are opened, nothing is read beyond its limit, and all names are ours.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from pydantic import ValidationError

from bot.action.archives import packed
from bot.action.minify.scrub import CHANGED
from bot.action.redaction import redact, redacted
from bot.action.report import excerpt
from bot.action.report.render.text import one_line
from bot.action.request_file import KEY_FILE
from bot.action.request_file import key as request_key
from bot.models.report import Section, Stored
from bot.models.request import Request
from bot.models.result import Result

RESULT, REPRO, EXPORTED, EXPORTED_TEXT, KERNEL = "result.json", "repro.py", "exported_program.pt2", "exported_program.txt", "kernel.py"
LOG = "original/log.txt"
# Bytes.
_JSON_LIMIT, _TEXT_LIMIT, _FILE_LIMIT = 1 << 20, 4 << 20, 1 << 30
_PROGRAM_LIMIT = 1 << 20
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Number of entries examined in a directory that contains result directories.
_MOST_ENTRIES = 100_000
_SCHEMA = 1
log = logging.getLogger(__name__)

_INDEX = re.compile(r"(?:\A|-)(\d{1,3})\Z")
# Our own jobs' names for a result: among other names only these are recognized, never anything that ends in a number.
_OURS = re.compile(r"(?:torch-minify-(?:[a-z][a-z0-9]{0,19}-)?)?result-(\d{1,3})|(\d{1,3})")


class UnreadableResult(Exception):
    """A file is missing, or is not what it should be. The message is for people."""


@dataclass(frozen=True)
class Folder:
    """One result directory."""

    path: Path

    @contextmanager
    def open(self, name: str, limit: int) -> Iterator[tuple[int, int]]:
        """The descriptor of the regular file `name` in it (`inner/name` for a subdirectory), and its size in bytes. Raises
        UnreadableResult if it is missing, a link, not a regular file, or larger than `limit`, or if its path contains a link."""
        try:
            folder = self._directory(name)
        except (OSError, ValueError) as error:
            raise UnreadableResult(f"the result's folder cannot be opened: {_why(error)}") from error
        try:
            # without O_NONBLOCK, opening a pipe would wait for a writer
            file = os.open(name.rpartition("/")[2], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        except OSError as error:
            raise UnreadableResult(f"{name} cannot be opened: {_why(error)}") from error
        finally:
            os.close(folder)
        try:
            held = os.fstat(file)
            if not stat.S_ISREG(held.st_mode):
                raise UnreadableResult(f"{name} is no plain file")
            if held.st_size > limit:
                raise UnreadableResult(f"{name} has {held.st_size:,} bytes, more than {limit:,}")
            yield file, held.st_size
        except OSError as error:
            raise UnreadableResult(f"{name} cannot be read: {_why(error)}") from error
        finally:
            os.close(file)

    def _directory(self, name: str) -> int:
        """The descriptor of the directory that contains `name`: each step is opened separately, so that none of them is a link."""
        found = os.open(self.path, _DIRECTORY)
        for inner in name.split("/")[:-1]:
            outer = found
            try:
                found = os.open(inner, _DIRECTORY, dir_fd=outer)
            finally:
                os.close(outer)
        return found

    def content(self, name: str, limit: int, *, end: bool = False) -> bytes:
        """The bytes of the file `name`, at most `limit`; with `end` the last ones, of a file of any size. Raises UnreadableResult like
        `open`."""
        with self.open(name, _FILE_LIMIT if end else limit) as (file, size), os.fdopen(os.dup(file), "rb") as stream:
            stream.seek(max(size - limit, 0) if end else 0)
            return stream.read(limit)

    def text(self, name: str) -> str | None:
        """The text in the file `name`, with invalid UTF-8 replaced; None if it cannot be read."""
        try:
            return self.content(name, _TEXT_LIMIT).decode("utf-8", errors="replace")
        except UnreadableResult:
            return None

    def log(self) -> str:
        """The end of the program's output; empty if that is not known."""
        try:
            return self.content(LOG, _TEXT_LIMIT, end=True).decode("utf-8", errors="replace")
        except UnreadableResult:
            return ""

    def program(self) -> str | None:
        """The exported program as text, if a comment can hold it."""
        try:
            return packed(self.content(EXPORTED, _PROGRAM_LIMIT))
        except UnreadableResult:
            return None

    def stored(self, name: str) -> Stored | None:
        """Size and hash of the file `name`; None if it cannot be read."""
        try:
            with self.open(name, _FILE_LIMIT) as (file, size):
                digest = hashlib.sha256()
                while chunk := os.read(file, 1 << 20):
                    digest.update(chunk)
                return Stored(name=name, size=size, sha256=digest.hexdigest())
        except UnreadableResult:
            return None

    def answers(self, request: Request) -> bool:
        """Whether it is the result of `request`, as far as it says; one that a person made with `run` does not say."""
        said = self.text(KEY_FILE)
        return said is None or said.strip() == request_key(request)

    def result(self) -> Result:
        """The content of `result.json`. Raises UnreadableResult if it is missing, or not what this version writes."""
        try:
            found = Result.model_validate_json(self.content(RESULT, _JSON_LIMIT))
        except ValidationError as error:
            mistakes = error.errors(include_url=False, include_input=False)
            where = ".".join(str(part) for part in mistakes[0]["loc"])[:100] or "its start"
            if all(mistake["type"] == "extra_forbidden" for mistake in mistakes):
                raise UnreadableResult(
                    f"{RESULT} holds what this version does not know, {where}: was it written by a newer one?"
                ) from error
            count = len(mistakes)
            raise UnreadableResult(f"{RESULT} is not what this version writes: {count} mistakes, the first at {where}") from error
        if found.schema_ != _SCHEMA:
            raise UnreadableResult(f"{RESULT} has the schema {found.schema_}; this version reads {_SCHEMA}")
        return found


def _why(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or type(error).__name__


def section(request: Request, folder: Folder | None) -> Section:
    """The result for `request` in `folder`, with secrets and personal paths removed."""
    asked = redacted(request)
    if folder is None:
        return Section(request=asked)
    try:
        said = folder.result()
    except UnreadableResult as error:
        return Section(request=asked, problem=str(error))
    texts = {name: folder.text(name) for name in (REPRO, EXPORTED_TEXT)}
    # a machine that goes down may leave part of a file, which is not a program
    if not (texts[REPRO] or "").strip() or "\0" in (texts[REPRO] or ""):
        texts[REPRO] = None
    printed = folder.log()
    texts["traceback"] = excerpt.traceback(printed, said.signature.frame if said.signature else None) or None
    # if it failed as expected, the traceback or the repro says enough
    texts["log"] = excerpt.tail(printed) or None if texts["traceback"] is None and said.status in ("not_reproduced", "error") else None
    shown = {name: None if text is None else redact(text) for name, text in texts.items()}
    clean = redacted(said)
    # most is replaced before it leaves the machine
    before = set((folder.text(CHANGED) or "").splitlines()) & {RESULT, REPRO, EXPORTED_TEXT, LOG}
    files = [stored for name in (EXPORTED, KERNEL, REPRO, RESULT) if (stored := folder.stored(name))]
    return Section(
        request=asked,
        result=clean,
        repro=shown[REPRO],
        exported_text=shown[EXPORTED_TEXT],
        program=folder.program(),
        traceback=shown["traceback"],
        log=shown["log"],
        files=tuple(files),
        repro_altered=shown[REPRO] != texts[REPRO] or REPRO in before,
        altered=shown != texts or clean != said or bool(before),
    )


def folders(given: Iterable[Path], requests: Sequence[Request]) -> dict[int, Folder]:
    """Which of `requests` each directory in `given` answers, by the number or id at the end of its name, otherwise by its position.

    A directory that answers none and contains no result is searched: it may contain the directories of all requests, as downloaded
    artifacts do.
    """
    found: dict[int, Folder] = {}
    paths = [path for one in given for path in _expanded(one, requests)]
    for place, path in enumerate(paths):
        index = index_of(path.name, requests)
        if index is None and len(paths) == len(requests) and os.path.lexists(path / RESULT):
            index = place
        if index is not None:
            found.setdefault(index, Folder(path))
    return found


def index_of(name: str, requests: Sequence[Request]) -> int | None:
    """The index in `requests` for a directory of that `name`, which a person chose."""
    for index, request in enumerate(requests):
        if name == request.id or name.endswith(f"-{request.id}"):
            return index
    number = _INDEX.search(name)
    return int(number[1]) if number and int(number[1]) < len(requests) else None


def _expanded(path: Path, requests: Sequence[Request]) -> list[Path]:
    found: dict[int, Path] = {}
    try:
        path = path.resolve()
        if index_of(path.name, requests) is not None or (path / RESULT).exists() or not path.is_dir():
            return [path]
        # `result-0`, the jobs' own name, before other names
        for entry in sorted(islice(path.iterdir(), _MOST_ENTRIES), key=lambda entry: (not entry.name.startswith("result-"), entry.name)):
            index = exact_index(entry.name, requests)
            if index is not None and _is_folder(entry):
                # an artifact that was downloaded separately contains the directory
                inner = entry / f"result-{index}"
                found.setdefault(index, inner if _is_folder(inner) else entry)
    except (OSError, RuntimeError, ValueError) as error:  # before Python 3.13, a cycle of links raises RuntimeError
        log.warning("%s cannot be looked into: %s", one_line(str(path)), _why(error))
    return [found[index] for index in sorted(found)] or [path]


def exact_index(name: str, requests: Sequence[Request]) -> int | None:
    """The index in `requests` for which our own jobs use exactly this `name` for a directory or an artifact."""
    for index, request in enumerate(requests):
        if name == request.id:
            return index
    ours = _OURS.fullmatch(name)
    number = int(ours[1] or ours[2]) if ours else len(requests)
    return number if number < len(requests) else None


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()
