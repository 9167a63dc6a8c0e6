"""Requests, made of what an event asks for and what the repository's settings say."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from bot.action.ci.failing_test import Failure
from bot.action.ci.groups import Group
from bot.action.ci.judge import sign
from bot.action.gate.permissions import ForkPolicy, Head
from bot.action.github.client import GitHub
from bot.action.report.render.notes import Cause
from bot.action.settings import Settings
from bot.models.failure import Stage
from bot.models.request import Answer, CodeOrigin, Request, RequestOptions
from bot.units import duration

# Of the input `test-command`.
DEFAULT_COMMAND = "pytest {nodeid}"
DecisionStatus = Literal["requests", "stop", "refused", "nothing"]


@dataclass(frozen=True)
class Decision:
    """What became of an event. `note` is for the log and the summary; ours, or escaped."""

    status: DecisionStatus
    requests: tuple[Request, ...] = ()
    note: str = ""

    @property
    def exit_status(self) -> int:
        """The exit status of `torch-minify gate` outside Actions."""
        return {"requests": 0, "stop": 6, "nothing": 6, "refused": 7}[self.status]


@dataclass(frozen=True)
class Checkout:
    """What is checked out: a repository at a commit that was resolved once."""

    repository: str
    commit: str


def options_with(given: RequestOptions, settings: Settings) -> RequestOptions:
    """The options `given` in a command, and for the others the defaults in `settings`."""
    stage = None if settings.stage == "auto" else Stage(settings.stage)
    defaults = RequestOptions(stage=stage, accuracy=settings.accuracy, device=settings.device or None, budget=duration(settings.budget))
    return defaults.model_copy(update=given.model_dump(exclude_none=True))


def command_of(test: str, settings: Settings) -> str:
    """The command that runs `test`, by the template in `settings`. The id comes from logs: it is quoted to stay one word."""
    return settings.test_command.replace("{nodeid}", shlex.quote(test))


def of_failure(failure: Failure, settings: Settings) -> dict[str, Any]:
    """What a request holds of the one failing test `failure`: its command by `settings`, and what CI showed.

    The log's own command is preferred to the default of the input, not to what somebody wrote there; its variables stand before both.
    """
    command = failure.command(command_of(failure.test, settings), prefer_hint=settings.test_command == DEFAULT_COMMAND)
    shown = sign(failure)
    return {"command": command, "shown": shown, "expected": shown.line() if shown else None}


def of_groups(chosen: Sequence[Group], answers: Sequence[Answer], first: Request, settings: Settings) -> tuple[Request, ...]:
    """A request for each group in `chosen`, like `first` but for its test; `answers` has one for each, `settings` the command."""
    return tuple(
        first.model_copy(
            update={
                "id": f"{first.id}-{number}",
                **of_failure(group.first, settings),
                "answer": answer,
                "tests": group.tests[:100],
            }
        )
        for number, (group, answer) in enumerate(zip(chosen, answers, strict=True), 1)
    )


def rows(found: Sequence[Group], chosen: Sequence[Group]) -> list[Cause]:
    """What people see of the causes `found` in a red run, of which those in `chosen` are minimized."""
    return [
        Cause(group.verdict, group.reason, group.signature.line() if group.signature else group.first.name, group.tests, group in chosen)
        for group in found
    ]


def code_of_pull_request(author: str, fork: str | None, url: str) -> CodeOrigin:
    """The origin of the code of a pull request by `author` at `url`, from the repository `fork` if it is one.

    Who may push to the repository itself has write permission; a fork's owner need not.
    """
    note = f"from the fork {fork}" if fork else None
    return CodeOrigin(where="pull_request", author=author, trusted=fork is None, url=url or None, note=note)


def fork_policy(api: GitHub, repository: str, settings: Settings, head: Head) -> ForkPolicy:
    """What `settings` and `repository` say about code from forks, such as `head`.

    GitHub creates a missing environment without protection, so `api` is asked whether it has any.
    """
    name = settings.fork_environment
    return ForkPolicy(name, bool(name) and head.from_fork and api.environment_protected(repository, name))
