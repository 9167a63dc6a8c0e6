"""What the images run: one mode of the Action, chosen by its inputs. The command line's GitHub commands use the same code.

`gate`, `report`, `stop` and `sweep` are jobs on a hosted runner; `minify` is the job with the GPU, where no token is wanted. `auto` is all
of them in one job, for a repository that trusts those who may ask. Only this module reads the environment, takes standard output and
error, and connects to GitHub; the modes are functions of their arguments.
"""

from __future__ import annotations

import logging
import os
import shutil
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from pydantic import SecretStr

from bot.action import auto, redaction, request_file, set_up
from bot.action.console import FAULT, Console, InputError, JobOutcome, UnbrokenStream
from bot.action.gate import gate
from bot.action.github.client import GitHub
from bot.action.github.transport import GitHubError, Transport
from bot.action.minify import checkout, isolation
from bot.action.minify import minify as minify_request
from bot.action.minify.minify import ENGINE, RunnerConfig
from bot.action.minify.result_place import begin
from bot.action.report import lost, post
from bot.action.report.render.markdown import code
from bot.action.report.sweep import sweep
from bot.action.settings import Settings, usable_settings
from bot.units import duration
from bot.workflow_commands import harmless

log = logging.getLogger(__name__)

# Comments that could not be posted are saved in this directory, for the workflow to upload.
UNPOSTED_DIRECTORY = Path("torch-minify-unposted")
# Seconds between two edits of a comment, which GitHub counts.
EDIT_INTERVAL = 30.0
FETCH: auto.Fetch = partial(checkout.fetch, environ=os.environ)


def connect(token: SecretStr, settings: Settings) -> GitHub:
    """A client for the GitHub that `settings` name, with `token`. Raises InputError if there is no token."""
    if not token.get_secret_value():
        raise InputError("input github-token is empty: everything but the mode minify speaks with GitHub")
    return GitHub(Transport(token.get_secret_value(), settings.api_url), settings.bot_login)


@dataclass(frozen=True)
class Edge:
    """What the modes reach outside this process: GitHub, the engine, git; and `edit_interval` in seconds. Tests replace it."""

    connect: Callable[[SecretStr, Settings], GitHub] = connect
    engine: Sequence[str] = ENGINE
    fetch: auto.Fetch = FETCH
    edit_interval: float = EDIT_INTERVAL

    def storage(self, settings: Settings, api: GitHub) -> GitHub:
        """The client that keeps files: `api`, or a separate one if `settings` have a token for that."""
        return self.connect(settings.durable_token, settings) if settings.durable_token.get_secret_value() else api


EDGE = Edge()
Subcommand = Callable[[Settings, Console], JobOutcome]
# What a job does if some of its inputs cannot be used, which the string explains.
Unusable = Callable[[Settings, Console, str], JobOutcome]


def main(edge: Edge = EDGE) -> int:
    """Run the mode that the inputs name, through `edge`. Exit status of the job: 0 if everything worked, whatever the answer."""
    return _run(
        lambda settings, console: _MODES[settings.mode](settings, console, edge),
        lambda settings, console, wrong: _unusable(settings, console, edge, wrong),
    )


def run_gate(event: Path, name: str, file: Path | None, edge: Edge = EDGE) -> int:
    """`torch-minify gate`, through `edge`: the event called `name` in the file `event`, its requests to `file`;
    without a file, the stop."""
    return _run(lambda settings, _: _decide(settings.model_copy(update={"event_path": event, "event_name": name}), edge, file))


def run_report(results: Sequence[Path], file: Path, *, dry_run: bool, edge: Edge = EDGE) -> int:
    """`torch-minify report`, through `edge`: post the directories `results` for the requests in `file`; with `dry_run`, only show that."""
    return _run(lambda settings, console: _post(settings, console, edge, results, file, dry_run=dry_run))


def run_set_up(edge: Edge = EDGE) -> int:
    """`torch-minify doctor --github`, through `edge`: what can be seen of the set-up. Exit status 1 if something needs to change."""
    return _run(lambda settings, _: _look(settings, edge))


