"""Small files that a program reads."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bot.engine.capture.own_files import MOST_CHARACTERS, with_own_files
from bot.failure.outcome import Outcome

Observe = Callable[[str], Outcome]


@pytest.fixture
def observe(tmp_path: Path) -> Observe:
    """Runs a script in a directory of its own, as a worker does."""
    alone = tmp_path / "alone"
    alone.mkdir()

    def run(text: str) -> Outcome:
        (alone / "repro.py").write_text(text, encoding="utf-8")
        ended = subprocess.run([sys.executable, "repro.py"], cwd=alone, capture_output=True, text=True, check=False)
        return Outcome(status="raised" if ended.returncode else "ok", text=ended.stderr)

    return run


@pytest.fixture
def project(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    (made / "data").mkdir(parents=True)
    (made / "a.json").write_text('{"n": 3}', encoding="utf-8")
    (made / "data" / "b.txt").write_text("4", encoding="utf-8")
    return made


def test_what_is_read_is_written_in(project: Path, observe: Observe) -> None:
    text = """import json
from pathlib import Path
a = json.loads((Path(__file__).parent / "a.json").read_text())
with open("data/b.txt") as file:
    b = int(file.read())
raise KeyError(a["n"] + b)
"""
    found = with_own_files(text, observe(text), observe, [project])
    assert found is not None
    changed, failing = found
    assert "a.json" not in changed
    assert "b.txt" not in changed
    assert observe(changed).text.endswith("KeyError: 7\n")
    assert [changed.splitlines()[line - 1] for line in failing] == ['raise KeyError(a["n"] + b)']


def test_a_helper_of_the_script_may_read(project: Path, observe: Observe) -> None:
    text = "def load(path):\n    with open(path) as file:\n        return int(file.read())\n\nraise KeyError(load('data/b.txt'))\n"
    found = with_own_files(text, observe(text), observe, [project])
    assert found is not None
    assert observe(found[0]).text.endswith("KeyError: 4\n")


@pytest.mark.parametrize("name", ["missing.txt", ".hidden", "../outside.txt", "large.txt", "binary.bin", "data", "empty.txt"])
def test_what_cannot_be_written_in(project: Path, observe: Observe, name: str) -> None:
    (project / ".hidden").write_text("secret", encoding="utf-8")
    (project.parent / "outside.txt").write_text("secret", encoding="utf-8")
    (project / "large.txt").write_text("1" * (MOST_CHARACTERS + 1), encoding="utf-8")
    (project / "binary.bin").write_bytes(b"\0\1\2")
    (project / "empty.txt").write_text("", encoding="utf-8")
    text = f"print(open({name!r}).read())\n"
    assert with_own_files(text, observe(text), observe, [project]) is None


def test_the_program_s_account_reads_and_not_ours(project: Path) -> None:
    """Where a link leads, we may go and the program may not."""
    (project / "link.txt").symlink_to("/etc/hostname")

    def observe(text: str) -> Outcome:
        said = "FileNotFoundError: [Errno 2] No such file or directory: 'link.txt'"
        if str(project) in text:
            said = f"PermissionError: [Errno 13] Permission denied: '{project}/link.txt'"
        return Outcome(status="raised", text=f'Traceback (most recent call last):\n  File "repro.py", line 1, in <module>\n{said}\n')

    text = "x = open('link.txt').read()\n"
    assert with_own_files(text, observe(text), observe, [project]) is None


def test_what_lacks_no_file_stays(project: Path, observe: Observe) -> None:
    for text in ("raise KeyError(1)\n", "import nothing_like_this\n"):
        assert with_own_files(text, observe(text), observe, [project]) is None
