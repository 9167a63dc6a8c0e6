"""`scripts/faults` on one program, at two moments of each of a few faults; what it judges is tested in tests/scripts/test_faults.py."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# the program, the proof, the engine, and room to write
FAULTS = ("kill-capture", "kill-proof", "kill-engine", "no-writes")
MOMENTS = 2


@pytest.mark.all
@pytest.mark.e2e
@pytest.mark.timeout(2400)
@pytest.mark.skipif(sys.platform != "linux", reason="it looks for processes in /proc")
def test_no_repro_is_lost(tmp_path: Path) -> None:
    rows = tmp_path / "rows.json"
    words = [str(ROOT / "scripts" / "faults"), "--python", sys.executable, "--programs", "lowering", "--json", str(rows)]
    env = {**os.environ, "PYTHON": sys.executable}
    done = subprocess.run(
        [*words, "--moments", str(MOMENTS), "--only", *FAULTS], env=env, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said[-6000:]
    outcomes = [(row["fault"], row["outcome"]) for row in json.loads(rows.read_text(encoding="utf-8"))["rows"]]
    assert sorted(fault for fault, _ in outcomes) == sorted([*FAULTS] * MOMENTS)
    # a run that was not struck says nothing
    assert not {outcome for _, outcome in outcomes} & {"missed", "cut"}, said[-6000:]
