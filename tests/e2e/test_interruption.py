"""Ctrl-C, SIGTERM, kill -9 and a spent budget: the best verified repro so far is on disk, and --resume goes on from it."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import pytest

from tests.e2e.e2e_harness import CASES, Answer, minify, run_alone, started, wait_for_queries

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1500)]
# long enough a search to be interrupted in the middle: some twenty queries of a second
LONG = CASES / "slow_pass.py"
MESSAGE = "sin, tanh and sigmoid do not go together"
OPS = 3
QUERIES = 4


def queries(directory: Path) -> list[dict[str, object]]:
    lines = (directory / "reduction.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line.endswith("}")]


def stands(directory: Path) -> None:
    """What is on disk after an interruption is true: a repro, if there is one, fails by itself."""
    repro = directory / "repro.py"
    if repro.exists():
        alone = run_alone(repro)
        assert MESSAGE in alone.err, alone.text[-3000:]


@pytest.mark.all
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_stops_at_once_and_resumes(name: str, tmp_path: Path) -> None:
    out = tmp_path / "minified"
    with started(LONG, "--out", out, "--verify-runs", "1", cwd=tmp_path) as (child, said):
        wait_for_queries(out, QUERIES, child)
        sent = time.monotonic()
        child.send_signal(getattr(signal, name))
        status = child.wait(timeout=30)
        took = time.monotonic() - sent
    # a second by the contract; the rest is this machine's other work
    assert took < 5, f"{took:.1f} s\n{said.read_text(errors='replace')[-2000:]}"
    assert status in (0, 1, 3, 5), said.read_text(errors="replace")[-2000:]
    result = json.loads((out / "result.json").read_text(encoding="utf-8"))
    assert result["ended_by"] == "interrupted"
    assert "Traceback" not in said.read_text(errors="replace")
    stands(out)

    before = queries(out)
    with started(LONG, "--out", out, "--verify-runs", "1", "--resume", cwd=tmp_path) as (child, said):
        time.sleep(3)  # it has not seen the program fail yet
        child.send_signal(getattr(signal, name))
        assert child.wait(timeout=30) == 1, said.read_text(errors="replace")[-2000:]
    again = json.loads((out / "result.json").read_text(encoding="utf-8"))
    kept = ("signature", "verification", "files")
    assert {key: again[key] for key in kept} == {key: result[key] for key in kept}, "the earlier result is lost"

    answer = Answer(out, minify(LONG, "--out", out, "--verify-runs", "1", "--resume", cwd=tmp_path))
    assert answer.process.status == 0, answer.described()
    assert answer.result["ended_by"] == "fixed_point"
    assert answer.result["reduction"]["ops_after"] == OPS, answer.described()
    after = queries(out)
    assert after[: len(before)] == before, "the record of the first run is lost"
    stands(out)


@pytest.mark.all
def test_killed_and_resumed(tmp_path: Path) -> None:
    """kill -9 in the middle loses no verified progress: the second run starts from the smallest program of the first."""
    out = tmp_path / "minified"
    with started(LONG, "--out", out, "--verify-runs", "1", cwd=tmp_path) as (child, _):
        wait_for_queries(out, QUERIES, child)
        child.kill()
        child.wait()
    stands(out)
    before = queries(out)
    accepted = [row for row in before if row["verdict"] == "SAME"]
    answer = Answer(out, minify(LONG, "--out", out, "--verify-runs", "1", "--resume", cwd=tmp_path))
    assert answer.process.status == 0, answer.described()
    assert answer.result["status"] == "minimized"
    assert answer.result["reduction"]["ops_after"] == OPS
    after = queries(out)[len(before) :]
    if accepted:
        least = min(row["size"] for row in accepted if row["size"])  # type: ignore[type-var]
        assert all(row["size"] <= least for row in after if row["verdict"] == "SAME" and row["size"]), "verified progress was lost"  # type: ignore[operator]


@pytest.mark.all
def test_resume_without_a_first_run(tmp_path: Path) -> None:
    """--resume in a new directory is a plain run."""
    out = tmp_path / "minified"
    answer = Answer(out, minify(CASES / "real_aot_cpp.py", "--out", out, "--verify-runs", "1", "--resume", cwd=tmp_path))
    assert answer.process.status == 0, answer.described()


@pytest.mark.all
def test_budget(tmp_path: Path) -> None:
    """A budget that ends before the search leaves time to verify and write."""
    out = tmp_path / "minified"
    answer = Answer(out, minify(LONG, "--out", out, "--verify-runs", "1", "--budget", "60s", cwd=tmp_path))
    assert answer.process.seconds < 90, answer.described()
    assert answer.process.status in (0, 1, 3), answer.described()
    if answer.process.status == 0:
        assert answer.result["verification"]["same"] == 1
    if answer.result["ended_by"] == "budget":
        assert "budget" in answer.process.text
    stands(out)
