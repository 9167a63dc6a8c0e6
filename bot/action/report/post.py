"""`torch-minify report`: results in; the gate's comment, the job's summary and annotations out."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from bot.action import settings as settings_room
from bot.action.comment import react
from bot.action.github.api import Api, Posting
from bot.action.github.client import GitHub
from bot.action.github.transport import GitHubError
from bot.action.report import durable, result_dir
from bot.action.report.render import annotation
from bot.action.report.render.rendering import SUMMARY_LIMIT, render
from bot.action.report.render.text import marker_line, one_line, size
from bot.action.report.render.verdict import status, title
from bot.action.report.result_dir import Folder
from bot.action.settings import Settings, SettingsError
from bot.models.report import Download, Report, Section
from bot.models.request import Answer, Request

log = logging.getLogger(__name__)

POSTED, UNPOSTED, UNUSABLE = 0, 8, 2
# Comments that could not be posted lie here, in the working directory, for the workflow to upload.
UNPOSTED_DIRECTORY = Path("torch-minify-unposted")
_GOOD = ("minimized", "reproduced", "flaky")
_MOST_JSON = 32 << 20


class RequestsError(Exception):
    """A request file that cannot be used; the words are for people."""


@dataclass(frozen=True)
class Letter:
    """One comment: what it says and where it goes."""

    answer: Answer
    report: Report


def read_requests(path: Path) -> tuple[Request, ...]:
    """The requests that the gate wrote.

    Raises:
        RequestsError: there are none, or they are not what the gate writes.
    """
    try:
        with path.open("rb") as file:
            requests = TypeAdapter(tuple[Request, ...]).validate_json(file.read(_MOST_JSON))
        for request in requests:
            marker_line(request.answer.marker)
    except (OSError, ValidationError) as error:
        what = f"{error.error_count()} fields are wrong or missing" if isinstance(error, ValidationError) else str(error)
        raise RequestsError(f"cannot read the requests in {path}: {what}") from error
    except ValueError as error:
        raise RequestsError(f"cannot use the requests in {path}: {error}") from error
    if not requests:
        raise RequestsError(f"{path} holds no request")
    return requests


def letters(requests: Sequence[Request], sections: Sequence[Section], run_url: str | None) -> tuple[Letter, ...]:
    """One letter for each comment, in the order of the requests."""
    grouped: dict[tuple[str, int | None, str], list[int]] = {}
    for index, request in enumerate(requests):
        grouped.setdefault((request.answer.repository, request.answer.issue, request.answer.marker), []).append(index)
    return tuple(
        Letter(
            requests[indices[0]].answer,
            Report(marker=requests[indices[0]].answer.marker, sections=tuple(sections[index] for index in indices), run_url=run_url),
        )
        for indices in grouped.values()
    )


def summary_of(posts: Sequence[Letter]) -> str:
    """All letters in one text for the job's summary, under its limit."""
    room = SUMMARY_LIMIT // max(len(posts), 1) - 1
    return "\n".join(render(letter.report, room) for letter in posts)


def downloads(api: Api, settings: Settings, requests: Sequence[Request]) -> dict[int, Download]:
    """Where the files of each request can be had; nothing where GitHub does not say."""
    if not settings.run_id:
        return {}
    try:
        listed = sorted(api.artifacts(settings.repository, settings.run_id), key=lambda artifact: artifact.id)
    except GitHubError as error:
        log.warning("the artifacts of this run are not known: %s", one_line(str(error)))
        return {}
    found: dict[int, Download] = {}
    for artifact in listed:  # a later attempt's are newer
        index = result_dir.index_of(artifact.name, requests)
        if index is not None and not artifact.expired:
            expires = f"{artifact.expires_at:%Y-%m-%d}" if artifact.expires_at else None
            found[index] = Download(url=f"{settings.run_url}/artifacts/{artifact.id}", expires=expires)
    return found


