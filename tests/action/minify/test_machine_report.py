"""What `/minify doctor` says of a machine: what only we see comes first, and the end of what was printed."""

from __future__ import annotations

import pytest

from bot.action.minify.isolation import Account
from bot.action.minify.machine_report import machine_report


@pytest.mark.parametrize(
    ("missing", "needed", "first"),
    [
        (None, True, "ok      GPU: visible"),
        ("there is no /dev/nvidia*", True, "CHANGE  GPU: there is no /dev/nvidia*"),
        ("there is no /dev/nvidia*", False, "?       GPU: there is no /dev/nvidia*"),
    ],
)
@pytest.mark.parametrize(
    ("status", "last"), [(0, "ok      torch-minify doctor: exit status 0"), (1, "CHANGE  torch-minify doctor: exit status 1")]
)
def test_what_only_we_see(missing: str | None, needed: bool, first: str, status: int, last: str) -> None:
    rows = machine_report(["ok torch 2.9"], status, missing, Account(), gpu_needed=needed).splitlines()
    assert rows == [first, "?       programs run under the account of the job", last, "        ok torch 2.9"]


def test_an_account_of_their_own_is_good() -> None:
    assert "ok      programs run under an account of their own\n" in machine_report([], 0, None, Account(1234, 1234), gpu_needed=False)


def test_of_much_the_end_is_told_within_what_a_comment_holds() -> None:
    told = machine_report([*("é" * 2000 for _ in range(200)), "the reason"], 1, None, Account(), gpu_needed=False)
    assert told.splitlines()[3] == "        […]"
    assert told.endswith("        the reason\n")
    assert len(told.encode()) < 8_500


def test_no_secret_is_told() -> None:
    secret = "0123456789abcdef0123456789abcdef01234567"
    told = machine_report([f"GITHUB_TOKEN={secret}"], 0, f"HF_TOKEN={secret}", Account(), gpu_needed=False)
    assert secret not in told
    assert told.count("[secret]") == 2
