"""Where a result is wanted: what stands there before anything is done."""

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
    """Make the directory `out`, or take from it what an earlier job left there, on a machine that is kept: it would be this one's result.

    Nothing else that somebody keeps there goes; of a directory that is not known to be ours the result alone. Raises InputError where it
    lies behind a link in the working directory, which may be a checkout: a commit would say where we write; or where something else stands.
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
