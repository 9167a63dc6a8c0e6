"""What is said of requests of which nothing came back."""

from __future__ import annotations

from typing import Any

import pytest

from bot.action.github.resources import Comment, WorkflowJob
from bot.action.github.transport import GitHubError
from bot.action.report import lost, sweep
from bot.action.report.render import notes
from tests.action.gate.memory import BOT, NOW, REPO, Memory, settings

# As GitHub's description of the API has them: a job of a called workflow is named after both, the runner adds steps of its own
# (`Set up job`, `Initialize containers`, `Complete job`), and a job that no runner took has neither steps nor a runner's name.
CHECKOUT = "Check out the commit that the gate resolved"


def job(conclusion: str | None, *steps: tuple[str, str], name: str = "minify / minify 0", runner: str | None = "gpu-1") -> WorkflowJob:
    told: dict[str, Any] = {"id": 1, "name": name, "status": "completed", "conclusion": conclusion, "runner_name": runner}
    return WorkflowJob.model_validate(told | {"steps": [{"name": step, "conclusion": how, "number": 1} for step, how in steps]})


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (job("cancelled", runner=None), "never began: no runner took it"),
        # as with `max-parallel: 0`: what is in the workflow's file is only looked at when the job's turn comes
        (job("failure", runner=None), "GitHub could not use an input of the workflow"),
        (job("failure", ("Set up job", "success"), ("Initialize containers", "failure")), "its container was not started"),
        (job("failure", ("Set up job", "failure")), "an action that the job uses could not be fetched"),
        (job("failure", ("Set up job", "success"), (CHECKOUT, "failure"), ("Minimize", "skipped")), "the commit could not be checked out"),
        (job("failure", ("Look for torch-minify", "failure"), ("Minimize", "skipped")), "no torch-minify-action on the PATH"),
        (job("failure", ("Minimize", "success"), ("Hand the result on", "failure")), "the result could not be uploaded"),
        (job("failure", ("Minimize", "success"), ("Hand the result on once more", "failure")), "the result could not be uploaded"),
        (job("failure", ("Minimize", "failure"), ("Hand the result on", "success")), "the step Minimize failed"),
        (job("cancelled", ("Set up job", "success"), ("Minimize", "cancelled")), "it was cancelled"),
        (job("timed_out", ("Minimize", "cancelled")), "it ran out of time"),
        (job("failure", ("Minimize", "cancelled")), "its runner is lost"),
        (job("success", ("Minimize", "success")), "ended well, but no result of it is here: it has expired"),
    ],
)
def test_why_a_job_left_nothing(found: WorkflowJob, words: str) -> None:
    api = Memory()
    api.run_jobs[77] = [job("success", name="minify / gate"), found, job("success", ("Minimize", "success"), name="minify / minify 10")]
    (said,) = lost.reasons(api, settings(), [0, 1]).values()  # of the other nothing is known
    assert words in said
    assert "minify / minify 0" in said


def test_what_is_not_known_is_not_said() -> None:
    api = Memory()
    assert lost.reasons(api, settings(), [0]) == {}
    api.run_jobs[77] = [job("neutral", ("Minimize", "success"))]
    assert lost.reasons(api, settings(), [0]) == {}
    # two calls in one run: which of them is ours?
    cpu, gpu = job("cancelled", name="cpu / minify 0"), job("cancelled", name="gpu / minify 0")
    api.run_jobs[77] = [cpu, gpu]
    assert lost.reasons(api, settings(), [0]) == {}

    api.run_jobs[77] = [each.model_copy(update={"labels": ("self-hosted", "cpu")}) for each in (cpu, gpu)]
    assert lost.reasons(api, settings(runner_label='["cpu", "self-hosted"]'), [0]) == {}

    class Down(Memory):
        def jobs(self, repository: str, run: int) -> Any:
            raise GitHubError("GET: 502", 502)

    assert lost.reasons(Down(), settings(), [0]) == {}


