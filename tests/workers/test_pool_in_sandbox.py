"""Warm workers with the layers on: they compile, and each keeps to itself."""

from __future__ import annotations

import re
import resource
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.failure.outcome import Outcome
from bot.inside.protocol import Question
from bot.oracle.budget import Budget
from bot.oracle.dispatch import dispatch
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


def test_a_lower_limit_of_who_started_it_is_kept(tmp_path: Path) -> None:
    """As under a batch system's `ulimit -v`, which nobody here may raise."""
    pytest.importorskip("torch")
    least = tmp_path / "python"
    least.write_text(f'#!/bin/sh\nulimit -v {14 << 20}\nexec {sys.executable} "$@"\n')
    least.chmod(0o755)
    for name in ("cache", "scratch"):
        (tmp_path / name).mkdir()
    with Pool(str(least), tmp_path / "cache", tmp_path / "log", box=Sandbox(tmp_path / "scratch", str(least))) as pool:
        body = f"import resource\nassert resource.getrlimit(resource.RLIMIT_AS) == ({14 << 30}, {14 << 30})"
        outcome = ask(pool, body)
        assert outcome.status == "ok", outcome.text


def test_a_parent_whose_memory_somebody_limits_is_replaced(tmp_path: Path) -> None:
    """Else no candidate could run, and the search would find that nothing can be removed."""
    pytest.importorskip("torch")
    for name in ("cache", "scratch"):
        (tmp_path / name).mkdir()
    with Pool(sys.executable, tmp_path / "cache", tmp_path / "log", box=Sandbox(tmp_path / "scratch", sys.executable)) as pool:
        first = int(ask(pool, "import os\nraise SystemExit(str(os.getppid()))").text)
        held = re.search(r"VmSize:\s*(\d+) kB", Path(f"/proc/{first}/status").read_text())
        assert held is not None
        resource.prlimit(first, resource.RLIMIT_AS, (int(held[1]) << 10,) * 2)
        budget = Budget(120)
        outcome, _ = dispatch(pool, budget, Question("import os\nraise SystemExit(str(os.getppid()))", limit=60.0))
        assert outcome.status == "exit", outcome.text
        assert int(outcome.text) != first
    assert "memory was limited" in (tmp_path / "log").read_text()


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
