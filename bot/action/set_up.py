"""`torch-minify doctor --github` and `/minify doctor`: examines a caller's set-up from inside a run, and says what to change.

Each line is something that was examined. What the workflow's token may not ask, such as which runners there are, is inferred from earlier
runs of the repository, or reported as unknown.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from bot.action.command_template import NODEID, TemplateError, parse
from bot.action.github.client import GitHub
from bot.action.github.resources import Runner
from bot.action.github.transport import GitHubError
from bot.action.settings import Settings
from bot.units import duration

# Minutes of a job besides its budget: images, checkout, the files at the end.
BESIDE_BUDGET = 10.0
# Number of runs whose jobs are examined, with a request for each.
MOST_RUNS = 12
# Labels of GitHub's own machines.
_HOSTED = re.compile(r"(?:ubuntu|windows|macos)-[\w.-]+")
# Those of them without a GPU in any organization.
_PLAIN = re.compile(r"ubuntu-(?:latest|slim|\d\d\.\d\d(?:-arm)?)")
_SYSTEM = re.compile(r"(windows|macos)(?:-(?:latest|\d)[\w.-]*)?", re.IGNORECASE)


@dataclass(frozen=True)
class Finding:
    """One thing that was examined: whether it is `good` (null: unknown from here), and a description of what was found, or what to do."""

    what: str
    good: bool | None
    words: str

    def line(self) -> str:
        """The line for a log or a code block."""
        mark = {True: "ok", False: "CHANGE", None: "?"}[self.good]
        return f"{mark:<7} {self.what}: {self.words}"


def labels_of(given: str) -> tuple[str, ...]:
    """The labels that the input `runner` names: a single one, or a JSON list, as `given`."""
    if given.startswith("["):
        try:
            listed = json.loads(given)
        except ValueError:
            return (given,)
        return tuple(str(each) for each in listed) if isinstance(listed, list) else (given,)
    return (given,)


def wrong_system(settings: Settings) -> str:
    """Why the minify job cannot run on the system that the labels of its runner in `settings` name, and what to change; empty if it can.

    The names are those of GitHub's machines, and the labels that every runner has by default.
    """
    systems = {found[1].lower() for label in labels_of(settings.runner_label) if (found := _SYSTEM.fullmatch(label))}
    if "windows" in systems:
        return "torch-minify does not run on Windows: name a runner with Linux"
    if "macos" in systems and settings.image != "none":
        return "a job has a container on Linux alone: name a runner with Linux, or set `image: none`"
    return ""


def wrong_options(settings: Settings) -> str:
    """Why the container of the minify job would not start with its options in `settings`, and what to change; empty if it may."""
    plain = [label for label in labels_of(settings.runner_label) if _PLAIN.fullmatch(label)]
    if plain and settings.image != "none" and "--gpus" in settings.container_options:
        return f"{plain[0]} is a machine of GitHub's without a GPU, where Docker refuses --gpus: set `container-options: ''`"
    return ""


def examine(settings: Settings, api: GitHub) -> tuple[Finding, ...]:
    """Everything that can be seen from here of the set-up in `settings`, using `api`. It raises nothing: a failure is a finding."""
    asked = (_contents(settings, api), _actions(settings, api), _runner(settings, api), _repository(settings, api))
    return (*asked, _image(settings), *_options(settings), _command(settings), _time(settings), _forks(settings, api), _durable(settings))


def _repository(settings: Settings, api: GitHub) -> Finding:
    what = "repository"
    try:
        found = api.repository(settings.repository)
    except GitHubError as error:
        return Finding(what, None, f"cannot be looked at: {error}")
    if found.archived:
        return Finding(what, False, "it is archived, where no workflow runs and nobody can comment: take it out of the archive")
    if not found.has_issues:
        return Finding(what, None, "issues are disabled: on pull requests all works, red CI of the default branch is told nowhere")
    return Finding(what, True, f"{found.full_name}, not archived, with issues")


def _contents(settings: Settings, api: GitHub) -> Finding:
    what = "permission contents: read"
    try:
        commit = api.commit(settings.repository, "HEAD")
    except GitHubError as error:
        return _not_read(what, "give it to the job that calls the workflow", error)
    return Finding(what, True, f"the default branch is at {commit[:12]}")


def _actions(settings: Settings, api: GitHub) -> Finding:
    what = "permission actions: read"
    try:
        api.recent_runs(settings.repository)
    except GitHubError as error:
        return _not_read(what, "give `actions: write` to the job that calls the workflow; /minify stop needs that", error)
    return Finding(what, True, "runs can be read")


def _not_read(what: str, to_do: str, error: GitHubError) -> Finding:
    """What an `error` says about a permission: nothing, if GitHub did not refuse, or refused because of a rate limit."""
    if error.status == 401:
        return Finding(what, False, f"GitHub does not take the token: it is over, or not of this server ({error})")
    refused = error.status in (403, 404) and "rate limit" not in str(error).lower()
    to_do += ", unless the repository's name is wrong" if error.status == 404 else ""
    return Finding(what, False, f"{to_do} ({error})") if refused else Finding(what, None, f"cannot be known: {error}")


def _runner(settings: Settings, api: GitHub) -> Finding:
    wanted, what = labels_of(settings.runner_label), f"runner {settings.runner_label}"
    if wrong := wrong_system(settings):
        return Finding(what, False, wrong)
    if len(wanted) == 1 and _HOSTED.fullmatch(wanted[0]):
        return Finding(what, True, "a machine of GitHub's; it has no GPU unless your organization made it so")
    try:
        runners = api.runners(settings.repository) or []
        return _by_list(what, wanted, runners) or _by_runs(what, wanted, settings, api, runners)
    except GitHubError as error:
        return Finding(what, None, f"cannot be known: {error}")


def _by_list(what: str, wanted: Sequence[str], runners: Sequence[Runner]) -> Finding | None:
    """A finding from the list of runners, if the token may read it: that of a workflow may not. An organization's runners are not in it."""
    fitting = [runner for runner in runners if _covers(runner.label_names, wanted)]
    online = [runner.name for runner in fitting if runner.status == "online"]
    if online:
        return Finding(what, True, f"online: {', '.join(online)}")
    return Finding(what, False, f"offline: {', '.join(runner.name for runner in fitting)}; start it") if fitting else None


