"""`/minify stop` cancels the runs that our comments on the issue name, and no other."""

from __future__ import annotations

from datetime import timedelta

import pytest

from bot.action.gate.comment_event import Conversation
from bot.action.gate.stop import stop
from bot.action.github.resources import ReferencedWorkflow
from bot.action.github.transport import GitHubError
from tests.action.gate.memory import BLOCK, BOT, NOW, REPO, Memory, asked, settings


def waiting(api: Memory, run: int, status: str = "queued") -> None:
    api.add_run(run, None)
    api.runs[run] = api.runs[run].model_copy(update={"status": status, "event": "issue_comment"})


def test_the_run_of_the_request_is_cancelled() -> None:
    api = Memory()
    waiting(api, 77)
    waiting(api, 76, "completed")
    waiting(api, 75)
    Conversation(asked(f"/minify\n{BLOCK}"), settings(), api).outcome()
    api.add(7, BOT, "<!-- torch-minify:comment-1 run:76 -->\nolder")
    api.add(7, "stranger", "<!-- torch-minify:comment-2 run:75 -->\nforged")
    api.add(7, BOT, "of another workflow, quoting <!-- torch-minify:comment-2 run:75 -->")
    assert stop(asked("/minify stop", id=4243), settings(run_id=90), api).status == "stop"
    assert api.cancelled == [77]
    assert api.comments(REPO, 7)[-1].body.endswith("Stopped 1 run.")
    assert (4243, "rocket") in api.reactions


@pytest.mark.parametrize(
    ("stuck", "words"), [((76,), "Stopped 1 run. GitHub did not stop 1 run"), ((75, 76), "Stopped 0 runs. GitHub did")]
)
def test_a_run_that_cannot_be_cancelled_keeps_no_other_running(stuck: tuple[int, ...], words: str) -> None:
    class Stuck(Memory):
        def cancel(self, repository: str, run: int) -> bool:
            if run in stuck:
                raise GitHubError("POST: 500", 500)
            return super().cancel(repository, run)

    api = Stuck()
    for run in (75, 76):
        waiting(api, run)
        api.add(7, BOT, f"<!-- torch-minify:comment-{run} run:{run} -->\nqueued")
    stop(asked("/minify stop", id=4243), settings(run_id=90), api)
    assert api.cancelled == [run for run in (75,) if run not in stuck]
    assert words in api.comments(REPO, 7)[-1].body


def test_a_stop_that_is_sent_again_does_not_stop_itself() -> None:
    api = Memory()
    waiting(api, 90, "in_progress")
    for _ in range(2):
        stop(asked("/minify stop"), settings(run_id=90), api)
    assert api.cancelled == []


def test_nothing_to_stop_is_said() -> None:
    api = Memory()
    stop(asked("/minify stop"), settings(), api)
    assert api.comments(REPO, 7)[-1].body.endswith("Nothing is running for this in this repository.")


@pytest.mark.parametrize(("body", "login", "hours", "said"), [
    ("/minify", "maintainer", 0, True),
    ("Hello\n\n/minify again", "maintainer", 0.5, True),
    ("/minify --nonsense", "maintainer", 0, True),
    ("/minify", "maintainer", 3, False),
    ("/minify", "other[bot]", 0, False), ("/minify", "stranger", 0, False),
    ("> /minify", "maintainer", 0, False),
    ("About /minify", "maintainer", 0, False),
])  # fmt: skip
def test_a_command_that_has_no_answer_yet_is_said_not_to_be_stopped(body: str, login: str, hours: float, said: bool) -> None:
    """No comment of ours names its run so far, so there is nothing to cancel it by."""
    api = Memory()
    event = asked("/minify stop", id=4243)
    asking = api.add(7, login, body)
    api.written[7][0] = asking.model_copy(update={"created_at": NOW - timedelta(hours=hours)})
    api.written[7].append(event.comment)
    stop(event, settings(), api)
    assert ("has no answer yet" in api.comments(REPO, 7)[-1].body) is said
    # once it has one
    api.add(7, BOT, f"<!-- torch-minify:comment-{asking.id} run:75 -->\nqueued")
    waiting(api, 75)
    stop(event, settings(), api)
    assert api.comments(REPO, 7)[-2].body.endswith("Stopped 1 run.")


