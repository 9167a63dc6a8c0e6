"""The mutation score of a tiny package: one fault that its test notices, and one that it does not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts" / "mutation"


def score(place: Path, test: str, *options: str) -> subprocess.CompletedProcess[str]:
    package, tests = place / "tool" / "small", place / "tests" / "small"
    for folder in (package, tests):
        folder.mkdir(parents=True)
    (package / "sums.py").write_text('def total(a, b):\n    """The sum."""\n    return a + b\n\n\ndef twice(a):\n    return a * 2\n')
    (tests / "test_sums.py").write_text(f"from tool.small.sums import total, twice\n\n\ndef test_it():\n    {test}\n")
    command = [sys.executable, str(SCRIPT), "tool/small", *options]
    return subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=100, check=False)


def test_survivors_are_named_and_counted(tmp_path: Path) -> None:
    ran = score(tmp_path, "assert total(1, 2) == 3 and twice(0) == 0")
    *survived, last = ran.stdout.splitlines()
    # a * 2 of zero is a // 2 and a * 3 as well; None is neither 3 nor 0
    assert sorted(survived) == [
        "survived: tool/small/sums.py:7: constant: 2",
        "survived: tool/small/sums.py:7: operator: a * 2",
    ]
    assert last == "noticed 3 of 5 mutants (60%)"
    assert ran.returncode == 0


def test_a_test_that_fails_anyway_gives_no_score(tmp_path: Path) -> None:
    ran = score(tmp_path, "assert total(1, 2) == 4")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "without any mutant" in ran.stderr


def test_a_busy_machine_is_no_failure_of_the_tests(tmp_path: Path) -> None:
    """The project's own limit for a test is for tests that run alone."""
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\ntimeout = 0.001\n")
    ran = score(tmp_path, "assert total(sum(range(1_000_000)), 2) and twice(0) == 0")
    assert ran.returncode == 0, ran.stderr


PROPERTY = """pass


from hypothesis import given, strategies


@given(strategies.integers())
def test_a_property(number):
    with open("calls", "a") as calls:
        calls.write("property\\n")
    assert twice(number) == 2 * number


def test_a_quick_one():
    with open("calls", "a") as calls:
        calls.write("quick\\n")
    assert total(1, 2) == 3
"""


def test_quick_tests_come_first_and_properties_try_few_inputs(tmp_path: Path) -> None:
    ran = score(tmp_path, PROPERTY, "--examples", "7", "--sample", "1", "--jobs", "1")
    assert ran.stdout.splitlines()[-1] == "noticed 1 of 1 mutants (100%)", ran.stderr
    calls = (tmp_path / "calls").read_text().split()
    # without a mutant in the order of the file, then by what they took
    assert calls[:8] == ["property"] * 7 + ["quick"]
    assert calls[8] == "quick"
