"""What to minimize, and where the answer goes."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from bot.models.failure import Model, Signature, Stage


class CodeOrigin(Model):
    """Whose program it is, and where it was found. The answer says so, since the program is run."""

    where: Literal["comment", "issue", "pull_request", "push"]
    author: str = Field(description="login of who wrote it")
    trusted: bool = Field(description="whether the author has write permission")
    url: str | None = None
    linked: bool = Field(default=False, description="in a file that the author attached or linked, and need not have written")
    note: str | None = Field(default=None, description="which of several blocks was taken, for people")
    folded: bool = Field(default=False, description="a page does not show all of it by itself: it lay in a fold, say")


class Answer(Model):
    """Where the answer goes: one comment for each event, found again by its marker."""

    repository: str = Field(description="owner/name")
    issue: int | None = Field(default=None, description="issue or pull request; null: one is opened for the signature")
    marker: str = Field(description="hidden in the comment, the same for all requests of an event")
    comment: int | None = Field(default=None, description="the comment that says queued")
    trigger: int | None = Field(default=None, description="the comment that asked: reactions go there")


class RequestOptions(Model):
    """The options of `run`. Null for its own default."""

    stage: Stage | None = None
    accuracy: Literal["off", "auto", "on", "strict"] | None = None
    device: Literal["cpu", "cuda"] | None = None
    budget: float | None = Field(default=None, description="seconds", gt=0)
    python_version: str | None = None
    torch_version: str | None = None


class Cause(Model):
    """A cause of failing tests in a CI run, as people see it. `failure` and `tests` are hostile text."""

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
    directory: str = Field(default="", description="where it runs, from the checkout")
    launcher: tuple[str, ...] = Field(default=(), description="what has to stand before a program to find its interpreter, like `uv run`")
    repository: str = Field(description="owner/name of what is checked out")
    commit: str | None = Field(default=None, description="its full hash, resolved once")
    fork: bool = Field(default=False, description="whether the commit comes from another repository than the answer's")
    code: CodeOrigin
    asked_by: str = Field(description="login; for red CI the workflow's name")
    options: RequestOptions = RequestOptions()
    answer: Answer
    doctor: tuple[str, ...] | None = Field(default=None, description="lines of the gate about the set-up; the machine's are wanted besides")
    expected: str | None = Field(default=None, description="one line: the failure that CI showed")
    shown: Signature | None = Field(default=None, description="the same, as far as CI's log shows it")
    tests: tuple[str, ...] = Field(default=(), description="all tests that fail in this way")
    causes: tuple[Cause, ...] = Field(default=(), description="all that failed in the run, of the first request made of it")

    @model_validator(mode="after")
    def _one_program(self) -> Request:
        if [self.script, self.command, self.doctor].count(None) != 2:
            raise ValueError("a request has a script, a command or a look at the set-up")
        return self
