"""`torch-minify gate` and `torch-minify stop`: an event in; requests, or words for the person, out."""

from __future__ import annotations

import json
import logging
import secrets
import sys
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from bot.action import settings as settings_room
from bot.action.comment import react
from bot.action.gate.ci_event import RedRun
from bot.action.gate.comment_event import Conversation
from bot.action.gate.events import EVENTS, IssueComment, WorkflowRun
from bot.action.gate.requests import Decision, DecisionStatus
from bot.action.gate.stop import stop
from bot.action.github.api import Api
from bot.action.github.client import GitHub
from bot.action.github.transport import GitHubError
from bot.action.settings import Settings, SettingsError
from bot.models.request import Request

EXIT_STATUS: dict[DecisionStatus, int] = {"requests": 0, "stop": 6, "nothing": 6, "refused": 7}
log = logging.getLogger(__name__)

MAX_EVENT = 32 << 20


class EventError(Exception):
    """The event cannot be read."""


def read_event(path: Path, name: str) -> IssueComment | WorkflowRun | None:
    """The event in a file; None where it is one of no interest.

    Raises:
        EventError: it is not what its name says.
    """
    if name not in EVENTS:
        return None
    try:
        return EVENTS[name].model_validate_json(path.read_bytes()[:MAX_EVENT])
    except (OSError, ValidationError) as error:
        what = f"{error.error_count()} fields are wrong or missing" if isinstance(error, ValidationError) else str(error)
        raise EventError(f"cannot read the {name} event in {path}: {what}") from error


def decide(event: IssueComment | WorkflowRun | None, settings: Settings, api: Api) -> Decision:
    """What becomes of an event.

    Raises:
        GitHubError: GitHub does not answer what must be known.
    """
    if isinstance(event, IssueComment):
        return Conversation(event, settings, api).outcome()
    if isinstance(event, WorkflowRun):
        return RedRun(event, settings, api).outcome()
    return Decision("nothing", note="this event asks for nothing")


def matrix(requests: tuple[Request, ...]) -> list[dict[str, Any]]:
    """What a job of the matrix must know before it can read its request."""
    return [
        {
            "index": index,
            "repository": request.repository,
            "commit": request.commit,
            "fork": request.repository.lower() != request.answer.repository.lower(),
        }
        for index, request in enumerate(requests)
    ]


def written(requests: tuple[Request, ...]) -> str:
    """`request.json`."""
    return json.dumps([request.model_dump(mode="json", by_alias=True) for request in requests], indent=2) + "\n"


def _append(path: Path | None, text: str) -> None:
    if path is not None:
        with path.open("a", encoding="utf-8") as file:
            file.write(text)


def outputs(values: dict[str, str]) -> str:
    """Lines for `GITHUB_OUTPUT`. The delimiter is drawn anew each time, so that no value can end itself and set another."""
    lines = []
    for name, value in values.items():
        delimiter = f"end-{secrets.token_hex(16)}"
        lines.append(f"{name}<<{delimiter}\n{value}\n{delimiter}\n")
    return "".join(lines)


def _failed(event: IssueComment | WorkflowRun | None, settings: Settings, api: Api, why: str) -> int:
    """Say that it did not work, where that may still go through: a reaction, the summary."""
    if isinstance(event, IssueComment):
        react(api, settings.repository, event.comment.id, "confused")
    _append(settings.summary, f"{why} The log of this job says more.\n")
    return 1


def main(event: Path, name: str, out: Path | None) -> int:
    """Run the gate; without `out`, the stop.

    Exit status: 0, 6 or 7 by the outcome (0 for all of them in Actions); 1 GitHub does not answer; 2 unusable input.
    """
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    try:
        settings = settings_room.read()
        asked = read_event(event, name)
    except (SettingsError, EventError) as error:
        sys.stderr.write(f"torch-minify: {error}\n")
        return 2
    api = GitHub(settings.token.get_secret_value(), settings.api_url, login=settings.bot_login)
    try:
        if out is not None:
            outcome = decide(asked, settings, api)
        else:
            outcome = stop(asked, settings, api) if isinstance(asked, IssueComment) else Decision("nothing")
    except GitHubError as error:
        log.error("torch-minify: GitHub does not answer: %s", error)
        return _failed(asked, settings, api, "GitHub did not answer.")
    except Exception:
        # whatever it is, the person who asked must not wait for nothing
        log.exception("torch-minify: this is a fault of ours; please report it with the lines below")
        return _failed(asked, settings, api, "A fault of torch-minify.")
    if out is not None and outcome.requests:
        out.write_text(written(outcome.requests), encoding="utf-8")
    _append(settings.output, outputs({"outcome": outcome.status, "matrix": json.dumps(matrix(outcome.requests))}))
    if outcome.note:
        _append(settings.summary, outcome.note + "\n")
    sys.stdout.write(f"{outcome.status}: {len(outcome.requests)} requests\n" if outcome.requests else f"{outcome.status}\n")
    return 0 if settings.in_actions else EXIT_STATUS[outcome.status]
