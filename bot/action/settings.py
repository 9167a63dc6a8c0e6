"""The Action's inputs and GitHub's environment, read once, at the outermost layer."""

from __future__ import annotations

import json
import re
import shlex
from argparse import ArgumentTypeError
from pathlib import Path
from typing import Any, Literal

from pydantic import AliasChoices, Field, SecretStr, ValidationError, field_validator
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, SettingsConfigDict

from bot.action.command_template import inner_path
from bot.action.console import InputError
from bot.action.redaction import is_secret_name
from bot.units import duration

# Artifacts and markers contain it.
_NAME = re.compile(r"(?!(?:request|result|unposted|comment|run)\Z)[a-z][a-z0-9]{0,19}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Inputs whose values are never shown: what does not belong in them may be a secret.
_UNTOLD = ("env", "pass-env", "setup")
# Possible names of an image: a registry, a lowercase path, a tag, a digest (github.com/distribution/reference). The runner removes the
# scheme before it.
_IMAGE = re.compile(
    r"(?:docker://)?(?:[A-Za-z0-9.-]+(?::[0-9]+)?/)?[a-z0-9]+(?:[._/-]+[a-z0-9]+)*(?::\w[\w.-]{0,127})?(?:@[A-Za-z0-9+._-]+:[0-9a-fA-F]{32,})?",
    re.ASCII,
)
# Keywords for `image` that are not image names.
_IMAGES = ("none", "cu126")
# Options that GitHub does not allow for a job's container (its documentation of `container.options`).
_NO_OPTIONS = ("--network", "--net", "--entrypoint")
# Runners get their labels separated by commas; the other characters are those of lists, groups and quotations.
_IN_NO_LABEL = frozenset(",[]{}\"'")
_EVERY_RUNNER = frozenset({"self-hosted", "linux", "windows", "macos", "x64", "arm64", "arm"})
# Seconds, on a self-hosted machine.
_LONGEST_JOB = 5 * 86_400.0
_ADDRESS = r"^https?://[A-Za-z0-9\[][^\s/]*(?:/\S*)?$"
_REPOSITORY = re.compile(r"(?!\.+/)[\w.-]+/(?!\.+\Z)[\w.-]+")


def _input(name: str, default: Any, description: str, **more: Any) -> Any:
    """A field for the input `name`. A container action gets it with dashes, a step's `env:` preferably without."""
    upper = f"INPUT_{name.upper()}"
    return Field(
        default=default,
        validation_alias=AliasChoices(upper, upper.replace("-", "_")),
        description=description,
        json_schema_extra={"input": name},
        **more,
    )


class Settings(BaseSettings):
    """Everything that is read from outside. An empty variable counts as missing, since Actions sets all inputs."""

    model_config = SettingsConfigDict(frozen=True, extra="ignore", env_ignore_empty=True, env_file=None)

    # GitHub's own
    api_url: str = Field(default="https://api.github.com", validation_alias="GITHUB_API_URL", pattern=_ADDRESS)
    server_url: str = Field(default="https://github.com", validation_alias="GITHUB_SERVER_URL", pattern=_ADDRESS)
    repository: str = Field(default="", validation_alias="GITHUB_REPOSITORY")
    run_id: int = Field(default=0, validation_alias="GITHUB_RUN_ID")
    run_attempt: int = Field(default=1, validation_alias="GITHUB_RUN_ATTEMPT")
    event_name: str = Field(default="", validation_alias="GITHUB_EVENT_NAME")
    event_path: Path | None = Field(default=None, validation_alias="GITHUB_EVENT_PATH")
    output: Path | None = Field(default=None, validation_alias="GITHUB_OUTPUT")
    summary: Path | None = Field(default=None, validation_alias="GITHUB_STEP_SUMMARY")
    # the images of a release, which the release writes into the light action
    gpu_image: str = Field(default="", validation_alias="TORCH_MINIFY_GPU_IMAGE")
    cu126_image: str = Field(default="", validation_alias="TORCH_MINIFY_CU126_IMAGE")
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
    name: str = _input("name", "", "Name of this call, where a workflow makes several")
    runner_label: str = _input("runner-label", "self-hosted", "Label of the runner that minifies", max_length=300)
    test_command: str = _input("test-command", "pytest {nodeid}", "How a test is run; {nodeid} stands for its id", max_length=1000)
    working_directory: str = _input("working-directory", "", "Directory of the checkout in which programs run", max_length=1000)
    variables: str = _input("env", "", "Variables for programs and setup, a line NAME=value each", max_length=100_000)
    pass_env: str = _input("pass-env", "", "Names of variables of the machine that programs and setup are given", max_length=10_000)
    setup: str = _input("setup", "", "Shell commands that prepare the checkout; they may use the network")
    python: str | None = _input("python", None, "Interpreter with the user's torch; a path with a slash counts from the checkout")
    torch_index: str = _input("torch-index", "", "Where the builds of torch are that a comment names", pattern=r"^(?:https?://\S+)?$")
    jobs: int = _input("jobs", 1, "Candidates to try at once; 0: as many as there is room for", ge=0, le=256)
    budget: str = _input("budget", "30m", "Time for one request")
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

    # what the jobs pass on
    image: str = _input("image", "", "Image for the job that minifies; empty, ours; cu126, ours for older drivers; none, the runner itself")
    container_options: str = _input("container-options", "", "Options of docker create for that image", max_length=10_000)
    submodules: str = _input(
        "submodules", "false", "Submodules of the checkout: false, true or recursive", pattern="^(?i:false|true|recursive)$"
    )
    max_parallel: int = _input("max-parallel", 5, "Requests that are done at the same time", ge=1, le=256)
    timeout_minutes: float = _input("timeout-minutes", 0.0, "Minutes after which a job that minifies is ended; 0: not known", ge=0)
    request_sha256: str = _input("request-sha256", "", "What the gate said of the file of requests; none: not compared")
    request_file: Path = _input("request-file", Path("request.json"), "The file between the jobs, written by gate")
    index: int = _input("index", 0, "Which request of that file, from 0", ge=0)
    checkout: Path = _input("checkout", Path(), "Directory of the checkout in which programs run")
    result: Path = _input("result", Path("result"), "Directory of the result")
    results: Path = _input("results", Path("results"), "Directory that holds the results, one directory each, named by index")

    @field_validator("token", "durable_token")
    @classmethod
    def _sent_as_it_is(cls, given: SecretStr) -> SecretStr:
        # A copied secret comes with a line end. If a value cannot be in a header, the error of the code that makes the request would show
        # it, and so the token.
        token = given.get_secret_value().strip()
        if not re.fullmatch("[!-~]*", token):
            raise ValueError("holds what no token has: a blank, or no letter of ASCII")
        return SecretStr(token)

    @field_validator("repository")
    @classmethod
    def _owner_and_name(cls, given: str) -> str:
        if given and not _REPOSITORY.fullmatch(given):
            raise ValueError("is not owner/name")
        return given

    @field_validator("runner_label")
    @classmethod
    def _labels(cls, given: str) -> str:
        # as the workflow reads it, when it is too late to report a problem
        try:
            labels = json.loads(given) if given.startswith("[") else [given]
        except (ValueError, RecursionError):
            labels = None
        if labels == []:
            raise ValueError("is no JSON list of labels, but an empty one: is the workflow's input runner, or the variable in it, empty?")
        if not labels or not all(isinstance(label, str) and label for label in labels):
            raise ValueError("is no JSON list of labels")
        if any(set(label) & _IN_NO_LABEL or label != label.strip() or not label.isprintable() or _is_several(label) for label in labels):
            # if a job asks for such a label, GitHub looks for it for a day
            raise ValueError(
                "names what no runner is labeled: no label begins or ends with a blank or holds what is not shown, and several are a JSON "
                'list, like ["self-hosted", "gpu"]'
            )
        return given

    @field_validator("name")
    @classmethod
    def _part_of_a_name(cls, given: str) -> str:
        if given and not _NAME.fullmatch(given):
            raise ValueError("must be up to 20 small letters and digits, other than request, result, unposted, comment and run")
        return given

    @field_validator("budget")
    @classmethod
    def _some_time(cls, given: str) -> str:
        try:
            seconds = duration(given)
        except ArgumentTypeError as error:
            raise ValueError(str(error)) from None
        if seconds > _LONGEST_JOB:
            raise ValueError(f"is more than the {_LONGEST_JOB / 86_400:g} days that GitHub gives a job")
        return given

    @field_validator("working_directory")
    @classmethod
    def _below_the_checkout(cls, given: str) -> str:
        return inner_path("", given)

    @field_validator("image")
    @classmethod
    def _name_of_an_image(cls, given: str) -> str:
        if given.strip().lower() in _IMAGES:
            return given.strip().lower()
        if given and not _IMAGE.fullmatch(given):
            raise ValueError("is no name of an image: that is in small letters, as the name of its owner is then too, and has no blanks")
        return given

    @field_validator("container_options")
    @classmethod
    def _options_of_a_container(cls, given: str) -> str:
        try:
            words = [word.partition("=")[0] for word in shlex.split(given)]
        except ValueError as error:
            raise ValueError(f"has a quotation mark that is not closed ({error})") from None
        if found := [word for word in words if word in _NO_OPTIONS]:
            raise ValueError(f"has {found[0]}, which GitHub does not allow the container of a job")
        return given

    @field_validator("variables")
    @classmethod
    def _assignments(cls, given: str) -> str:
        for number, (name, _) in enumerate(_pairs(given), 1):
            _usable(name, f"its line {number} is no NAME=value")
        return given

    @field_validator("pass_env")
    @classmethod
    def _names(cls, given: str) -> str:
        for number, name in enumerate(filter(None, re.split(r"[,\s]+", given)), 1):
            _usable(name, f"its word {number} is no name of a variable")
        return given

    @property
    def variables_given(self) -> dict[str, str]:
        """The variables in the input `env`."""
        return dict(_pairs(self.variables))

    @property
    def names_passed(self) -> tuple[str, ...]:
        """The names in the input `pass-env`."""
        return tuple(filter(None, re.split(r"[,\s]+", self.pass_env)))

    @property
    def job_image(self) -> str:
        """The image of the minify job; empty for the runner itself."""
        return {"": self.gpu_image, "cu126": self.cu126_image, "none": ""}.get(self.image, self.image)

    @property
    def lacks_image(self) -> bool:
        """Whether this workflow has no image to name: only a release has its own."""
        return self.in_actions and self.mode == "gate" and self.image != "none" and not self.job_image

    def artifact(self, what: str) -> str:
        """The name of this call's artifact that contains `what`: `request`, `result-3`."""
        return "-".join(filter(None, ["torch-minify", self.name, what]))

    @property
    def run_url(self) -> str:
        """The page where people watch this run."""
        return f"{self.server_url}/{self.repository}/actions/runs/{self.run_id}"


def _pairs(text: str) -> list[tuple[str, str]]:
    """The lines `NAME=value` of a text; other lines as names without a value, which are not valid."""
    # not Unicode's other line ends: a value may contain them
    lines = [line.strip() for line in re.split(r"[\r\n]", text) if line.strip()]
    return [(name, value) if equals else (line, "") for line in lines for name, equals, value in [line.partition("=")]]


def _is_several(label: str) -> bool:
    """Whether a `label` is really several separated by blanks: one of the words is a label that every runner has by default."""
    words = label.lower().split()
    return len(words) > 1 and not _EVERY_RUNNER.isdisjoint(words)


def _usable(name: str, wrong: str) -> None:
    """Raise ValueError if somebody's program must not get the variable `name`. For an invalid name, the error only says what is `wrong`,
    and where, since it may be half of a multi-line secret."""
    if not _VARIABLE.fullmatch(name):
        raise ValueError(wrong)
    if is_secret_name(name):
        raise ValueError(f"{name!r} sounds like a secret, and every program that is minimized could read it")


def usable_settings() -> tuple[Settings, str]:
    """The settings in this process's environment, with unusable inputs treated as not given; and a description of those.

    Raises:
        InputError: what GitHub provides cannot be used, or the mode.
    """
    try:
        return Settings(), ""
    except ValidationError as error:
        problems = error.errors(include_url=False)
    words = "; ".join(_words(problem) for problem in problems)
    wrong = {str(problem["loc"][0]) for problem in problems}
    if not all(name.startswith("INPUT_") for name in wrong) or "INPUT_MODE" in wrong:
        raise InputError(words)
    fields = [(field.default, _aliases(field)) for field in Settings.model_fields.values()]
    return Settings(**{alias: default for default, aliases in fields if wrong & set(aliases) for alias in aliases}), words


def _aliases(field: FieldInfo) -> list[str]:
    named = field.validation_alias
    return [str(choice) for choice in named.choices] if isinstance(named, AliasChoices) else [str(named)]


def _words(problem: ErrorDetails) -> str:
    name = str(problem["loc"][0]).lower().removeprefix("input_").replace("_", "-")
    value = "" if name.endswith("token") or name in _UNTOLD else f" {str(problem['input'])[:80]!r}"
    called = " (the workflow's input runner)" if name == "runner-label" else ""
    return f"input {name}{value}{called}: {problem['msg'].removeprefix('Value error, ')}"