def test_of_two_calls_in_one_run_the_label_tells_which_is_ours() -> None:
    """The labels are those that the job asked for (GitHub's documentation of a run's jobs), in whatever case somebody wrote them."""
    api = Memory()
    cpu, gpu = job("cancelled", runner=None, name="cpu / minify 0"), job("failure", (CHECKOUT, "failure"), name="gpu / minify 0")
    labels = {"cpu": ("ubuntu-latest",), "gpu": ("self-hosted", "GPU")}
    api.run_jobs[77] = [each.model_copy(update={"labels": labels[each.name[:3]]}) for each in (cpu, gpu)]
    assert "never began" in lost.reasons(api, settings(runner_label="ubuntu-latest", name="cpu"), [0])[0]
    assert "could not be checked out" in lost.reasons(api, settings(runner_label='["gpu", "self-hosted"]', name="gpu"), [0])[0]
    assert lost.reasons(api, settings(runner_label="other"), [0]) == {}


def test_comments_from_before_the_run_are_not_asked_for() -> None:
    api, asked_since = Memory(), []
    run = api.add_run(77, None, hours=2)
    api.recent_comments = lambda _, since: asked_since.append(since) or []  # type: ignore[method-assign, func-returns-value]
    assert lost.abandon(api, settings(), "It was lost.") == 0
    del api.runs[77]
    assert lost.abandon(api, settings(), "It was lost.") == 0
    assert asked_since == [run.created_at, NOW - sweep.LOOK_BACK]


def test_the_comments_of_the_run_are_ended_and_no_others() -> None:
    api = Memory()
    queued = "\n\n### Queued\n\nWaiting."
    api.add(7, BOT, f"<!-- torch-minify:comment-1 run:77 -->{queued}")
    api.add(8, BOT, f"<!-- torch-minify:comment-1 run:77 -->{queued}")
    # of the same run, and no answer either
    api.add(8, BOT, f"<!-- torch-minify:comment-5 run:77 -->\n{notes.doctor(['ok      x: y'], None, 'Now.', None, so_far=True)}")
    for body in (
        f"<!-- torch-minify:comment-2 run:76 -->{queued}",
        f"<!-- torch-minify:gpu-comment-1 run:77 -->{queued}",
        "<!-- torch-minify:comment-3 run:77 -->\n\n### Minimized",
    ):
        api.add(7, BOT, body)
    api.add(7, "stranger", f"<!-- torch-minify:comment-4 run:77 -->{queued}")
    before = [comment.body for comment in api.comments(REPO, 7)[1:]]
    assert lost.abandon(api, settings(), "It was lost.") == 3
    assert [comment.body for comment in api.comments(REPO, 7)[1:]] == before
    for number, comment in (("1", api.comments(REPO, 7)[0]), *zip("15", api.comments(REPO, 8), strict=True)):
        assert comment.body.startswith(f"<!-- torch-minify:comment-{number} run:77 -->\n")
        assert "### Ended without a result" in comment.body
        assert "no result was written here. It was lost. What it left" in comment.body
    assert lost.abandon(api, settings(name="gpu"), "It was lost.") == 1


def test_a_comment_that_cannot_be_edited_keeps_no_answer_from_others() -> None:
    class Locked(Memory):
        def upsert_comment(
            self, repository: str, issue: int, marker: str, body: str, comment: int | None = None, hint: int | None = None
        ) -> Comment:
            if issue == 7:
                raise GitHubError("PATCH: 403 Unable to edit: issue is locked", 403)
            return super().upsert_comment(repository, issue, marker, body, comment)

    api = Locked()
    for issue in (7, 8):
        api.add(issue, BOT, f"<!-- torch-minify:comment-{issue} run:77 -->\n\n### Queued\n\nWaiting.")
    with pytest.raises(GitHubError, match="locked"):
        lost.abandon(api, settings(), "It was lost.")
    assert "### Ended without a result" in api.comments(REPO, 8)[0].body
