"""Notebooks as pytest's plugins show them: nbmake, for which each is a test, and nbval, for which each of its cells is one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from bot.action.ci.drawn_tracebacks import begins
from bot.action.ci.failing_test import repository_path
from bot.action.ci.lines import read
from bot.action.ci.python_words import HEADER
from bot.action.ci.tracebacks import tracebacks

# Characters of a section in which it says that there was a time limit.
MAX_SAID = 2_000

_HEADED = HEADER.removesuffix(":")
_TITLE = re.compile(r"(?P<file>[^\s:][^:\n]{0,500}\.ipynb|[A-Za-z]:[\\/][^:\n]{1,500}\.ipynb)(?:::(?P<cell>Cell \d{1,6}))?")
_TIMED_OUT = re.compile(r"^(?:A cell timed out while it was being executed, after \d|Cell \d{1,6}: Timeout of \d)", re.MULTILINE)


def named(title: str, tests: Callable[[str], Iterable[str]]) -> str:
    """The id of the notebook, or of its cell, that the `title` of a section names: one of its file, where `tests` has that among the ids
    of the files of a name. Empty where the title names none."""
    found = _TITLE.fullmatch(title)
    if found is None:
        return ""
    if found["cell"]:
        return title
    # nbmake titles it with its whole path
    path = found["file"].replace("\\", "/")
    same = (test for test in tests(path.rpartition("/")[2]) if f"/{path}".endswith(f"/{test.partition('::')[0]}"))
    return next(same, repository_path(path))


def drawn(section: str) -> str:
    """The last traceback in a `section`, however that is drawn, as Python prints it; empty where there is none."""
    found = tracebacks(read(section)) if _HEADED in section else ()
    return found[-1].text if found else ""


def quoted(text: str) -> str:
    """The traceback `text`, or the last one that is drawn in the message at its end: what a cell raised is the cause of that."""
    message = text.rpartition(f"{HEADER}\n")[2] if _HEADED in text else ""
    return (drawn(message) if any(map(begins, message.split("\n"))) else "") or text


def timed_out(section: str) -> bool:
    """Whether a `section` says that a cell took longer than it may."""
    return bool(_TIMED_OUT.search(section[:MAX_SAID]))
