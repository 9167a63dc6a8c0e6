"""The gate's messages: which of them promise an answer, and what they leave out."""

from __future__ import annotations

from typing import Any

import pytest

from bot.action.report.render import notes
from bot.models.request import Cause, CodeOrigin
from bot.models.result import TITLE
from tests.action.report import reports

MARKER = reports.MARKER
RUN = "https://github.com/owner/name/actions/runs/7"


def body(text: str) -> str:
    return f"{MARKER}\n\n{text}"


@pytest.mark.parametrize(
    ("text", "waits"),
    [
        (notes.queued([reports.request()], "gpu", RUN), True),
        (notes.running([reports.request()], 0, "", RUN), True),
        (notes.waiting(2.5, RUN), True),
        (notes.waiting(2.5, RUN, approval=True), True),
        (notes.doctor(["ok x"], None, "", RUN, so_far=True), True),
        (notes.doctor(["ok x"], "ok y", "", RUN), False),
        (notes.ended("cancelled", RUN), False),
        (notes.failed("No.", RUN), False),
        (notes.refused("no"), False),
        ("### Minimized", False),
        ("", False),
    ],
)
def test_which_comment_promises_an_answer(text: str, waits: bool) -> None:
    assert (notes.pending(body(text)) is not None) == waits
    assert not notes.is_result(body(text)) or text == "### Minimized"


@pytest.mark.parametrize("status", TITLE)
@pytest.mark.parametrize("numbered", ["", "1. "])
def test_which_comment_is_a_result(status: Any, numbered: str) -> None:
    assert notes.is_result(body(f"### {numbered}{TITLE[status]}, 42 s")) == (status != "error")
    assert not notes.is_result(f"{MARKER}\n\nsaid: {TITLE[status]}")


def test_a_request_names_whose_code_it_is_and_who_asked() -> None:
    stranger = notes.source(reports.request())
    assert "`stranger`, who has no write permission here" in stranger
    assert "run because it was asked for by `maintainer`" in stranger
    origin = CodeOrigin(where="comment", author="maintainer", trusted=True, linked=True, note="the first block")
    ours = notes.source(reports.request(code=origin, commit=None))
    assert ours == "Code linked by `maintainer` in the comment, asked for by `maintainer`. Taken: `the first block`."


def test_code_that_a_page_hides_is_shown_once_and_not_endlessly() -> None:
    origin = CodeOrigin(where="comment", author="a", trusted=True, folded=True)
    script = "\n".join(["x" * 300, *(f"line{number}" for number in range(100))])
    said = notes.queued([reports.request(code=origin, script=script)] * 2, "gpu", RUN)
    assert said.count("line1\n") == 1
    assert f"{'x' * notes.MOST_WIDTH} …" in said
    assert "61 more lines are there." in said
    assert f"line{notes.MOST_LINES}\n" not in said


def causes(count: int, words: str = "E: no") -> list[Cause]:
    return [
        Cause(verdict="suggested", reason=words, failure=words, tests=("a.py::t", "b.py::t"), taken=not index) for index in range(count)
    ]


@pytest.mark.parametrize(("count", "words", "more"), [(2, "E", False), (60, "E", True), (15, "<" * 300, True)])
def test_a_table_of_causes_is_bounded_and_says_what_it_leaves_out(count: int, words: str, more: bool) -> None:
    said = notes.candidates(causes(count, words))
    rows = said.count("<tr><td>")
    assert len(said.encode()) <= notes.MOST_BYTES
    assert rows <= notes.MOST_ROWS
    assert (f"{count - rows} more causes are not listed." in said) == more
    assert said.count("suggested, taken") == 1
    assert "\n\n" not in said.partition("</table>")[0]
    assert "a.py::t</code> and 1 more" in said


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"runs": 0}, "Nothing is running for this in this repository."),
        ({"runs": 1}, "Stopped 1 run."),
        ({"runs": 2, "refused": 1}, "Stopped 2 runs. GitHub did not stop 1 run: ask again"),
        ({"runs": 0, "refused": 2}, "Stopped 0 runs. GitHub did not stop 2 runs"),
        ({"runs": 1, "unread": True}, "A command here has no answer yet, and was not stopped"),
    ],
)
def test_what_a_stop_did(given: dict[str, Any], said: str) -> None:
    assert said in notes.stopped(**given)


@pytest.mark.parametrize(
    ("gate", "machine", "title"),
    [
        (["ok a"], None, "### Set-up\n"),
        (["ok a"], "ok b", "### Set-up: all good\n"),
        (["ok a"], "? b", "### Set-up: nothing found to change\n"),
        (["CHANGE a"], "CHANGE b\nok c", "### Set-up: 2 to change\n"),
    ],
)
def test_what_a_set_up_needs(gate: list[str], machine: str | None, title: str) -> None:
    assert notes.doctor(gate, machine, "", RUN).startswith(title)


def test_of_many_results_some_are_named() -> None:
    assert notes.done(["Minimized"], RUN) == f"Done: Minimized. [The result]({RUN}) is above."
    assert notes.done(["Flaky"] * 9, RUN).startswith(f"Done: {', '.join(['Flaky'] * notes.MOST_NAMED)}, …. ")


def test_a_run_that_is_gone_is_said_to_be() -> None:
    assert "Its run is not in this repository" in notes.ended(None, None)
    assert "has ended (`cancelled`), and no result was written here. Because." in notes.ended("cancelled", RUN, "Because.")


def test_what_others_wrote_stays_text() -> None:
    assert notes.title_of_issue("E\n@somebody " + "x" * 500) == f"CI: E @somebody {'x' * 183}…"
    assert "`<b>@x`" in notes.failed("`<b>@x`", None)
    assert notes.refused("@somebody\n```") == "### Not run\n\n````text\n@somebody\n```\n````"
