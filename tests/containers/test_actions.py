"""Both container actions, by a workflow under act with a Docker engine: inputs, event and outputs come through."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.containers.job_container import request
from tests.workflows.workflow_files import ROOT, TOOLS

ACT = TOOLS / "venv/bin/act"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif("TORCH_MINIFY_TRIED" not in os.environ, reason="scripts/try-container runs these, with the images that it builds"),
    pytest.mark.skipif(not ACT.exists(), reason="scripts/setup-tools has not run"),
]
WORKFLOW = """
on: push
jobs:
  try:
    runs-on: ubuntu-latest
    steps:
      - id: gate
        uses: ./light
        with: {mode: gate, github-token: none}
      - id: minify
        uses: ./gpu
        continue-on-error: true
        with: {mode: minify, github-token: '', device: cuda}
      - env:
          OUTCOME: ${{ steps.gate.outputs.outcome }}
          STATUS: ${{ steps.minify.outputs.status }}
        run: |
          echo "outcome $OUTCOME, status $STATUS"
          test "$OUTCOME $STATUS" = 'nothing error'
"""


def test_inputs_event_and_outputs_come_through(tmp_path: Path) -> None:
    place = tmp_path / "act"
    for name, path in (("gpu", "action.yml"), ("light", ".github/actions/light/action.yml")):
        text = (ROOT / path).read_text(encoding="utf-8")
        (place / name).mkdir(parents=True)
        (place / name / "action.yml").write_text(
            re.sub(r"(?m)^  image: .*$", f"  image: docker://torch-minify-{name}:tried", text), encoding="utf-8"
        )
    (place / ".github/workflows").mkdir(parents=True)
    (place / ".github/workflows/try.yml").write_text(WORKFLOW, encoding="utf-8")
    (place / "request.json").write_text(json.dumps([request((ROOT / "examples/aot.py").read_text(encoding="utf-8"))]), encoding="utf-8")
    for words in (
        ("init", "--quiet", "--initial-branch=main"),
        ("remote", "add", "origin", "https://github.com/o/r"),
        ("add", "--all"),
        ("-c", "user.name=nobody", "-c", "user.email=nobody@example.invalid", "commit", "--quiet", "--message", "workflow"),
    ):
        subprocess.run(["git", "-C", str(place), *words], check=True)
    options = (
        "--pull=false",
        "--bind",
        "--action-offline-mode",
        "--no-cache-server",
        "--platform",
        "ubuntu-latest=torch-minify-base:tried",
    )
    env = {**os.environ, "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    ran = subprocess.run([str(ACT), "push", *options], cwd=place, env=env, capture_output=True, text=True, timeout=800, check=False)
    assert ran.returncode == 0, ran.stdout[-5000:] + ran.stderr[-3000:]
    assert "outcome nothing, status error" in ran.stdout
    assert "no GPU is visible: there is no /dev/nvidia*" in json.loads((place / "result/result.json").read_text(encoding="utf-8"))["reason"]
