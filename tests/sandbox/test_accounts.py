from __future__ import annotations

import os
import pwd
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from bot import cli
from bot.engine import doctor_command, job
from bot.engine.inputs import prepare, taken  # noqa: F401  what another account could not import
from bot.sandbox import accounts, kernel


def test_an_account_that_nobody_has() -> None:
    drawn = accounts.draw({})
    assert drawn is None or drawn not in {account.pw_uid for account in pwd.getpwall()}


def test_it_does_not_own_a_workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The runner of larger GPU machines is account 1001: https://github.com/actions/runner-images/issues/10936."""
    monkeypatch.setattr(accounts, "_mapped", lambda *_: True)
    monkeypatch.setattr(accounts, "_DRAWN", ((70_000, 70_001),))
    monkeypatch.setattr(accounts.os, "stat", lambda _: os.stat_result((0o40755, 1, 1, 2, 70_000, 70_000, 0, 0, 0, 0)))
    assert {accounts.draw({"GITHUB_WORKSPACE": str(tmp_path)}) for _ in range(20)} <= {70_001, None}
    monkeypatch.setattr(accounts, "_DRAWN", ((70_000, 70_000),))
    assert accounts.draw({"RUNNER_TEMP": str(tmp_path)}) is None


def test_none_is_drawn_twice_nor_one_that_is_at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """All processes of an account end with its program: those of another would, too."""
    monkeypatch.setattr(accounts, "_mapped", lambda *_: True)
    monkeypatch.setattr(accounts, "_DRAWN", ((70_000, 70_002),))
    monkeypatch.setattr(accounts, "_given", set())
    monkeypatch.setattr(accounts, "at_work", lambda: {70_001})
    monkeypatch.setattr(accounts, "_TRIES", 1000)
    assert {accounts.draw({}), accounts.draw({})} == {70_000, 70_002}
    assert accounts.draw({}) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another account")
def test_whose_processes_run() -> None:
    with subprocess.Popen(["sleep", "60"], user=69_123) as process:
        assert 69_123 in accounts.at_work()
        process.kill()
    assert 69_123 not in accounts.at_work()


def test_none_beyond_the_namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts, "_mapped", lambda _, number: number < 65_536)
    drawn = accounts.draw({})
    assert drawn is not None
    assert 62_000 <= drawn < 65_000
    monkeypatch.setattr(accounts, "_mapped", lambda *_: False)
    assert accounts.draw({}) is None


def test_whether_we_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts.kernel, "capabilities", lambda: 0xA80425FB)  # what Docker gives: capsh --decode
    assert accounts.may_change()
    monkeypatch.setattr(accounts.kernel, "capabilities", lambda: 0)
    assert not accounts.may_change()


LOOK = """#!/bin/sh
grep -E '^(CapEff|Uid):' /proc/self/status >> {said}
exit 1
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another account")
@pytest.mark.parametrize("words", [["run", "program.py", "--out", "out"], ["doctor"]], ids=lambda words: words[0])
def test_who_looks_at_the_user_s_interpreter_may_not_give_accounts(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """What is installed there runs as it starts, and came with the commit: with the rights of the engine it could become root."""
    monkeypatch.setattr(job, "Job", lambda *_: sys.exit(0))
    monkeypatch.setattr(doctor_command, "confines", lambda *_: (True, ""))
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o777)
        Path(place, "program.py").touch()
        python = Path(place, "python")
        python.write_text(LOOK.format(said=Path(place, "said")))
        python.chmod(0o755)
        child = os.fork()
        if child == 0:
            # the Action's engine, as `Account.start` starts it
            kernel.prctl(kernel.PR_SET_KEEPCAPS, 1)
            os.setgroups([])
            os.setresgid(70_001, 70_001, 70_001)
            os.setresuid(70_001, 70_001, 70_001)
            kernel.hold_capabilities(accounts.TO_CHANGE)
            os.chdir(place)
            status = 1
            try:
                status = cli.main([*words, "--python", str(python)])
            finally:
                os._exit(status)
        os.waitpid(child, 0)
        said = Path(place, "said").read_text().split()
    assert said[:2] == ["Uid:", "70001"]
    assert {said[at + 1] for at, word in enumerate(said) if word == "CapEff:"} == {"0" * 16}
