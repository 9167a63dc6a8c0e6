"""What the gate says before there is a result."""

from __future__ import annotations

from collections.abc import Sequence

from bot.action.report.render.layout import Block, fit, whole
from bot.action.report.render.markdown import code, fence_within, fold_within, link
from bot.action.report.render.section import source
from bot.action.report.render.text import number, one_line
from bot.models.request import Request

_ROOM = 30_000  # bytes: a marker comes before it, and tables of what failed behind it
_PATIENCE = "Where no runner with that label is online it waits for 24 hours, and nothing more is said here until then."


def queued(requests: Sequence[Request], runner_label: str, run_url: str | None) -> str:
    """Which `requests` were taken, the `runner_label` they wait for, and the `run_url` where to watch."""
    waiting = f"Waiting for a runner with the label {code(runner_label)}; {link('its run', run_url)} shows how far it is."
    blocks = [whole((0,), f"### Queued\n\n{waiting} {_PATIENCE}")]
    for index, request in enumerate(requests):
        numbered = f"{index + 1}. " if len(requests) > 1 else ""
        words = f"{numbered}{code(what(request))}"
        if request.expected:
            words += f"\n\nCI showed: {code(request.expected)}"
        blocks.append(whole((1, index), f"{words}\n\n{source(request)}"))
        if len(request.tests) > 1:
            blocks.append(_tests(request, index))
    return fit(blocks, _ROOM)


def what(request: Request) -> str:
    """`request` in one line."""
    return request.command if request.command is not None else f"a script of {number(len((request.script or '').splitlines()))} lines"


def _tests(request: Request, index: int) -> Block:
    rows = "\n".join(one_line(test) for test in request.tests)
    return Block((2, index), lambda room: fold_within(f"{number(len(request.tests))} tests fail in this way", "", rows, room))


def refused(reason: str) -> str:
    """Why nothing is run, and what would be needed. `reason` is put in a code block: it may hold names from the event."""
    return f"### Not run\n\n{fence_within(reason, _ROOM - 200) or code(reason)}"


def problem(error_text: str, help_text: str) -> str:
    """What was wrong with a command (`error_text`), and how to write one (`help_text`)."""
    blocks = [
        whole((0,), "### This command was not understood"),
        Block((1,), lambda room: fence_within(error_text, min(room, 4_000)) or code(error_text)),
        Block((2,), lambda room: fold_within("How to ask", "", help_text, room)),
    ]
    return fit(blocks, _ROOM)
