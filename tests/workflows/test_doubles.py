"""What stands for GitHub, its actions and its runner says what it was checked against: a double that is kinder hides faults."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bot.models.result import EXIT_STATUS
from tests.workflows.workflow_files import ROOT

TESTS = ROOT / "tests"
DOUBLES = [
    *sorted((TESTS / "workflows/act").glob("*.py")),
    *sorted(
        path for path in (TESTS / "action/github").glob("*.*") if not path.name.startswith(("test_", "conftest", "contract", "emulator.py"))
    ),
    TESTS / "action/gate/memory.py",
    TESTS / "action/report/github_page.py",
    TESTS / "containers/job_container.py",
    TESTS / "workflows/act_harness.py",
    # in the tests themselves
    TESTS / "action/github/test_fault_table.py",
    TESTS / "action/github/test_storage.py",
    TESTS / "action/report/test_post.py",
    TESTS / "action/test_auto.py",
    TESTS / "workflows/test_steps.py",
    TESTS / "workflows/test_set_ups.py",
]


@pytest.mark.parametrize("path", DOUBLES, ids=lambda path: path.name)
def test_it_says_what_it_was_checked_against(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    # of a double with a file of its own, where the file begins
    assert re.search(r"[Cc]hecked against \S+ \S+", text if path.name.startswith("test_") else text[:2000])


def test_the_stand_in_for_the_engine_has_its_exit_statuses() -> None:
    text = (TESTS / "workflows/act/engine.py").read_text(encoding="utf-8")
    said = dict(re.findall(r'"(\w+)": (\d)[,}]', text[text.rindex("sys.exit(") :]))
    assert said == {status: str(number) for status, number in EXIT_STATUS.items() if status != "error"}
    assert text.rstrip().endswith(f"{EXIT_STATUS['error']}))")
