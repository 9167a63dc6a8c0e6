"""The gate's messages: what was taken or refused and why, which failing tests are worth minimizing, how far a request is."""

from __future__ import annotations

from collections.abc import Sequence

from bot.action.report.render.layout import Block, fit, whole
from bot.action.report.render.markdown import cell, code, fence, fence_within, fold_within, link
from bot.action.report.render.text import clean, number, one_line, size
from bot.models.request import Cause, Request
from bot.models.result import TITLE
from bot.workflow_commands import near

_ROOM = 30_000  # bytes: a marker comes before it, and tables of what failed after it
_WHOSE = {"comment": "the comment", "issue": "the issue", "pull_request": "the pull request", "push": "the branch"}
_PATIENCE = "Where no runner with that label is online it waits for 24 hours, and nothing more is said here until then."
_APPROVAL = "It may hold code from a fork: a reviewer of the workflow's `fork-environment` has to approve it first, on the page of its run."
MOST_ROWS = 20
# Characters of an issue's title, titles in a reply.
MOST_TITLE, MOST_NAMED = 200, 5
# Lines of a program that a page does not show completely, characters per line.
MOST_LINES, MOST_WIDTH = 40, 200
# Bytes of a table of causes: three of them fit after a note.
MOST_BYTES = 10_000
_END = "</table>"
_AGAIN = "Repeat the command to ask once more"


def pending(body: str) -> str | None:
    """The title of a comment with the text `body`, whose first line is our marker, if it promises an answer; None if it does not."""
    title = _title(body)
    return title if title.startswith(("### Queued", "### Still waiting", "### Minimizing", "### Set-up so far")) else None


def is_result(body: str) -> bool:
    """Whether a comment with the text `body`, whose first line is our marker, begins with a program that was run to its end."""
    said = tuple(words for status, words in TITLE.items() if status != "error")
    return _title(body).removeprefix("### ").removeprefix("1. ").startswith(said)


def _title(body: str) -> str:
    return next((line for line in body.splitlines()[1:] if line.strip()), "")


def queued(requests: Sequence[Request], runner_label: str, run_url: str | None) -> str:
    """Which `requests` were taken, the `runner_label` they wait for, and the `run_url` where to watch."""
    waiting = f"Waiting for a runner with the label {code(runner_label)}; {link('its run', run_url)} shows how far it is."
    approval = f"\n\n{_APPROVAL}" if any(request.fork for request in requests) else ""
    blocks = [whole((0,), f"### Queued\n\n{waiting} {_PATIENCE}{approval}")]
    for index, request in enumerate(requests):
        numbered = f"{index + 1}. " if len(requests) > 1 else ""
        words = f"{numbered}{code(what(request))}"
        if request.expected:
            words += f"\n\nCI showed: {code(request.expected)}"
        blocks.append(whole((1, index), f"{words}\n\n{source(request)}"))
        if request.code.folded and request.script and request.script not in [other.script for other in requests[:index]]:
            blocks.append(_shown(request.script, index))
        if len(request.tests) > 1:
            blocks.append(_tests(request, index))
    return fit(blocks, _ROOM)


def source(request: Request) -> str:
    """Whose code `request` runs, and who asked for it."""
    who = "" if request.answer.trigger else "a red run of the workflow "
    asked = f"asked for by {who}{code(request.asked_by)}"
    place = link(_WHOSE[request.code.where], request.code.url)
    whose, where = ("Code linked by", "in") if request.code.linked else ("Code by", "from")
    if request.code.trusted:
        said = [f"{whose} {code(request.code.author)} {where} {place}, {asked}."]
    else:
        stranger = f"{code(request.code.author)}, who has no write permission here"
        said = [f"{whose} {stranger}, {where} {place}; run because it was {asked}."]
    if request.code.note:
        said.append(f"Taken: {code(request.code.note)}.")
    if request.commit:
        said.append(f"Commit {code(request.commit)} of {code(request.repository)}.")
    return " ".join(said)


def what(request: Request) -> str:
    """`request` in one line."""
    return request.command if request.command is not None else f"a script of {number(len((request.script or '').splitlines()))} lines"


def _shown(script: str, index: int) -> Block:
    """The parts that a page does not show by itself, so that whoever asked sees what they asked for."""
    rows = [near(row) for row in clean(script).strip("\n").split("\n")]
    more = f"\n\n{number(len(rows) - MOST_LINES)} more lines are there." if len(rows) > MOST_LINES else ""
    head = "\n".join(row if len(row) <= MOST_WIDTH else f"{row[:MOST_WIDTH]} …" for row in rows[:MOST_LINES])
    return whole((3, index), fence(head, "python") + more)


def _tests(request: Request, index: int) -> Block:
    rows = "\n".join(one_line(test) for test in request.tests)
    return Block((2, index), lambda room: fold_within(f"{number(len(request.tests))} tests fail in this way", "", rows, room))


def refused(reason: str) -> str:
    """Why nothing is run, and what would be needed. `reason` is put in a code block, since it may contain names from the event."""
    return f"### Not run\n\n{fence_within(reason, _ROOM - 200) or code(reason)}"


def problem(error_text: str, help_text: str) -> str:
    """What was wrong with a command (`error_text`), and how to write one (`help_text`)."""
    blocks = [
        whole((0,), "### This command was not understood"),
        Block((1,), lambda room: fence_within(error_text, min(room, 4_000)) or code(error_text)),
        Block((2,), lambda room: fold_within("How to ask", "", help_text, room)),
    ]
    return fit(blocks, _ROOM)


