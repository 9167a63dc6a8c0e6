"""The answer to `/minify doctor`: the gate's findings, and what the machine reports about itself."""

from __future__ import annotations

import logging

from bot.action.comment import issue_of, react
from bot.action.console import Console, JobOutcome
from bot.action.github.client import GitHub
from bot.action.github.transport import GitHubError
from bot.action.redaction import redact
from bot.action.report.render import notes
from bot.action.report.render.markdown import code
from bot.action.report.render.text import one_line
from bot.action.report.result_dir import Folder
from bot.action.settings import Settings
from bot.models.request import Request

log = logging.getLogger(__name__)

FILE = "doctor.txt"


def report_set_up(
    request: Request, folder: Folder | None, why: str | None, settings: Settings, api: GitHub, console: Console
) -> JobOutcome:
    """Post the result for `request` in `folder` through `api`; if there is none, `why`.

    `settings` name the repository and the run, `console` gets the summary. Exit status: 0 posted, 8 only in the summary.
    """
    machine = folder.text(FILE) if folder is not None else None
    words = "" if machine is not None else f"The machine said nothing: {code(why or 'its job left no answer')}."
    body = notes.doctor(request.doctor or (), None if machine is None else redact(machine), words, settings.run_url)
    console.publish(JobOutcome(summary=body + "\n"))
    answer = request.answer
    try:
        issue = issue_of(answer, settings.repository, checked=bool(settings.request_sha256))
        written = api.upsert_comment(settings.repository, issue, answer.marker, body, hint=answer.comment)
    except GitHubError as error:
        log.error("not posted, but in the summary of this job: %s", one_line(str(error)))
        return JobOutcome(8)
    if answer.trigger is not None:
        react(api, settings.repository, answer.trigger, "confused" if "CHANGE" in body or machine is None else "rocket")
    return JobOutcome(0, stdout=f"set-up: {written.html_url}\n")
