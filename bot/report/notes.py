"""The short comments that the gate writes."""

from __future__ import annotations

from collections.abc import Sequence

from bot.models import Request


def queued(requests: Sequence[Request], runner_label: str, run_url: str) -> str:
    """Accepted: what waits for which runner."""
    return f"{len(requests)} queued for a runner with the label `{runner_label}`: [watch the run]({run_url})."


def refused(reason: str) -> str:
    """Not accepted; `reason` is ours."""
    return reason


def problem(error_text: str, help_text: str) -> str:
    """Not understood. `error_text` may quote what somebody wrote."""
    fence = "`" * 30
    return f"{fence}\n{error_text}\n{fence}\n\n<details><summary>How to ask</summary>\n\n{fence}\n{help_text}\n{fence}\n\n</details>"
