"""`torch-minify candidates --log FILE`."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path

import pytest

from bot import cli
from bot.action.ci import candidates

LOG = Path(__file__).resolve().parents[2] / "fixtures" / "ci" / "run-test.txt"
KEYS = ["file", "test", "verdict", "kind", "command", "why"]


def rows(path: Path, checkout: Path) -> list[dict[str, str | None]]:
    out = io.StringIO()
    assert candidates.main(path, checkout, out) == 0
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_a_line_of_json_for_each_failure(tmp_path: Path) -> None:
    (row,) = rows(LOG, tmp_path)
    assert list(row) == KEYS
    assert (row["file"], row["test"]) == ("test/inductor/test_pool.py", "test/inductor/test_pool.py::CpuTests::test_pool_cpu")
    assert (row["verdict"], row["kind"]) == ("suggested", "exception")
    assert row["command"] == "PYTORCH_TEST_WITH_SLOW=1 python test/inductor/test_pool.py CpuTests.test_pool_cpu"
    assert "max not supported" in str(row["why"])


def test_the_command_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    packed = tmp_path / "log.txt.gz"
    packed.write_bytes(gzip.compress(LOG.read_bytes()))
    assert cli.main(["candidates", "--log", str(packed)]) == 0
    assert json.loads(capsys.readouterr().out)["verdict"] == "suggested"
    assert cli.main(["candidates", "--log", str(tmp_path / "none.txt")]) == 2
    assert "cannot read" in capsys.readouterr().err
    whole = packed.read_bytes()
    for spoiled in (whole[:40], whole[:10] + b"\xff" * 40, whole[:-8] + bytes(8)):
        packed.write_bytes(spoiled)
        assert cli.main(["candidates", "--log", str(packed)]) == 2
        assert "cannot read" in capsys.readouterr().err


def test_the_end_of_a_large_log_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "MAX_LOG", 20_000)
    large, packed = tmp_path / "large.txt", tmp_path / "large.txt.gz"
    large.write_bytes(b"FAILED tests/test_early.py::test_a - ValueError: early\n" + b"x\n" * 20_000 + LOG.read_bytes())
    packed.write_bytes(gzip.compress(large.read_bytes()))
    assert [row["test"] for row in rows(large, tmp_path)] == ["test/inductor/test_pool.py::CpuTests::test_pool_cpu"]
    assert rows(packed, tmp_path) == rows(large, tmp_path)


def test_paths_are_the_checkout_s(tmp_path: Path) -> None:
    (tmp_path / "python" / "tests").mkdir(parents=True)
    (tmp_path / "python" / "tests" / "test_a.py").touch()
    log = tmp_path / "log.txt"
    log.write_text("FAILED tests/test_a.py::test_b - torch._dynamo.exc.Unsupported: x\n", encoding="utf-8")
    (row,) = rows(log, tmp_path)
    assert row["command"] == "pytest python/tests/test_a.py::test_b"