def collect(
    requests: Sequence[Request], folders: Mapping[int, Folder], settings: Settings, api: Api | None, keeper: Posting | None
) -> tuple[Section, ...]:
    """A section for each request. Without `api` nothing is asked of GitHub, without `keeper` nothing is kept."""
    known = downloads(api, settings, requests) if api is not None else {}
    made = []
    for index, request in enumerate(requests):
        folder = folders.get(index)
        section = result_dir.section(request, folder).model_copy(update={"download": known.get(index)})
        if keeper is not None:
            section = durable.keep(section, folder, settings.durable, keeper, settings.repository, settings.run_id)
        made.append(section)
    return tuple(made)


def post(letter: Letter, api: Posting, settings: Settings) -> str:
    """Write the comment over the gate's, and react to who asked. Its URL.

    The comment is looked for by its marker and our login, not by the number in the request: that file was in the hands of
    a job that ran other people's code.

    Raises:
        GitHubError: it cannot be posted.
    """
    answer = letter.answer
    if answer.repository.lower() != settings.repository.lower():
        raise GitHubError(f"the answer belongs to another repository: {one_line(answer.repository, 100)}")
    if answer.issue is None:
        raise GitHubError("the request names no issue")
    body = render(letter.report)
    comment = api.upsert_comment(settings.repository, answer.issue, letter.report.marker, body)
    if answer.trigger is not None:
        good = any(status(section) in _GOOD for section in letter.report.sections)
        react(api, settings.repository, answer.trigger, "rocket" if good else "confused")
    return comment.html_url


def give_up(letter: Letter, number: int, settings: Settings, error: GitHubError) -> None:
    """Leave the comment in a file, and say how a person can post it."""
    path = UNPOSTED_DIRECTORY / f"comment-{number}.md"
    log.error("not posted: %s", one_line(str(error)))
    log.error("its text is in the summary of this job: %s", settings.run_url)
    try:
        UNPOSTED_DIRECTORY.mkdir(exist_ok=True)
        path.write_text(render(letter.report), encoding="utf-8")
    except OSError as trouble:
        log.error("%s cannot be written: %s", path, trouble.strerror)
        return
    if letter.answer.issue is not None:
        log.error("to post it: gh run download %d --repo %s --name %s", settings.run_id, settings.repository, UNPOSTED_DIRECTORY)
        log.error("            gh issue comment %d --repo %s --body-file %s", letter.answer.issue, settings.repository, path.name)


def deliver(posts: Sequence[Letter], api: Posting, settings: Settings) -> int:
    """Summary and annotations first, since they cannot fail with GitHub; then each comment. The exit status."""
    if settings.summary is not None:
        with settings.summary.open("a", encoding="utf-8") as file:
            file.write(summary_of(posts) + "\n")
    outcome = POSTED
    for number, letter in enumerate(posts, 1):
        if settings.in_actions:
            sys.stdout.write("".join(f"{line}\n" for line in annotation.commands(letter.report)))
        said = ", ".join(title(section) for section in letter.report.sections)
        try:
            sys.stdout.write(f"{said}: {post(letter, api, settings)}\n")
        except GitHubError as error:
            give_up(letter, number, settings, error)
            outcome = UNPOSTED
    return outcome


def main(given: Sequence[Path], request: Path, *, dry_run: bool) -> int:
    """Post what came back.

    Exit status: 0 posted (or shown, with `dry_run`), 8 written to the summary because posting failed, 2 unusable input.
    """
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    try:
        settings = settings_room.read()
        requests = read_requests(request)
    except (SettingsError, RequestsError) as error:
        sys.stderr.write(f"torch-minify: {error}\n")
        return UNUSABLE
    folders = result_dir.folders(given, requests)
    run_url = settings.run_url if settings.run_id else None
    if dry_run:
        for letter in letters(requests, collect(requests, folders, settings, None, None), run_url):
            body = render(letter.report)
            sys.stdout.write(f"{body}\n")
            log.info("%d bytes for %s#%s", size(body), one_line(letter.answer.repository, 100), letter.answer.issue)
        return POSTED
    api = GitHub(settings.token.get_secret_value(), settings.api_url, login=settings.bot_login)
    own = settings.durable_token.get_secret_value()
    keeper = GitHub(own, settings.api_url, login=settings.bot_login) if own else api
    return deliver(letters(requests, collect(requests, folders, settings, api, keeper), run_url), api, settings)
