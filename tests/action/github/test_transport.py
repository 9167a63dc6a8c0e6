"""What passes by itself is waited for; nothing is posted twice; the token stays with GitHub."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from github import GithubException, RateLimitExceededException
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.action.ci.failing_test import Failure
from bot.action.gate.ci_failures import Reader, Subject
from bot.action.github.client import ACTIONS_LOGIN, GitHub
from bot.action.github.resources import PullRequest, User
from bot.action.github.transport import PATIENCE, SECONDARY_WAIT, GitHubError, Transport, wait_for
from tests.action.github.stub import Fault, Stub

REPO, MARK = "octo/models", "<!-- m -->"
SECONDARY = '{"message": "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."}'


class Clock:
    """Sleeps without waiting."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


def client(stub: Stub, clock: Clock, login: str | None = "bot") -> GitHub:
    return GitHub(Transport("secret-token", stub.url, sleep=clock.sleep, now=lambda: 1_000_000.0), login)


@pytest.mark.parametrize(
    ("fault", "waits"),
    [
        (Fault(403, body=SECONDARY), 60.0),
        (Fault(403, {"Retry-After": "7"}), 7.0),
        (Fault(403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1000040"}), 41.0),
        # by GitHub's clock, where this machine's has another time
        (Fault(403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "40", "Date": "Thu, 01 Jan 1970 00:00:10 GMT"}), 31.0),
        (Fault(403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1000040", "Date": "today"}), 41.0),
        (Fault(429), 60.0),
        (Fault(403, {"Retry-After": "Fri, 27 Nov 2026 23:59:00 GMT"}), 60.0),
        (Fault(503, {"Retry-After": "Thu, 01 Jan 1970 00:02:10 GMT", "Date": "Thu, 01 Jan 1970 00:00:10 GMT"}), 120.0),
        (Fault(429, {"Retry-After": "9"}), 9.0),
        (Fault(500), 1.0),
        (Fault(502, body="<html>Bad gateway</html>"), 1.0),
        (Fault(503, {"Retry-After": "soon"}), 1.0),
        (Fault(504), 1.0),
        (Fault(0), 1.0),
        (Fault(200, {"Content-Type": "application/json"}, "[" * 100_000), 1.0),
        (Fault(200, {"Content-Encoding": "gzip"}, "not packed"), 1.0),
    ],
    ids=[
        "secondary",
        "403 after",
        "primary",
        "primary by its clock",
        "primary odd clock",
        "429",
        "403 date",
        "503 date",
        "429 after",
        "500",
        "502 html",
        "503 words",
        "504",
        "reset",
        "deep",
        "not packed",
    ],
)
@pytest.mark.parametrize("verb", ["GET", "POST", "PATCH"])
@pytest.mark.parametrize("late", [False, True])
def test_one_fault_is_survived_and_there_is_one_comment(stub: Stub, fault: Fault, waits: float, verb: str, late: bool) -> None:
    clock = Clock()
    if verb == "PATCH":
        client(stub, clock).upsert_comment(REPO, 7, MARK, "old")
    stub.faults = [Fault(fault.status, fault.headers, fault.body, late, verb)]
    client(stub, clock).upsert_comment(REPO, 7, MARK, "new")
    assert [comment["body"] for comment in stub.comments] == [f"{MARK}\nnew"]
    assert clock.slept == [waits]
    assert stub.faults == []


faults = st.lists(
    st.builds(
        lambda kind, late, verb: Fault(kind[0], dict(kind[1]), kind[2], late, verb),
        st.sampled_from(
            [(403, (), SECONDARY), (429, (("Retry-After", "1"),), "{}"), (502, (), "<html>"), (0, (), ""), (403, (), "{}"), (422, (), "{}")]
        ),
        st.booleans(),
        st.sampled_from(["GET", "POST", "PATCH", None]),
    ),
    max_size=12,
)


@settings(max_examples=30)
@given(faults)
def test_whatever_fails_and_however_often_it_is_tried_there_is_one_comment(planted: list[Fault]) -> None:
    with Stub() as stub:
        stub.faults = planted
        for text in ("one", "two", "three"):  # three jobs, each with a client of its own
            with contextlib.suppress(GitHubError):
                client(stub, Clock()).upsert_comment(REPO, 7, MARK, text)
                assert [comment["body"] for comment in stub.comments] == [f"{MARK}\n{text}"]
        assert len(stub.comments) <= 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 422])
def test_what_does_not_pass_is_an_error_at_once(stub: Stub, status: int) -> None:
    clock = Clock()
    stub.faults = [Fault(status, body='{"message": "Resource not accessible"}')]
    with pytest.raises(GitHubError, match=f"{status} Resource not accessible") as raised:
        client(stub, clock).comments(REPO, 7)
    assert (raised.value.status, clock.slept) == (status, [])


def test_it_gives_up_in_the_end_and_waits_longer_each_time(stub: Stub) -> None:
    clock = Clock()
    stub.faults = [Fault(502) for _ in range(20)]
    with pytest.raises(GitHubError, match="502"):
        client(stub, clock).comments(REPO, 7)
    assert clock.slept == [1.0, 2.0, 4.0, 8.0, 16.0]
    stub.faults = [Fault(0) for _ in range(20)]
    with pytest.raises(GitHubError) as raised:
        client(stub, clock).upsert_comment(REPO, 7, MARK, "x")
    assert raised.value.status is None


@given(
    st.dictionaries(st.sampled_from(["retry-after", "x-ratelimit-remaining", "x-ratelimit-reset"]), st.text(max_size=20)),
    st.integers(1, 20),
)
def test_any_header_leads_to_a_wait(headers: dict[str, str], attempt: int) -> None:
    for error in (GithubException(403, {}, headers, None), RateLimitExceededException(403, {}, headers, None), OSError(), None):
        assert wait_for(error, attempt, 0.0) >= 0


def test_the_secondary_limit_doubles_and_all_waits_together_are_bounded(stub: Stub) -> None:
    clock = Clock()
    github = client(stub, clock)
    stub.faults = [Fault(403, body=SECONDARY) for _ in range(20)]
    with pytest.raises(GitHubError, match="403"):
        github.comments(REPO, 7)
    assert clock.slept == [SECONDARY_WAIT, 2 * SECONDARY_WAIT, 4 * SECONDARY_WAIT]
    with pytest.raises(GitHubError):
        github.comments(REPO, 8)
    assert sum(clock.slept) <= PATIENCE
    stub.faults = [Fault(403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1003600"})]
    with pytest.raises(GitHubError):
        github.comments(REPO, 9)
    assert sum(clock.slept) <= PATIENCE


# comments


def test_a_comment_is_found_by_marker_and_login(stub: Stub) -> None:
    github = client(stub, Clock())
    for login, body in (("stranger", f"{MARK}\nforged"), ("bot", f"quotes {MARK}"), ("bot", f"{MARK}\nours")):
        stub.comments.append(
            {"id": 1 + len(stub.comments), "body": body, "user": {"login": login, "id": 1}, "created_at": "2026-11-03T12:00:00Z"}
        )
    assert github.upsert_comment(REPO, 7, MARK, "new").id == 3
    assert [comment["body"] for comment in stub.comments] == [f"{MARK}\nforged", f"quotes {MARK}", f"{MARK}\nnew"]


def test_a_comment_that_is_said_to_be_gone_is_written_again(stub: Stub) -> None:
    """GitHub has two statuses for what was deleted: 404 and 410."""
    stub.faults = [Fault(410, body='{"message": "This comment was deleted"}', verb="PATCH")] * 2
    client(stub, Clock()).upsert_comment(REPO, 7, MARK, "new", 99)
    assert [comment["body"] for comment in stub.comments] == [f"{MARK}\nnew"]


def test_a_known_comment_is_edited_without_a_search_and_a_deleted_one_written_again(stub: Stub) -> None:
    github = client(stub, Clock())
    first = github.upsert_comment(REPO, 7, MARK, "one")
    stub.seen.clear()
    github.upsert_comment(REPO, 7, MARK, f"{MARK}\ntwo", first.id)
    assert [verb for verb, _, _ in stub.seen] == ["PATCH"]
    stub.comments.clear()
    github.upsert_comment(REPO, 7, MARK, "three", first.id)
    assert [comment["body"] for comment in stub.comments] == [f"{MARK}\nthree"]


@pytest.mark.parametrize("known", ["by its id", "by a hint", "by the list"])
@pytest.mark.parametrize("lost", [False, True], ids=["posted", "posted, and the answer is lost"])
def test_a_deleted_comment_that_the_list_still_shows_is_written_again_once(stub: Stub, known: str, lost: bool) -> None:
    deleted = {"id": 90, "body": f"{MARK}\none", "user": {"login": "bot", "id": 1}, "created_at": "2026-11-03T12:00:00Z"}
    stub.faults = [Fault(502, late=True, verb="POST")] if lost else []
    stub.deleted = [deleted]
    given = {"by its id": {"comment": 90}, "by a hint": {"hint": 90}, "by the list": {}}[known]
    written = client(stub, Clock()).upsert_comment(REPO, 7, MARK, "two", **given)
    assert [comment["body"] for comment in stub.comments] == [f"{MARK}\ntwo"]
    assert written.id == stub.comments[0]["id"]
    # the next finds the new one, though the list comes to it after the old one
    client(stub, Clock()).upsert_comment(REPO, 7, MARK, "three")
    assert [comment["body"] for comment in stub.comments] == [f"{MARK}\nthree"]


def test_a_comment_that_is_called_missing_once_is_not_written_twice(stub: Stub) -> None:
    client(stub, Clock()).upsert_comment(REPO, 7, MARK, "one")
    stub.faults = [Fault(404, verb="PATCH")]
    client(stub, Clock()).upsert_comment(REPO, 7, MARK, "two")
    assert [comment["body"] for comment in stub.comments] == [f"{MARK}\ntwo"]


def test_comments_that_are_deleted_at_once_are_not_written_for_ever(stub: Stub) -> None:
    made = {"id": 90, "body": f"{MARK}\nanother", "user": {"login": "bot", "id": 1}, "created_at": "2026-11-03T12:00:00Z"}
    stub.answers["POST", f"/repos/{REPO}/issues/7/comments"] = 201, made
    with pytest.raises(GitHubError):
        client(stub, Clock()).upsert_comment(REPO, 7, MARK, "two")
    assert [verb for verb, _, _ in stub.seen].count("POST") < 10


@pytest.mark.parametrize(
    ("held", "posts"),
    [
        ({}, 0),
        ({"user": {"login": "stranger", "id": 2}}, 1),
        ({"body": "quotes <!-- m -->"}, 1),
        ({"issue_url": f"https://api.github.com/repos/{REPO}/issues/70"}, 1),
        (None, 1),
    ],
    ids=["ours", "a stranger's", "of another event", "on another issue", "deleted"],
)
def test_a_hint_is_believed_where_it_holds_though_the_list_lags_behind(stub: Stub, held: dict[str, object] | None, posts: int) -> None:
    first = client(stub, Clock()).upsert_comment(REPO, 7, MARK, "one")
    at = {"issue_url": f"https://api.github.com/repos/{REPO}/issues/7"}
    stub.answers["GET", f"/repos/{REPO}/issues/7/comments"] = 200, []
    there = (404, {"message": "Not Found"}) if held is None else (200, stub.comments[0] | at | held)
    stub.answers["GET", f"/repos/{REPO}/issues/comments/{first.id}"] = there
    stub.seen.clear()
    client(stub, Clock()).upsert_comment(REPO, 7, MARK, "two", hint=first.id)
    assert [verb for verb, _, _ in stub.seen].count("POST") == posts
    assert stub.comments[posts]["body"] == f"{MARK}\ntwo"


def test_what_we_wrote_says_who_we_are_where_the_token_may_not_ask(stub: Stub) -> None:
    """As that of an App, where the input that names it was forgotten."""
    stub.answers["GET", "/user"] = 403, {"message": "Resource not accessible by integration"}
    github = client(stub, Clock(), None)
    for text in ("one", "two"):
        github.upsert_comment(REPO, 7, MARK, text)
    assert [comment["body"] for comment in stub.comments] == [f"{MARK}\ntwo"]


@pytest.mark.parametrize(
    "fault", [Fault(403, {"Retry-After": "60"}), Fault(429), Fault(502), Fault(0)], ids=["limit", "429", "502", "reset"]
)
def test_what_is_asked_at_once_waits_for_nothing(stub: Stub, fault: Fault) -> None:
    clock = Clock()
    github = client(stub, clock).at_once()
    stub.faults = [fault]
    with pytest.raises(GitHubError):
        github.upsert_comment(REPO, 7, MARK, "one")
    assert (len(stub.seen), clock.slept) == (1, [])
    github.upsert_comment(REPO, 7, MARK, "two")
    assert [comment["body"] for comment in stub.comments] == [f"{MARK}\ntwo"]


def test_our_login_in_another_case_is_ours(stub: Stub) -> None:
    """GitHub takes logins without regard to case, and so may whoever wrote the input `bot-login`."""
    client(stub, Clock()).upsert_comment(REPO, 7, MARK, "one")
    client(stub, Clock(), "BOT").upsert_comment(REPO, 7, MARK, "two")
    assert [comment["body"] for comment in stub.comments] == [f"{MARK}\ntwo"]


def test_an_app_s_name_for_its_login_is_ours(stub: Stub) -> None:
    """GitHub shows it as `name[bot]`; nobody else can be called so."""
    client(stub, Clock(), "bot[bot]").upsert_comment(REPO, 7, MARK, "by the gate")
    stub.comments[0]["user"]["login"] = "bot[bot]"
    for text in ("while it works", "by the report"):
        client(stub, Clock()).upsert_comment(REPO, 7, MARK, text)
    assert [comment["body"] for comment in stub.comments] == [f"{MARK}\nby the report"]
    stub.comments[0]["user"]["login"] = "bot"  # a person, to a client of the App
    client(stub, Clock(), "bot[bot]").upsert_comment(REPO, 7, MARK, "another")
    assert len(stub.comments) == 2


def test_who_we_are(stub: Stub) -> None:
    stub.answers["GET", "/user"] = 200, {"login": "machine", "id": 3}
    assert client(stub, Clock(), None).login() == "machine"
    stub.answers["GET", "/user"] = 403, {"message": "Resource not accessible by integration"}
    assert client(stub, Clock(), None).login() == ACTIONS_LOGIN


def test_an_app_s_jobs_find_each_other_s_comments(stub: Stub) -> None:
    """Its token may not ask for its owner but by GraphQL (renovatebot/renovate, lib/modules/platform/github/user.ts)."""
    stub.answers["GET", "/user"] = 403, {"message": "Resource not accessible by integration"}
    stub.answers["POST", "/graphql"] = 200, {"data": {"viewer": {"login": "bot"}}}
    for text in ("by the gate", "by the report"):
        client(stub, Clock(), None).upsert_comment(REPO, 7, MARK, text)
    assert [comment["body"] for comment in stub.comments] == [f"{MARK}\nby the report"]


@pytest.mark.parametrize(
    "answer", [{"errors": [{"message": "x"}], "data": None}, {"data": {"viewer": None}}, {"errors": []}, {"data": []}], ids=str
)
def test_where_no_api_says_who_we_are_a_workflow_s_token_is_taken_for_granted(stub: Stub, answer: dict[str, object]) -> None:
    stub.answers["GET", "/user"] = 403, {"message": "Resource not accessible by integration"}
    stub.answers["POST", "/graphql"] = 200, answer
    assert client(stub, Clock(), None).login() == ACTIONS_LOGIN


def test_pages(stub: Stub) -> None:
    stub.comments = [{"id": n, "body": "x", "created_at": "2026-11-03T12:00:00Z", "user": None} for n in range(100)]
    found = client(stub, Clock()).comments(REPO, 7)
    # the stub answers every page with the same hundred: the client stops at its bound
    assert len(found) == 5000
    assert found[0].user.login == "ghost"
    assert [path.partition("page=")[2] for _, path, _ in stub.seen[:1]]


def test_an_answer_of_another_form_is_an_error_of_ours(stub: Stub) -> None:
    stub.answers["GET", f"/repos/{REPO}/issues/7/comments"] = 200, [{"id": "x"}]
    with pytest.raises(GitHubError, match="no Comment"):
        client(stub, Clock()).comments(REPO, 7)


def test_the_jobs_of_a_run_may_be_thousands(stub: Stub) -> None:
    """As where a workflow with hundreds of jobs ran several times."""
    jobs = [{"id": number, "name": "t"} for number in range(1_250)]

    def work(verb: str, path: str, body: bytes) -> tuple[int, Any]:
        page = int(parse_qs(urlsplit(stub.seen[-1][1]).query)["page"][0])
        return 200, {"total_count": len(jobs), "jobs": jobs[100 * (page - 1) : 100 * page]}

    stub.work = work  # type: ignore[method-assign]
    assert len(client(stub, Clock()).jobs(REPO, 7, every=True)) == 1_250


def test_names_cannot_leave_their_place_in_the_path(stub: Stub) -> None:
    client(stub, Clock()).permission("octo/mo/../../x", User(login="../../user?x=#", id=5))
    assert stub.seen[0][1] == "/repos/octo/mo%2F..%2F..%2Fx/collaborators/..%2F..%2Fuser%3Fx%3D%23/permission"


@pytest.mark.parametrize(
    ("held", "renamed", "says"),
    [
        ({"user": {"login": "somebody", "id": 5}}, None, "write"),
        ({}, None, "none"),  # `user` may be null, by GitHub's description of its API
        ({}, "Somebody", "write"),
        ({"user": None}, "other", "admin"),
        ({"user": {"login": "somebody", "id": 6}}, None, "none"),
        ({"user": {"login": "somebody", "id": 6}}, "other", "admin"),
        (None, "other", "admin"),
        (None, "Somebody", "none"),
        (None, None, "none"),
    ],
    ids=["theirs", "nobody's", "by its name", "nobody's, and renamed", "another's", "renamed, and another's", "renamed", "gone", "unknown"],
)
def test_a_permission_is_that_of_the_account_and_not_of_its_name(stub: Stub, held: Any, renamed: str | None, says: str) -> None:
    """Accounts are renamed, and anybody may take a name that is free then (GitHub's documentation of changing your username)."""
    at = f"/repos/{REPO}/collaborators"
    if held is not None:
        stub.answers["GET", f"{at}/somebody/permission"] = (200, {"permission": "write", **held})
    stub.answers["GET", f"{at}/other/permission"] = (200, {"permission": "admin", "user": {"login": "other", "id": 5}})
    if renamed is not None:
        stub.answers["GET", "/user/5"] = (200, {"login": renamed, "id": 5})
    assert client(stub, Clock()).permission(REPO, User(login="somebody", id=5)) == says


def test_a_name_that_is_told_of_another_account_is_not_believed(stub: Stub) -> None:
    stub.answers["GET", f"/repos/{REPO}/collaborators/somebody/permission"] = (200, {"permission": "write", "user": None})
    stub.answers["GET", "/user/5"] = (200, {"login": "somebody", "id": 6})
    assert client(stub, Clock()).permission(REPO, User(login="somebody", id=5)) == "none"


def test_who_was_renamed_is_not_found_where_the_token_may_not_look(stub: Stub) -> None:
    stub.answers["GET", "/user/5"] = (403, {"message": "Resource not accessible by integration"})
    assert client(stub, Clock()).permission(REPO, User(login="somebody", id=5)) == "none"


def test_the_pull_request_of_a_fork_is_found_by_its_branch(stub: Stub) -> None:
    def pull(number: int, sha: str, state: str = "open") -> dict[str, object]:
        repo = {"full_name": "contributor/models"}
        return {"number": number, "state": state, "head": {"ref": "topic", "sha": sha, "repo": repo}, "base": {"ref": "main", "sha": "b"}}

    # the filters are GitHub's; an older push of the branch, or a closed one, is told apart here
    stub.answers["GET", f"/repos/{REPO}/pulls"] = 200, [pull(1, "old"), pull(2, "a", "closed"), pull(3, "a")]
    found = client(stub, Clock()).pull_requests_from(REPO, "contributor", "topic", "a")
    assert [each.number for each in found] == [3]
    assert {"state=open", "head=contributor%3Atopic"} < set(stub.seen[0][1].partition("?")[2].split("&"))


@pytest.mark.parametrize(
    ("answer", "stands"),
    [
        *(((200, {"status": said}), said in ("ahead", "identical")) for said in ("ahead", "identical", "diverged", "behind", None)),
        ((404, {"message": "Not Found"}), False),
    ],
)
def test_what_a_commit_was_made_upon(stub: Stub, answer: tuple[int, object], stands: bool) -> None:
    stub.answers["GET", f"/repos/{REPO}/commits/{'a' * 40}"] = 200, {"sha": "a" * 40, "parents": [{"sha": "b" * 40}, {"sha": "c" * 40}]}
    stub.answers["GET", f"/repos/{REPO}/compare/{'b' * 40}...release%2F2"] = answer
    assert client(stub, Clock()).stands_on(REPO, "a" * 40, "release/2") is stands


@pytest.mark.parametrize("tree", [None, "x", [None, "x", {"type": "blob"}], []])
def test_the_files_at_a_commit(stub: Stub, tree: object) -> None:
    at = f"/repos/{REPO}/git/trees/{'a' * 40}"
    stub.answers["GET", at] = 200, {"tree": [{"path": "a", "type": "tree"}, {"path": "a/b.py", "type": "blob"}], "truncated": False}
    assert client(stub, Clock()).files_at(REPO, "a" * 40) == ["a/b.py"]
    stub.answers["GET", at] = 200, {"tree": tree}
    assert client(stub, Clock()).files_at(REPO, "a" * 40) == []


def test_the_run_to_compare_with_is_not_lost_among_others(stub: Stub) -> None:
    def run(number: int, event: str, day: int) -> dict[str, object]:
        made = f"2026-11-{day:02}T12:00:00Z"
        return {"id": number, "event": event, "head_sha": "a" * 40, "created_at": made, "status": "completed", "conclusion": "success"}

    asked_for: list[dict[str, list[str]]] = []
    # pull requests from forks' branches called main, and what ran after the run that is looked at
    there = [*(run(n, "push", 29) for n in range(200, 320)), *(run(n, "pull_request", 20) for n in range(120)), run(7, "push", 10)]

    def work(verb: str, path: str, body: bytes) -> tuple[int, object]:
        query = parse_qs(urlsplit(stub.seen[-1][1]).query)
        asked_for.append(query)
        # GitHub's documentation of "List workflow runs for a workflow": `event`, `created` as in a search, newest first
        wanted = [one for one in there if one["event"] in query.get("event", [one["event"]])]
        wanted = [one for one in wanted if "created" not in query or str(one["created_at"]) < query["created"][0].removeprefix("<")]
        return 200, {"workflow_runs": wanted[:100]}

    stub.work = work  # type: ignore[method-assign]
    found = client(stub, Clock()).last_run(REPO, 3, "main", datetime(2026, 11, 25, tzinfo=timezone.utc))
    assert found is not None
    assert found.id == 7
    assert all(query["branch"] == ["main"] for query in asked_for)


def test_a_workflow_that_the_repository_does_not_have_has_no_run_to_compare_with(stub: Stub) -> None:
    # where a rule of the organization requires it, it lies in another repository (GitHub's documentation of rulesets)
    when = datetime(2026, 11, 25, tzinfo=timezone.utc)
    stub.answers["GET", f"/repos/{REPO}/actions/workflows/3/runs"] = 404, {"message": "Not Found"}
    assert client(stub, Clock()).last_run(REPO, 3, "main", when) is None
    stub.answers["GET", f"/repos/{REPO}/actions/workflows/3/runs"] = 403, {"message": "Resource not accessible by integration"}
    with pytest.raises(GitHubError):
        client(stub, Clock()).last_run(REPO, 3, "main", when)


def test_of_files_that_are_listed_in_part_none_is_guessed(stub: Stub) -> None:
    # GitHub's documentation of trees: 100,000 entries, 7 MB
    stub.answers["GET", f"/repos/{REPO}/git/trees/{'a' * 40}"] = 200, {"tree": [{"path": "x/a/b.py", "type": "blob"}], "truncated": True}
    subject = Subject(1, 1, datetime.now(timezone.utc), None, source=REPO, commit="a" * 40)
    failure = Failure("test_c", "a/b.py::test_c", "")
    assert Reader(client(stub, Clock()), REPO, "*").located([failure], subject) == (failure,)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_repository_that_was_renamed_is_asked_the_same(stub: Stub, status: int) -> None:
    """GitHub's documentation of redirects: the request is to be repeated as it was, its query and its body too."""
    api = client(stub, Clock())
    stub.faults = [Fault(status, {"Location": f"{stub.url}/repositories/9/issues/7/comments?per_page=100&page=1"})]
    assert api.comments(REPO, 7) == []
    asked = urlsplit(stub.seen[1][1])
    assert (asked.path, parse_qs(asked.query)) == ("/repositories/9/issues/7/comments", {"per_page": ["100"], "page": ["1"]})
    stub.faults = [Fault(status, {"Location": f"{stub.url}/repositories/9/issues/7/comments"}, verb="POST")]
    made = api.upsert_comment(REPO, 7, MARK, "one")
    stub.faults = [Fault(status, {"Location": f"{stub.url}/repositories/9/issues/comments/{made.id}"}, verb="PATCH")]
    api.upsert_comment(REPO, 7, MARK, "two")
    assert [comment["body"] for comment in stub.comments] == [f"{MARK}\ntwo"]
    assert stub.faults == []
    # what only moves is not done: no run was cancelled
    stub.faults = [Fault(status, {"Location": f"{stub.url}/repositories/9/actions/runs/5/cancel"}), Fault(404)]
    with pytest.raises(GitHubError, match="404"):
        api.cancel(REPO, 5)


def test_a_redirect_that_leads_nowhere_or_to_others_is_an_error(stub: Stub) -> None:
    with Stub() as elsewhere:
        loop = f"{stub.url}/repos/{REPO}/actions/runs/5/cancel"
        for location in ({}, {"Location": f"{elsewhere.url}/x"}, {"Location": "https://127.0.0.1:1/x"}, {"Location": loop}):
            for status in (301, 307):
                stub.faults = [Fault(status, location) for _ in range(100)]
                with pytest.raises(GitHubError, match="moved"):
                    client(stub, Clock()).cancel(REPO, 5)
                with pytest.raises(GitHubError, match="moved"):
                    client(stub, Clock()).comments(REPO, 5)
                with pytest.raises(GitHubError, match="moved"):
                    client(stub, Clock()).upsert_comment(REPO, 5, MARK, "x", 3)
        assert elsewhere.seen == []


def test_a_short_page_is_not_the_last_where_github_says_that_another_follows(stub: Stub) -> None:
    def comment(number: int) -> str:
        return f'[{{"id": {number}, "body": "x", "created_at": "2026-11-03T12:00:00Z"}}]'

    following = {"Content-Type": "application/json", "Link": f'<{stub.url}/x?page=2>; rel="next", <{stub.url}/x?page=9>; rel="last"'}
    stub.faults = [Fault(200, following, comment(1)), Fault(200, following, "[]"), Fault(200, {}, comment(2))]
    assert [each.id for each in client(stub, Clock()).comments(REPO, 7)] == [1, 2]
    # one that always promises more is left at the bound
    stub.faults = [Fault(200, following, comment(1)) for _ in range(60)]
    assert len(client(stub, Clock()).comments(REPO, 7)) == 50


# downloads


def test_a_file_of_a_repository_that_was_renamed_is_asked_for_with_the_token(stub: Stub) -> None:
    with Stub() as elsewhere:
        elsewhere.answers["GET", "/blob"] = 200, b"log"
        stub.answers["GET", f"/repos/{REPO}/actions/jobs/5/logs"] = 301, f"{stub.url}/repositories/9/actions/jobs/5/logs"
        stub.answers["GET", "/repositories/9/actions/jobs/5/logs"] = 302, f"{elsewhere.url}/blob?sig=1"
        assert client(stub, Clock()).job_log(REPO, 5) == "log"
        assert [headers["Authorization"] for _, _, headers in stub.seen] == ["Bearer secret-token"] * 2
        assert "Authorization" not in elsewhere.seen[0][2]
        # nor back: what storage answers is no word of the API
        elsewhere.answers["GET", "/blob"] = 302, f"{stub.url}/repos/{REPO}/actions/jobs/6/logs"
        stub.seen.clear()
        with pytest.raises(GitHubError, match="404"):
            client(stub, Clock()).job_log(REPO, 5)
        assert "Authorization" not in stub.seen[-1][2]
    stub.answers["GET", f"/repos/{REPO}/actions/jobs/7/logs"] = 302, f"{stub.url}/repos/{REPO}/actions/jobs/7/logs"
    with pytest.raises(GitHubError, match="moved"):
        client(stub, Clock()).job_log(REPO, 7)


def test_the_token_does_not_follow_a_redirect(stub: Stub) -> None:
    with Stub() as elsewhere:
        elsewhere.answers["GET", "/blob"] = 200, b"\xff log"
        stub.answers["GET", f"/repos/{REPO}/actions/jobs/5/logs"] = 302, f"{elsewhere.url}/blob?sig=1"
        assert client(stub, Clock()).job_log(REPO, 5) == "\ufffd log"
        assert stub.seen[0][2]["Authorization"] == "Bearer secret-token"
        assert "Authorization" not in elsewhere.seen[0][2]


def test_of_a_long_log_the_end_is_kept(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.action.github.client.LOG_LIMIT", 1000)
    stub.answers["GET", f"/repos/{REPO}/actions/jobs/5/logs"] = 200, b"a" * 500_000 + b"the end"
    assert client(stub, Clock()).job_log(REPO, 5) == "a" * 993 + "the end"


def test_a_download_is_tried_again(stub: Stub) -> None:
    clock = Clock()
    stub.answers["GET", f"/repos/{REPO}/actions/jobs/5/logs"] = 200, b"log"
    stub.faults = [Fault(0), Fault(502, body="<html>"), Fault(403, body=SECONDARY)]
    assert client(stub, clock).job_log(REPO, 5) == "log"
    assert clock.slept == [1.0, 2.0, 240.0]


@pytest.mark.parametrize(
    "fault", [*map(Fault, (202, 204, 206, 300, 301, 304)), Fault(200, {"Content-Type": "text/html; charset=utf-8"}, "<html>Sign in")]
)
def test_what_is_no_file_is_not_taken_for_an_empty_one(stub: Stub, fault: Fault) -> None:
    stub.answers["GET", f"/repos/{REPO}/actions/jobs/5/logs"] = 200, b"log"
    stub.faults = [fault]
    assert client(stub, Clock()).job_log(REPO, 5) == "log"
    stub.faults = [fault] * 9
    with pytest.raises(GitHubError, match="cannot be used"):
        client(stub, Clock()).job_log(REPO, 5)


@pytest.mark.parametrize("body", ["<html>", "[]", '{"message": 5}', '{"message": "no permission"}'])
def test_a_download_that_is_refused_is_an_error_at_once(stub: Stub, body: str) -> None:
    clock = Clock()
    stub.faults = [Fault(403, body=body)]
    with pytest.raises(GitHubError, match=r"403 (?:Forbidden|no permission)"):
        client(stub, clock).job_log(REPO, 5)
    assert clock.slept == []


GARBLED = {
    "nothing": "",
    "null": "null",
    "half": '{"id": 1, "bo',
    "half a list": '[{"id": 1}, {"id"',
    "a number": "7",
    "a page": "<html></html>",
}


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("verb", ["GET", "POST", "PATCH"])
@pytest.mark.parametrize("body", GARBLED.values(), ids=list(GARBLED))
def test_an_answer_that_is_none_is_asked_for_again(stub: Stub, body: str, verb: str, late: bool) -> None:
    clock = Clock()
    if verb == "PATCH":
        client(stub, clock).upsert_comment(REPO, 7, MARK, "old")
    stub.faults = [Fault(200, {}, body, late, verb)]
    client(stub, clock).upsert_comment(REPO, 7, MARK, "new")
    assert [comment["body"] for comment in stub.comments] == [f"{MARK}\nnew"]
    assert stub.faults == []


@pytest.mark.parametrize(
    "body", [*GARBLED.values(), "[]", "{}", "[null]", "[[]]", '{"artifacts": null}', '{"artifacts": [null]}', '{"jobs": 5}']
)
def test_whatever_is_answered_is_an_answer_or_an_error_of_github(stub: Stub, body: str) -> None:
    """Every call of the client, to a GitHub that answers 200 and nonsense for ever."""
    head = {"ref": "t", "sha": "a" * 40, "repo": {"full_name": REPO}}
    pull = PullRequest.model_validate({"number": 7, "head": head, "base": {"ref": "m", "sha": "b"}})
    calls: list[Callable[[GitHub], object]] = [
        lambda api: api.login(),
        lambda api: api.comments(REPO, 7),
        lambda api: api.recent_comments(REPO, datetime.now(timezone.utc)),
        lambda api: api.upsert_comment(REPO, 7, MARK, "x"),
        lambda api: api.upsert_comment(REPO, 7, MARK, "x", 5),
        lambda api: api.react(REPO, 5, "eyes"),
        lambda api: api.delete_comment(REPO, 5),
        lambda api: api.open_issue(REPO, MARK, "title", "body"),
        lambda api: api.put_file(REPO, "branch", "path", b"x", "message"),
        lambda api: api.put_asset(REPO, "tag", "name", b"x"),
        lambda api: api.permission(REPO, User(login="somebody", id=5)),
        lambda api: api.pull_request(REPO, 7),
        lambda api: api.pull_requests_of(REPO, "a" * 40),
        lambda api: api.commit(REPO, "main"),
        lambda api: api.pushed_at(REPO, pull),
        lambda api: api.environment_protected(REPO, "forks"),
        lambda api: api.run(REPO, 7),
        lambda api: api.runs_of(REPO, "a" * 40),
        lambda api: api.last_run(REPO, 7, "main", datetime.now(timezone.utc)),
        lambda api: api.jobs(REPO, 7),
        lambda api: api.artifacts(REPO, 7),
        lambda api: api.cancel(REPO, 7),
    ]
    for call in calls:
        stub.faults = [Fault(200, {}, body) for _ in range(60)]
        # any other exception would leave the job without its comment and without the file for it
        with contextlib.suppress(GitHubError):
            call(client(stub, Clock(), None))


def test_an_attached_file_is_fetched_without_our_token_and_not_beyond_its_limit(stub: Stub) -> None:
    stub.answers["GET", "/user-attachments/files/1/a.py"] = 302, f"{stub.url}/stored"
    stub.answers["GET", "/stored"] = 200, b"import torch\n"
    stub.answers["GET", "/large"] = 200, b"x" * 200_000
    api = client(stub, Clock())
    assert api.attachment(f"{stub.url}/user-attachments/files/1/a.py", 100) == b"import torch\n"
    assert api.attachment(f"{stub.url}/large", 1000) is None
    assert not any("secret" in value for _, _, headers in stub.seen for value in headers.values())
    with pytest.raises(GitHubError):
        api.attachment(f"{stub.url}/gone", 100)


def test_a_gist_without_what_was_cut_off(stub: Stub) -> None:
    files = {
        "a.py": {"filename": "a.py", "content": "x", "truncated": False},
        "b.py": {"filename": "b.py", "content": "y", "truncated": True},
        "c.py": None,  # as GitHub's description of its API allows it
    }
    stub.answers["GET", "/gists/abc"] = 200, {"files": files, "updated_at": "2026-11-03T10:00:00Z"}
    gist = client(stub, Clock()).gist("abc")
    assert (gist.texts, gist.updated_at.isoformat()) == ({"a.py": "x"}, "2026-11-03T10:00:00+00:00")
    stub.answers["GET", f"/gists/abc/{'a' * 40}"] = 200, {"files": {}, "updated_at": "2026-11-03T10:00:00Z"}
    assert client(stub, Clock()).gist("abc", "a" * 40).texts == {}
    for odd in ({"files": {"a.py": {}}, "updated_at": "2026-11-03T10:00:00Z"}, {"files": {}}, {"files": None}):
        stub.answers["GET", "/gists/odd"] = 200, odd
        with pytest.raises(GitHubError, match="lacks"):
            client(stub, Clock()).gist("odd")


def test_a_commit_that_is_gone_has_no_pull_request(stub: Stub) -> None:
    """GitHub answers 422, "No commit found for SHA", where it does not have the commit, and 404 where it does not have the repository."""
    at = f"/repos/{REPO}/commits/{'a' * 40}/pulls"
    stub.answers["GET", at] = 422, {"message": f"No commit found for SHA: {'a' * 40}"}
    assert client(stub, Clock()).pull_requests_of(REPO, "a" * 40) == []
    stub.answers["GET", at] = 404, {"message": "Not Found"}
    with pytest.raises(GitHubError):
        client(stub, Clock()).pull_requests_of(REPO, "a" * 40)


def test_the_newest_comments_of_a_busy_repository_are_among_the_recent_ones(stub: Stub) -> None:
    """GitHub's documentation of "List issue comments for a repository": `direction` is `asc` or `desc`, and ignored without `sort`."""
    count = 30_000

    def work(verb: str, path: str, body: bytes) -> tuple[int, object]:
        asked = parse_qs(urlsplit(stub.seen[-1][1]).query)
        size, page = int(asked["per_page"][0]), int(asked["page"][0])
        numbers = range(count, 0, -1) if "sort" in asked and asked["direction"] == ["desc"] else range(1, count + 1)
        shown = numbers[(page - 1) * size : page * size]
        return 200, [{"id": number, "body": "x", "created_at": "2026-11-03T10:00:00Z", "user": None} for number in shown]

    stub.work = work  # type: ignore[method-assign]
    found = [comment.id for comment in client(stub, Clock()).recent_comments(REPO, datetime.now(timezone.utc))]
    # as many as a week has of the largest repositories, by a hundred requests of the thousand that an hour has
    assert found == list(range(count, count - 10_000, -1))


RUN = {"id": 1, "created_at": "2026-11-03T10:00:00Z"}


@pytest.mark.parametrize(
    ("others", "said"),
    [
        ([], "2026-11-03T10:00:00+00:00"),
        ([{"head_sha": "b" * 40, "created_at": "2026-11-03T09:00:00Z"}], "2026-11-03T10:00:00+00:00"),
        # the branch was elsewhere after the commit had first been there: it may have been pushed back a moment ago
        ([{"head_sha": "b" * 40, "created_at": "2026-11-03T11:00:00Z"}], None),
    ],
)
def test_a_commit_that_was_pushed_back_is_not_old(stub: Stub, others: list[dict[str, str]], said: str | None) -> None:
    """Where the activity cannot be read, as that of somebody's private fork, the runs say when the head was first there."""
    sha = "a" * 40
    head = {"ref": "topic", "sha": sha, "repo": {"full_name": "fork/models"}}
    pull = PullRequest.model_validate({"number": 7, "head": head, "base": {"ref": "m", "sha": "b"}})
    mine = RUN | {"head_sha": sha}

    def work(verb: str, path: str, body: bytes) -> tuple[int, object]:
        if path.endswith("/activity"):
            return 404, {"message": "Not Found"}
        query = stub.seen[-1][1]
        runs = [mine] if "head_sha=" in query else [mine, *(RUN | {"id": 2} | other for other in others)]
        return 200, {"workflow_runs": runs}

    stub.work = work  # type: ignore[method-assign]
    found = client(stub, Clock()).pushed_at(REPO, pull)
    assert (found.isoformat() if found else None) == said


def test_a_moment_without_a_time_zone_is_no_answer(stub: Stub) -> None:
    """It can be compared with no other."""
    run = {"id": 5, "head_sha": "a" * 40, "created_at": "2026-11-03T12:00:00"}
    stub.answers["GET", "/repos/o/r/actions/runs/5"] = 200, run
    with pytest.raises(GitHubError, match="is no Run"):
        client(stub, Clock()).run("o/r", 5)
    stub.answers["GET", "/repos/o/r/actions/runs/5"] = 200, {**run, "created_at": "2026-11-03T12:00:00Z"}
    assert client(stub, Clock()).run("o/r", 5).id == 5


@pytest.mark.parametrize(("status", "cancelled"), [("completed", False), ("queued", None), ("in_progress", None)])
def test_a_run_that_has_not_ended_is_not_said_to_have(stub: Stub, status: str, cancelled: bool | None) -> None:
    """GitHub's documentation of the endpoint: 409 is a conflict, of whatever sort; one is a run that is not queued so far."""
    run = {"id": 5, "head_sha": "a" * 40, "created_at": "2026-11-03T12:00:00Z", "status": status}
    stub.answers["GET", f"/repos/{REPO}/actions/runs/5"] = (200, run)
    stub.answers["POST", f"/repos/{REPO}/actions/runs/5/cancel"] = (409, {"message": "Cannot cancel a workflow run"})
    api = client(stub, Clock())
    if cancelled is None:
        with pytest.raises(GitHubError, match="409"):
            api.cancel(REPO, 5)
    else:
        assert api.cancel(REPO, 5) is cancelled


def test_what_is_waited_for_in_vain_counts_as_waited(stub: Stub) -> None:
    """Half a minute for each answer that does not come: with five attempts for each request a job would be ended before it says so."""
    clock = Clock()
    moments = iter(range(0, 1_000_000, 90))  # the clock at the beginning and the end of each attempt
    transport = Transport("t", stub.url, sleep=clock.sleep, now=lambda: float(next(moments)))
    stub.faults = [Fault(502) for _ in range(100)]
    for _ in range(6):
        with pytest.raises(GitHubError):
            transport.ask("GET", f"/repos/{REPO}/issues/7/comments", kind=list)
    # once all of the patience is gone each is asked for once
    assert len(stub.seen) <= PATIENCE / 90 + 6


def test_what_the_machine_knows_of_github_is_not_sent(stub: Stub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """requests takes a .netrc for what has no credentials, and even where a token is sent; it does so again after a redirect."""
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login owner password of-the-machine\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    log = f"/repos/{REPO}/actions/jobs/5/logs"
    stub.answers.update({("GET", log): (302, f"{stub.url}/stored"), ("GET", "/stored"): (200, b"text")})
    stub.answers.update({("GET", "/file"): (302, f"{stub.url}/stored"), ("POST", "/assets"): (201, {"id": 1})})
    client(stub, Clock()).job_log(REPO, 5)
    client(stub, Clock()).attachment(f"{stub.url}/file", 99)
    Transport("secret-token", stub.url).upload(f"{stub.url}/assets", b"content")
    sent = [(path, headers.get("Authorization")) for _, path, headers in stub.seen]
    ours = "Bearer secret-token"
    assert sent == [(log, ours), ("/stored", None), ("/file", None), ("/stored", None), ("/assets", ours)]


@pytest.mark.parametrize(
    ("date", "says"), [("Thu, 01 Jan 1970 00:00:10 GMT", 10), ("", 1_000_000), ("31 Feb", 1_000_000), (None, 1_000_000)]
)
def test_the_time_is_that_of_github(stub: Stub, date: str | None, says: int) -> None:
    """Its comments and runs have its times: by a clock that is a day ahead every run would have waited too long."""
    api = client(stub, Clock())
    assert api.now() == datetime.fromtimestamp(1_000_000, timezone.utc)
    stub.faults = [Fault(200, {} if date is None else {"Date": date}, '{"id": 1, "number": 7}')]
    api.issue(REPO, 7)
    assert api.now() == datetime.fromtimestamp(says, timezone.utc)
