"""The Action's mode `auto`: gate, minify and report in one job, with the comment edited while the work goes on.

It holds a token while it runs programs, so it is for repositories that trust whoever may ask. The programs get none of it: another
account where there is one, an environment of their own, and a parent whose memory they cannot read.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType

from bot.action.gate import gate
from bot.action.gate.events import IssueComment
from bot.action.gate.stop import stop
from bot.action.github.api import Posting
from bot.action.github.client import GitHub
from bot.action.github.transport import GitHubError
from bot.action.minify import checkout as fetching
from bot.action.minify import minify as minifying
from bot.action.report import post
from bot.action.report.render import progress
from bot.action.settings import Settings
from bot.models.request import Request

log = logging.getLogger(__name__)

# Seconds between two edits of a comment. GitHub counts them.
EVERY = 30.0


class Live:
    """Shows the last line that was printed, in the comment, at most every `every` seconds. It never stops the work."""

    def __init__(self, show: Callable[[str], None], every: float = EVERY) -> None:
        self._show, self._every = show, every
        self._line = ""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._edit, daemon=True)

    def watch(self, line: str) -> None:
        """A line was printed."""
        if line.strip():
            self._line = line

    def __enter__(self) -> Live:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._ended.set()
        # an edit that is under way ends first: the report comes after it
        self._thread.join()

    def _edit(self) -> None:
        shown = None
        while True:
            if self._line != shown:
                shown = self._line
                self._show(shown)
            if self._ended.wait(self._every):
                return


def main(settings: Settings) -> int:
    """Exit status: 0, also where nothing was asked for; 1 where GitHub does not answer or the work could not be done; 2 unusable inputs."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    # nobody has approved this job as one of an environment
    settings = settings.model_copy(update={"fork_environment": ""})
    api = GitHub(settings.token.get_secret_value(), settings.api_url, login=settings.bot_login)
    try:
        event = gate.read_event(settings.event_path or Path(os.devnull), settings.event_name)
        # a fork's code needs a job in the environment that somebody approves, and this one has begun
        outcome = gate.decide(event, settings.model_copy(update={"fork_environment": ""}), api)
        if outcome.status == "stop" and isinstance(event, IssueComment):
            outcome = stop(event, settings, api)
    except gate.EventError as error:
        sys.stderr.write(f"torch-minify: {error}\n")
        return 2
    except GitHubError as error:
        sys.stderr.write(f"torch-minify: GitHub does not answer: {error}\n")
        return 1
    if settings.output is not None:
        with settings.output.open("a", encoding="utf-8") as output:
            output.write(gate.outputs({"outcome": outcome.status}))
    sys.stdout.write(f"{outcome.status} {outcome.note}\n")
    return _all(settings, api, outcome.requests) if outcome.requests else 0


def _all(settings: Settings, api: Posting, requests: Sequence[Request]) -> int:
    statuses = []
    with TemporaryDirectory(prefix="torch-minify-auto-") as scratch:
        file = Path(scratch) / "request.json"
        file.write_text(gate.written(tuple(requests)), encoding="utf-8")
        for index, request in enumerate(requests):
            with Live(shower(api, requests, index, settings.run_url)) as live:
                statuses.append(_one(settings, request, Path(scratch) / f"checkout-{index}", settings.result / str(index), live.watch))
        posted = post.main([settings.result], file, dry_run=False)
    return posted or next((status for status in statuses if status not in minifying.GREEN), 0)


def _one(settings: Settings, request: Request, checkout: Path, out: Path, watch: Callable[[str], None]) -> int:
    here = minifying.place(settings)
    if request.commit is not None:
        try:
            fetching.fetch(settings.server_url, request.repository, request.commit, checkout, settings.token.get_secret_value())
        except fetching.FetchError as error:
            return minifying.unprepared(out, str(error))
        here = replace(here, checkout=checkout)
    return minifying.minify(request, here, out, os.environ, watch)


def shower(api: Posting, requests: Sequence[Request], index: int, run_url: str) -> Callable[[str], None]:
    """What puts a line into the comment that the gate made."""
    answer = requests[index].answer

    def show(line: str) -> None:
        if answer.issue is None:
            return
        try:
            api.upsert_comment(
                answer.repository, answer.issue, answer.marker, progress.running(requests, index, line, run_url), answer.comment
            )
        except GitHubError as error:
            log.warning("the comment was not edited: %s", error)

    return show
