"""What the comment says between the gate and the result."""

from __future__ import annotations

from collections.abc import Sequence

from bot.action.report.render import notes
from bot.action.report.render.markdown import code, link
from bot.action.report.render.text import number, one_line
from bot.models.request import Request


def running(requests: Sequence[Request], index: int, line: str, run_url: str | None) -> str:
    """How far the one of `requests` with that `index` is; `line` was printed last, `run_url` is where to watch."""
    of = f" {index + 1} of {len(requests)}" if len(requests) > 1 else ""
    now = code(one_line(line)) if line else "It begins."
    return f"### Minimizing{of}\n\n{code(notes.what(requests[index]))}\n\n{now}\n\n{link('The run', run_url)}"


def waiting(hours: float, run_url: str | None) -> str:
    """That no runner took the run at `run_url` for so many `hours`."""
    return (
        f"### Still waiting\n\nNo runner took {link('this run', run_url)} in {number(int(hours))} hours. GitHub gives up after 24. "
        "The workflow's input `runner` names the label: is a runner with it online, and may this repository use it?"
    )


def ended(conclusion: str | None, run_url: str | None) -> str:
    """That the run at `run_url` is over with that `conclusion` and left nothing."""
    how = f" ({code(conclusion)})" if conclusion else ""
    return (
        f"### Ended without a result\n\n{link('The run', run_url)} is over{how}, and no result came of it. `/minify again` asks once more."
    )
