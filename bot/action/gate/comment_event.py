"""What a comment asks for: turns `issue_comment` into requests, or into an answer for the person."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from bot.action import set_up
from bot.action.ci import disabled, groups
from bot.action.comment import Destination, answer, event_of_comment, key, marker, react
from bot.action.gate import attachments, ci_failures, code_blocks, permissions
from bot.action.gate.command import Command, CommandSyntaxError, RunUrl, commands, help_text
from bot.action.gate.page import COMMAND
from bot.action.gate.requests import (
    Checkout,
    Decision,
    Refusal,
    check_set_up,
    code_of_pull_request,
    directory_of,
    fork_policy,
    is_foreign,
    may_write,
    of_failure,
    of_groups,
    options_with,
    program_of,
    rows,
)
from bot.action.github.client import GitHub
from bot.action.github.resources import IssueComment, PullRequest, Reaction, Run
from bot.action.github.transport import GitHubError
from bot.action.report.render import notes
from bot.action.settings import Settings
from bot.models.request import Answer, CodeOrigin, Request

_CLOSED = "the conversation is locked or gone, and no comment can be written there"
_NO_CODE = (
    "There is no code to run: the comment has no fenced block that reads as Python and is marked so, or imports torch and is not marked"
)


class Conversation:
    """The comment in `event`, and what is said and done about it through `api` by `settings`."""

    def __init__(self, event: IssueComment, settings: Settings, api: GitHub) -> None:
        self._event, self._settings, self._api = event, settings, api
        self._repository, self._issue, self._comment = event.repository.full_name, event.issue.number, event.comment
        self._key = key(settings.name, f"comment-{event.comment.id}")
        self._marker = marker(self._key, settings.run_id)
        self._tables: list[str] = []

    def outcome(self) -> Decision:
        """Requests, with the comment that announces them; or a reply; or nothing. Raises GitHubError if GitHub does not answer what must
        be known."""
        body, author, wrong = self._comment.body, self._comment.user, None
        try:
            found = commands(body)
        except CommandSyntaxError as error:
            found, wrong = (), error
        if self._event.action != "created" or not author.id or not (found or wrong):
            return Decision("nothing", note="no command")
        permission = "none" if author.is_bot else self._api.permission(self._repository, author)
        decision = permissions.may_ask(author, self._event.sender, permission)
        if isinstance(decision, permissions.Ignored):
            return Decision("nothing", note="not for us: a bot, or words of another")
        refused = isinstance(decision, permissions.Refused)
        if refused and self._answered_before():
            self._react("confused")
            return Decision("refused", note="who may not ask is answered once on an issue")
        if any(command.verb == "help" for command in found):
            return self._reply(notes.helped(help_text()), "eyes", "help")
        if isinstance(decision, permissions.Refused):
            return self._reply(notes.refused(decision.reason), "confused", decision.reason)
        if wrong is not None:
            return self._reply(notes.problem(str(wrong), help_text()), "confused", "the command was not understood")
        if any(command.verb == "stop" for command in found):
            return Decision("stop")
        try:
            if any(command.verb == "doctor" for command in found):
                return self._doctor()
            return self._requests(found)
        except Refusal as error:
            said = notes.refused(f"{error}\n\n{COMMAND} help says how to ask.")
            return self._reply("\n\n".join(filter(None, [said, *self._tables])), "confused", str(error))

    def _answered_before(self) -> bool:
        """Whether another comment by the same person here has an answer of ours: each one costs a job, and readers their patience."""
        comments = self._api.comments(self._repository, self._issue)
        theirs = {comment.id for comment in comments if comment.user.id == self._comment.user.id} - {self._comment.id}
        answered = (event_of_comment(comment.body) or "" for comment in comments if self._api.is_ours(comment))
        return any(event.rpartition("-")[2] == str(number) for event in answered for number in theirs)

    # answers

    def _react(self, reaction: Reaction) -> None:
        react(self._api, self._repository, self._comment.id, reaction)

    def _destination(self) -> Destination:
        return Destination(self._repository, self._issue, self._key, self._settings.run_id)

    def _say(self, body: str) -> int | None:
        return answer(self._api, self._destination(), body)

    def _reply(self, body: str, reaction: Reaction, note: str) -> Decision:
        self._react(reaction)
        # a run that is started again may be refused, for example because of commits pushed since, but its earlier findings are still true
        answer(self._api, self._destination(), body, stays=notes.is_result)
        return Decision("refused", note=note)

    def _is_closed_to_us(self, comment: int | None) -> bool:
        """Whether the result could not be posted either, given that our first `comment` could not: then no machine is kept busy for it."""
        if comment is not None:
            return False
        try:
            there = self._api.issue(self._repository, self._issue)
        except GitHubError as error:
            return error.status in (301, 404, 410)
        # an issue that was transferred to another repository is a different one there, to which GitHub redirects
        return there.locked or there.id != self._event.issue.id

    def _doctor(self) -> Decision:
        """What can be seen of the set-up from here, and a request that examines the machine; without an image there can be none."""
        self._react("eyes")
        lines = tuple(finding.line() for finding in set_up.examine(self._settings, self._api))
        if self._settings.lacks_image:
            self._say(notes.doctor(lines, None, "The machine was not looked at: its job has no image.", self._settings.run_url))
            return Decision("refused", note="looked at the set-up")
        checkout = self._checkout(None)
        request = Request(
            id=f"{self._key}-1",
            doctor=lines,
            repository=checkout.repository,
            commit=checkout.commit,
            code=self._whose(None),
            asked_by=self._event.sender.login,
            answer=self._answer(),
        )
        waiting = f"The machine is looked at now, as soon as a runner {self._settings.runner_label} takes the job."
        comment = self._say(notes.doctor(lines, None, waiting, self._settings.run_url, so_far=True))
        if self._is_closed_to_us(comment):
            return Decision("refused", note=_CLOSED)
        return Decision("requests", (request.model_copy(update={"answer": request.answer.model_copy(update={"comment": comment})}),))

    # requests

    def _requests(self, found: tuple[Command, ...]) -> Decision:
        check_set_up(self._settings)
        self._react("eyes")
        text, author, url = self._comment.body, self._event.sender.login, self._comment.html_url
        if found[0].verb == "again":
            found, text, author, url = self._earlier(found[0])
        pull = self._api.pull_request(self._repository, self._issue) if self._event.issue.pull_request is not None else None
        made: list[Request] = []
        for command in found:
            made += self._of(command, f"{self._key}-{len(made) + 1}", text, author, url, pull)
        said = "\n\n".join([notes.queued(made, self._settings.runner_label, self._settings.run_url), *self._tables])
        comment = self._say(said)
        if self._is_closed_to_us(comment):
            return Decision("refused", note=_CLOSED)
        answered = tuple(request.model_copy(update={"answer": request.answer.model_copy(update={"comment": comment})}) for request in made)
        return Decision("requests", answered)

    def _earlier(self, again: Command) -> tuple[tuple[Command, ...], str, str, str]:
        """The last commands here by somebody with write permission, their comment's text, its author, its address."""
        for comment in reversed(self._api.comments(self._repository, self._issue)):
            if comment.id >= self._comment.id or comment.user.is_bot:
                continue
            try:
                found = commands(comment.body)
            except CommandSyntaxError:
                continue
            if not found or any(command.verb != "minify" for command in found):
                continue
            if may_write(self._api, self._repository, comment.user):
                changed = again.options.model_dump(exclude_unset=True)
                again_as = tuple(replace(command, options=command.options.model_copy(update=changed)) for command in found)
                if again.url or again.test:
                    # replaces what was asked about then, and is not added to it
                    again_as = tuple(replace(command, url=again.url, test=again.test) for command in again_as)
                return again_as, comment.body, comment.user.login, comment.html_url
        raise Refusal("There is no earlier command here to do again.")

    def _of(self, command: Command, name: str, text: str, author: str, url: str, pull: PullRequest | None) -> tuple[Request, ...]:
        """The requests for one command; usually one."""
        if command.url is not None:
            return self._of_run(command, command.url, name, pull)
        body = self._event.issue.body
        in_comment = code_blocks.find(text)
        in_issue = code_blocks.find(body, torch_only=True)
        checkout = self._checkout(pull)
        if command.test is not None:
            whose = self._whose(pull)
            if in_comment is not None:
                note = ", ".join(filter(None, [whose.note, "the test that the command names, not the code in the comment"]))
                whose = whose.model_copy(update={"note": note})
            return (self._request(command, name, checkout, whose, test=command.test),)
        if in_comment is not None:
            whose = CodeOrigin(where="comment", author=author, trusted=True, **_place(in_comment, url))
            return (self._request(command, name, checkout, whose, script=in_comment.text),)
        files = attachments.Attachments(self._api, self._comment.created_at, self._settings.server_url)
        attached = files.find(text)
        if attached is not None:
            whose = CodeOrigin(where="comment", author=author, trusted=True, linked=True, **_place(attached, url))
            return (self._request(command, name, checkout, whose, script=attached.text),)
        linked = in_issue is None
        in_issue = in_issue or files.find(body)
        if in_issue is not None:
            writer, place = self._event.issue.user, _place(in_issue, self._event.issue.html_url)
            trusted = may_write(self._api, self._repository, writer)
            whose = CodeOrigin(where="issue", author=writer.login, trusted=trusted, linked=linked, **place)
            return (self._request(command, name, checkout, whose, script=in_issue.text),)
        if pull is None and disabled.is_one(self._event.issue.title):
            return (self._of_disabled(command, name, checkout),)
        if pull is None and (files.traceback or attachments.is_traceback(text) or attachments.is_traceback(body)):
            raise Refusal(attachments.ONLY_A_TRACEBACK + files.in_vain())
        if pull is None:
            raise Refusal(
                f"{_NO_CODE}; the issue has none of these that imports torch. "
                f"Add one, or name a test with `--test`, or give the address of a red run.{files.in_vain()}"
            )
        runs = [run for run in self._api.runs_of(self._repository, pull.head.sha) if run.id != self._settings.run_id]
        red = [run for run in runs if run.conclusion in ci_failures.FAILED]
        if not red:
            nothing = "and no run of GitHub Actions for the head of this pull request is red"
            raise Refusal(f"{_NO_CODE}, {nothing}.{_late(runs)}{files.in_vain()}")
        return self._of_red(command, name, checkout, self._whose(pull), red, pull.base.ref)

    def _of_disabled(self, command: Command, name: str, checkout: Checkout) -> Request:
        """The request for the test that the issue disables."""
        failure = disabled.named_in(self._event.issue.title, self._event.issue.body)
        if failure is None:
            raise Refusal("The title names a test, but nothing here names its file. Add `--test FILE::CLASS::TEST`.")
        (failure,) = ci_failures.Reader(self._api, self._repository, "", directory=directory_of(self._settings)).located(
            [failure], ci_failures.Subject(0, 0, self._comment.created_at, None, source=checkout.repository, commit=checkout.commit)
        )
        request = self._request(command, name, checkout, self._whose(None), test=failure.test)
        return request.model_copy(update=of_failure(failure, self._settings))

    def _of_run(self, command: Command, url: RunUrl, name: str, pull: PullRequest | None) -> tuple[Request, ...]:
        elsewhere = Refusal("That run is not one of this repository.")
        if _host(url.server) != _host(self._settings.server_url):
            raise elsewhere
        named = url.repository.lower() == self._repository.lower()
        try:
            # by the name in the address, which may be a former one of this repository
            run = self._api.run(url.repository, url.run)
        except GitHubError as error:
            if named and error.status == 404:
                raise Refusal("There is no such run.") from None
            if not named and error.status in (301, 403, 404, 451):
                raise elsewhere from None
            raise
        if not named and not self._event.repository.is_same(run.repository):
            raise elsewhere
        source = run.head_repository.full_name if run.head_repository else None
        number = run.queued_pull_request
        queued = self._api.pull_request(self._repository, number) if number is not None else None
        fork = is_foreign(self._api, self._event.repository, run, queued)
        self._may_run(permissions.Head(fork, run.created_at, gone=source is None, queued=queued is not None))
        if queued is not None:
            whose = code_of_pull_request(self._api, self._repository, queued, stacked=fork)
        else:
            where: Literal["push", "pull_request"] = "pull_request" if run.event.startswith("pull_request") else "push"
            trusted = not fork or may_write(self._api, self._repository, run.actor)
            note = f"from the fork {source}" if fork else None
            whose = CodeOrigin(where=where, author=run.actor.login, trusted=trusted, url=run.html_url or None, note=note)
        base = pull.base.ref if pull else self._event.repository.default_branch
        checkout = Checkout.of(self._event.repository, run.head_repository, run.head_sha, fork=fork)
        return self._of_red(command, name, checkout, whose, [run], base, url)

    def _of_red(
        self, command: Command, name: str, checkout: Checkout, whose: CodeOrigin, runs: Sequence[Run], base: str, url: RunUrl | None = None
    ) -> tuple[Request, ...]:
        """Requests for what failed in runs of CI; also adds the table of it to the comment."""
        job, attempt = (url.job, url.attempt) if url is not None else (None, None)
        subjects = [
            ci_failures.Subject(run.id, run.workflow_id, run.created_at, base, job, checkout.repository, checkout.commit, attempt)
            for run in runs
        ]
        examined = ci_failures.examine(self._api, self._repository, subjects, self._settings.junit_artifacts, directory_of(self._settings))
        found = examined.groups
        taken = groups.chosen(found, self._settings.max_requests, asked=True)
        causes = rows(found, taken)
        self._tables.append(notes.candidates(causes) if found else "")
        if not taken:
            raise Refusal(examined.refusal + _late(runs))
        first = self._request(command, name, checkout, whose, test=taken[0].first.test).model_copy(update={"causes": tuple(causes)})
        return of_groups(taken, [first.answer] * len(taken), first, self._settings)

    def _checkout(self, pull: PullRequest | None) -> Checkout:
        """What would run together with the code: the current head of the pull request, otherwise the default branch."""
        if pull is None:
            return Checkout(self._repository, self._api.commit(self._repository, self._event.repository.default_branch))
        self._may_run(permissions.Head(pull.from_fork, self._api.pushed_at(self._repository, pull), gone=pull.head.repo is None))
        return Checkout.of(self._event.repository, pull.head.repo, pull.head.sha, fork=pull.from_fork)

    def _may_run(self, head: permissions.Head) -> None:
        decision = permissions.may_run(head, fork_policy(self._api, self._repository, self._settings, head), self._comment.created_at)
        if isinstance(decision, permissions.Refused):
            raise Refusal(decision.reason)

    def _answer(self) -> Answer:
        return Answer(repository=self._repository, issue=self._issue, marker=self._marker, trigger=self._comment.id)

    def _whose(self, pull: PullRequest | None) -> CodeOrigin:
        """Whose code a test in the checkout is."""
        if pull is None:
            return CodeOrigin(where="push", author=self._repository.partition("/")[0], trusted=True)
        return code_of_pull_request(self._api, self._repository, pull)

    def _request(
        self, command: Command, name: str, checkout: Checkout, whose: CodeOrigin, *, script: str | None = None, test: str | None = None
    ) -> Request:
        return Request(
            id=name,
            script=script,
            **program_of(test, self._settings),
            repository=checkout.repository,
            commit=checkout.commit,
            fork=checkout.fork,
            code=whose,
            asked_by=self._event.sender.login,
            options=options_with(command.options, self._settings),
            answer=self._answer(),
        )


def _host(address: str) -> str:
    """The host in an address: GitHub redirects from `http:` and `www.`, which somebody may have typed."""
    return address.lower().partition("://")[2].removeprefix("www.")


def _late(runs: Sequence[Run]) -> str:
    """A sentence if one of the `runs` may still turn red, since a page shows its jobs before it has ended."""
    return " CI has not ended yet." if any(run.status not in (None, "completed") for run in runs) else ""


def _place(found: code_blocks.Found, url: str) -> dict[str, Any]:
    """The location of a program, as part of its origin: the page at `url`."""
    return {"url": url or None, "note": found.note, "folded": found.folded}