def test_each_call_of_the_workflow_answers_for_itself() -> None:
    """One run may hold two calls, for cpu and gpu: each has its own comments, and a stop is answered by both."""
    api = Memory()
    asking = api.add(7, "maintainer", "/minify")
    waiting(api, 75)
    for name in ("cpu", "gpu"):
        api.add(7, BOT, f"<!-- torch-minify:{name}-comment-{asking.id} run:75 -->\nqueued")
    for name in ("cpu", "gpu"):
        stop(asked("/minify stop", id=4243), settings(name=name, run_id=90), api)
        # GitHub has ended it by the time that the second comes to it
        api.runs[75] = api.runs[75].model_copy(update={"status": "completed", "conclusion": "cancelled", "updated_at": NOW})
    assert api.cancelled == [75]
    said = [comment.body.splitlines() for comment in api.comments(REPO, 7)[-2:]]
    assert said == [[f"<!-- torch-minify:{name}-comment-4243 run:90 -->", "Stopped 1 run."] for name in ("cpu", "gpu")]


def test_a_run_that_was_cancelled_before_is_not_stopped() -> None:
    api = Memory()
    waiting(api, 75, "completed")
    api.runs[75] = api.runs[75].model_copy(update={"conclusion": "cancelled", "updated_at": NOW - timedelta(hours=1)})
    api.add(7, BOT, "<!-- torch-minify:comment-1 run:75 -->\nqueued")
    stop(asked("/minify stop", id=4243), settings(run_id=90), api)
    assert api.comments(REPO, 7)[-1].body.endswith("Nothing is running for this in this repository.")


def test_a_stranger_stops_nothing() -> None:
    api = Memory(permissions={})
    waiting(api, 75)
    api.add(7, BOT, "<!-- torch-minify:comment-1 run:75 -->\nqueued")
    assert stop(asked("/minify stop"), settings(), api).status == "refused"
    assert api.cancelled == []


def test_only_runs_that_minify_are_cancelled() -> None:
    """Other workflows write under the login of the workflows' token as well, and may name a run of theirs in a marker."""
    api, ours = Memory(), ReferencedWorkflow(path="torch-minify/torch-minify/.github/workflows/minify.yml@refs/tags/v0")
    for run, called in ((90, (ours,)), (75, (ours,)), (76, (ReferencedWorkflow(path="o/r/.github/workflows/deploy.yml@v1"),)), (77, ())):
        waiting(api, run)
        api.runs[run] = api.runs[run].model_copy(update={"referenced_workflows": called, "event": "issue_comment"})
        api.add(7, BOT, f"<!-- torch-minify:comment-{run} run:{run} -->\nqueued")
    assert stop(asked("/minify stop"), settings(run_id=90), api).status == "stop"
    assert api.cancelled == [75]


def test_a_single_job_cancels_what_began_as_it_does() -> None:
    api = Memory()
    for run, event in ((90, "issue_comment"), (75, "issue_comment"), (76, "push"), (77, "workflow_run")):
        waiting(api, run)
        api.runs[run] = api.runs[run].model_copy(update={"event": event})
        api.add(7, BOT, f"<!-- torch-minify:comment-{run} run:{run} -->\nqueued")
    stop(asked("/minify stop"), settings(run_id=90), api)
    assert sorted(api.cancelled) == [75, 77]


def test_no_command_no_stop() -> None:
    api = Memory()
    for event in (asked("/minify"), asked("stop"), asked("/minify stop now"), asked("/minify stop", sender="somebody")):
        assert stop(event, settings(), api).status == "nothing"
    assert api.written == {}
