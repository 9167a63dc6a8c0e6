"""`torch-minify report`: turns results into the gate's comment, the job's summary and annotations."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from bot.action.comment import issue_of, notice_marker, react
from bot.action.console import FAULT, Console, InputError, JobOutcome
from bot.action.github.client import GitHub
from bot.action.github.transport import GitHubError
from bot.action.minify.isolation import chown_like_parent
from bot.action.redaction import redacted
from bot.action.report import durable, lost, result_dir
from bot.action.report.render import notes
from bot.action.report.render.rendering import SUMMARY_LIMIT, annotations_of, render
from bot.action.report.render.text import marker_line, one_line, size
from bot.action.report.render.verdict import FAILED_HERE, status, title
from bot.action.report.result_dir import Folder
from bot.action.report.set_up_report import report_set_up
from bot.action.settings import Settings
from bot.models.report import Download, Report, Section
from bot.models.request import Answer, Request

log = logging.getLogger(__name__)

POSTED, UNPOSTED = 0, 8
# Characters of texts, and seconds of reading, in all, after which no further result is read: the worst of them takes a minute, and the job
# has a quarter of an hour.
MOST_TEXTS, LONGEST_READING = 24 << 20, 240.0
_NOT_READ = "its result is there, but was not read here: those before it are very large"
_NOT_TAKEN = "its result is there, but could not be downloaded here: the job that reports can be started again on the page of the run"


@dataclass(frozen=True)
class PendingComment:
    """One comment: its text and its destination."""

    answer: Answer
    report: Report


def check_markers(requests: Sequence[Request]) -> None:
    """Make sure that the comments for all `requests` can be found again. Raises InputError if one of them has no marker of ours."""
    try:
        for request in requests:
            marker_line(request.answer.marker)
    except ValueError as error:
        raise InputError(f"cannot use the requests: {error}") from error


def pending_comments(requests: Sequence[Request], sections: Sequence[Section], run_url: str | None) -> tuple[PendingComment, ...]:
    """The comments on `requests`; `sections` has their results, in the same order, and `run_url` is linked below each."""
    grouped: dict[tuple[str, int | None, str], list[int]] = {}
    for index, request in enumerate(requests):
        grouped.setdefault((request.answer.repository, request.answer.issue, request.answer.marker), []).append(index)
    return tuple(
        PendingComment(
            requests[indices[0]].answer,
            Report(marker=requests[indices[0]].answer.marker, sections=tuple(sections[index] for index in indices), run_url=run_url),
        )
        for indices in grouped.values()
    )


def summary_of(comments: Sequence[PendingComment]) -> str:
    """All `comments` in one text for the job's summary, within its limit."""
    room = SUMMARY_LIMIT // max(len(comments), 1) - 1
    return "\n".join(render(comment.report, room) for comment in comments)


def downloads(api: GitHub, settings: Settings, requests: Sequence[Request]) -> dict[int, Download]:
    """Where the files of `requests` can be downloaded, by index: artifacts of the run in `settings`, as far as `api` knows them."""
    if not settings.run_id:
        return {}
    try:
        listed = sorted(api.artifacts(settings.repository, settings.run_id), key=lambda artifact: artifact.id)
    except GitHubError as error:
        log.warning("the artifacts of this run are not known: %s", one_line(str(error)))
        return {}
    names = {settings.artifact(f"result-{index}"): index for index in range(len(requests))}
    found: dict[int, Download] = {}
    for artifact in listed:  # those of later attempts are newer
        index = names.get(artifact.name)
        if index is not None and not artifact.expired:
            expires = f"{artifact.expires_at:%Y-%m-%d}" if artifact.expires_at else None
            found[index] = Download(url=f"{settings.run_url}/artifacts/{artifact.id}", expires=expires)
    return found


