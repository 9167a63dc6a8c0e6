"""The answer to `/minify doctor` once the machine was asked."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from bot.action import request_file
from bot.action.console import Console, JobOutcome
from bot.action.gate import gate
from bot.action.report.result_dir import Folder
from bot.action.report.set_up_report import FILE, report_set_up
from bot.action.settings import Settings
from bot.models.request import Request
from tests.action.gate.memory import REPO, Memory, asked, settings

GOOD = "ok      GPU: visible\n"


class Reported:
    """A request for a look at the set-up, and what is posted of it."""

    def __init__(self, place: Path) -> None:
        self.api, self.place = Memory(), place
        self.settings: Settings = settings(runner_label="gpu", image="none")
        gate.run(asked("/minify doctor"), self.settings, self.api, place / "request.json")
        (self.request,) = request_file.read(place / "request.json")
        self.reacted = len(self.api.reactions)

    def report(self, machine: str | None, why: str | None = None, request: Request | None = None) -> JobOutcome:
        folder = None
        if machine is not None:
            (self.place / FILE).write_text(machine)
            folder = Folder(self.place)
        console = Console(io.StringIO(), io.StringIO(), summary=self.place / "summary")
        return report_set_up(request or self.request, folder, why, self.settings, self.api, console)

    @property
    def body(self) -> str:
        return self.api.comments(REPO, 7)[0].body

    @property
    def summary(self) -> str:
        return (self.place / "summary").read_text()


@pytest.fixture
def reported(tmp_path: Path) -> Reported:
    return Reported(tmp_path)


def test_a_machine_that_says_nothing(reported: Reported) -> None:
    assert reported.report(None, "no runner took it").exit_status == 0
    assert "The machine said nothing: `no runner took it`." in reported.body
    assert [reaction for _, reaction in reported.api.reactions[reported.reacted :]] == ["confused"]


def test_a_job_that_left_nothing_and_an_answer_that_cannot_be_posted(reported: Reported) -> None:
    reported.api.silent = True
    outcome = reported.report(None)
    assert (outcome.exit_status, outcome.stdout) == (8, "")
    assert "The machine said nothing: `its job left no answer`." in reported.summary
    assert len(reported.api.reactions) == reported.reacted


def test_what_the_machine_says(reported: Reported) -> None:
    outcome = reported.report(GOOD)
    assert (outcome.exit_status, outcome.stdout.startswith("set-up: http")) == (0, True)
    assert GOOD in reported.body
    assert "said nothing" not in reported.body
    assert reported.body.splitlines()[1].startswith("### Set-up: ")
    assert reported.body.partition("\n")[2] in reported.summary
    assert [reaction for _, reaction in reported.api.reactions[reported.reacted :]] == ["rocket"]


@pytest.mark.parametrize("gate_unsure", [False, True])
@pytest.mark.parametrize("machine_unsure", [False, True])
def test_what_is_not_known_is_not_said_to_be_good(reported: Reported, gate_unsure: bool, machine_unsure: bool) -> None:
    seen = "?       durable: branch: the report needs the secret" if gate_unsure else "ok      x: y"
    request = reported.request.model_copy(update={"doctor": (seen,)})
    reported.report(f"{GOOD}?       programs run under the account of the job\n" if machine_unsure else GOOD, request=request)
    said = "nothing found to change" if gate_unsure or machine_unsure else "all good"
    assert reported.body.splitlines()[1] == f"### Set-up: {said}"


def test_what_has_to_be_changed(reported: Reported) -> None:
    reported.report("CHANGE  GPU: no GPU is visible\n")
    assert reported.body.splitlines()[1] == "### Set-up: 1 to change"
    assert [reaction for _, reaction in reported.api.reactions[reported.reacted :]] == ["confused"]


def test_nobody_is_answered_whose_comment_is_not_known(reported: Reported) -> None:
    request = reported.request.model_copy(update={"answer": reported.request.answer.model_copy(update={"trigger": None})})
    assert reported.report(GOOD, request=request).exit_status == 0
    assert len(reported.api.reactions) == reported.reacted


def test_an_issue_of_another_repository_is_not_written_to(reported: Reported) -> None:
    answer = reported.request.answer.model_copy(update={"repository": "someone/else"})
    before = reported.body
    assert reported.report(GOOD, request=reported.request.model_copy(update={"answer": answer})).exit_status == 8
    assert reported.body == before
