"""The result directory: what is in it, whose it is, and that nothing in it is ever half written."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
import traceback
from collections.abc import Callable
from pathlib import Path

from bot.models.result import CONTENTS, Files, Result
from bot.sandbox.files import copy_plain_file, copy_plain_tree, remove

# The errors of a full disk, and of a limit on what an account may write.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_MARK = "result.json"
_NEW = ".new"  # suffix of a file that is being written


def sha256_of(path: Path) -> str:
    """The SHA-256 of the content of the file `path`."""
    digest = hashlib.sha256()
    with open(path, "rb") as opened:
        while block := opened.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


class NotOurs(Exception):
    """The directory exists and holds files that this tool did not write."""


class Workspace:
    """`--out`: the files of the command line's contract, in the directory `root`."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self.original = self.root / "original"
        self.ledger = self.root / "reduction.jsonl"
        self.repro = self.root / "repro.py"
        self.exported = self.root / "exported_program.pt2"
        self.exported_text = self.exported.with_suffix(".txt")  # its printed form, written next to it
        self.kernel = self.root / "kernel.py"
        self.result = self.root / _MARK
        self.dump = self.original / "pytorch"  # of PyTorch's own dumper
        # capture and compile directories, needed only while the job runs or is resumed
        self.work = self.original / "work"

    def prepare(self, program: Path | None = None, *, resume: bool, first: Callable[[], Result] | None = None) -> None:
        """Make the directory ready; what an earlier run left is kept only to resume from it. `program` is the file that will be run.

        `first` gives the result that is written before anything else, by which the directory is known to be ours; None if there is one.

        Raises:
            NotOurs: it holds something else.
            OSError: it cannot be written.
        """
        if self.root.exists() and not self.root.is_dir():
            raise NotOurs(f"{self.root} is a file")
        # a job may have been ended while it wrote its first result
        held = sorted({path.name for path in self.root.iterdir()} - {_MARK + _NEW}) if self.root.exists() else []
        if held and not self._is_ours():
            raise NotOurs(f"{self.root} exists and was not written by torch-minify (it holds {held[0]}): choose another --out")
        if program is not None and program.resolve().is_relative_to(self.root):
            raise NotOurs(f"{program} lies in the result directory {self.root}, which would be emptied: choose another --out")
        if resume and program is not None and self._holds_another(program):
            raise NotOurs(f"{self.root} holds the result of another program: leave --resume out, or choose another --out")
        self.root.mkdir(parents=True, exist_ok=True)
        if first is not None:
            self.save(first())
        if not resume:
            for name in CONTENTS[first is not None :]:
                path = self.root / name
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink(missing_ok=True)
                path.with_name(name + _NEW).unlink(missing_ok=True)
        self.work.mkdir(parents=True, exist_ok=True)

    def _is_ours(self) -> bool:
        try:
            held = json.loads((self.root / _MARK).read_text(encoding="utf-8"))
            return isinstance(held, dict) and held.get("schema") == 1 and {"status", "signature", "files"} <= held.keys()
        except (OSError, ValueError):
            return False

    def _holds_another(self, program: Path) -> bool:
        """Whether the program kept next to the result is not this one."""
        kept = {path.name: path for path in self.original.glob("*.py")}
        return bool(kept) and (program.name not in kept or kept[program.name].read_bytes() != program.read_bytes())

    def earlier(self) -> Result | None:
        """The result that an earlier run left, if it can be read."""
        try:
            return Result.model_validate_json(self.result.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None

    def write(self, path: Path, text: str) -> None:
        """Replace the file `path` by one with this `text` in one step."""
        self._put(path, lambda new: new.write_text(text, encoding="utf-8"))

    def keep(self, program: Path) -> None:
        """Keep the file `program` next to the result, as it is now. It is written whole: a run that may be resumed is known by it."""
        self._put(self.original / program.name, lambda new: shutil.copyfile(program, new))

    def _put(self, path: Path, make: Callable[[Path], object]) -> None:
        new = path.with_name(path.name + _NEW)
        try:
            make(new)
            os.replace(new, path)
        except OSError:
            new.unlink(missing_ok=True)  # half a file would make the directory look like somebody else's
            raise

    def save(self, result: Result) -> None:
        """Replace `result.json`."""
        self.write(self.result, result.to_json())

    def save_last(self, result: Result, make_room: Callable[[], object]) -> None:
        """Replace `result.json` when the job is over. If the disk is full, `make_room` is called, and it is tried once more."""
        try:
            self.save(result)
        except OSError as error:
            if error.errno not in FULL:
                raise
            make_room()
            self.save(result)

    def files(self, *, repro: bool, exported: bool, kernel: bool) -> Files:
        """The files that exist, of those that this job may have written: the `repro`, the `exported` program with its text, and the
        `kernel`."""

        def name(path: Path, written: bool) -> str | None:
            return path.name if written and path.exists() else None

        found = {
            "repro": name(self.repro, repro),
            "exported_program": name(self.exported, exported),
            "exported_text": name(self.exported_text, exported),
            "kernel": name(self.kernel, kernel),
        }
        return Files(**found, sha256={one: sha256_of(self.root / one) for one in found.values() if one})

    def bring_exported(self, place: Path) -> None:
        """Bring the exported program, which a worker wrote into the directory `place`, into the work directory until its script is
        proven. That of another script goes, even if this one has none."""
        for path in (self.exported, self.exported_text):
            (self.work / path.name).unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                copy_plain_file(place / path.name, self.work / path.name)

    def publish(self, *, exported: bool, kernel: str | None) -> None:
        """Put the `exported` program, if there is one, and the script of the `kernel` next to the repro that they belong to. Those of an
        earlier repro go."""
        for path in (self.exported, self.exported_text, self.kernel):
            path.unlink(missing_ok=True)
        for path in (self.exported, self.exported_text) if exported else ():
            with contextlib.suppress(OSError):
                os.replace(self.work / path.name, path)
        if kernel is not None:
            self.write(self.kernel, kernel)

    def keep_dump(self) -> None:
        """Keep what PyTorch's own dumper wrote, next to the original."""
        dumped = self.work / "capture" / "pytorch"
        if dumped.is_dir():
            copy_plain_tree(dumped, self.dump)

    def keep_traceback(self) -> None:
        """Add the traceback of the exception that is being handled to our log next to the original."""
        with contextlib.suppress(OSError), open(self.original / "torch-minify.log", "a", encoding="utf-8") as file:
            file.write(traceback.format_exc())

    def abandon(self) -> None:
        """Leave an empty directory if not even the result could be written: the same command is to work next time."""
        shutil.rmtree(self.original, ignore_errors=True)

    def clean(self) -> None:
        """Remove what only the job itself needed."""
        remove(self.work)
