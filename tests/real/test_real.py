"""Models of real libraries, with random weights: each comes down to a few lines that fail in the same way, judged from outside."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CASES = [json.loads(line)["id"] for line in (ROOT / "tests/real/manifest.jsonl").read_text(encoding="utf-8").splitlines()]
MOST_OPS, MOST_LINES = 3, 15  # of the graph, and of a script
LIMIT = "600"  # seconds: another test runs beside it; alone, `scripts/bench real` has its 300

pytestmark = [pytest.mark.e2e, pytest.mark.all, pytest.mark.long, pytest.mark.timeout(1200)]


def test_every_case_is_listed() -> None:
    assert sorted(CASES) == sorted(path.stem for path in (ROOT / "tests/real/cases").glob("*.py"))


@pytest.mark.parametrize("case", CASES)
def test_a_real_model_comes_down_to_a_few_lines(case: str, tmp_path: Path) -> None:
    found = tmp_path / "found.json"
    command = ["scripts/bench", "real", "--limit", LIMIT, "--only", case, "--json", str(found), "--keep", str(tmp_path / "kept")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    (row,) = json.loads(found.read_text(encoding="utf-8"))["rows"] if found.exists() else [{}]
    assert row.get("counts"), f"{row}\n{done.stdout}\n{done.stderr}"
    result = json.loads((tmp_path / "kept" / case / "out" / "result.json").read_text(encoding="utf-8"))
    ops = result["reduction"]["ops_after"]
    assert ops <= MOST_OPS if ops is not None else row["lines_after"] <= MOST_LINES