def run_minify(file: Path, index: int, out: Path, edge: Edge = EDGE) -> int:
    """`torch-minify minify`, through `edge`: the request number `index` in `file`, to the directory `out`. Returns the exit status of
    `run`."""
    return _run(lambda settings, console: JobOutcome(_minimize(settings, console, edge, file, index, out)))


class LogFormatter(logging.Formatter):
    """Log messages may contain foreign text, including tracebacks: removes secrets, and makes sure that no line is a command to the
    runner."""

    def format(self, record: logging.LogRecord) -> str:
        """The `record` as it appears in the log."""
        return harmless(redaction.redact(super().format(record)))


def _run(job: Subcommand, unusable: Unusable | None = None) -> int:
    """The exit status of a job: 2 for unusable input, which `unusable` may handle; 1 if GitHub does not answer, or for a fault of ours."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LogFormatter("%(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    redaction.hide(redaction.words_of_machine(os.environ, socket.gethostname()))
    try:
        settings, wrong = usable_settings()
        console = Console(
            UnbrokenStream.over(sys.stdout), UnbrokenStream.over(sys.stderr), settings.in_actions, settings.output, settings.summary
        )
        if not wrong:
            return console.publish(job(settings, console))
        if unusable is not None:
            console.publish(unusable(settings, console, redaction.redact(wrong)))
        raise InputError(wrong)
    except InputError as error:
        sys.stderr.write(harmless(redaction.redact(f"torch-minify: {error}\n")))
        return 2
    except GitHubError as error:
        sys.stderr.write(harmless(redaction.redact(f"torch-minify: GitHub does not answer: {error}\n")))
        return 1
    except Exception:
        # the exception may contain foreign text: Python's own traceback would leave secrets and commands to the runner in it
        log.exception(FAULT)
        return 1


def _unusable(settings: Settings, console: Console, edge: Edge, wrong: str) -> JobOutcome:
    """Handle a job whose inputs cannot all be used, as `wrong` says: somebody waits for its answer, too."""
    match settings.mode:
        case "report":
            return _report(settings, console, edge)
        case "minify":
            begin(settings.result)
            minify_request.write_error(settings.result, f"the workflow's inputs cannot be used: {wrong}", console)
            isolation.chown_like_parent(settings.result)
            return JobOutcome(outputs={"status": "error"})
        case "sweep":
            return JobOutcome()
    why = f"The workflow's inputs cannot be used: {code(wrong, 1000)}."
    told = gate.failed(_event(settings), settings, edge.connect(settings.token, settings), why)
    # an outcome, so that no report looks for a lost result
    return replace(told, outputs={"outcome": "refused", "matrix": "[]"})


def _event(settings: Settings) -> gate.AnyEvent:
    return gate.read_event(settings.event_path or Path(os.devnull), settings.event_name)


def _decide(settings: Settings, edge: Edge, file: Path | None) -> JobOutcome:
    event = _event(settings)
    api = edge.connect(settings.token, settings)
    return gate.run(event, settings, api, file)


def _post(settings: Settings, console: Console, edge: Edge, results: Sequence[Path], file: Path, *, dry_run: bool) -> JobOutcome:
    requests = request_file.read(file)
    post.check_markers(requests)
    if dry_run:
        return post.preview(requests, results, settings)
    api = edge.connect(settings.token, settings)
    return post.report(requests, results, settings, api, edge.storage(settings, api), console, UNPOSTED_DIRECTORY)


def _report(settings: Settings, console: Console, edge: Edge) -> JobOutcome:
    """The job that reports; if it has no requests, it says so."""
    # on a persistent machine, a killed job leaves it behind, and it would be uploaded as this job's
    shutil.rmtree(UNPOSTED_DIRECTORY, ignore_errors=True)
    try:
        requests = request_file.read(settings.request_file, settings.request_sha256)
        post.check_markers(requests)
    except InputError as error:
        return _unanswered(settings, edge.connect(settings.token, settings), gate.words_for(error))
    api = edge.connect(settings.token, settings)
    try:
        return post.report(requests, [settings.results], settings, api, edge.storage(settings, api), console, UNPOSTED_DIRECTORY)
    except Exception:
        # as in the gate: whatever it is, nobody must wait in vain
        log.exception(FAULT)
        return _unanswered(settings, api, gate.OURS)


def _unanswered(settings: Settings, api: GitHub, why: str) -> JobOutcome:
    """Say in the comments that promise a result `why` none will come, or else to the person who asked."""
    if lost.abandon(api, settings, why):
        return JobOutcome(1, summary=f"No result: {why}\n")
    return gate.failed(_event(settings), settings, api, why)


def _look(settings: Settings, edge: Edge) -> JobOutcome:
    if not settings.repository:
        raise InputError("GITHUB_REPOSITORY does not say which repository to look at: set it to OWNER/NAME")
    found = set_up.examine(settings, edge.connect(settings.token, settings))
    return JobOutcome(int(any(finding.good is False for finding in found)), stdout="".join(f"{finding.line()}\n" for finding in found))


def _config(settings: Settings, edge: Edge) -> RunnerConfig:
    return RunnerConfig(
        checkout=settings.checkout,
        setup=settings.setup,
        variables=settings.variables_given,
        pass_env=settings.names_passed,
        torch_index=settings.torch_index.rstrip("/"),
        python=settings.python,
        budget=duration(settings.budget),
        device=settings.device or None,
        jobs=settings.jobs,
        engine=edge.engine,
        identities=_identities(),
        environ=os.environ,
    )


def _identities() -> isolation.Identities:
    try:
        return isolation.identities(os.environ)
    except isolation.NoAccountError as error:
        raise InputError(str(error)) from error


def _minimize(settings: Settings, console: Console, edge: Edge, file: Path, index: int, out: Path) -> int:
    return minify_request.minify(request_file.read_one(file, index, settings.request_sha256), _config(settings, edge), out, console)


def _minify(settings: Settings, console: Console, edge: Edge) -> JobOutcome:
    _drop_secrets()
    try:
        status = _minimize(settings, console, edge, settings.request_file, settings.index, settings.result)
    except InputError as error:
        # a result says so, since the report reads nothing else from this job
        begin(settings.result)
        minify_request.write_error(settings.result, str(error), console)
        isolation.chown_like_parent(settings.result)
        return JobOutcome(2, outputs={"status": "error"})
    return minify_request.outcome_of(settings.result, status)


def _sweep(settings: Settings, edge: Edge) -> JobOutcome:
    marked = sweep(edge.connect(settings.token, settings), settings.repository, settings.stale_after)
    return JobOutcome(stdout=f"{marked} comments marked\n")


def _auto(settings: Settings, console: Console, edge: Edge) -> JobOutcome:
    isolation.make_undumpable()
    event = _event(settings)
    api = edge.connect(settings.token, settings)
    try:
        storage, config = edge.storage(settings, api), _config(settings, edge)
        return auto.Auto(settings, api, storage, config, console, edge.fetch, UNPOSTED_DIRECTORY, edge.edit_interval).run(event)
    except (GitHubError, InputError) as error:
        return _unanswered(settings, api, gate.words_for(error))
    except Exception:
        log.exception(FAULT)
        return _unanswered(settings, api, gate.OURS)


_MODES: dict[str, Callable[[Settings, Console, Edge], JobOutcome]] = {
    "auto": _auto,
    "gate": lambda settings, _, edge: _decide(settings, edge, settings.request_file),
    "minify": _minify,
    "report": _report,
    "stop": lambda settings, _, edge: _decide(settings, edge, None),
    "sweep": lambda settings, _, edge: _sweep(settings, edge),
}


def _drop_secrets() -> None:
    """Restart without what a program must not find in our process's environment, in case the runner has put it there."""
    clean = {name: value for name, value in os.environ.items() if not redaction.is_secret_name(name)}
    if clean.keys() != os.environ.keys():
        os.execve(sys.executable, [sys.executable, "-I", "-m", "bot.action"], clean)


if __name__ == "__main__":
    raise SystemExit(main())
