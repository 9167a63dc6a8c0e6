"""What pytest shows of a failure that is in no function: in a doctest, or in a notebook that a plugin of its runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from bot.action.ci import doctests, notebooks
from bot.action.ci.failing_test import Failure, Seen, repository_path
from bot.action.ci.pytest_text import as_traceback, own_source


def shown(title: str, body: str, named: Callable[[str, str], str], tests: Callable[[str], Iterable[str]]) -> Failure | None:
    """The failure of a doctest, or a notebook, that the `title` of a section names, with its `body`; None where that is a function's.

    Of the ids in the summary, `named` finds that of a name and a section, and `tests` those of the notebooks of a name.
    """
    if name := doctests.titled(title):
        shown, path = doctests.places(body)
        test = named(name, body) or (f"{repository_path(path)}::{name}" if path else "")
        text = as_traceback(shown)
        return Failure(name, test, text, seen=Seen.ERROR if text else Seen.NAMED, source=own_source(shown))
    if test := notebooks.named(title, tests):
        # of its plugin's own errors pytest shows what it shows of all
        text = notebooks.drawn(body) or as_traceback(body)
        seen = Seen.TIMEOUT if notebooks.timed_out(body) else Seen.ERROR if text else Seen.NAMED
        return Failure(title, test, text, seen=seen, source=own_source(body))
    return None
