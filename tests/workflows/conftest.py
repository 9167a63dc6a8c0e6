"""The programs that check the files which GitHub reads."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable

import pytest

from tests.workflows.workflow_files import ROOT, TOOLS


@pytest.fixture(scope="session")
def tool() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs one of the pinned programs."""
    if not (TOOLS / "stamp").exists():
        pytest.skip("scripts/setup-tools has not run")

    def run(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        env = {
            **os.environ,
            "PATH": f"{TOOLS / 'venv/bin'}{os.pathsep}{TOOLS / 'node_modules/.bin'}{os.pathsep}{os.environ['PATH']}",
            "NO_COLOR": "1",
        }
        return subprocess.run([name, *arguments], capture_output=True, text=True, cwd=ROOT, env=env, timeout=100, check=False)

    return run
