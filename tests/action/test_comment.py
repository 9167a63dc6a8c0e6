from __future__ import annotations

import pytest

from bot.action.comment import MOST_FAILURES, Destination, answer, count_of_comment, failures_of_comment, marker, run_of_comment
from bot.action.report.render.text import marker_line
from tests.action.gate.memory import REPO, Memory


def test_the_marker_names_the_run() -> None:
    assert run_of_comment(marker("comment-5", 77) + "\ntext") == 77


@pytest.mark.parametrize("body", ["", "text", "x" + marker("comment-5", 77), "quoted:\n" + marker("comment-5", 77)])
def test_a_marker_elsewhere_is_none(body: str) -> None:
    assert run_of_comment(body) is None


def test_an_event_that_is_sent_again_finds_its_comment() -> None:
    api = Memory()
    first = answer(api, Destination(REPO, 7, "comment-5", 77), "one")
    assert answer(api, Destination(REPO, 7, "comment-5", 78), "two") == first
    assert answer(api, Destination(REPO, 7, "comment-51", 78), "other") != first
    assert [run_of_comment(comment.body) for comment in api.comments(REPO, 7)] == [78, 78]
    assert api.comments(REPO, 7)[0].body.endswith("\ntwo")


def test_a_comment_that_github_does_not_take_is_none() -> None:
    assert answer(Memory(silent=True), Destination(REPO, 7, "comment-5", 77), "one") is None


@pytest.mark.parametrize("count", [0, 1, MOST_FAILURES, MOST_FAILURES + 1, 50])
def test_a_marker_counts_all_failures_and_names_as_many_as_it_has_room_for(count: int) -> None:
    failures = [f"{number:016x}" for number in range(1 << 60, (1 << 60) + count)]
    line = marker(f"{'n' * 20}-run-{'9' * 15}-123", 10**18 - 1, failures)
    assert marker_line(line) == line
    assert run_of_comment(line) == 10**18 - 1
    assert count_of_comment(line + "\ntext") == count
    assert len(failures_of_comment(line)) == min(count, MOST_FAILURES)
