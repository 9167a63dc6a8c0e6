from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from bot.action.comment import marker
from bot.action.github.client import GitHub
from bot.action.github.resources import Comment, Run, User, WorkflowJob
from bot.action.github.transport import GitHubError, Transport
from bot.action.report import sweep
from bot.action.report.render import notes
from bot.models.request import Answer, CodeOrigin, Request
from tests.action.gate.memory import REPO, Memory

NOW = datetime(2026, 11, 3, 12, 0, tzinfo=timezone.utc)
BOT = "github-actions[bot]"
REQUEST = Request(
    id="a",
    script="x",
    repository="o/r",
    asked_by="a",
    code=CodeOrigin(where="comment", author="a", trusted=True),
    answer=Answer(repository="o/r", issue=1, marker="m"),
)


class Hub(GitHub):
    """One comment, one run."""

    def __init__(self, comment: Comment, run: Run | None, jobs: tuple[str, ...]) -> None:
        super().__init__(Transport("token"), BOT)
        self.comment, self.held, self.statuses = comment, run, jobs
        self.edits: list[tuple[int, str, str, int | None]] = []
        self.there: list[Comment] | None = None  # where it is not as it was when it was listed

    def now(self) -> datetime:
        return NOW

    def recent_comments(self, repository: str, since: datetime) -> list[Comment]:
        return [self.comment] if since < self.comment.created_at else []

    def comments(self, repository: str, issue: int) -> list[Comment]:
        return [each.model_copy(update={"id": 8}) for each in self.recent_comments(repository, NOW - timedelta(days=9))] + (
            self.recent_comments(repository, NOW - timedelta(days=9)) if self.there is None else self.there
        )

    def run(self, repository: str, run: int) -> Run:
        if self.held is None:
            raise GitHubError("gone", 404)
        assert run == 77
        return self.held

    def jobs(self, repository: str, run: int, *, every: bool = False) -> list[WorkflowJob]:
        return [WorkflowJob(id=index, name="minify", status=status) for index, status in enumerate(self.statuses)]

    def upsert_comment(
        self, repository: str, issue: int, marker: str, body: str, comment: int | None = None, hint: int | None = None
    ) -> Comment:
        self.edits.append((issue, marker, body, comment))
        return self.comment


def comment(body: str | None = None, login: str = BOT) -> Comment:
    text = marker("comment-5", 77) + "\n" + (notes.queued([REQUEST], "gpu", "https://x/1") if body is None else body)
    return Comment(
        id=9, body=text, user=User(login=login), created_at=NOW - timedelta(hours=30), issue_url="https://api/repos/o/r/issues/12"
    )


def run(status: str = "queued", conclusion: str | None = None, hours: float = 30) -> Run:
    return Run(id=77, status=status, conclusion=conclusion, head_sha="a", created_at=NOW - timedelta(hours=hours), html_url="https://x/77")


def swept(hub: Hub) -> list[tuple[int, str, str, int | None]]:
    count = sweep.sweep(hub, "o/r", 20)
    assert count == len(hub.edits)
    return hub.edits


def test_what_waits_too_long_is_marked_in_place() -> None:
    ((issue, first, body, number),) = swept(Hub(comment(), run(), ("completed", "queued")))
    assert (issue, first, number) == (12, marker("comment-5", 77), 9)
    assert body.startswith("### Still waiting")
    assert "30 hours" in body


def test_a_run_that_many_comments_wait_for_is_asked_for_once() -> None:
    """A red run of the default branch has a comment on an issue for each failure; a token has a thousand requests in an hour."""
    api, asked = Memory(), []
    api.add_run(77, "pytest-native", hours=30)
    for issue in range(30):
        api.add(issue, BOT, "<!-- torch-minify:run-5-1 run:77 -->\n\n### Queued\n\nWaiting.")
    run, jobs = api.run, api.jobs
    api.run = lambda *given: asked.append("run") or run(*given)  # type: ignore[method-assign, func-returns-value]
    api.jobs = lambda *given, **more: asked.append("jobs") or jobs(*given, **more)  # type: ignore[method-assign, func-returns-value]
    assert sweep.sweep(api, REPO, 20.0) == 30
    assert asked == ["run"]


def test_what_waits_for_a_reviewer_is_not_said_to_lack_a_runner() -> None:
    ((_, _, body, _),) = swept(Hub(comment(), run("waiting"), ("completed", "waiting")))
    assert body.startswith("### Still waiting")
    assert "Nobody has approved" in body
    assert "No runner" not in body
    ((_, _, body, _),) = swept(Hub(comment(), run(), ("waiting", "queued")))
    assert "No runner took" in body


def test_what_ended_without_a_word() -> None:
    ((_, _, body, _),) = swept(Hub(comment(), run("completed", "cancelled"), ()))
    assert body.startswith("### Ended without a result")
    assert "cancelled" in body
    # one may be in the summary of the job that could not post it
    assert "no result was written here. What it left is on its page." in body


# All that a comment says while its request is still to be answered.
PENDING = {
    "queued": notes.queued([REQUEST], "gpu", "https://x/1"),
    "marked": notes.waiting(30, "https://x/1"),
    "waits for approval": notes.waiting(30, "https://x/1", approval=True),
    "in one job": notes.running([REQUEST, REQUEST], 1, "[1 s] reducing", "https://x/1"),
    "a set-up": notes.doctor(["ok      x: y"], None, "It is looked at now.", "https://x/1", so_far=True),
    "a set-up with a fault": notes.doctor(["CHANGE  x: y"], None, "It is looked at now.", "https://x/1", so_far=True),
}


