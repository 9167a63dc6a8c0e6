"""Makes requests from what an event asks for and from the repository's settings."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Literal

from bot.action.ci.failing_test import Failure
from bot.action.ci.groups import Group
from bot.action.ci.judge import sign
from bot.action.command_template import CommandTemplate, TemplateError, parse
from bot.action.gate.permissions import WRITERS, ForkPolicy, Head
from bot.action.github.client import GitHub
from bot.action.github.resources import PullRequest, Repository, Run, User
from bot.action.redaction import line_of, redact
from bot.action.set_up import BESIDE_BUDGET, wrong_options, wrong_system
from bot.action.settings import Settings
from bot.models.failure import Stage
from bot.models.request import Answer, Cause, CodeOrigin, Request, RequestOptions
from bot.units import duration

# The default of the input `test-command`.
DEFAULT_COMMAND = "pytest {nodeid}"
# Maximum number of tests listed for a group.
MOST_TESTS = 100
DecisionStatus = Literal["requests", "stop", "refused", "nothing"]


@dataclass(frozen=True)
class Decision:
    """What became of an event. `note` is for the log and the summary; it is ours, or escaped."""

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
    fork: bool = False

    @classmethod
    def of(cls, own: Repository, source: Repository | None, commit: str, *, fork: bool) -> Checkout:
        """A `commit` from the repository `source` if it comes from a `fork`, otherwise from our `own` one, under the name in the event."""
        return cls(source.full_name if fork and source is not None else own.full_name, commit, fork)


class Refusal(Exception):
    """A request that is refused; the message is for the person."""


def check_set_up(settings: Settings) -> None:
    """Make sure that what `settings` say about the minify job is possible. Raises Refusal if the job would have no image, a system on
    which it cannot run, or a container that does not start."""
    if settings.mode == "gate" and (wrong := wrong_system(settings)):
        raise Refusal(f"The workflow's input `runner` is {settings.runner_label}, and {wrong}.")
    if settings.lacks_image:
        raise Refusal(
            "This commit of torch-minify is no release, so it has no image of its own. In the workflow set the input `image`: to one "
            "that is built from its Dockerfile, or to `none` where torch-minify is installed on the runner."
        )
    if settings.mode == "gate" and (wrong := wrong_options(settings)):
        raise Refusal(f"With the workflow's input `container-options` the job's container does not start: {wrong}.")


def options_with(given: RequestOptions, settings: Settings) -> RequestOptions:
    """The options `given` in a command, with the defaults in `settings` for the others. Raises Refusal if the job would be ended before
    the requested time is over."""
    stage = None if settings.stage == "auto" else Stage(settings.stage)
    defaults = RequestOptions(stage=stage, accuracy=settings.accuracy, device=settings.device or None, budget=duration(settings.budget))
    options = defaults.model_copy(update=given.model_dump(exclude_unset=True))
    minutes = settings.timeout_minutes
    if minutes and (options.budget or 0.0) > 60 * (minutes - BESIDE_BUDGET):
        raise Refusal(
            f"A budget of {(options.budget or 0.0) / 60:g} min and {BESIDE_BUDGET:g} min for the set-up do not fit into a job that is "
            f"ended after {minutes:g} min (`timeout-minutes` of the workflow)."
        )
    return options


def template_of(settings: Settings) -> CommandTemplate:
    """How tests are run, by `settings`. Raises Refusal if the engine could not run that."""
    try:
        return parse(settings.test_command)
    except TemplateError as error:
        raise Refusal(f"The workflow's input `test-command` {error}.") from None


def program_of(test: str | None, settings: Settings) -> dict[str, Any]:
    """The fields of a request that say how and where `test` is run by `settings`; None: where a script runs. Raises Refusal if the engine
    could not run that."""
    if test is None:
        return {"directory": settings.working_directory}
    template = template_of(settings)
    directory = directory_of(settings)
    # our own tables, too, name a test by its path from the checkout
    argument = _argument(test.removeprefix(f"{directory}/")) if directory and test.startswith(f"{directory}/") else test
    return {"command": template.command(argument), "directory": directory, "launcher": template.launcher}


def directory_of(settings: Settings) -> str:
    """The directory of the checkout in which tests run, by `settings`. Raises Refusal if the engine could not run them."""
    directory = str(PurePosixPath(settings.working_directory, template_of(settings).directory))
    return "" if directory == "." else directory


def _argument(test: str) -> str:
    """The id of a `test` from whose path a part was removed: the rest may look like an option, or a file of options."""
    return f"./{test}" if test.startswith(("-", "@")) else test


def of_failure(failure: Failure, settings: Settings) -> dict[str, Any]:
    """The fields of a request for the failing test `failure`: how it is run by `settings`, and what CI showed.

    The log's own command, relative to the checkout, is preferred to the default of the input, but not to what somebody wrote there; its
    variables come before both. Raises Refusal if the engine could not run that.
    """
    fields = program_of(failure.test, settings)
    directory = fields["directory"]
    if directory and (failure.located or failure.file.startswith(directory + "/")):
        test = posixpath.relpath(failure.file, directory) + failure.test[len(failure.file) :]
        fields["command"] = template_of(settings).command(_argument(test))
    hint = settings.test_command == DEFAULT_COMMAND and not directory
    shown = None if failure.gone else sign(failure)  # otherwise, what kills it here would count as another failure
    return {
        **fields,
        "command": failure.command(fields["command"], prefer_hint=hint),
        "shown": shown,
        "expected": line_of(shown) if shown else None,
    }


def of_groups(chosen: Sequence[Group], answers: Sequence[Answer], first: Request, settings: Settings) -> tuple[Request, ...]:
    """A request for each group in `chosen`, like `first` except for its test; `answers` has one for each, `settings` the command."""
    return tuple(
        first.model_copy(
            update={
                "id": f"{first.id}-{number}",
                **of_failure(group.first, settings),
                "answer": answer,
                "tests": _named(group),
                # once per comment
                "causes": first.causes if number == 1 or answer != answers[0] else (),
            }
        )
        for number, (group, answer) in enumerate(zip(chosen, answers, strict=True), 1)
    )


def _named(group: Group) -> tuple[str, ...]:
    return tuple(map(redact, group.tests[:MOST_TESTS]))


def rows(found: Sequence[Group], chosen: Sequence[Group]) -> list[Cause]:
    """What people see of the causes `found` in a red run; those in `chosen` are minimized."""
    return [
        Cause(
            verdict=group.verdict,
            reason=group.reason,
            # for a process that died, the signature contains a signal that may not have been the real one
            failure=line_of(group.signature) if group.signature and not group.first.gone else redact(group.first.note or group.first.name),
            tests=_named(group),
            taken=group in chosen,
        )
        for group in found
    ]


def may_write(api: GitHub, repository: str, user: User) -> bool:
    """Whether `user` has write permission for the `repository`, according to `api`."""
    return not user.is_bot and api.permission(repository, user) in WRITERS


def code_of_pull_request(api: GitHub, repository: str, pull: PullRequest, *, stacked: bool = False) -> CodeOrigin:
    """The origin of the code of a pull request (`pull`); `stacked`: of a merge queue's commit, which may be based on somebody else's.

    Whoever may push to the `repository` itself has write permission; for the author of a fork, `api` is asked.
    """
    fork = f"from the fork {pull.head.repo.full_name if pull.head.repo else 'that is gone'}" if pull.from_fork else None
    note = ", ".join(filter(None, [fork, "with what may be before it in the merge queue" if stacked else None])) or None
    trusted = not pull.from_fork or may_write(api, repository, pull.user)
    return CodeOrigin(where="pull_request", author=pull.user.login, trusted=trusted, url=pull.html_url or None, note=note)


def is_foreign(api: GitHub, repository: Repository, run: Run, pull: PullRequest | None) -> bool:
    """Whether `run`, which tries `pull` if that is known, contains code that does not come from `repository`.

    A merge queue's branch belongs to the repository, but what it tries may not. It also contains what is before that in the queue
    (GitHub's documentation of the merge queue), about which nothing is known: so it has to be based on its target branch, according to
    `api`.
    """
    if not repository.is_same(run.head_repository):
        return True
    if pull is None or pull.from_fork:
        return pull is not None
    return run.queued_pull_request is not None and not api.stands_on(repository.full_name, run.head_sha, pull.base.ref)


def fork_policy(api: GitHub, repository: str, settings: Settings, head: Head) -> ForkPolicy:
    """What `settings` and `repository` say about code from forks, such as `head`.

    GitHub creates a missing environment without protection, so `api` is asked whether it has any.
    """
    name = settings.fork_environment
    return ForkPolicy(name, bool(name) and head.from_fork and api.environment_protected(repository, name))
