"""What the sandbox kept from a program is said as such. The texts are what Python 3.11 and the packages named print in it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bot.engine.withheld import withheld
from bot.failure.outcome import Outcome
from bot.sandbox import private_tmp
from bot.sandbox.sandbox import Sandbox

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is Linux's")


def said(tmp_path: Path, text: str, **more: object) -> str | None:
    failure = more.pop("failure", None)
    assert failure is None or isinstance(failure, str)
    box = Sandbox(tmp_path / "scratch", **more)  # type: ignore[arg-type]
    ended = withheld(Outcome(status="raised", text=text), box, failure)
    return ended and f"{ended.machine_fault}: {ended.reason}"


@pytest.mark.parametrize(
    "text",
    [
        "urllib.error.URLError: <urlopen error [Errno -3] Temporary failure in name resolution>",
        "OSError: [Errno 101] Network is unreachable",
        "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='huggingface.co', port=443): Max retries exceeded with url: /x",
        "huggingface_hub.errors.LocalEntryNotFoundError: An error happened while trying to locate the file on the Hub",
        "OSError: We couldn't connect to 'https://huggingface.co' to load the files",
    ],
)
def test_the_network(tmp_path: Path, text: str) -> None:
    found = said(tmp_path, f"Traceback (most recent call last):\n{text}\n")
    assert found is not None
    assert found.startswith("no network: ")
    assert "--network on" in found
    assert said(tmp_path, text, network=True) is None
    assert said(tmp_path, text, on=False) is None


# torch 2.13 in a process that may make no socket, with tcp:// and with a store in a file; addresses replaced
SERVER = "The server socket has failed to bind. port: 29511, useIpv6: 0, code: -101, name: ENETUNREACH, message: network is unreachable"
CLIENT = (
    "The client socket has failed to connect to any network address of (127.0.0.1, 29512)."
    " The client socket cannot be initialized to connect to 127.0.0.1:29512 (errno: 101 - Network is unreachable)."
)
GLOO = "RuntimeError: Cannot resolve 127.0.0.1 to a (local) address"


@pytest.mark.parametrize("text", [f"torch.distributed.DistNetworkError: {SERVER}", f"torch.distributed.DistNetworkError: {CLIENT}", GLOO])
def test_ranks_that_may_not_talk(tmp_path: Path, text: str) -> None:
    for failure in (None, text):
        found = said(tmp_path, f"Traceback (most recent call last):\n{text}\n", failure=failure)
        assert found is not None
        assert found.startswith("no sockets: the ranks of a process group")
        assert "--network on" in found
    assert said(tmp_path, text, network=True) is None
    assert (
        said(tmp_path, text.replace("ENETUNREACH", "EADDRINUSE").replace("etwork is unreachable", "one").replace("Cannot", "Can")) is None
    )


def test_a_file_that_we_may_read_and_the_program_may_not(tmp_path: Path) -> None:
    """One that is not there was to be written: to let it be read does not help."""
    (tmp_path / "data.pt").touch()
    for name, read in (("data.pt", True), ("new.pt", False)):
        found = said(tmp_path, f"PermissionError: [Errno 13] Permission denied: '{tmp_path / name}'")
        assert found is not None
        assert str(tmp_path / name) in found
        assert ("--read" in found) is read
        assert "it may write in a copy of its working directory" in found


def test_a_file_that_nobody_may_read_is_the_machine_s(tmp_path: Path) -> None:
    assert said(tmp_path, "PermissionError: [Errno 13] Permission denied: '/no/such/place/x'") is None


def test_native_code_that_names_no_file(tmp_path: Path) -> None:
    """As `torch.save` to a directory that is closed; torch 2.13."""
    text = "RuntimeError: [enforce fail at inline_container.cc:747] . open file failed with strerror: Permission denied"
    found = said(tmp_path, f"Traceback (most recent call last):\n{text}")
    assert found is not None
    assert "sandbox" in found
    assert said(tmp_path, f"{text}\nValueError: another error") is None


def test_a_failure_of_the_compiler_counts_only_where_it_was_refused_something_itself(tmp_path: Path) -> None:
    """AOTInductor of torch 2.11 unpacks a package below /tmp."""
    text = "Traceback (most recent call last):\nRuntimeError: Failed to create temporary directory: Permission denied\n"
    found = said(tmp_path, text, failure="Failed to create temporary directory: Permission denied")
    assert found is not None
    assert "Failed to create temporary directory" in found
    warned = "UserWarning: [Errno 101] Network is unreachable\nOSError: [Errno 13] Permission denied\nInductorError: no such lowering\n"
    assert said(tmp_path, warned, failure="no such lowering") is None
    assert said(tmp_path, warned, failure="") is None, "a crash has no words, whatever was printed before it"
    capturing = "CUDA error: operation not permitted when stream is capturing"
    assert said(tmp_path, f"Traceback\nRuntimeError: {capturing}\n", failure=capturing) is None
    for words in ("Permission denied", "Read-only file system"):
        (tmp_path / "x").touch()
        assert said(tmp_path, text, failure=f"[Errno 13] {words}: '{tmp_path}/x'") is not None
        assert said(tmp_path, text, failure=f"[Errno 13] {words}: '/no/such/place/x'") is None


def test_a_file_below_tmp_is_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private_tmp, "PLACE", str(tmp_path))
    (tmp_path / "data.pt").touch()
    found = said(tmp_path, f"FileNotFoundError: [Errno 2] No such file or directory: '{tmp_path}/data.pt'")
    assert found is not None
    assert "--read" in found
    assert said(tmp_path, f"FileNotFoundError: [Errno 2] No such file or directory: '{tmp_path}/other.pt'") is None
    monkeypatch.chdir(tmp_path)
    for text in (
        "FileNotFoundError: [Errno 2] No such file or directory: 'data.pt'",
        f'FileNotFoundError: No such file or directory: "{tmp_path}/data.pt"',
        f"python: can't open file '{tmp_path}/data.pt': [Errno 2] No such file or directory",
    ):
        assert said(tmp_path, text) is not None, text


def test_sockets(tmp_path: Path) -> None:
    text = (
        '  File "/usr/lib/python3.11/multiprocessing/connection.py", line 592, in __init__\n'
        "    self._socket = socket.socket(getattr(socket, family))\n"
        "PermissionError: [Errno 13] Permission denied\n"
    )
    found = said(tmp_path, text)
    assert found is not None
    assert found.startswith("no sockets: ")


def test_the_home_directory_is_empty(tmp_path: Path) -> None:
    home = tmp_path / "scratch" / "box-1" / "home"
    found = said(tmp_path, f"FileNotFoundError: [Errno 2] No such file or directory: '{home}/models/x.pt'")
    assert found is not None
    assert "models/x.pt" in found


@pytest.mark.parametrize(
    "text", ["", "AssertionError: max not supported", "FileNotFoundError: [Errno 2] No such file or directory: 'x.pt'"]
)
def test_everything_else_is_the_program_s(tmp_path: Path, text: str) -> None:
    assert said(tmp_path, text) is None