def _by_runs(what: str, wanted: Sequence[str], settings: Settings, api: GitHub, runners: Sequence[Runner]) -> Finding:
    """A finding from jobs of the last runs: a machine that took one with these labels existed. None of the known `runners` has them."""
    waiting = 0
    known = [label for runner in runners for label in runner.label_names]
    for run in api.recent_runs(settings.repository)[:MOST_RUNS]:
        for job in api.jobs(settings.repository, run.id):
            fits = _covers(job.labels, wanted)
            if job.runner_name and fits:
                return Finding(what, True, f"{job.runner_name} took a job of the run {run.id}, of {run.created_at:%Y-%m-%d %H:%M} UTC")
            known += job.labels if job.runner_name else ()
            waiting += fits and job.status in ("queued", "waiting", "pending")
    near = _near(wanted, known)
    if waiting:
        said = f"{waiting} jobs wait for it, and no machine took one in the last {MOST_RUNS} runs: is one online?"
        group = "An organization's group of runners takes no job of a public repository unless that is set"
        return Finding(what, False, f"{said} {group}{near}")
    listed = "no runner of the repository itself has the label" if runners else "this token lists no runner of the repository"
    return Finding(what, False if runners else None, f"no job of the last {MOST_RUNS} runs asked for it, and {listed}{near}")


def _covers(labels: Sequence[str], wanted: Sequence[str]) -> bool:
    # GitHub compares labels case-insensitively
    return {each.lower() for each in wanted} <= {each.lower() for each in labels}


def _near(wanted: Sequence[str], known: Sequence[str]) -> str:
    """A known label that may have been meant instead."""
    lower = sorted({each.lower() for each in known})
    for label in wanted:
        found = difflib.get_close_matches(label.lower(), lower, n=1, cutoff=0.6)
        if found and found[0] != label.lower():
            return f". Is {label} meant as {found[0]}?"
    return f" (labels seen: {', '.join(lower[:20])})" if lower else ""


def _image(settings: Settings) -> Finding:
    if settings.image == "none":
        return Finding("image", True, "none: the job runs on the runner itself, where torch-minify-action has to be on PATH")
    if settings.job_image:
        return Finding("image", True, settings.job_image)
    return Finding("image", False, "this commit of torch-minify is no release and has none: set the input `image`, to `none` or your own")


def _options(settings: Settings) -> tuple[Finding, ...]:
    wrong, given = wrong_options(settings), settings.container_options
    if settings.image == "none" or not given:
        return ()
    return (Finding("container-options", not wrong, wrong or given),)


def _command(settings: Settings) -> Finding:
    try:
        template = parse(settings.test_command)
    except TemplateError as error:
        return Finding("test-command", False, f"{settings.test_command} {error}")
    return Finding("test-command", True, template.command(NODEID) + (f", in {template.directory}" if template.directory else ""))


def _time(settings: Settings) -> Finding:
    minutes, budget = settings.timeout_minutes, duration(settings.budget) / 60
    if not minutes:
        return Finding("budget", True, f"{budget:g} minutes")
    said = f"{budget:g} minutes, in a job of {minutes:g}"
    if budget > minutes - BESIDE_BUDGET:
        return Finding(
            "budget", False, f"{said}: it needs {BESIDE_BUDGET:g} beside the budget, so raise `timeout-minutes`, or lower `budget`"
        )
    return Finding("budget", True, said)


def _forks(settings: Settings, api: GitHub) -> Finding:
    what, name = "fork-environment", settings.fork_environment
    if not name:
        return Finding(what, True, "none: code from forks is refused")
    try:
        protected = api.environment_protected(settings.repository, name)
    except GitHubError as error:
        return Finding(what, None, f"{name} cannot be looked at: {error}")
    if protected:
        return Finding(what, True, f"{name} has required reviewers")
    return Finding(what, False, f"{name} does not exist or has no required reviewers, so code from forks is refused: add some")


def _durable(settings: Settings) -> Finding:
    if settings.durable == "none":
        return Finding("durable", True, f"none: files are kept for {settings.retention_days} days")
    return Finding("durable", None, f"{settings.durable}: the report needs the secret durable-token, which this job cannot see")
