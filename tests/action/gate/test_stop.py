"""`/minify stop` cancels the runs that our comments on the issue name, and no other."""

from __future__ import annotations

from bot.action.gate.comment_event import Conversation
from bot.action.gate.stop import stop
from tests.action.gate.memory import BLOCK, BOT, REPO, Memory, asked, settings


def waiting(api: Memory, run: int, status: str = "queued") -> None:
    api.add_run(run, None)
    api.runs[run] = api.runs[run].model_copy(update={"status": status})


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


def test_a_stop_that_is_sent_again_does_not_stop_itself() -> None:
    api = Memory()
    waiting(api, 90, "in_progress")
    for _ in range(2):
        stop(asked("/minify stop"), settings(run_id=90), api)
    assert api.cancelled == []


def test_nothing_to_stop_is_said() -> None:
    api = Memory()
    stop(asked("/minify stop"), settings(), api)
    assert api.comments(REPO, 7)[-1].body.endswith("Nothing is running for this.")


def test_a_stranger_stops_nothing() -> None:
    api = Memory(permissions={})
    waiting(api, 75)
    api.add(7, BOT, "<!-- torch-minify:comment-1 run:75 -->\nqueued")
    assert stop(asked("/minify stop"), settings(), api).status == "refused"
    assert api.cancelled == []


def test_no_command_no_stop() -> None:
    api = Memory()
    for event in (asked("/minify"), asked("stop"), asked("/minify stop now"), asked("/minify stop", sender="somebody")):
        assert stop(event, settings(), api).status == "nothing"
    assert api.written == {}
