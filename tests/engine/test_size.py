from __future__ import annotations

from pathlib import Path

import pytest

from bot.engine.size import LARGE_BYTES, LARGE_LINES, large


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\n" * LARGE_LINES, ""),
        ("x" * LARGE_BYTES, ""),
        ("\n" * (LARGE_LINES + 1), "fail.py has 10,001 lines, 10,001 bytes: reducing the script itself may take long"),
        ("x" * (LARGE_BYTES + 1), "fail.py has 0 lines, 1,000,001 bytes: reducing the script itself may take long"),
    ],
)
def test_what_is_said_of_a_large_file(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "fail.py").write_text(text)
    assert large(tmp_path / "fail.py") == said


def test_what_is_no_file_is_not_large(tmp_path: Path) -> None:
    assert large(None) == ""
    assert large(tmp_path) == ""
    assert large(str(tmp_path / "none.py")) == ""