def collect(
    requests: Sequence[Request],
    folders: Mapping[int, Folder],
    settings: Settings,
    api: GitHub | None,
    storage: GitHub | None,
    others: Set[int] = frozenset(),
) -> tuple[Section, ...]:
    """A section for each of `requests`, from the result directories in `folders`, by index.

    Without `api`, GitHub is not asked for artifacts; without `storage`, nothing is kept as the input `durable` in `settings` says. The
    artifacts for the indices in `others` answer other requests: those of an earlier attempt of the run.
    """
    known = downloads(api, settings, requests) if api is not None else {}
    known = {index: download for index, download in known.items() if index not in others}
    missing = [index for index in range(len(requests)) if index not in folders]
    why = _reasons(api, settings, missing, known) if api is not None else {}
    made = []
    texts, spent = 0, 0.0
    unkept: str | None = None
    for index, request in enumerate(requests):
        folder = folders.get(index)
        began = time.monotonic()
        if folder is not None and (texts > MOST_TEXTS or spent > LONGEST_READING):
            section = Section(request=redacted(request), problem=_NOT_READ)
        else:
            section = _section(request, folder)
        spent += time.monotonic() - began
        texts += sum(len(text or "") for text in (section.repro, section.exported_text, section.program, section.traceback, section.log))
        section = section.model_copy(update={"download": known.get(index)})
        if index in why:
            section = section.model_copy(update={"problem": why[index]})
        if storage is not None and unkept is None:
            try:
                section = durable.keep(section, folder, settings.durable, storage, settings.repository, settings.run_id)
            except GitHubError as error:
                # not tried again for each file: the comment comes after this, and the job has a quarter of an hour
                unkept = one_line(str(error))
        if unkept is not None and section.files and status(section) in FAILED_HERE:  # nothing of another is kept anyway
            section = section.model_copy(update={"unkept": unkept})
        made.append(section)
    return tuple(made)


def _reasons(api: GitHub, settings: Settings, missing: Sequence[int], known: Mapping[int, Download]) -> dict[int, str]:
    """Why there is no result for the requests with the indices `missing`, in words for people, as far as that is known."""
    return lost.reasons(api, settings, missing) | {index: _NOT_TAKEN for index in missing if index in known}


def _section(request: Request, folder: Folder | None) -> Section:
    """The result for `request` in `folder`. A program may have written it: whatever goes wrong with it, the other requests are answered."""
    try:
        return result_dir.section(request, folder)
    except Exception:
        log.exception(FAULT)
        return Section(request=redacted(request), problem="its files cannot be read, which is a fault of torch-minify")


def post(comment: PendingComment, api: GitHub, settings: Settings) -> str:
    """Write `comment` over the gate's through `api`, and react to the comment that asked. Returns its URL; `settings` name the only
    allowed repository.

    The comment is identified by its marker and our login. Its number in the request is only a hint: that file was in the hands of a job
    that ran other people's code. Raises GitHubError if it cannot be posted.
    """
    answer = comment.answer
    issue = issue_of(answer, settings.repository, checked=bool(settings.request_sha256))
    if all(section.problem == _NOT_TAKEN for section in comment.report.sections):
        # for example if the report job was started again: the earlier comment on the same result is still true
        known = api.own_comment(settings.repository, issue, comment.report.marker, answer.comment)
        if known is not None and notes.is_result(known.body):
            return known.html_url
    written = api.upsert_comment(settings.repository, issue, comment.report.marker, render(comment.report), hint=answer.comment)
    if answer.trigger is not None:
        _notify(comment, issue, written.html_url, api, settings)
        good = any(status(section) in FAILED_HERE for section in comment.report.sections)
        react(api, settings.repository, answer.trigger, "rocket" if good else "confused")
    return written.html_url


def _notify(comment: PendingComment, issue: int, url: str, api: GitHub, settings: Settings) -> None:
    """Reply briefly to the person who asked that the comment at `url` has the results, since an edit notifies nobody. Never twice for one
    event."""
    marker = notice_marker(comment.report.marker)
    if marker is None:
        return
    said = notes.done([title(section) for section in comment.report.sections], url)
    try:
        api.upsert_comment(settings.repository, issue, marker, f"{marker}\n{said}")
    except GitHubError as error:
        log.warning("nobody was told that it is done: %s", one_line(str(error)))


