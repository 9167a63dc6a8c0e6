"""What to minimize, and where the answer goes."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from bot.models.failure import Model, Signature, Stage


class CodeOrigin(Model):
    """Who wrote the program, and where it was found. The answer says so, because the program is run."""

    where: Literal["comment", "issue", "pull_request", "push"]
    author: str = Field(description="the author's login")
    trusted: bool = Field(description="whether the author has write permission")
    url: str | None = None
    linked: bool = Field(default=False, description="in a file that the author attached or linked, perhaps written by somebody else")
    note: str | None = Field(default=None, description="for people: which of several blocks was taken")
    folded: bool = Field(default=False, description="whether the page does not show all of it at once, for example in a collapsed block")


class Answer(Model):
    """Where the answer goes: one comment per event, which is found again by its marker."""

    repository: str = Field(description="owner/name")
    issue: int | None = Field(default=None, description="issue or pull request; null: an issue is opened for the signature")
    marker: str = Field(description="hidden in the comment; the same for all requests of an event")
    comment: int | None = Field(default=None, description="the comment that says that the request is queued")
    trigger: int | None = Field(default=None, description="the comment with the command, which gets the reactions")


class RequestOptions(Model):
    """The options of `run`. Null means its default."""

    stage: Stage | None = None
    accuracy: Literal["off", "auto", "on", "strict"] | None = None
    device: Literal["cpu", "cuda"] | None = None
    budget: float | None = Field(default=None, description="seconds", gt=0)
    python_version: str | None = None
    torch_version: str | None = None


class Cause(Model):
    """A cause of failing tests in a CI run, as shown to people. `failure` and `tests` are hostile text."""

    verdict: str = Field(description="suggested, possible, or no")
    reason: str
    failure: str
    tests: tuple[str, ...]
    taken: bool = Field(description="whether it is minimized")


class Request(Model):
    """What to minimize, with what options, and where the answer goes. Exactly one of `script`, `command` and `doctor` is set."""

    schema_: int = Field(default=1, alias="schema", serialization_alias="schema")
    id: str = Field(description="unique in the repository: letters, digits and dashes")
    script: str | None = Field(default=None, description="text of a Python program")
    command: str | None = Field(default=None, description="what `run --command` takes")
    directory: str = Field(default="", description="working directory, relative to the checkout")
    launcher: tuple[str, ...] = Field(default=(), description="words in front of a program that find its interpreter, like `uv run`")
    repository: str = Field(description="owner/name of the repository that is checked out")
    commit: str | None = Field(default=None, description="full hash of the commit, resolved once")
    fork: bool = Field(default=False, description="whether the commit is from another repository than the one that gets the answer")
    code: CodeOrigin
    asked_by: str = Field(description="login; for red CI, the name of the workflow")
    options: RequestOptions = RequestOptions()
    answer: Answer
    doctor: tuple[str, ...] | None = Field(default=None, description="the gate's lines about the setup; the machine is checked as well")
    expected: str | None = Field(default=None, description="the failure that CI showed, in one line")
    shown: Signature | None = Field(default=None, description="signature of that failure, as far as CI's log shows it")
    tests: tuple[str, ...] = Field(default=(), description="all tests that fail in this way")
    causes: tuple[Cause, ...] = Field(default=(), description="everything that failed in the run; only in the first request of a comment")

    @model_validator(mode="after")
    def _one_program(self) -> Request:
        if [self.script, self.command, self.doctor].count(None) != 2:
            raise ValueError("a request has a script, a command or a look at the set-up")
        return self
