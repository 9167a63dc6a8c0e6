"""`torch-minify gate` and `torch-minify stop`: turns an event into requests, or into an answer for the person."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from bot.action import request_file
from bot.action.comment import Destination, answer, beginning, key, react
from bot.action.console import FAULT, InputError, JobOutcome
from bot.action.gate.ci_event import RedRun
from bot.action.gate.comment_event import Conversation
from bot.action.gate.page import command_lines
from bot.action.gate.requests import Decision
from bot.action.gate.stop import stop
from bot.action.github.client import GitHub
from bot.action.github.resources import IssueComment, WorkflowRun
from bot.action.github.transport import GitHubError
from bot.action.report.render import notes
from bot.action.report.render.markdown import code
from bot.action.settings import Settings
from bot.models.request import Request

AnyEvent = IssueComment | WorkflowRun | None
EVENTS: dict[str, type[IssueComment] | type[WorkflowRun]] = {"issue_comment": IssueComment, "workflow_run": WorkflowRun}
log = logging.getLogger(__name__)

# For whoever asked.
OURS = "A fault of torch-minify."
_LACKS = "The token lacks a permission for that: torch-minify's README has a workflow with all that are needed."
# Bytes.
MAX_EVENT = 32 << 20


def read_event(path: Path, name: str) -> AnyEvent:
    """The event called `name` in the file at `path`; None if it is of no interest. Raises InputError if the file does not contain such an
    event."""
    if name not in EVENTS:
        return None
    try:
        return EVENTS[name].model_validate_json(path.read_bytes()[:MAX_EVENT])
    except (OSError, ValidationError) as error:
        what = f"{error.error_count()} fields are wrong or missing" if isinstance(error, ValidationError) else str(error)
        raise InputError(f"cannot read the {name} event in {path}: {what}") from error


def decide(event: AnyEvent, settings: Settings, api: GitHub) -> Decision:
    """Decide about `event` in the repository that `settings` name, after asking `api` what must be known. Raises GitHubError if GitHub
    does not answer that."""
    if isinstance(event, IssueComment):
        return Conversation(event, settings, api).outcome()
    if isinstance(event, WorkflowRun):
        return RedRun(event, settings, api).outcome()
    return Decision("nothing", note="this event asks for nothing")


def matrix(requests: tuple[Request, ...]) -> list[dict[str, Any]]:
    """What each job of the matrix must know before it can read its request: an entry for each of `requests`."""
    return [
        {
            "index": index,
            "repository": request.repository,
            "commit": request.commit,
            # by where the commit came from, not by names alone: a fork may be gone
            "fork": request.fork or request.repository.lower() != request.answer.repository.lower(),
        }
        for index, request in enumerate(requests)
    ]


def run(event: AnyEvent, settings: Settings, api: GitHub, file: Path | None) -> JobOutcome:
    """Decide about `event` by `settings`, answer it through `api` and write the requests, if any, to `file`.

    Without a `file`, the job cancels what the `/minify stop` in `event` is about. Exit status: 0, 6 or 7 by the decision (always 0 in
    Actions); 1 if GitHub does not answer.
    """
    written = ""
    try:
        if file is None:
            decision = stop(event, settings, api) if isinstance(event, IssueComment) else Decision("nothing")
        else:
            decision = decide(event, settings, api)
            if decision.requests:
                written = request_file.to_json(decision.requests)
                file.write_text(written, encoding="utf-8")
    except GitHubError as error:
        return failed(event, settings, api, words_for(error))
    except Exception:
        # whatever it is, the person who asked must not wait in vain
        log.exception(FAULT)
        return failed(event, settings, api, OURS)
    count = len(decision.requests)
    return JobOutcome(
        exit_status=0 if settings.in_actions else decision.exit_status,
        outputs={
            "outcome": decision.status,
            "matrix": json.dumps(matrix(decision.requests)),
            # never empty: GitHub passes nothing in place of an output that contains a secret, and an empty image would mean no container
            "image": settings.job_image or "none",
            "request-sha256": request_file.sha256(written) if written else "",
        },
        summary=f"{decision.note}\n" if decision.note else "",
        stdout=f"{decision.status}: {count} requests\n" if count else f"{decision.status}\n",
    )


def words_for(error: GitHubError | InputError) -> str:
    """What to tell whoever asked about `error`, which is logged."""
    if isinstance(error, InputError):
        log.error("torch-minify: %s", error)
        return f"{code(str(error), 1000)}."
    log.error("torch-minify: GitHub does not answer: %s", error)
    if error.status is None or not 400 <= error.status < 500:
        return "GitHub did not answer."
    said = f"GitHub refused it: {code(str(error), 300)}."
    # GitHub's words for the token of a job, or of a person
    return f"{said} {_LACKS}" if error.status == 403 and "Resource not accessible by" in str(error) else said


def failed(event: AnyEvent, settings: Settings, api: GitHub, why: str) -> JobOutcome:
    """Tell whoever caused `event` that it did not work, and `why`, if `api` still accepts that; in any case in the summary.

    `settings` name the run.
    """
    said = f"{why} The log of this job says more."
    if isinstance(event, IssueComment) and _asks(event):
        react(api, settings.repository, event.comment.id, "confused")
        _say(event, settings, api, notes.failed(why, settings.run_url))
    return JobOutcome(1, summary=f"{said}\n")


def _say(event: IssueComment, settings: Settings, api: GitHub, body: str) -> None:
    """Answer `event` with `body`, but never over an existing answer, since an event may be delivered again."""
    event_key = key(settings.name, f"comment-{event.comment.id}")
    try:
        known = api.own_comment(settings.repository, event.issue.number, beginning(event_key))
    except GitHubError as error:
        log.warning("cannot look for our comment: %s", error)
        return
    if known is None:
        answer(api, Destination(settings.repository, event.issue.number, event_key, settings.run_id), body)


def _asks(event: IssueComment) -> bool:
    """Whether a person wrote a command: nobody else is told about our faults."""
    try:
        return event.action == "created" and not event.comment.user.is_bot and bool(command_lines(event.comment.body))
    except Exception:
        log.exception("torch-minify: the comment cannot be read")
        return False
