from __future__ import annotations

import io
from pathlib import Path

import pytest

from bot.action.console import Console, InputError, JobOutcome, UnbrokenStream
from bot.workflow_commands import Annotation, log_group

OUTCOME = JobOutcome(7, {"outcome": "refused"}, "## Said\n", (Annotation("notice", "Title", "text"),), "refused\n")


def test_each_part_goes_where_it_belongs(tmp_path: Path) -> None:
    out, err = io.StringIO(), io.StringIO()
    console = Console(out, err, in_actions=True, output=tmp_path / "output", summary=tmp_path / "summary")
    for _ in range(2):
        assert console.publish(OUTCOME) == 7
    assert out.getvalue() == "::notice title=Title::text\nrefused\n" * 2
    assert err.getvalue() == ""
    assert (tmp_path / "output").read_text().count("\nrefused\n") == 2
    assert (tmp_path / "summary").read_text() == "## Said\n" * 2


def test_no_line_for_the_log_is_a_command(tmp_path: Path) -> None:
    """They may hold words of others, as the names of attached files; what an annotation says is escaped."""
    out = io.StringIO()
    told = JobOutcome(annotations=(Annotation("notice", "Title", "a\n::x::"),), stdout="refused: ##[add-mask]a\n ::set-output name=x::y\n")
    Console(out, io.StringIO(), in_actions=True).publish(told)
    assert out.getvalue() == "::notice title=Title::a%0A::x::\nrefused: # #[add-mask]a\n > ::set-output name=x::y\n"


def test_outside_of_actions_there_are_lines_alone(tmp_path: Path) -> None:
    out = io.StringIO()
    assert Console(out, io.StringIO()).publish(OUTCOME) == 7
    assert out.getvalue() == "refused\n"


def test_nothing_to_say_makes_no_file(tmp_path: Path) -> None:
    assert Console(io.StringIO(), io.StringIO(), output=tmp_path / "output", summary=tmp_path / "summary").publish(JobOutcome()) == 0
    assert list(tmp_path.iterdir()) == []


def test_a_summary_that_cannot_be_written_stops_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Who asked waits for the comment, which is posted after it."""
    out = io.StringIO()
    console = Console(out, io.StringIO(), output=tmp_path / "output", summary=tmp_path / "gone" / "summary")
    assert console.publish(OUTCOME) == 7
    assert out.getvalue() == "refused\n"
    assert (tmp_path / "output").exists()
    assert "summary of this job cannot be written" in caplog.text


def test_a_stream_that_nobody_reads_any_more_breaks_nothing(tmp_path: Path) -> None:
    class Broken(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

        def flush(self) -> None:
            raise BrokenPipeError

    closed = io.StringIO()
    closed.close()
    for stream in (Broken(), closed):
        console = Console(UnbrokenStream.over(stream), UnbrokenStream.over(stream), summary=tmp_path / "summary")
        with log_group(console.stdout, "a group", enabled=True):
            assert console.publish(OUTCOME) == 7


def test_outputs_that_cannot_be_written_are_no_fault_of_ours() -> None:
    console = Console(io.StringIO(), io.StringIO(), output=Path("/dev/full"))
    with pytest.raises(InputError, match="outputs of this job cannot be written: No space left"):
        console.publish(JobOutcome(outputs={"outcome": "nothing"}))
