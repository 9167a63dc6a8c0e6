from __future__ import annotations

import os
import stat
import subprocess
import uuid
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.action.minify import isolation
from bot.action.minify.isolation import Account, Identities, NoAccountError, allowed_environment, chown_like_parent, identities
from tests.action import canaries
from tests.sandbox.ways import running_with


@pytest.mark.parametrize(
    "name", ["PATH", "LANG", "LC_ALL", "CUDA_HOME", "LD_LIBRARY_PATH", "TORCH_LOGS", "TRITON_INTERPRET", "OMP_NUM_THREADS"]
)
def test_what_a_program_may_see(name: str) -> None:
    assert allowed_environment({name: "1"}) == {name: "1"}


@pytest.mark.parametrize(
    "name",
    [
        "GITHUB_TOKEN",
        "INPUT_GITHUB-TOKEN",
        "ACTIONS_RUNTIME_TOKEN",
        "ACTIONS_ID_TOKEN_REQUEST_URL",
        "GITHUB_OUTPUT",
        "GITHUB_ENV",
        "GITHUB_ACTIONS",
        "RUNNER_TEMP",
        "HOME",
        "AWS_SECRET_ACCESS_KEY",
        "HF_TOKEN",
        "TORCH_HUB_TOKEN",
        "CUDA_LICENSE_KEY",
        "PIP_INDEX_URL",
        "TORCHINDUCTOR_CACHE_DIR",
        "TRITON_CACHE_DIR",
        "PYTHONPATH",
        "LD_PRELOAD",
        "SSH_AUTH_SOCK",
    ],
)
def test_what_it_may_not(name: str) -> None:
    assert allowed_environment({name: "1"}, network=True) == {}


@pytest.mark.parametrize("secret", [canaries.TOKENS["JSON Web Token"], canaries.TOKENS["npm"], "https://bob:hunter22@example.org/"])
def test_a_secret_in_a_variable_with_a_harmless_name_it_may_not(secret: str) -> None:
    assert allowed_environment({"TORCH_HOME": secret, "CUDA_X": f"a={secret}"}, network=True) == {}
    # proxies take names and passwords
    assert allowed_environment({"https_proxy": secret}, network=True) == {"https_proxy": secret}


def test_proxies_are_for_the_setup_alone() -> None:
    assert allowed_environment({"https_proxy": "p", "NO_PROXY": "n"}) == {}
    assert allowed_environment({"https_proxy": "p", "NO_PROXY": "n"}, network=True) == {"https_proxy": "p", "NO_PROXY": "n"}


WORDS = st.sampled_from(("PATH", "CUDA", "TORCH", "TRITON", "https_proxy", "HF_HOME", "TOKEN", "SECRET", "CACHE_DIR", "token", "x"))
NAMES = st.text(min_size=1) | st.lists(WORDS, min_size=1, max_size=3).map("_".join)


@given(st.dictionaries(NAMES, st.text()))
def test_nothing_is_invented_and_no_token_kept(environ: dict[str, str]) -> None:
    found = allowed_environment({**environ, "CUDA_HOME": "/cuda"}, network=True)
    assert found.pop("CUDA_HOME") == "/cuda"
    assert found.items() <= environ.items()
    assert not any("TOKEN" in name.upper() or "SECRET" in name.upper() for name in found)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, as the container action has it")
def test_an_account_owns_what_it_is_given_but_nothing_behind_a_link(tmp_path: Path) -> None:
    room, outside = tmp_path / "room", tmp_path / "outside"
    room.mkdir()
    outside.write_text("mine")
    (room / "file").write_text("")
    (room / "link").symlink_to(outside)
    Account(12345, 12345).chown(room)
    assert (room / "file").stat().st_uid == 12345
    assert (room / "link").lstat().st_uid == 12345
    assert outside.stat().st_uid == 0
    chown_like_parent(room)
    assert (room / "file").stat().st_uid == 0


def test_without_an_account_nothing_changes(tmp_path: Path) -> None:
    before = tmp_path.stat()
    Account().chown(tmp_path)
    assert tmp_path.stat().st_uid == before.st_uid
    assert stat.S_IMODE(tmp_path.stat().st_mode) == stat.S_IMODE(before.st_mode)


SYSTEM_PYTHON = "/usr/bin/python3"
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, as the container action has it")
HELD = """
import os
held = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("CapEff"))
print(os.getuid(), os.getgid(), os.getgroups(), held)
"""


def drawn() -> int:
    number = isolation.accounts.draw({})
    assert number is not None
    return number


def said(account: Account, code: str) -> str:
    process = account.start([SYSTEM_PYTHON, "-I", "-c", code], cwd=Path("/"), env={}, stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process.stdout as stream:
        text = stream.read().decode()
    process.wait()
    process.end()
    return text.strip()


@as_root
def test_two_accounts_that_nobody_has_and_no_workplace_belongs_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = iter((64_317, 64_318))
    monkeypatch.setattr(isolation.accounts, "draw", lambda _: next(drawn))
    python = tmp_path / "closed" / "python"
    python.parent.mkdir(mode=0o700)
    python.symlink_to(SYSTEM_PYTHON)
    found = identities({"GITHUB_WORKSPACE": str(tmp_path)}, str(python))
    assert (found.setup.uid, found.setup.keep) == (64_317, ())
    # another account does not reach this interpreter, so the engine stays as it is
    assert found.engine == Account()


@as_root
def test_the_engine_may_give_accounts_and_nothing_else() -> None:
    number = drawn()
    assert said(Account(number, number), HELD) == f"{number} {number} [] {0:016x}"
    engine = Account(number, number, isolation.accounts.TO_CHANGE)
    assert said(engine, HELD) == f"{number} {number} [] {1 << 0 | 1 << 5 | 1 << 6 | 1 << 7:016x}"
    assert said(engine, "try: print(open('/etc/shadow').read())\nexcept OSError as error: print(error.errno)") == "13"


@as_root
def test_programs_are_never_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of an image of one's own nothing is known: the socket of the container engine may be in it."""
    monkeypatch.setattr(isolation.accounts, "may_change", lambda: False)
    with pytest.raises(NoAccountError, match="CAP_SETUID"):
        identities({})


def test_a_user_stays_who_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation.os, "geteuid", lambda: 1000)
    assert identities({}) == Identities()


@as_root
def test_what_an_account_has_started_ends_with_its_child() -> None:
    mark = f"mark-{uuid.uuid4()}"
    leave = (
        "import os, subprocess, sys\nif os.fork() == 0:\n os.setsid()\n"
        f" subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(100)', {mark!r}])\n os._exit(0)\nos.wait(); print('left')"
    )
    number = drawn()  # all of whose processes end with it
    assert said(Account(number, number), leave) == "left"
    assert running_with(mark) == []
