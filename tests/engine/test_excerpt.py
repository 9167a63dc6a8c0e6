"""What a terminal shows of a repro."""

from __future__ import annotations

import base64
import random

import pytest

from bot.engine.excerpt import MOST_LINES, excerpt


@pytest.mark.parametrize(("count", "left_out"), [(40, None), (41, 2), (300, 261)])
def test_at_most_forty_lines(count: int, left_out: int | None) -> None:
    text = "".join(f"line_{number} = {number}\n" for number in range(count))
    rows = excerpt(text, "minified/repro.py").splitlines()
    assert len(rows) == MOST_LINES
    if left_out is None:
        assert rows == text.splitlines()
    else:
        assert rows[:-1] == text.splitlines()[: MOST_LINES - 1]
        assert rows[-1] == f"# ... {left_out} more lines are in minified/repro.py"


@pytest.mark.parametrize("size", [48, 100, 60_000])
def test_data_is_never_printed(size: int) -> None:
    packed = base64.b64encode(random.Random(0).randbytes(size)).decode()
    row = f'x = torch.frombuffer(bytearray(base64.b64decode("{packed}")), dtype=torch.float32)'
    (shown,) = excerpt(row, "repro.py").splitlines()
    assert packed[:20] not in shown
    assert f'b64decode("<{len(packed):,} characters of data, in repro.py>")' in shown


def test_a_table_of_numbers_is_cut() -> None:
    (shown,) = excerpt(f"x = torch.tensor({[number / 7 for number in range(2000)]})", "repro.py").splitlines()
    assert len(shown) < 250
    assert "more characters are in repro.py" in shown


def test_what_people_write_is_shown() -> None:
    text = "x = a_long_name_that_somebody_wrote_for_a_function_in_a_library_of_their_own_and_more(1)\n# " + "-" * 90 + "\n"
    assert excerpt(text, "repro.py") == text
