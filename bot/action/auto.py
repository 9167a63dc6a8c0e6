"""The Action's mode `auto`: gate, minify and report in one job; the comment is edited while the work proceeds.

It holds a token while it runs programs, so it is for repositories that trust whoever may ask. The programs cannot get it: they have a
separate account if there is one, a separate environment, and a parent whose memory they cannot read.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from bot.action.console import Console, JobOutcome
from bot.action.gate.gate import AnyEvent, decide
from bot.action.gate.stop import stop
from bot.action.github.client import GitHub
from bot.action.github.resources import IssueComment
from bot.action.github.transport import GitHubError
from bot.action.minify.checkout import FetchError
from bot.action.minify.child_process import stop_on_signals
from bot.action.minify.minify import GREEN, NEVER_BEGAN, RunnerConfig, minify, write_error
from bot.action.minify.result_place import begin
from bot.action.report.post import report
from bot.action.report.render import notes
from bot.action.settings import Settings
from bot.models.request import Request
from bot.sandbox.files import Scratch

log = logging.getLogger(__name__)

# Fetches a commit into a directory: `checkout.fetch` without the search path.
Fetch = Callable[[str, str, str, Path, str], None]


class LiveLine:
    """Calls `show` with the last printed line, if it has changed, after each call of `wait`, until that returns true.

    It never stops the work. By default it waits `every` seconds, and until the work ends.
    """

    def __init__(self, show: Callable[[str], None], every: float, wait: Callable[[float], bool] | None = None) -> None:
        self._ended = threading.Event()
        self._show, self._every, self._wait = show, every, wait or self._ended.wait
        self._line = ""
        self._thread = threading.Thread(target=self._edit, daemon=True)

    def watch(self, line: str) -> None:
        """Record a printed `line`."""
        if line.strip():
            self._line = line

    def __enter__(self) -> LiveLine:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        # a running edit ends first: the report comes after it
        self._thread.join()

    def _edit(self) -> None:
        shown = None
        while True:
            if self._line != shown:
                shown = self._line
                self._show(shown)
            if self._wait(self._every):
                return


@dataclass(frozen=True)
class Auto:
    """One job from an event to its report.

    `storage` keeps files according to the input `durable`, `fetch` fetches commits, `unposted` takes comments that GitHub refuses; `every`
    is the time between two edits of a comment, in seconds.
    """

    settings: Settings
    api: GitHub
    storage: GitHub
    config: RunnerConfig
    console: Console
    fetch: Fetch
    unposted: Path
    every: float

    def run(self, event: AnyEvent) -> JobOutcome:
        """Do what `event` asks for. Exit status: 0, even if that is nothing; 1 if the work could not be done. Raises GitHubError if GitHub
        does not answer what must be known."""
        # a fork's code needs a job in an environment that requires approval, and this job is already running
        settings = self.settings.model_copy(update={"fork_environment": ""})
        stopped = threading.Event()
        # a cancel ends the work, but not its report, even if the first comment was just written: there are ten seconds for that
        with stop_on_signals(stopped.set):
            decision = decide(event, settings, self.api)
            if decision.status == "stop" and isinstance(event, IssueComment):
                decision = stop(event, settings, self.api)
            self.console.publish(JobOutcome(outputs={"outcome": decision.status}, stdout=f"{decision.status} {decision.note}\n"))
            return self._minify_all(decision.requests, stopped) if decision.requests else JobOutcome()

    def _minify_all(self, requests: Sequence[Request], stopped: threading.Event) -> JobOutcome:
        statuses = []
        live_api = self.api.at_once()
        results = [self.settings.result / str(index) for index in range(len(requests))]
        with Scratch(prefix="torch-minify-auto-", ignore_cleanup_errors=True) as scratch:
            for index, (request, out) in enumerate(zip(requests, results, strict=True)):
                with LiveLine(shower(live_api, requests, index, self.settings.run_url), self.every) as live:
                    statuses.append(self._minify(request, Path(scratch) / f"checkout-{index}", out, live.watch, stopped))
            posted = report(requests, results, self.settings, self.api, self.storage, self.console, self.unposted)
        return replace(posted, exit_status=posted.exit_status or next((status for status in statuses if status not in GREEN), 0))

    def _minify(self, request: Request, checkout: Path, out: Path, watch: Callable[[str], None], stopped: threading.Event) -> int:
        config, settings = self.config, self.settings
        begin(out)
        if stopped.is_set():
            return write_error(out, NEVER_BEGAN, self.console, cancelled=True)
        if request.commit is not None:
            token = settings.token.get_secret_value()
            bring = partial(self.fetch, settings.server_url, request.repository, request.commit, checkout, token)
            try:
                if not _done(bring, stopped):
                    return write_error(out, NEVER_BEGAN, self.console, cancelled=True)
            except FetchError as error:
                return write_error(out, str(error), self.console)
            config = replace(config, checkout=checkout)
        return minify(request, config, out, self.console, watch, stopped)


def _done(work: Callable[[], None], stopped: threading.Event) -> bool:
    """Whether `work` finished before we were `stopped`: a large repository takes minutes, and after a cancel there are ten seconds.

    Its exceptions propagate. If it is still running, it is left alone and ends with the job.
    """
    outcome: Future[None] = Future()

    def run() -> None:
        try:
            work()
            outcome.set_result(None)
        except Exception as error:  # noqa: BLE001 - raised where it is waited for
            outcome.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    while not stopped.is_set():
        if wait([outcome], timeout=0.2).done:
            outcome.result()
            return True
    return False


def shower(api: GitHub, requests: Sequence[Request], index: int, run_url: str) -> Callable[[str], None]:
    """A function that puts a line into the comment that the gate made for `requests`, through `api`.

    The request with `index` is being processed, in the run at `run_url`.
    """
    answer = requests[index].answer

    def show(line: str) -> None:
        # the look at the set-up has already reported what it saw so far
        if answer.issue is None or requests[index].doctor is not None:
            return
        try:
            api.upsert_comment(
                answer.repository, answer.issue, answer.marker, notes.running(requests, index, line, run_url), answer.comment
            )
        except GitHubError as error:
            log.warning("the comment was not edited: %s", error)

    return show