@pytest.mark.parametrize("body", PENDING.values(), ids=PENDING)
def test_whatever_a_comment_promises_ends_with_its_run(body: str) -> None:
    ((_, _, said, _),) = swept(Hub(comment(body), run("completed", "cancelled"), ()))
    assert said.startswith("### Ended without a result")


@pytest.mark.parametrize("now", ["### Minimized\n\nthe repro", None])
def test_what_was_answered_or_deleted_since_it_was_listed_stays_so(now: str | None) -> None:
    """The list may be minutes old when a comment's turn comes: the report has answered, the run is over."""
    hub = Hub(comment(), run("completed", "success"), ("completed",))
    hub.there = [] if now is None else [comment(now)]
    assert not swept(hub)


def test_a_set_up_that_was_looked_at_is_an_answer() -> None:
    for machine in (None, "ok   python: 3.12.0"):
        body = notes.doctor(["ok      x: y"], machine, "The machine said nothing.", "https://x/1")
        assert not swept(Hub(comment(body), run("completed", "failure"), ()))


def test_a_run_that_was_deleted() -> None:
    ((_, _, body, _),) = swept(Hub(comment(), None, ()))
    assert body.startswith("### Ended without a result")
    # or it goes on, in a repository from which the issue was moved
    assert "has ended" not in body


def test_what_was_marked_is_left_alone() -> None:
    hub = Hub(comment(), run(), ("queued",))
    body = swept(hub)[0][2]
    assert not swept(Hub(comment(body), run(), ("queued",)))


@pytest.mark.parametrize(
    ("held", "jobs"),
    [
        (run(hours=19), ("queued",)),  # not yet
        (run("in_progress"), ("in_progress", "queued")),  # another request is being done
        (run("in_progress"), ("completed",)),
    ],
)
def test_what_may_still_come_is_left_alone(held: Run, jobs: tuple[str, ...]) -> None:
    assert not swept(Hub(comment(), held, jobs))


def test_a_run_that_runs_again_waits_from_then_on() -> None:
    """GitHub's `created_at` is that of its first attempt, which may be a month old (documentation of workflow runs, `run_started_at`)."""
    again = run(hours=200).model_copy(update={"run_started_at": NOW - timedelta(minutes=1)})
    assert swept(Hub(comment(), again, ("queued",))) == []
    ((_, _, body, _),) = swept(Hub(comment(), again.model_copy(update={"run_started_at": NOW - timedelta(hours=21)}), ("queued",)))
    assert "in 21 hours" in body


@pytest.mark.parametrize("given", [comment("### Minimized\n\n### Queued"), comment(login="somebody")])
def test_other_comments_are_left_alone(given: Comment) -> None:
    assert not swept(Hub(given, run(), ("queued",)))


def test_a_forged_marker_further_down_is_none() -> None:
    forged = comment().model_copy(update={"body": "hello\n" + comment().body})
    assert not swept(Hub(forged, run(), ("queued",)))


def test_a_comment_that_cannot_be_edited_keeps_no_answer_from_others() -> None:
    class Locked(Hub):
        """The newest is on an issue that is locked, as GitHub answers then."""

        def recent_comments(self, repository: str, since: datetime) -> list[Comment]:
            newest = self.comment.model_copy(update={"id": 10, "issue_url": "https://api/repos/o/r/issues/13"})
            return [newest, self.comment]

        def upsert_comment(
            self, repository: str, issue: int, marker: str, body: str, comment: int | None = None, hint: int | None = None
        ) -> Comment:
            if issue == 13:
                raise GitHubError("PATCH: 403 Unable to edit: issue is locked", 403)
            return super().upsert_comment(repository, issue, marker, body, comment)

    hub = Locked(comment(), run("completed", "cancelled"), ())
    with pytest.raises(GitHubError, match="locked"):  # the job is red: somebody looks
        sweep.sweep(hub, "o/r", 20)
    assert [issue for issue, *_ in hub.edits] == [12]


class Several(Hub):
    """As many comments as there are runs; GitHub's answer about some of them cannot be used, however often it is asked."""

    def __init__(self, runs: int, odd: frozenset[int]) -> None:
        super().__init__(comment(), run("completed", "cancelled"), ())
        self.runs, self.odd, self.asked = runs, odd, 0

    def recent_comments(self, repository: str, since: datetime) -> list[Comment]:
        body = comment().body
        return [self.comment.model_copy(update={"id": n, "body": body.replace("run:77", f"run:{n}")}) for n in range(self.runs)]

    def comments(self, repository: str, issue: int) -> list[Comment]:
        return self.recent_comments(repository, NOW)

    def run(self, repository: str, run: int) -> Run:
        self.asked += 1
        if run in self.odd:
            raise GitHubError("GET: an answer that cannot be used")
        return super().run(repository, 77)


def test_a_run_of_which_github_says_nonsense_keeps_no_answer_from_others() -> None:
    hub = Several(9, frozenset({0, 4}))
    with pytest.raises(GitHubError, match="cannot be used"):
        sweep.sweep(hub, "o/r", 20)
    assert [number for *_, number in hub.edits] == [1, 2, 3, 5, 6, 7, 8]


def test_a_github_that_does_not_answer_is_not_asked_about_each() -> None:
    hub = Several(1_000, frozenset(range(1_000)))
    with pytest.raises(GitHubError):
        sweep.sweep(hub, "o/r", 20)
    assert hub.asked == 10


def test_our_login_in_another_case_is_ours() -> None:
    assert swept(Hub(comment(login=BOT.title()), run("completed", "cancelled"), ()))


def test_other_answers_of_github_are_errors() -> None:
    class Down(Hub):
        def run(self, repository: str, run: int) -> Any:
            raise GitHubError("bad gateway", 502)

    with pytest.raises(GitHubError):
        swept(Down(comment(), None, ()))
