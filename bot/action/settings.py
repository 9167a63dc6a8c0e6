"""The Action's inputs and GitHub's environment, read once, at the outermost layer."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal

from pydantic import AliasChoices, Field, SecretStr, ValidationError, field_validator
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, SettingsConfigDict

from bot.action.console import InputError

_REPOSITORY = re.compile(r"(?!\.+/)[\w.-]+/(?!\.+\Z)[\w.-]+")


def _input(name: str, default: Any, description: str, **more: Any) -> Any:
    """A field that is the input `name`. A container action gets it with its dashes, a step's `env:` better without."""
    upper = f"INPUT_{name.upper()}"
    return Field(
        default=default,
        validation_alias=AliasChoices(upper, upper.replace("-", "_")),
        description=description,
        json_schema_extra={"input": name},
        **more,
    )


class Settings(BaseSettings):
    """Everything that is read from outside. An empty variable counts as none, since Actions sets all inputs."""

    model_config = SettingsConfigDict(frozen=True, extra="ignore", env_ignore_empty=True, env_file=None)

    # GitHub's own
    api_url: str = Field(default="https://api.github.com", validation_alias="GITHUB_API_URL")
    server_url: str = Field(default="https://github.com", validation_alias="GITHUB_SERVER_URL")
    repository: str = Field(default="", validation_alias="GITHUB_REPOSITORY")
    run_id: int = Field(default=0, validation_alias="GITHUB_RUN_ID")
    event_name: str = Field(default="", validation_alias="GITHUB_EVENT_NAME")
    event_path: Path | None = Field(default=None, validation_alias="GITHUB_EVENT_PATH")
    output: Path | None = Field(default=None, validation_alias="GITHUB_OUTPUT")
    summary: Path | None = Field(default=None, validation_alias="GITHUB_STEP_SUMMARY")
    in_actions: bool = Field(default=False, validation_alias="GITHUB_ACTIONS")

    # inputs
    token: SecretStr = Field(
        default=SecretStr(""),
        validation_alias=AliasChoices("INPUT_GITHUB-TOKEN", "INPUT_GITHUB_TOKEN", "GITHUB_TOKEN"),
        description="Token that reads the repository and writes comments",
        json_schema_extra={"input": "github-token"},
    )
    mode: Literal["auto", "gate", "minify", "report", "stop", "sweep"] = _input("mode", "auto", "What to do")
    bot_login: str | None = _input("bot-login", None, "Login of the token's owner, where it is not GITHUB_TOKEN")
    runner_label: str = _input("runner-label", "self-hosted", "Label of the runner that minifies", max_length=100)
    test_command: str = _input("test-command", "pytest {nodeid}", "How a test is run; {nodeid} stands for its id", max_length=1000)
    setup: str = _input("setup", "", "Shell commands that prepare the checkout; they may use the network")
    python: str | None = _input("python", None, "Interpreter with the user's torch; a path with a slash counts from the checkout")
    jobs: int = _input("jobs", 1, "Candidates to try at once", ge=1, le=256)
    budget: str = _input("budget", "30m", "Time for one request", pattern=r"^\d+(?:\.\d+)?[smh]?$")
    device: Literal["cpu", "cuda", ""] = _input("device", "", "Refuse to run without this device")
    accuracy: Literal["off", "auto", "on", "strict"] = _input("accuracy", "auto", "Whether to look for wrong numbers")
    stage: Literal["auto", "source", "dynamo", "aot", "aot_inductor"] = _input("stage", "auto", "The form to minimize in")
    fork_environment: str = _input("fork-environment", "", "Protected environment in which code from forks may run; none: it may not")
    max_requests: int = _input("max-requests", 5, "Requests for one red run, the largest groups first", ge=1, le=50)
    junit_artifacts: str = _input("junit-artifacts", "*", "Artifacts in which JUnit XML is looked for: a pattern of names")
    retention_days: int = _input("retention-days", 30, "How long artifacts are kept", ge=1, le=90)
    durable: Literal["none", "branch", "release"] = _input("durable", "none", "Where the files are kept beyond that")

    durable_token: SecretStr = _input("durable-token", SecretStr(""), "Token with contents write, for durable alone")
    stale_after: float = _input("stale-after", 20.0, "Hours that a request may wait for a runner", gt=0)

    # what the jobs hand on
    request_file: Path = _input("request-file", Path("request.json"), "The file between the jobs, written by gate")
    index: int = _input("index", 0, "Which request of that file, from 0", ge=0)
    checkout: Path = _input("checkout", Path(), "Directory of the checkout in which programs run")
    result: Path = _input("result", Path("result"), "Directory of the result")
    results: Path = _input("results", Path("results"), "Directory that holds the results, one directory each, named by index")

    @field_validator("repository")
    @classmethod
    def _owner_and_name(cls, given: str) -> str:
        if given and not _REPOSITORY.fullmatch(given):
            raise ValueError("is not owner/name")
        return given

    @field_validator("test_command")
    @classmethod
    def _one_placeholder(cls, given: str) -> str:
        if given.count("{nodeid}") != 1:
            raise ValueError("must hold {nodeid} once")
        return given

    @property
    def run_url(self) -> str:
        """Where people watch this run."""
        return f"{self.server_url}/{self.repository}/actions/runs/{self.run_id}"


def inputs() -> tuple[str, ...]:
    """The names of all inputs, as action.yml has them."""
    extras = (field.json_schema_extra for field in Settings.model_fields.values())
    return tuple(str(extra["input"]) for extra in extras if isinstance(extra, dict) and "input" in extra)


def read_settings() -> Settings:
    """The settings in this process's environment.

    Raises:
        InputError: something in it cannot be used; the message names it, its value and what is allowed.
    """
    try:
        return Settings()
    except ValidationError as error:
        raise InputError("; ".join(_words(problem) for problem in error.errors(include_url=False))) from None


def _words(problem: ErrorDetails) -> str:
    name = str(problem["loc"][0]).lower().removeprefix("input_").replace("_", "-")
    value = "" if name.endswith("token") else f" {str(problem['input'])[:80]!r}"
    return f"input {name}{value}: {problem['msg']}"
