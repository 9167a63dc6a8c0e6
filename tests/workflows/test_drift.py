"""An input is written down in five places: action files, settings, workflows, README. Here they are compared."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from bot.action.gate.ci_failures import FAILED
from bot.action.settings import Settings
from tests.workflows.workflow_files import ACTIONS, ROOT, load, trigger, workflow

GPU, LIGHT = (load(path)["inputs"] for path in ACTIONS)
README = (ROOT / "README.md").read_text(encoding="utf-8")
# The fields of the settings, by the input that each is read from.
FIELDS = {
    extra["input"]: field
    for field in Settings.model_fields.values()
    if isinstance(extra := field.json_schema_extra, dict) and "input" in extra
}
# Where the programs run: only the workflow knows them.
OF_THE_WORKFLOW = {"runner", "hosted-runner", "lfs"}
# The last job is for where nothing of ours can run: it gives nothing to our program.
STEPS = {job: work["steps"] for job, work in workflow("minify.yml")["jobs"].items() if job != "unanswered"}


def given(job: str) -> dict[str, Any]:
    """What a job of the reusable workflow gives our program, by the input's name."""
    step = next(
        step for step in STEPS[job] if step.get("uses") == "$/.github/actions/light" or "exec torch-minify-action" in step.get("run", "")
    )
    if "with" in step:
        return dict(step["with"])
    return {name.removeprefix("INPUT_").lower().replace("_", "-"): value for name, value in step["env"].items()}


def test_the_settings_read_each_input_and_no_other() -> None:
    assert FIELDS.keys() == GPU.keys() | LIGHT.keys()


@pytest.mark.parametrize("name", sorted(set(GPU) & set(LIGHT) - {"mode"}))
def test_an_input_of_both_actions_has_one_default(name: str) -> None:
    assert GPU[name].get("default") == LIGHT[name].get("default")


@pytest.mark.parametrize("name", sorted({**GPU, **LIGHT}))
def test_a_default_is_that_of_the_settings(name: str) -> None:
    written = {**LIGHT, **GPU}[name].get("default", "")
    if name in ("github-token", "mode"):
        return
    if name == "torch-index":  # PyTorch's own for a workflow; the code names no registry
        assert written == trigger(workflow("minify.yml"))["workflow_call"]["inputs"][name]["default"]
        return
    field = FIELDS[name]
    default = field.default.get_secret_value() if name.endswith("token") else field.default
    meant = "" if default is None else f"{default:g}" if isinstance(default, float) else str(default)
    assert str(written) == meant


@pytest.mark.parametrize("job", sorted(STEPS))
def test_a_job_gives_what_there_is(job: str) -> None:
    assert set(given(job)) <= set(LIGHT if job != "minify" else GPU)


def test_every_input_of_the_workflow_is_forwarded() -> None:
    text = (ROOT / ".github/workflows/minify.yml").read_text(encoding="utf-8")
    called = trigger(workflow("minify.yml"))["workflow_call"]
    for name in called["inputs"]:
        assert re.search(rf"\binputs\.{name}\b", text), name
    for name in called["secrets"]:
        assert f"secrets.{name}" in text
    forwarded = {name for job in STEPS for name, value in given(job).items() if f"inputs.{name}" in str(value)}
    assert set(called["inputs"]) - OF_THE_WORKFLOW <= forwarded


@pytest.mark.parametrize("job", sorted(set(STEPS) - {"minify"}))
def test_each_job_that_writes_comments_is_given_the_name_of_its_call(job: str) -> None:
    """Its comments are known by that."""
    assert given(job)["name"] == "${{ inputs.name }}"


def test_the_gate_is_given_each_input_that_may_be_unusable_or_that_it_tells_of() -> None:
    """What it is not given is found to be unusable when the work is done, and `/minify doctor` tells of a default."""
    any_text = {"setup", "python"}
    called = trigger(workflow("minify.yml"))["workflow_call"]["inputs"]
    assert set(called) & set(FIELDS) - any_text <= set(given("gate"))


@pytest.mark.parametrize("name", ["minify.yml", "sweep.yml"])
def test_a_machine_for_the_hosted_jobs_may_be_named_by_several_labels(name: str) -> None:
    description = trigger(workflow(name))["workflow_call"]["inputs"]["hosted-runner"]["description"]
    assert "JSON list of labels" in description
    for job in workflow(name)["jobs"].values():
        assert "fromJSON(inputs.hosted-runner)" in job["runs-on"] or "fromJSON(inputs.runner)" in job["runs-on"]
        # empty where a variable of the repository is not set: without a machine for these jobs nobody could say so
        assert "inputs.runner" in job["runs-on"] or job["runs-on"].endswith("|| inputs.hosted-runner || 'ubuntu-latest' }}")


def test_the_workflow_has_every_input_of_the_action() -> None:
    """But those that only say where the files between the jobs are, and whose token it is."""
    between = {
        "mode",
        "github-token",
        "bot-login",
        "runner-label",
        "request-file",
        "request-sha256",
        "index",
        "checkout",
        "result",
        "results",
        "durable-token",
        "stale-after",
    }
    called = trigger(workflow("minify.yml"))["workflow_call"]["inputs"]
    assert (set(GPU) | set(LIGHT)) - between == set(called) - OF_THE_WORKFLOW


@pytest.mark.parametrize("name", sorted(set(trigger(workflow("minify.yml"))["workflow_call"]["inputs"]) | {"durable-token"}))
def test_the_readme_names_each_input_of_the_workflow(name: str) -> None:
    assert f"| `{name}` |" in README


@pytest.mark.parametrize("name", sorted(set(GPU) - set(trigger(workflow("minify.yml"))["workflow_call"]["inputs"]) - {"durable-token"}))
def test_the_readme_or_its_docs_name_each_input_of_the_action(name: str) -> None:
    assert f"`{name}`" in README + (ROOT / "docs/github.md").read_text(encoding="utf-8")


def test_the_caller_for_red_ci_lets_through_what_the_gate_calls_red() -> None:
    assert f"contains(fromJSON('{json.dumps(FAILED)}'), github.event" in workflow("on-red-ci.yml")["jobs"]["minify"]["if"]


@pytest.mark.parametrize("name", ["on-comment.yml", "on-red-ci.yml"])
def test_the_readme_shows_the_callers_that_this_repository_uses(name: str) -> None:
    """Alike but for the name of the workflow that is called, and what stands for this repository's own runner and set-up."""
    import yaml

    shown = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)]
    own = workflow(name)
    alike = next(block for block in shown if block.get("name") == own["name"])
    assert trigger(alike).keys() == trigger(own).keys()
    assert alike["permissions"] == own["permissions"]
    for key in ("if", "permissions"):
        assert alike["jobs"]["minify"][key] == own["jobs"]["minify"][key]
    assert set(alike["jobs"]["minify"]["with"]) <= set(trigger(workflow("minify.yml"))["workflow_call"]["inputs"])
    assert re.fullmatch(r"torch-minify/torch-minify/\.github/workflows/minify\.yml@v\d+", alike["jobs"]["minify"]["uses"])
