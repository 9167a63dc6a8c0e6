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

BUDGET, BEYOND = 8.0, 10.0
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
    script, python = tmp_path / "fail.py", tmp_path / "python"
    script.write_text("import torch\n")
    roles = {role: HANGS if role in hanging else does for role, does in ROLES.items()}
    python.write_text("#!/bin/sh\ncase $2 in\n" + "".join(f"{role}) {does} ;;\n" for role, does in roles.items()) + "esac\n")
    python.chmod(0o755)
    started = time.monotonic()
    result = Job(Options(Target(script, None, ()), str(python), tmp_path / "minified", budget=BUDGET, accuracy="off")).run()
    assert time.monotonic() - started < BUDGET + BEYOND
    assert result is not None
    assert (result.status, result.reason_code) == (status, code), result.reason
