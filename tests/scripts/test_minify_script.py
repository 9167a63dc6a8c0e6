"""`scripts/minify`: what it runs is this project, whatever stands in the user's directory."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def minify(tmp_path: Path) -> Path:
    """The script in a checkout whose environment is the one of the tests."""
    checkout = tmp_path / "checkout"
    (checkout / "scripts").mkdir(parents=True)
    shutil.copy(ROOT / "scripts/minify", checkout / "scripts/minify")
    (checkout / "scripts/setup").write_text("#!/bin/sh\n", encoding="utf-8")
    (checkout / "scripts/setup").chmod(0o755)
    (checkout / ".venv").symlink_to(sys.prefix)
    return checkout / "scripts/minify"


@pytest.mark.parametrize("name", ["bot.py", "argparse.py", "bot/__init__.py"])
def test_a_module_of_the_user_does_not_take_over(minify: Path, tmp_path: Path, name: str) -> None:
    user = tmp_path / "user"
    (user / name).parent.mkdir(parents=True)
    (user / name).write_text('print("hijacked")\n', encoding="utf-8")
    (user / "fail.py").write_text("pass\n", encoding="utf-8")
    done = subprocess.run([minify, "fail.py", "--stage", "nonsense"], cwd=user, capture_output=True, text=True, timeout=60, check=False)
    assert "hijacked" not in done.stdout + done.stderr
    assert "invalid choice: 'nonsense'" in done.stderr
    assert done.returncode == 2
