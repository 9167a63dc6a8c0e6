"""The mode `auto`: one process from the event to the comment, which is edited on the way. No commit is fetched here."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.action.github.emulator import REPO, Emulator
from tests.workflows.act_harness import TOKEN, programs
from tests.workflows.workflow_files import TOOLS

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not (TOOLS / "stamp").exists(), reason="scripts/setup-tools has not run")]

CODE = "```python\nimport torch\n# result: lowering, slow\n```"


@pytest.fixture(scope="module")
def forge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    with Emulator(tmp_path_factory.mktemp("emulator")) as running:
        yield running


def start(where: Path, forge: Emulator, event: dict[str, Any]) -> subprocess.Popen[str]:
    fetch = "lambda server, repository, commit, where, token: where.mkdir()"
    program = programs(where / "bin", edit_interval="1.0", fetch=fetch) / "torch-minify-action"
    (where / "event.json").write_text(json.dumps(event), encoding="utf-8")
    environment = {
        "PATH": os.environ["PATH"],
        "GITHUB_ACTIONS": "true",
        "GITHUB_API_URL": forge.url,
        "GITHUB_REPOSITORY": REPO,
        "GITHUB_RUN_ID": "7",
        "GITHUB_EVENT_NAME": "issue_comment",
        "GITHUB_EVENT_PATH": str(where / "event.json"),
        "GITHUB_OUTPUT": str(where / "output"),
        "GITHUB_STEP_SUMMARY": str(where / "summary"),
        "INPUT_MODE": "auto",
        "INPUT_GITHUB-TOKEN": TOKEN,
        "INPUT_RUNNER-LABEL": "gpu",
    }
    return subprocess.Popen([program], cwd=where, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_the_comment_changes_while_the_work_goes_on(tmp_path: Path, forge: Emulator) -> None:
    issue = forge.issue("It fails.")
    process = start(tmp_path, forge, forge.commented(issue, f"/minify\n\n{CODE}"))
    seen: list[str] = []
    while process.poll() is None:
        for body in forge.ours(issue)[:1]:
            if not seen or seen[-1] != body:
                seen.append(body)
        time.sleep(0.2)
    said = process.stdout.read() if process.stdout else ""
    assert process.returncode == 0, said
    live = [body for body in seen if "### Minimizing" in body]
    assert 2 <= len(live) <= 8
    assert any("step 1" in body or "step 2" in body for body in live)
    (final,) = forge.ours(issue)
    assert "### Minimized" in final
    # the program had neither the token nor the environment of the process that holds it
    found = json.loads((tmp_path / "result/0/seen.json").read_text(encoding="utf-8"))
    assert TOKEN not in json.dumps(found)
    assert not [name for name in found["environment"] if name.startswith(("GITHUB_", "INPUT_"))]
    assert "\nrequests\n" in (tmp_path / "output").read_text(encoding="utf-8")


@pytest.mark.parametrize(("body", "outcome"), [("/minify stop", "stop"), ("hello", "nothing"), ("/minify --device tpu", "refused")])
def test_what_is_no_request(tmp_path: Path, forge: Emulator, body: str, outcome: str) -> None:
    issue = forge.issue("It fails.")
    process = start(tmp_path, forge, forge.commented(issue, body))
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 0, said
    assert f"\n{outcome}\n" in (tmp_path / "output").read_text(encoding="utf-8")
    assert len(forge.ours(issue)) == (0 if outcome == "nothing" else 1)
    assert not (tmp_path / "result").exists()