def save_unposted(comment: PendingComment, path: Path, settings: Settings, error: Exception) -> None:
    """Save `comment`, which was not posted because of `error`, in the file `path`, and log how a person can post it.

    The workflow uploads the file's directory as an artifact of that name, of the run in `settings`.
    """
    log.error("not posted: %s", one_line(str(error)))
    log.error("its text is in the summary of this job: %s", settings.run_url)
    try:
        if path.parent.is_symlink():  # from a checkout around us
            path.parent.unlink()
        path.parent.mkdir(exist_ok=True)
        path.write_text(render(comment.report), encoding="utf-8")
        chown_like_parent(path.parent)
    except OSError as trouble:
        log.error("%s cannot be written: %s", path, trouble.strerror)
        return
    if comment.answer.issue is not None:
        log.error("to post it: gh run download %d --repo %s --name %s", settings.run_id, settings.repository, settings.artifact("unposted"))
        log.error("            gh issue comment %d --repo %s --body-file %s", comment.answer.issue, settings.repository, path.name)


def deliver(comments: Sequence[PendingComment], api: GitHub, settings: Settings, console: Console, unposted: Path) -> JobOutcome:
    """Post `comments` through `api`; those that cannot be posted are saved in the directory `unposted`.

    Summary and annotations go to `console` first, since they do not depend on GitHub's API. `settings` are as for `post`.
    """
    shown = tuple(each for comment in comments for each in annotations_of(comment.report))
    console.publish(JobOutcome(summary=summary_of(comments) + "\n", annotations=shown))
    exit_status, lines = POSTED, []
    for number, comment in enumerate(comments, 1):
        try:
            url = post(comment, api, settings)
            lines.append(f"{', '.join(title(section) for section in comment.report.sections)}: {url}\n")
        except Exception as error:
            # whatever it is, the text must not be lost, and the other comments are posted
            if not isinstance(error, GitHubError):
                log.exception(FAULT)
            save_unposted(comment, unposted / f"comment-{number}.md", settings, error)
            exit_status = UNPOSTED
    return JobOutcome(exit_status, stdout="".join(lines))


def preview(requests: Sequence[Request], results: Sequence[Path], settings: Settings) -> JobOutcome:
    """Show what would be posted for `requests` with the directories `results`, without calling GitHub; `settings` as for `post`."""
    folders = result_dir.folders(results, requests)
    bodies = []
    for comment in pending_comments(requests, collect(requests, folders, settings, None, None), _run_url(settings)):
        bodies.append(render(comment.report) + "\n")
        log.info("%d bytes for %s#%s", size(bodies[-1]) - 1, one_line(comment.answer.repository, 100), comment.answer.issue)
    return JobOutcome(POSTED, stdout="".join(bodies))


def report(
    requests: Sequence[Request], results: Sequence[Path], settings: Settings, api: GitHub, storage: GitHub, console: Console, unposted: Path
) -> JobOutcome:
    """Post the results for `requests` in the directories `results`.

    `storage` keeps files according to the input `durable`; `settings`, `api`, `console` and `unposted` are as for `deliver`. Exit status:
    0 posted, 8 written to the summary because posting failed.
    """
    found = result_dir.folders(results, requests)
    old = lost.of_earlier_attempts(api, settings, len(requests))
    folders = {index: folder for index, folder in found.items() if index not in old and folder.answers(requests[index])}
    others = (found.keys() - folders.keys()) | old
    if requests[0].doctor is not None:
        known = {} if folders or others else downloads(api, settings, requests)
        why = None if folders else _reasons(api, settings, [0], known).get(0)
        return report_set_up(requests[0], folders.get(0), why, settings, api, console)
    sections = collect(requests, folders, settings, api, storage, others)
    return deliver(pending_comments(requests, sections, _run_url(settings)), api, settings, console, unposted)


def _run_url(settings: Settings) -> str | None:
    return settings.run_url if settings.run_id else None
