"""Prepares the place of a result before anything is done."""

from __future__ import annotations

from pathlib import Path

from bot.action import request_file
from bot.action.console import InputError
from bot.action.minify.isolation import chown_like_parent
from bot.action.minify.machine_report import FILE
from bot.action.minify.scrub import CHANGED
from bot.models.result import CONTENTS
from bot.sandbox.files import remove


def begin(out: Path) -> None:
    """Create the directory `out`, or remove what an earlier job left there on a persistent machine, which would become this job's result.

    Nothing else in it is removed; if the directory is not known to be ours, only the result. Raises InputError if it is behind a link in
    the working directory, since that may be a checkout and a commit would decide where we write; or if something else is in its place.
    """
    if not out.is_absolute() and any(path.is_symlink() for path in (out, *out.parents)):
        raise InputError(f"the directory of the result, {out}, is a link or lies behind one: name the place that it leads to")
    try:
        _begin(out)
    except OSError as error:
        raise InputError(f"the directory of the result, {out}, cannot be made or emptied: {error.strerror}") from error


def _begin(out: Path) -> None:
    for path in reversed([path for path in (out, *out.parents) if not path.exists()]):
        path.mkdir()
        chown_like_parent(path)
    ours = (out / request_file.KEY_FILE).exists()
    for held in [out / name for name in ((*CONTENTS, FILE, CHANGED, request_file.KEY_FILE) if ours else CONTENTS[:1])]:
        if held.is_dir() and not held.is_symlink():
            remove(held)
        else:
            held.unlink(missing_ok=True)
