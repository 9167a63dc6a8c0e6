"""Brings the files that the engine's account left to their destination without opening a path of that account: it writes an archive into a
pipe.

Directories can be replaced by links between two checks. So the account reads its own files, with its own permissions, and we take regular
files with harmless names from the archive, within limits.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import subprocess
import sys
import tarfile
import time
from pathlib import Path, PurePosixPath
from typing import IO, cast

from bot.action.archives import holds_secret
from bot.action.minify.isolation import Account
from bot.action.minify.result_set import TORN, ResultSet, is_waiting, waiting
from bot.action.minify.scrub import CHANGED, LONGEST, is_program, is_text, scrubbed
from bot.action.redaction import redact

# Larger files, more bytes in total, and more files than this are left behind.
LARGEST_FILE, MOST_BYTES, MOST_FILES = 256 << 20, 512 << 20, 2000
# Bytes of texts in total: searching the worst of them for secrets takes two seconds per MiB.
MOST_TEXT = LONGEST
_MOST_ENTRIES = 20_000
# Bytes of entries, including those left behind: they are read to the end, too, which a file full of holes hardly has.
_MOST_READ = 8 << 30
# Bytes between the content of one file and that of the next: no headers of ours are longer. Tarfile keeps in memory whatever they declare.
_MOST_HEADERS = 64 << 10
# Names that an artifact can have, and no others: with a single bad name, the whole upload is rejected.
_NAME = re.compile(r"[A-Za-z0-9_.+=@,()~ -]{1,150}")
_DEEPEST = 12
# Maximum characters of a path that are examined: more than any wanted path can have.
_LONGEST_NAME = 4096
_MODE = 0o644
# Seconds for the process that reads the files to exit, once it has written all of them.
_TO_END = 5.0
# Number of attempts at files that are being exchanged, and seconds between them.
_LOOKS, _PAUSE = 3, 0.2

# Runs under the account: the first argument is its directory, the second a directory below it that is not wanted.
_ARCHIVE = """
import os, stat, sys, tarfile
root, without, deepest = sys.argv[1:]
with tarfile.open(fileobj=sys.stdout.buffer, mode="w|") as archive:
    for folder, directories, files in os.walk(root):
        directories.sort()
        here = os.path.relpath(folder, root)
        if here == without:
            directories.clear()
            continue
        if here.count(os.sep) >= int(deepest):
            # it is refused, whatever is below: to go on down has no end
            directories.clear()
        for name in sorted(files) + [one for one in directories if os.path.islink(os.path.join(folder, one))]:
            entry = tarfile.TarInfo(os.path.normpath(os.path.join(here, name)))
            try:
                held = os.open(os.path.join(folder, name), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            except OSError:
                entry.type = tarfile.SYMTYPE
                archive.addfile(entry)
                continue
            facts = os.fstat(held)
            if not stat.S_ISREG(facts.st_mode):
                # also a directory: what was a link a moment ago
                os.close(held)
                entry.type = tarfile.FIFOTYPE
                archive.addfile(entry)
                continue
            with open(held, "rb") as opened:
                entry.size = facts.st_size
                archive.addfile(entry, opened)
"""


class _Measured:
    """A `stream` of which no more than `most` bytes are read: then OverflowError."""

    def __init__(self, stream: IO[bytes], most: int) -> None:
        self._stream, self._read, self.most = stream, 0, most

    def read(self, size: int) -> bytes:
        if self._read >= self.most:
            raise OverflowError
        block = self._stream.read(size)
        self._read += len(block)
        return block


def hand_over(account: Account, source: Path, target: int, without: Path | None = None) -> list[str]:
    """Copy the regular files below `source`, which belongs to the `account`, to the directory with the descriptor `target`.

    Returns what was left behind, with the reason. `without` is a directory below `source` that is not wanted. An existing file is replaced
    atomically, and the files of a result together, or not at all.

    Raises:
        OSError: no process could be started.
    """
    left = _look(account, source, target, without)
    for _ in range(_LOOKS - 1):
        if TORN not in left:
            break
        time.sleep(_PAUSE)
        left = _look(account, source, target, without)
    return left


def _look(account: Account, source: Path, target: int, without: Path | None) -> list[str]:
    words = [sys.executable, "-I", "-S", "-c", _ARCHIVE, str(source), str(without or ""), str(_DEEPEST)]
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    # the engine may still be running under this account
    process = account.start(words, cwd=Path("/"), env={}, sole=False, **streams)
    assert process.stdout is not None
    try:
        with process.stdout as stream:
            left = receive(stream, target)
            whole = not stream.read(1)
        with contextlib.suppress(subprocess.TimeoutExpired):
            if process.wait(_TO_END) and whole:
                left.append(f"what comes after: reading it ended with exit status {process.returncode}")
        return left
    finally:
        process.end()


def receive(stream: IO[bytes], target: int) -> list[str]:
    """Write the regular files of the archive in `stream` into the directory with the descriptor `target`; returns what was left behind,
    and why.

    An additional file `CHANGED` names the texts in which something was replaced.
    """
    left: list[str] = []
    changed: list[str] = []
    result = ResultSet(target)
    copied = taken = searched = read = 0
    measured = _Measured(stream, _MOST_HEADERS)
    try:
        with tarfile.open(fileobj=cast(IO[bytes], measured), mode="r|") as archive:
            for number, entry in enumerate(archive):
                measured.most = archive.offset + _MOST_HEADERS
                if number >= _MOST_ENTRIES:
                    left.append(f"more than {_MOST_ENTRIES} entries")
                    break
                # a name that contains a secret becomes one that an artifact cannot have
                entry.name = redact(entry.name[:_LONGEST_NAME])
                # the archive keeps its entries
                archive.pax_headers, entry.pax_headers, entry.linkname, entry.uname, entry.gname = {}, {}, "", "", ""
                read += abs(entry.size)
                if read > _MOST_READ:
                    left.append(f"{entry.name[:200]!r} and what comes after: more than {_MOST_READ >> 30} GiB")
                    break
                text = entry.size if is_text(PurePosixPath(entry.name)) else 0
                reason = _unwanted(entry, copied, taken)
                if reason is None and searched + text > MOST_TEXT:
                    reason = f"more than {MOST_TEXT >> 20} MiB of texts in all: they cannot be searched for secrets"
                if reason is None:
                    searched += text
                    try:
                        changed += [entry.name] if _write(archive, entry, target, result) else []
                        copied, taken = copied + 1, taken + entry.size
                    except OSError as error:
                        reason = error.strerror or "cannot be written"
                if reason is not None:
                    result.refused.add(entry.name)
                    left.append(f"{entry.name[:200]!r}: {reason}")
    except (tarfile.TarError, EOFError, ValueError):
        pass  # it breaks off, for example because the process that writes it was ended
    except (OverflowError, RecursionError) as error:
        left.append(f"what comes after: its header cannot be read ({type(error).__name__})")
    apart = [name for name in changed if not result.holds(name)]  # not part of a result: they are in place already
    try:
        whole = result.settle(lambda kept: _note([*apart, *(name for name in changed if name in kept)], target))
        if not whole:
            # where nothing of one came, nothing is torn: a result of ours stands there
            left += [TORN] if result.came else []
            _note([*apart, *filter(result.holds, _noted(target))], target)
    except OSError as error:
        left.append(f"the result: {error.strerror}")
    return left


def _noted(target: int) -> list[str]:
    """The files in which something was replaced, according to an earlier attempt."""
    try:
        held = os.open(CHANGED, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=target)
    except OSError:
        return []
    with os.fdopen(held, encoding="utf-8") as opened:
        return opened.read().splitlines()


def _note(changed: list[str], target: int) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(CHANGED, dir_fd=target)
    if changed:
        held = os.open(CHANGED, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, _MODE, dir_fd=target)
        with os.fdopen(held, "w", encoding="utf-8") as written:
            written.write("".join(f"{name}\n" for name in changed))


def _unwanted(entry: tarfile.TarInfo, copied: int, taken: int) -> str | None:
    """Why an entry is left behind, given the number of files `copied` and of bytes `taken` so far; None if it is not."""
    parts = PurePosixPath(entry.name).parts
    if not entry.isreg() or entry.issparse():
        return "no plain file"
    if not parts or len(parts) > _DEEPEST or not all(_NAME.fullmatch(part) and part not in (".", "..") for part in parts):
        return "a name that an artifact cannot have"
    if parts[0] == CHANGED or any(is_waiting(part) for part in parts):
        return "a name of ours"
    if entry.size > LARGEST_FILE:
        return f"larger than {LARGEST_FILE >> 20} MiB"
    if entry.size > LONGEST and is_text(PurePosixPath(entry.name)):
        return f"a text larger than {LONGEST >> 20} MiB: it cannot be searched for secrets"
    if copied >= MOST_FILES:
        return f"more than {MOST_FILES} files"
    return f"more than {MOST_BYTES >> 20} MiB in all" if taken + entry.size > MOST_BYTES else None


def _write(archive: tarfile.TarFile, entry: tarfile.TarInfo, target: int, result: ResultSet) -> bool:
    """Put one file in its place below the descriptor `target`, following no link; one that belongs to the `result` waits there for the
    others. Returns whether something was replaced in it."""
    path = PurePosixPath(entry.name)
    content = archive.extractfile(entry)
    if content is None:
        raise OSError(22, "no plain file")
    place = os.dup(target)
    try:
        for part in path.parts[:-1]:
            with contextlib.suppress(FileExistsError):
                os.mkdir(part, 0o755, dir_fd=place)
            below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=place)
            os.close(place)
            place = below
        # hidden: if we were killed in between, it would be uploaded without having been searched
        new = waiting(path.name)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(new, dir_fd=place)
        try:
            clean, text, sha = _fill(new, place, path, content)
            if not result.takes(str(path), sha, text):
                os.replace(new, path.name, src_dir_fd=place, dst_dir_fd=place)
        except OSError:
            # nor may an older one remain next to newer ones
            for name in (new, *(() if result.holds(str(path)) else (path.name,))):
                with contextlib.suppress(OSError):
                    os.unlink(name, dir_fd=place)
            raise
    finally:
        os.close(place)
    return clean != text


def _fill(name: str, place: int, path: PurePosixPath, content: IO[bytes]) -> tuple[bytes, bytes, str]:
    """Write the `content` of the file `path` to `name` in the directory with the descriptor `place`; returns a text as written and as
    received, and the hash of what was received."""
    held = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, _MODE, dir_fd=place)
    with os.fdopen(held, "w+b") as written:
        clean = text = content.read(LONGEST) if is_text(path) else b""
        digest = hashlib.sha256(text)
        if text:
            clean = scrubbed(path, text)
            written.write(clean)
        else:
            while block := content.read(1 << 20):
                written.write(block)
                digest.update(block)
        if is_program(path) and holds_secret(written):
            raise OSError(22, "a secret or a personal path in it, or no archive")
    return clean, text, digest.hexdigest()
