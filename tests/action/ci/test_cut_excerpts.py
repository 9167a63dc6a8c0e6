"""Excerpts of tracebacks that end before what was raised: what else a text shows of it."""

from __future__ import annotations

import pytest

from bot.action.ci import candidates
from bot.action.ci.paths import CheckoutPaths

HEADER = "Traceback (most recent call last):\n"
PACKAGES = "/w/lib/python3.12/site-packages"


def frame(path: str, function: str, source: str = "made_up()") -> str:
    return f'  File "{path}", line 7, in {function}\n    {source}\n'


PROGRAM = HEADER + frame("/w/train.py", "<module>")
COMPILER = frame(f"{PACKAGES}/torch/_dynamo/eval_frame.py", "_fn", "raise e.with_traceback(None) from e.__cause__")


def rows(log: str) -> list[dict[str, str | None]]:
    return [row for row in candidates.rows(log, CheckoutPaths([])) if row["verdict"] != "not a candidate"]


@pytest.mark.parametrize(
    ("below", "expected"),
    [
        # frames of the same traceback, again
        (COMPILER, "Unsupported: made up"),
        # those of another one
        (frame(f"{PACKAGES}/torch/_inductor/compile_fx.py", "made_up"), "ends within a traceback"),
    ],
)
def test_frames_that_are_shown_again_are_no_failure_of_their_own(below: str, expected: str) -> None:
    whole = f"{PROGRAM}{COMPILER}torch._dynamo.exc.Unsupported: made up\n"
    (row,) = rows(f"The error is\n```\n{whole}```\n\nThe last frame\n```\n{below}```\nis not clear.\n")
    assert expected in str(row["why"])


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("torch/_prims_common/wrappers.py", 1),
        ("torch/_refs/__init__.py", 1),
        ("torch/_decomp/decompositions.py", 1),
        ("torch/_compile.py", 1),
        # what is called there is no operator
        ("torch/utils/_contextlib.py", 0),
        ("made_up/ops.py", 0),
    ],
)
def test_a_log_ends_in_an_operator_that_runs_on_what_is_traced(path: str, expected: int) -> None:
    traced = frame(f"{PACKAGES}/torch/_subclasses/fake_tensor.py", "dispatch") + frame(f"{PACKAGES}/torch/_ops.py", "__call__")
    last = frame(f"{PACKAGES}/{path}", "made_up")
    assert len(rows(f"```\n{traced}{last}```\n")) == expected
    # as it runs in eager
    assert rows(f"```\n{frame('/w/train.py', 'step')}{last}```\n") == []
