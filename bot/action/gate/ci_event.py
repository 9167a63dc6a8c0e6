"""What a red run of CI asks for, without anyone asking: turns `workflow_run` into requests."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import timedelta

from bot.action.ci import groups
from bot.action.comment import SHORT, Destination, answer, count_of_comment, event_of_comment, failures_of_comment, key, marker
from bot.action.gate import ci_failures, permissions
from bot.action.gate.requests import (
    Checkout,
    Decision,
    Refusal,
    check_set_up,
    code_of_pull_request,
    directory_of,
    fork_policy,
    is_foreign,
    of_failure,
    of_groups,
    options_with,
    rows,
)
from bot.action.github.client import GitHub
from bot.action.github.resources import Comment, PullRequest, WorkflowRun
from bot.action.github.transport import GitHubError
from bot.action.redaction import line_of
from bot.action.report.render import notes
from bot.action.settings import Settings
from bot.models.request import Answer, CodeOrigin, Request, RequestOptions

log = logging.getLogger(__name__)

# Requests that red runs may make per day, in units of `max-requests`; requests by people do not count.
RUNS_A_DAY = 4
# Besides those of pull requests. Events that anyone can trigger, or that follow another run, have the head of the default branch whatever
# code they fetch and run (GitHub's documentation of the events), so nothing is known about that code.
_EVENTS = frozenset({"push", "schedule", "workflow_dispatch", "repository_dispatch", "merge_group"})
# Of the runs mentioned on an issue, the last ones.
_MOST_LOOKED_AT = 20
_MET = "another run, red at the same moment, asked for the same"
_UNSAID = "no comment could be written where the result would be told, so nothing is minimized"


class RedRun:
    """The finished run in `event`, and what is done about it through `api` by `settings`."""

    def __init__(self, event: WorkflowRun, settings: Settings, api: GitHub) -> None:
        self._run, self._settings, self._api = event.workflow_run, settings, api
        self._own = event.repository
        self._repository, self._default = self._own.full_name, self._own.default_branch
        self._key = key(settings.name, f"run-{self._run.id}-{self._run.run_attempt}")
        self._marker = marker(self._key, settings.run_id)
        self._unsaid: list[int] = []  # issues on which no comment could be written

    def outcome(self) -> Decision:
        """Requests, with the comment or the issue that announces them; or nothing: nobody asked, so nobody is told why not. Raises
        GitHubError if GitHub does not answer what must be known."""
        try:
            return self._outcome()
        except Refusal as why:
            return Decision("nothing", note=str(why))

    def _outcome(self) -> Decision:
        run = self._run
        if run.conclusion not in ci_failures.FAILED or run.id == self._settings.run_id:
            return Decision("nothing", note="the run did not fail")
        if run.event not in _EVENTS and not run.event.startswith("pull_request"):
            return Decision("nothing", note="the run was set off by what says nothing about its code")
        pull = self._pull_request()
        if pull is None and (run.event.startswith("pull_request") or run.head_branch != self._default):
            return Decision("nothing", note="no open pull request has this head, and it is not the default branch")
        foreign, queued = is_foreign(self._api, self._own, run, pull), run.queued_pull_request is not None
        head = permissions.Head(foreign, run.created_at, gone=run.head_repository is None, queued=queued)
        allowed = permissions.may_run(head, fork_policy(self._api, self._repository, self._settings, head), None)
        if isinstance(allowed, permissions.Refused):
            return Decision("nothing", note=allowed.reason)
        check_set_up(self._settings)
        options = options_with(RequestOptions(), self._settings)
        base = pull.base.ref if pull else self._default
        checkout = Checkout.of(self._own, run.head_repository, run.head_sha, fork=head.from_fork)
        subject = ci_failures.Subject(run.id, run.workflow_id, run.created_at, base, source=checkout.repository, commit=checkout.commit)
        examined = ci_failures.examine(self._api, self._repository, [subject], self._settings.junit_artifacts, directory_of(self._settings))
        found = examined.groups
        taken = groups.chosen(self._new(found, pull), self._settings.max_requests, asked=False)
        late = bool(taken)
        taken = taken[: self._left_today()] if taken else ()
        causes = rows(found, taken)
        table = notes.candidates(causes) if found else examined.refusal
        if not taken:
            return Decision("nothing", note=f"{self._most_a_day} requests were made of red runs within a day" if late else table)
        first = self._first(pull, checkout, taken[0], options)
        first = first.model_copy(update={"causes": tuple(causes)})
        if pull is not None:
            made = of_groups(taken, [first.answer] * len(taken), first, self._settings)
            posted = self._first_to_tell(self._posted(made, pull.number, table), pull.number, table)
        else:
            posted = self._posted_apart(taken, first, table)
        note = "\n\n".join([table, *(f"On #{issue} {_UNSAID}." for issue in self._unsaid)])
        return Decision("requests", tuple(posted), note) if posted else Decision("nothing", note=_UNSAID)

    def _posted_apart(self, taken: Sequence[groups.Group], first: Request, table: str) -> list[Request]:
        """The requests for the groups `taken`, each with a comment on the issue about its signature. Raises Refusal if other runs of the
        same commit have asked for all of them."""
        answers = [first.answer.model_copy(update={"issue": self._issue_about(group)}) for group in taken]
        posted: list[Request] = []
        known = 0
        for request in of_groups(taken, answers, first, self._settings):
            issue = request.answer.issue
            assert issue is not None
            if self._is_told_of(issue):
                known += 1
                continue
            for each in self._posted((request,), issue, table):
                # as on a pull request: of two at the same time, the one with the older comment goes on
                if self._is_told_of(issue, before=each.answer.comment):
                    self._api.delete_comment(self._repository, each.answer.comment or 0)
                    known += 1
                else:
                    posted.append(each)
        if known and not posted:
            raise Refusal(_MET)
        return posted

    def _is_told_of(self, issue: int, before: int | None = None) -> bool:
        """Whether the `issue`, which is about one failure, has comments about this commit: by another run, or by an earlier attempt of
        this one. With `before`, a comment id, only earlier comments count."""
        try:
            comments = self._api.comments(self._repository, issue)
        except GitHubError as error:
            log.warning("whether another run asked for the same is not known: %s", error)
            return False
        told = [each for each in self._told(comments) if before is None or each.id < before]
        runs = [int(number) for each in told if (number := (event_of_comment(each.body) or "").split("-")[-2]).isdecimal()]
        return any(map(self._is_of_this_commit, list(dict.fromkeys(reversed(runs)))[:_MOST_LOOKED_AT]))

    def _is_of_this_commit(self, run: int) -> bool:
        try:
            return run == self._run.id or self._api.run(self._repository, run).head_sha == self._run.head_sha
        except GitHubError as error:  # for example if it was deleted
            log.warning("what the run %d was about is not known: %s", run, error)
            return False

    def _pull_request(self) -> PullRequest | None:
        """The open pull request that was run: found by its head, or by the name of a merge queue's branch.

        GitHub does not find one from a fork by its commit, only by its branch.
        """
        run, source = self._run, self._run.head_repository
        number = run.queued_pull_request
        if number is not None:
            pull = self._api.pull_request(self._repository, number)
            return pull if pull.state == "open" else None
        if source is not None and not self._own.is_same(source) and run.head_branch:
            owner = source.full_name.partition("/")[0]
            return next(iter(self._api.pull_requests_from(self._repository, owner, run.head_branch, run.head_sha)), None)
        # a fork may have a pull request with the same head
        return next((pull for pull in self._api.pull_requests_of(self._repository, run.head_sha) if not pull.from_fork), None)

    def _told(self, comments: Sequence[Comment]) -> list[Comment]:
        """Those of the comments that answer red runs, except for this one, which may be delivered again."""
        runs = key(self._settings.name, "run-")
        ours = [(each, event_of_comment(each.body) or "") for each in comments if self._api.is_ours(each)]
        return [each for each, event in ours if event.startswith(runs) and event != self._key]

    def _told_of(self, pull: int, before: int | None = None) -> frozenset[str]:
        """The failures that other comments on the pull request are about; only of those before the comment id `before`, if given."""
        told = self._told(self._api.comments(self._repository, pull))
        return frozenset(failure for each in told if before is None or each.id < before for failure in failures_of_comment(each.body))

    def _new(self, found: Sequence[groups.Group], pull: PullRequest | None) -> list[groups.Group]:
        """The causes that no comment of ours on the pull request is about yet, since each push would ask for them again."""
        if pull is None or not any(group.verdict == "suggested" for group in found):
            return list(found)
        known = self._told_of(pull.number)
        return [group for group in found if group.signature is None or group.signature.fingerprint[:SHORT] not in known]

    def _first_to_tell(self, posted: Sequence[Request], pull: int, table: str) -> list[Request]:
        """The requests in `posted` on a pull request that no other run has announced meanwhile, since several workflows turn red at once.

        Each run first writes and then looks, so that of two at the same time the one with the older comment goes on. Raises Refusal if
        another run has announced all of them; our comment is deleted then.
        """
        comment = posted[0].answer.comment if posted else None
        if comment is None:
            return list(posted)
        try:
            told = self._told_of(pull, before=comment)
        except GitHubError as error:
            log.warning("whether another run asked for the same is not known: %s", error)
            return list(posted)
        left = [request for request in posted if request.shown is None or request.shown.fingerprint[:SHORT] not in told]
        if not left:
            self._api.delete_comment(self._repository, comment)
            raise Refusal(_MET)
        if len(left) == len(posted):
            return left
        return list(self._posted((left[0].model_copy(update={"causes": posted[0].causes}), *left[1:]), pull, table))

    @property
    def _most_a_day(self) -> int:
        return RUNS_A_DAY * self._settings.max_requests

    def _left_today(self) -> int:
        """How many more requests may be made today without anyone asking."""
        since = self._api.now() - timedelta(days=1)
        today = [each for each in self._api.recent_comments(self._repository, since) if each.created_at >= since]
        return max(self._most_a_day - sum(count_of_comment(each.body) for each in self._told(today)), 0)

    def _first(self, pull: PullRequest | None, checkout: Checkout, group: groups.Group, options: RequestOptions) -> Request:
        if pull is not None:
            stacked = checkout.fork and self._run.queued_pull_request is not None
            whose = code_of_pull_request(self._api, self._repository, pull, stacked=stacked)
        else:
            whose = CodeOrigin(where="push", author=self._run.actor.login, trusted=True, url=self._run.html_url or None)
        return Request(
            id=self._key,
            **of_failure(group.first, self._settings),
            repository=checkout.repository,
            commit=checkout.commit,
            fork=checkout.fork,
            code=whose,
            asked_by=self._run.name or "CI",
            options=options,
            answer=Answer(repository=self._repository, issue=pull.number if pull else None, marker=self._marker),
        )

    def _issue_about(self, group: groups.Group) -> int:
        """The issue about that failure: one for each signature, whichever run had it."""
        assert group.signature is not None
        about = f"<!-- torch-minify:signature-{group.signature.fingerprint} -->"
        body = notes.opened(self._repository, self._default, self._run.html_url)
        try:
            return self._api.open_issue(self._repository, about, notes.title_of_issue(line_of(group.signature)), body).number
        except GitHubError as error:
            if error.status != 410:  # as in most forks
                raise
            raise Refusal("issues are disabled in this repository, so the result could not be told, and nothing is minimized") from None

    def _posted(self, requests: Sequence[Request], issue: int, table: str) -> tuple[Request, ...]:
        body = notes.queued(requests, self._settings.runner_label, self._settings.run_url) + "\n\n" + table
        failures = [request.shown.fingerprint for request in requests if request.shown is not None]
        hint = requests[0].answer.comment
        to = Destination(self._repository, issue, self._key, self._settings.run_id)
        comment = answer(self._api, to, body, failures=failures, hint=hint)
        if comment is None:
            # for example if the conversation is locked: the result could not be posted, nor the request counted, and nobody waits for it
            self._unsaid.append(issue)
            return ()
        known = {"comment": comment, "marker": marker(self._key, self._settings.run_id, failures)}
        return tuple(request.model_copy(update={"answer": request.answer.model_copy(update=known)}) for request in requests)
