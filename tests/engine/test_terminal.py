"""What a terminal shows of a repro, and of how a job ended."""

from __future__ import annotations

import base64
import random
from pathlib import Path

import pytest

from bot.engine.terminal import MOST_LINES, excerpt, shown
from bot.models.failure import Kind, Phase, Signature
from bot.models.result import Elsewhere, Evidence, Files, Result


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
    (row_shown,) = excerpt(row, "repro.py").splitlines()
    assert packed[:20] not in row_shown
    assert f'b64decode("<{len(packed):,} characters of data, in repro.py>")' in row_shown


def test_a_table_of_numbers_is_cut() -> None:
    (row_shown,) = excerpt(f"x = torch.tensor({[number / 7 for number in range(2000)]})", "repro.py").splitlines()
    assert len(row_shown) < 250
    assert "more characters are in repro.py" in row_shown


def test_what_people_write_is_shown() -> None:
    text = "x = a_long_name_that_somebody_wrote_for_a_function_in_a_library_of_their_own_and_more(1)\n# " + "-" * 90 + "\n"
    assert excerpt(text, "repro.py") == text


def test_the_end_of_a_job(tmp_path: Path) -> None:
    repro = tmp_path / "repro.py"
    repro.write_text("x = 1\n", encoding="utf-8")
    elsewhere = (
        Elsewhere(python="old/python", versions={"torch": "2.9.1"}, same=True),
        Elsewhere(python="new/python", same=False, said="passes"),
    )
    result = Result(status="minimized", culprit="my_pass", files=Files(repro="repro.py"), evidence=Evidence(elsewhere=elsewhere))
    assert shown(result, repro, Path("minified")) == (
        "x = 1\n\nminimized (ended by: fixed_point)\n"
        "with old/python (torch 2.9.1): the same failure\nwith new/python (torch no torch): passes\n"
        "to blame: my_pass\nfiles: minified\n"
    )
    repro.unlink()
    assert shown(result, repro, Path("minified")).startswith("minimized ")


def test_a_script_that_is_no_result_is_not_shown(tmp_path: Path) -> None:
    repro = tmp_path / "repro.py"
    repro.write_text("x = 1\n", encoding="utf-8")
    result = Result(status="error", ended_by="budget", reason="out of time")
    assert shown(result, repro, Path("out")) == "error (ended by: budget): out of time\nfiles: out\n"


def test_only_a_terminal_is_told_of_an_option_of_the_command_line(tmp_path: Path) -> None:
    failure = Signature(kind=Kind.EXCEPTION, phase=Phase.RUN, exception=("ValueError",), message="x", frame="f")
    cut = Result(status="error", ended_by="budget", signature=failure, reason="out of time after 0 of 3 fresh runs")
    said = shown(cut, tmp_path / "repro.py", Path("out"))
    assert said.startswith("error (ended by: budget): out of time after 0 of 3 fresh runs; --resume goes on from here\n")
    # what ended by itself ends so again, and so does what needs another budget
    for other in ({"ended_by": "fixed_point"}, {"reason": "one run takes 300 s: too slow; --budget 30m would do"}):
        again = cut.model_copy(update=other)
        assert "--resume" not in shown(again, tmp_path / "repro.py", Path("out"))


HOSTILE = "no \x1b]0;x\x07 \x9b2J \r::error::x\n::add-mask::y\n ##[group]z"


def obeyed(said: str) -> list[str]:
    """What a terminal or the runner of Actions would do of what is printed."""
    lines = [line for line in said.splitlines() if line.lstrip().startswith("::") or "##[" in line]
    return lines + [character for character in said if character != "\n" and not character.isprintable()]


def test_words_of_others_are_no_commands(tmp_path: Path) -> None:
    repro = tmp_path / "repro.py"
    repro.write_text(f'"""{HOSTILE}"""\n', newline="")
    evidence = Evidence(elsewhere=(Elsewhere(python="p", same=False, said=HOSTILE, versions={"torch": HOSTILE}),))
    result = Result(status="minimized", reason=HOSTILE, culprit=HOSTILE, evidence=evidence, files=Files(repro="repro.py"))
    assert obeyed(shown(result, repro, Path("minified"))) == []
