"""A job is over ten seconds after its budget, whatever hangs.

The interpreter is a stand-in that answers for each role as `bot/inside/boot.py` does, or hangs: deaf to the signals that ask for its
stack, and with a process that left its group and holds its output open.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from bot.engine.job import Job
from bot.engine.options import Options
from bot.engine.target import Target
from tests.clock import longest_pause

BUDGET, BEYOND = 8.0, 10.0
# Seconds: less than what is left of the budget's parts beside what the runs wait for.
MOST_PAUSE = 1.0
HANGS = "trap '' ABRT USR1; setsid sleep 60 & while :; do sleep 1; done"
FAILED = r"Traceback (most recent call last):\\n  File \"fail.py\", line 1, in <module>\\nKeyError: 7\\n"
ROLES = {
    "capture": f"""printf '{{"status": "raised", "calls": 1, "text": "{FAILED}"}}' > "$(dirname "$3")/run.json"; exit 1""",
    "control": "echo '[compiler-out] reached: 1 raised: 0 asked: 0 unmade: 0' >&2; exit 0",
    "server": HANGS,
    "*": """printf 'Traceback (most recent call last):\\nKeyError: 7\\n' >&2; exit 1""",  # a repro, run alone
}


@pytest.mark.parametrize(
    ("hanging", "status", "code"),
    [
        (("capture",), "error", "budget"),  # too short for a hang
        (("control",), "error", "budget"),
        (("capture", "control"), "not_reproduced", "fails_in_eager"),
        (("server",), "reproduced", "budget"),
        (("server", "*"), "error", "budget"),
    ],
)
def test_a_job_ends_with_its_budget(tmp_path: Path, hanging: tuple[str, ...], status: str, code: str) -> None:
    roles = {role: HANGS if role in hanging else does for role, does in ROLES.items()}
    # a machine that stands still says nothing of how a budget is divided
    for attempt in ("first", "second", "last"):
        place = tmp_path / attempt
        place.mkdir()
        started = time.monotonic()
        with longest_pause() as pause:
            result = Job(_options(place, roles)).run()
        if pause() < MOST_PAUSE:
            break
    assert time.monotonic() - started < BUDGET + BEYOND
    assert result is not None
    assert (result.status, result.reason_code) == (status, code), result.reason
    assert code != "budget" or result.ended_by == "budget"


def test_a_refusal_for_want_of_time_is_ended_by_the_budget_that_is_not_spent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.engine.job.enough", lambda *_: 600.0)
    result = Job(_options(tmp_path, ROLES)).run()
    assert result is not None
    assert (result.status, result.reason_code, result.ended_by) == ("error", "budget", "budget"), result.reason


def test_a_script_that_fails_otherwise_alone_was_not_asked_before_the_budget_ended(tmp_path: Path) -> None:
    """It may read a file of its own, which a search with more time would have written into it."""
    needs = (
        r"printf 'Traceback (most recent call last):\nFileNotFoundError: [Errno 2] No such file or directory: \'\''a\'\''\n' >&2; exit 1"
    )
    result = Job(_options(tmp_path, {**ROLES, "server": HANGS, "*": needs})).run()
    assert result is not None
    assert (result.status, result.reason_code, result.ended_by) == ("error", "budget", "budget")
    assert result.reason is not None
    assert result.reason.startswith("out of time before a form of the program was found that fails alone")
    assert "FileNotFoundError" in result.reason


def _options(place: Path, roles: dict[str, str]) -> Options:
    """A program whose interpreter answers in these `roles`."""
    script, python = place / "fail.py", place / "python"
    script.write_text("import torch\n")
    python.write_text("#!/bin/sh\ncase $2 in\n" + "".join(f"{role}) {does} ;;\n" for role, does in roles.items()) + "esac\n")
    python.chmod(0o755)
    return Options(Target(script, None, ()), str(python), place / "minified", budget=BUDGET, accuracy="off")
