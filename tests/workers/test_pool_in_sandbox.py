"""Warm workers with the layers on: they compile, and each keeps to itself."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.failure.outcome import Outcome
from bot.inside.protocol import Question
from bot.sandbox.sandbox import Sandbox
from bot.workers.pool import Pool

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")]


@pytest.fixture(scope="module")
def boxed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    pytest.importorskip("torch")
    directory = tmp_path_factory.mktemp("boxed")
    for name in ("cache", "scratch"):
        (directory / name).mkdir()
    with Pool(sys.executable, directory / "cache", directory / "workers.log", box=Sandbox(directory / "scratch", sys.executable)) as pool:
        yield pool


def ask(pool: Pool, body: str) -> Outcome:
    return pool.ask(Question(textwrap.dedent(body), limit=60.0))[0]


def test_they_compile(boxed: Pool) -> None:
    outcome = ask(boxed, "import torch\ntorch.compile(lambda x: torch.relu(x) + 1)(torch.ones(3))")
    assert outcome.status == "ok", outcome.text


def test_no_child_can_speak_for_another(boxed: Pool) -> None:
    """Through the pipes of the parent that it was forked from, or by ending that."""
    body = """
        import json, os, signal
        parent, got = os.getppid(), []
        forged = json.dumps({"id": 1, "outcome": {"status": "raised", "text": "forged"}}).encode() + b"\\n"
        for number in range(64):
            try:
                with open(f"/proc/{parent}/fd/{number}", "wb", buffering=0) as pipe:
                    pipe.write(forged)
                got.append(number)
            except OSError:
                pass
            try:
                os.write(number, forged) if number > 2 else None
            except OSError:
                pass
        for path in (f"/proc/{parent}/mem", f"/proc/{parent}/environ"):
            try:
                open(path, "r+b" if "mem" in path else "rb").close()
                got.append(path)
            except OSError:
                pass
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.kill(parent, number)
                got.append(number)
            except OSError:
                pass
        assert not got, got
    """
    restarts = boxed.restarts
    outcome = ask(boxed, body)
    assert outcome.status in ("ok", "infra"), outcome.text  # its own pipe is its own to spoil
    assert ask(boxed, "assert 1").status == "ok"
    assert boxed.restarts == restarts


def test_it_has_no_network_and_no_files_of_others(boxed: Pool, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    outcome = ask(
        boxed,
        f"""
        import os, socket
        for attempt in (
            lambda: socket.create_connection(("127.0.0.1", 9)),
            lambda: open({str(tmp_path / "secret")!r}),
            lambda: open({str(tmp_path / "new")!r}, "w"),
        ):
            try:
                attempt()
            except (PermissionError, ConnectionRefusedError, OSError) as error:
                assert error.errno in (2, 13, 101, 111), error  # a /tmp of its own has no such file
                continue
            raise SystemExit("got in")
        assert "secret" not in str(dict(os.environ)).lower()
        """,
    )
    assert outcome.status == "ok", outcome.text
    assert not (tmp_path / "new").exists()


def test_they_find_a_header_that_was_kept_after_they_started(boxed: Pool) -> None:
    """What makes it works beside the first run of a program; each worker compiled its own."""
    assert boxed.box is not None
    kept = boxed.box.scratch / "headers"
    kept.mkdir()
    kept.chmod(0o755)
    (kept / "one.h").write_text("kept", encoding="utf-8")
    (kept / "one.h").chmod(0o644)
    outcome = ask(
        boxed,
        """
        from torch._inductor.codecache import _HEADER_DIR as place
        with open(f"{place}/one.h") as file:
            assert file.read() == "kept"
        """,
    )
    assert outcome.status == "ok", outcome.text
