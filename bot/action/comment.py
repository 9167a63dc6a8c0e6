"""The one comment for an event, and the reactions to the comment that asked."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bot.action.github.client import GitHub
from bot.action.github.resources import Reaction
from bot.action.github.transport import GitHubError
from bot.models.request import Answer

log = logging.getLogger(__name__)

_MARKER = re.compile(
    r"<!-- torch-minify:(?P<event>[a-z0-9]+-[a-z0-9-]+) run:(?P<run>[0-9]{1,18})(?: failures:(?P<failures>[0-9a-f.]{1,250}))?"
    r"(?: more:(?P<more>[0-9]{1,6}))? -->"
)
# Hex digits of a fingerprint in a marker, and the maximum number of failures: it is one line of at most 300 characters.
SHORT, MOST_FAILURES = 8, 20


def marker(event: str, run: int, failures: Sequence[str] = ()) -> str:
    """The first line of the comment for `event`, which names the `run` that answers it and the `failures` (fingerprints) it is about."""
    about = f" failures:{'.'.join(each[:SHORT] for each in failures[:MOST_FAILURES])}" if failures else ""
    about += f" more:{len(failures) - MOST_FAILURES}" if len(failures) > MOST_FAILURES else ""
    return f"{beginning(event)}run:{run}{about} -->"


def key(name: str, event: str) -> str:
    """The key of the comment for `event`; if a workflow answers it with several calls, each has its own `name`."""
    return f"{name}-{event}" if name else event


def beginning(event: str) -> str:
    """The beginning of the marker for `event`, whichever run answers: an event that is delivered again finds its comment."""
    return f"<!-- torch-minify:{event} "


def notice_marker(marker: str) -> str | None:
    """The first line of the reply which says that the comment with that `marker` has its results; None if the marker belongs to no event.

    It names no run, so that it is not taken for the comment itself.
    """
    found = _MARKER.match(marker)
    return f"<!-- torch-minify:done {found['event']} -->" if found else None


def run_of_comment(body: str) -> int | None:
    """The run that a comment of ours with the text `body` belongs to.

    Only its beginning counts, since foreign text follows.
    """
    found = _MARKER.match(body)
    return int(found["run"]) if found else None


def event_of_comment(body: str) -> str | None:
    """The event that a comment of ours with the text `body` answers."""
    found = _MARKER.match(body)
    return found["event"] if found else None


def failures_of_comment(body: str) -> tuple[str, ...]:
    """The prefixes of the fingerprints that a comment of ours with the text `body` is about."""
    found = _MARKER.match(body)
    return tuple(found["failures"].split(".")) if found and found["failures"] else ()


def count_of_comment(body: str) -> int:
    """How many failures a comment of ours with the text `body` is about, including those for which its marker has no room."""
    found = _MARKER.match(body)
    return len(failures_of_comment(body)) + int(found["more"] or 0) if found else 0


@dataclass(frozen=True)
class Destination:
    """Where the comment for an `event` stands, and the `run` that answers it."""

    repository: str
    issue: int
    event: str
    run: int


def answer(
    api: GitHub,
    to: Destination,
    body: str,
    *,
    failures: Sequence[str] = (),
    stays: Callable[[str], bool] = lambda _: False,
    hint: int | None = None,
) -> int | None:
    """Write `body` as the comment at the place `to`, over the existing one, unless that text `stays`.

    Its first line names the `failures` it is about. `hint` is the id of the comment if it was just written, since a list may lag behind.

    Returns its id; None if `api` cannot write it.
    """
    try:
        known = api.own_comment(to.repository, to.issue, beginning(to.event), hint)
        if known is not None and stays(known.body):
            return known.id
        return api.upsert_comment(to.repository, to.issue, marker(to.event, to.run, failures), body, known.id if known else None).id
    except GitHubError as error:
        log.warning("cannot comment on %s#%d: %s", to.repository, to.issue, error)
        return None


def issue_of(answer: Answer, repository: str, *, checked: bool) -> int:
    """The issue in the one `repository` that an `answer` in a request file may go to. `checked`: that file is what the gate wrote, so a
    different name in it is a former name of the repository. Raises GitHubError if it belongs to another repository, or to no issue.
    """
    if not checked and answer.repository.lower() != repository.lower():
        raise GitHubError(f"the answer belongs to another repository: {answer.repository[:100]!r}")
    if answer.issue is None:
        raise GitHubError("the request names no issue")
    return answer.issue


def react(api: GitHub, repository: str, comment: int, reaction: Reaction) -> None:
    """Add `reaction` to a `comment` in `repository` through `api`. This is decoration: without it everything continues."""
    try:
        api.react(repository, comment, reaction)
    except GitHubError as error:
        log.warning("no reaction: %s", error)
