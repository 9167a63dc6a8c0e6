from __future__ import annotations

import os
import pwd
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NoReturn

import pytest

from bot import cli
from bot.engine import doctor_command, job, taken
from bot.engine.inputs import prepare  # noqa: F401  what another account could not import
from bot.engine.options import Options
from bot.sandbox import accounts, aside, kernel


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


# What is installed in an interpreter runs whenever that starts.
LOOK = """#!/bin/sh
id -u > {place}/planted
kill -9 $PPID
exit 1
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another account")
@pytest.mark.parametrize("engine", [70_001, 0], ids=["engine", "root"])
@pytest.mark.parametrize("words", [["run", "program.py", "--out", "out"], ["run", "none.py", "--out", "out"], ["doctor"]], ids=" ".join)
def test_who_looks_at_the_user_s_interpreter_may_not_give_accounts(words: list[str], engine: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is installed there came with the commit: with the rights of the engine it could become root, in its account forge results."""

    def job_of(options: Options) -> NoReturn:
        assert options.target.script is not None
        taken.unreadable(options.target.script, options.python)
        sys.exit(0)

    monkeypatch.setattr(job, "Job", job_of)
    monkeypatch.setattr(doctor_command, "confines", lambda *_: (True, ""))
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o777)
        Path(place, "program.py").touch()
        Path(place, "none.py").write_text("not Python")
        python = Path(place, "python")
        python.write_text(LOOK.format(place=place))
        python.chmod(0o755)
        accounts.may_change()  # loads the codec of what it reads, which another account could not
        child = os.fork()
        if child == 0:
            os.chdir(place)
            if engine:  # as `Account.start` starts it
                kernel.prctl(kernel.PR_SET_KEEPCAPS, 1)
                os.setgroups([])
                os.setresgid(engine, engine, engine)
                os.setresuid(engine, engine, engine)
                kernel.hold_capabilities(accounts.TO_CHANGE)
            status = 70
            try:
                status = cli.main([*words, "--python", str(python)])
            except SystemExit as left:
                status = int(left.code or 0)
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == (1 if words == ["doctor"] else 0)
        assert not Path(place, "planted").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another account")
def test_who_is_asked_has_an_account_and_no_right() -> None:
    held = "id -u; grep -E '^(CapEff|CapPrm|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status; cat /etc/shadow; kill -0 1"
    said = aside.ask(["sh", "-c", held + "; true"], 20.0)
    number, *rows = said.stdout.split("\n")
    assert int(number) > 1000
    ours = dict(line.split(":\t") for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines() if ":\t" in line)
    # who may not change them (CAP_SETPCAP, bit 8) leaves the bounds that it has, which no new privileges make meaningless
    bounds = "0" * 16 if int(ours["CapEff"], 16) >> 8 & 1 else ours["CapBnd"]
    assert rows[:-1] == ["CapPrm:\t" + "0" * 16, "CapEff:\t" + "0" * 16, f"CapBnd:\t{bounds}", "NoNewPrivs:\t1", "Seccomp:\t2"]
    assert said.stderr.count("denied") == 1
    assert said.stderr.count("not permitted") == 1


def test_what_is_asked_answers() -> None:
    assert aside.ask(["sh", "-c", "echo said; echo wrong >&2; pwd; exit 3"], 20.0).stdout == "said\n/\n"
    done = aside.ask([sys.executable, "-c", "import sys; print(sys.argv[1]); sys.stderr.write('wrong'); sys.exit(3)", "one"], 20.0)
    assert (done.returncode, done.stdout, done.stderr) == (3, "one\n", "wrong")
    with pytest.raises(FileNotFoundError):
        aside.ask(["no-such-program"], 20.0)
    with pytest.raises(subprocess.TimeoutExpired):
        aside.ask(["sleep", "60"], 0.5)
