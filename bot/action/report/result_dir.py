"""Result directories, read as what they are: files that somebody else's program may have written.

No link is followed, nothing but a plain file is opened, nothing is read beyond its limit, and the names are ours.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from bot.action.redaction import redact, redacted
from bot.models.report import Section, Stored
from bot.models.request import Request
from bot.models.result import Result

RESULT, REPRO, EXPORTED, EXPORTED_TEXT = "result.json", "repro.py", "exported_program.pt2", "exported_program.txt"
# Bytes.
_JSON_LIMIT, _TEXT_LIMIT, _FILE_LIMIT = 1 << 20, 4 << 20, 1 << 30
_SCHEMA = 1
_INDEX = re.compile(r"(?:^|-)(\d{1,3})$")
# What our own jobs call a result: among other names one of these is looked for, never whatever ends in a number.
_OURS = re.compile(r"(?:torch-minify-(?:[a-z][a-z0-9]{0,19}-)?)?result-(\d{1,3})|(\d{1,3})")


class UnreadableResult(Exception):
    """A file is missing, or is not what it should be. The words are for people."""


@dataclass(frozen=True)
class Folder:
    """One result directory."""

    path: Path

    @contextmanager
    def open(self, name: str, limit: int) -> Iterator[tuple[int, int]]:
        """The descriptor of the plain file `name` in it, and its size in bytes.

        Raises:
            UnreadableResult: it is missing, a link, no plain file, or larger than `limit`.
        """
        try:
            folder = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError as error:
            raise UnreadableResult(f"the result's folder cannot be opened: {error.strerror}") from error
        try:
            # without O_NONBLOCK a pipe would wait for somebody to write
            file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        except OSError as error:
            raise UnreadableResult(f"{name} cannot be opened: {error.strerror}") from error
        finally:
            os.close(folder)
        try:
            held = os.fstat(file)
            if not stat.S_ISREG(held.st_mode):
                raise UnreadableResult(f"{name} is no plain file")
            if held.st_size > limit:
                raise UnreadableResult(f"{name} has {held.st_size:,} bytes, more than {limit:,}")
            yield file, held.st_size
        finally:
            os.close(file)

    def content(self, name: str, limit: int) -> bytes:
        """The bytes of the file `name`, at most `limit` of them.

        Raises:
            UnreadableResult: as `open`.
        """
        with self.open(name, limit) as (file, size), os.fdopen(os.dup(file), "rb") as stream:
            return stream.read(size)

    def text(self, name: str) -> str | None:
        """The text in the file `name`, with what is no UTF-8 replaced; None where it cannot be read."""
        try:
            return self.content(name, _TEXT_LIMIT).decode("utf-8", errors="replace")
        except UnreadableResult:
            return None

    def stored(self, name: str) -> Stored | None:
        """Size and hash of the file `name`; None where it cannot be read."""
        try:
            with self.open(name, _FILE_LIMIT) as (file, size):
                digest = hashlib.sha256()
                while chunk := os.read(file, 1 << 20):
                    digest.update(chunk)
                return Stored(name=name, size=size, sha256=digest.hexdigest())
        except UnreadableResult:
            return None

    def result(self) -> Result:
        """What `result.json` says.

        Raises:
            UnreadableResult: it is missing, or not what this version writes.
        """
        try:
            found = Result.model_validate_json(self.content(RESULT, _JSON_LIMIT))
        except ValidationError as error:
            where = ".".join(str(part) for part in error.errors(include_url=False, include_input=False)[0]["loc"])[:100]
            raise UnreadableResult(
                f"{RESULT} is not what this version writes: {error.error_count()} mistakes, the first at {where or 'its start'}"
            ) from error
        if found.schema_ != _SCHEMA:
            raise UnreadableResult(f"{RESULT} has the schema {found.schema_}; this version reads {_SCHEMA}")
        return found


def section(request: Request, folder: Folder | None) -> Section:
    """All that came back for `request` in `folder`, with secrets and personal paths taken out."""
    asked = redacted(request)
    if folder is None:
        return Section(request=asked)
    try:
        said = folder.result()
    except UnreadableResult as error:
        return Section(request=asked, problem=str(error))
    texts = {name: folder.text(name) for name in (REPRO, EXPORTED_TEXT)}
    shown = {name: None if text is None else redact(text) for name, text in texts.items()}
    clean = redacted(said)
    files = [stored for name in (EXPORTED, REPRO, RESULT) if (stored := folder.stored(name))]
    return Section(
        request=asked,
        result=clean,
        repro=shown[REPRO],
        exported_text=shown[EXPORTED_TEXT],
        files=tuple(files),
        altered=shown != texts or clean != said,
    )


def folders(given: Iterable[Path], requests: Sequence[Request]) -> dict[int, Folder]:
    """Which of `requests` each directory in `given` answers, by the number or the id at the end of its name, else by its place.

    A directory that answers none and holds no result is looked into: it may hold the directories of all requests, as
    downloaded artifacts do.
    """
    found: dict[int, Folder] = {}
    paths = [path for one in given for path in _expanded(one, requests)]
    for place, path in enumerate(paths):
        index = index_of(path.name, requests)
        index = place if index is None and len(paths) == len(requests) else index
        if index is not None:
            found.setdefault(index, Folder(path))
    return found


def index_of(name: str, requests: Sequence[Request]) -> int | None:
    """The index in `requests` of the one that a directory of that `name`, given by a person, belongs to."""
    for index, request in enumerate(requests):
        if name == request.id or name.endswith(f"-{request.id}"):
            return index
    number = _INDEX.search(name)
    return int(number[1]) if number and int(number[1]) < len(requests) else None


def _expanded(path: Path, requests: Sequence[Request]) -> list[Path]:
    path = path.resolve()
    if index_of(path.name, requests) is not None or (path / RESULT).exists() or not path.is_dir():
        return [path]
    found: dict[int, Path] = {}
    # `result-0`, as the jobs call it, before what may stand beside it
    for entry in sorted(path.iterdir(), key=lambda entry: (not entry.name.startswith("result-"), entry.name)):
        index = exact_index(entry.name, requests)
        if index is not None and _is_folder(entry):
            # an artifact that was downloaded by itself holds the directory
            inner = entry / f"result-{index}"
            found.setdefault(index, inner if _is_folder(inner) else entry)
    return [found[index] for index in sorted(found)] or [path]


def exact_index(name: str, requests: Sequence[Request]) -> int | None:
    """The index in `requests` of the one to which our own jobs give a directory or an artifact of exactly that `name`."""
    for index, request in enumerate(requests):
        if name == request.id:
            return index
    ours = _OURS.fullmatch(name)
    number = int(ours[1] or ours[2]) if ours else len(requests)
    return number if number < len(requests) else None


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()