def running(requests: Sequence[Request], index: int, line: str, run_url: str | None) -> str:
    """The progress of the one of `requests` with that `index`; `line` was printed last, `run_url` is where to watch."""
    of = f" {index + 1} of {len(requests)}" if len(requests) > 1 else ""
    now = code(one_line(line)) if line else "It begins."
    return f"### Minimizing{of}\n\n{code(what(requests[index]))}\n\n{now}\n\n{link('The run', run_url)}"


def waiting(hours: float, run_url: str | None, *, approval: bool = False) -> str:
    """Message that no runner has taken the run at `run_url` for `hours`; with `approval`, that nobody has approved it."""
    if approval:
        return (
            f"### Still waiting\n\nNobody has approved {link('this run', run_url)} in {number(int(hours))} hours. "
            "A reviewer of the workflow's `fork-environment` can, on its page."
        )
    return (
        f"### Still waiting\n\nNo runner took {link('this run', run_url)} in {number(int(hours))} hours. GitHub gives up after 24. "
        "The workflow's input `runner` names the label: is a runner with it online, and may this repository use it?"
    )


def ended(conclusion: str | None, run_url: str | None, why: str = "") -> str:
    """Message that the run at `run_url` is over with that `conclusion`, without a result written here: its summary may have one. `why` is
    the reason in a sentence, if known. If there is no such run, the message says so."""
    how = f" ({code(conclusion)})" if conclusion else ""
    parts = (f"{link('The run', run_url)} has ended{how}, and no result was written here.", why, "What it left is on its page.")
    said = " ".join(filter(None, parts))
    if run_url is None:
        said = "Its run is not in this repository: it was deleted, or is in the repository from which this conversation was moved."
    return f"### Ended without a result\n\n{said} {_AGAIN}; for a red run of CI, write `/minify` and the address of that run."


def failed(why: str, run_url: str | None) -> str:
    """Message that the request could not even be read, and `why`; the run at `run_url` has details."""
    return f"### Not taken\n\n{why} {link('The run', run_url)} says more. {_AGAIN}."


def candidates(found: Sequence[Cause]) -> str:
    """A table of the causes `found`, at most `MOST_BYTES` of it. It has no blank line, so it stays one block of HTML."""
    rows = ["<table>", "<tr><th></th><th>why</th><th>failure</th><th>tests</th></tr>"]
    room = MOST_BYTES - size("\n".join([*rows, _END])) - 100
    listed = 0
    for each in found[:MOST_ROWS]:
        row = _row(each)
        room -= size(row) + 1
        if room < 0:
            break
        rows.append(row)
        listed += 1
    more = f"\n\n{len(found) - listed} more causes are not listed." if len(found) > listed else ""
    return "\n".join([*rows, _END]) + more


def _row(candidate: Cause) -> str:
    count = len(candidate.tests)
    tests = cell(candidate.tests[0], 150) + (f" and {count - 1} more" if count > 1 else "") if count else "–"
    verdict = candidate.verdict if candidate.verdict in ("suggested", "possible") else "not a candidate"
    taken = ", taken" if candidate.taken else ""
    return f"<tr><td>{verdict}{taken}</td><td>{cell(candidate.reason)}</td><td>{cell(candidate.failure, 200)}</td><td>{tests}</td></tr>"


def doctor(gate: Sequence[str], machine: str | None, words: str, run_url: str | None, *, so_far: bool = False) -> str:
    """The `gate`'s findings about a set-up and what its `machine` reports, in lines; `words` and the run at `run_url` about what is
    missing.

    `so_far`: the machine has not been asked yet.
    """
    lines = (*gate, *(machine or "").splitlines())
    wrong = sum(line.startswith("CHANGE") for line in lines)
    # for what could not be checked, nobody knows whether it is good
    good = "nothing found to change" if any(line.startswith("?") for line in lines) else "all good"
    found = f": {number(wrong)} to change" if wrong else "" if machine is None else f": {good}"
    blocks = [
        whole((0,), f"### Set-up{' so far' if so_far else ''}{found}"),
        Block((1,), lambda room: fence_within("\n".join(gate), min(room, 10_000))),
        Block((2,), lambda room: fence_within(machine or "", min(room, 10_000)) if machine else ""),
        whole((3,), f"{words} {link('The run', run_url)} has the rest.".strip()),
    ]
    return fit(blocks, _ROOM)


def helped(help_text: str) -> str:
    """The answer to a request for help; `help_text` is ours."""
    return f"```text\n{help_text.rstrip()}\n```"


def stopped(runs: int, *, refused: int = 0, unread: bool = False) -> str:
    """The answer to a stop that cancelled that many `runs`, while GitHub `refused` others; `unread`: there is a command that has no answer
    yet."""
    said = f"Stopped {_runs(runs)}." if runs or refused else "Nothing is running for this in this repository."
    if refused:
        said += f" GitHub did not stop {_runs(refused)}: ask again, or cancel on the page of the run."
    return f"{said} A command here has no answer yet, and was not stopped: ask again once it has one." if unread else said


def _runs(count: int) -> str:
    return f"{count} {'run' if count == 1 else 'runs'}"


def title_of_issue(failure: str) -> str:
    """The title of an issue about a `failure`, which is a line of a log."""
    return one_line(f"CI: {failure}", MOST_TITLE)


def done(titles: Sequence[str], url: str | None) -> str:
    """The reply that tells whoever asked that the comment at `url` has its results, with those `titles` of ours."""
    return f"Done: {', '.join(titles[:MOST_NAMED])}{', …' if len(titles) > MOST_NAMED else ''}. {link('The result', url)} is above."


def opened(repository: str, branch: str, run_url: str) -> str:
    """The body of an issue about a `branch` of `repository` that turned red in the run at `run_url`.

    A comment below describes the failure itself.
    """
    where = link("a run of CI", run_url)
    return f"Tests fail in PyTorch's compiler on {code(branch, 100)} of {code(repository, 150)}: see {where}. The comments below say how."
