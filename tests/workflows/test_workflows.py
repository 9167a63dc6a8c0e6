"""What the design says about jobs, permissions and pins, read from the files themselves."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bot.action import request_file
from bot.action.console import InputError
from tests.workflows.workflow_files import ACTIONS, ROOT, WORKFLOWS, load, trigger, workflow

DESIGN = {
    "gate": {"contents": "read", "issues": "write", "pull-requests": "write", "actions": "read"},
    "minify": {"contents": "read"},
    "report": {"issues": "write", "pull-requests": "write", "actions": "read"},
    "stop": {"actions": "write", "issues": "write", "pull-requests": "write"},
    "unanswered": {"issues": "write", "pull-requests": "write"},
}
CALLERS = ("on-comment.yml", "on-red-ci.yml")


def jobs(path: Path) -> dict[str, Any]:
    return load(path)["jobs"]


def steps(path: Path) -> list[dict[str, Any]]:
    return [step for job in jobs(path).values() for step in job.get("steps", [])]


def test_permissions_are_those_of_the_design() -> None:
    found = {name: job["permissions"] for name, job in workflow("minify.yml")["jobs"].items()}
    assert found == DESIGN


@pytest.mark.parametrize("name", CALLERS)
def test_a_caller_grants_what_the_jobs_ask_for_and_no_more(name: str) -> None:
    """GitHub refuses to start a workflow one of whose jobs asks for more than the caller has."""
    order = ["none", "read", "write"]
    most: dict[str, str] = {}
    for permissions in DESIGN.values():
        for scope, level in permissions.items():
            most[scope] = max(most.get(scope, "none"), level, key=order.index)
    assert workflow(name)["jobs"]["minify"]["permissions"] == most


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_nothing_is_granted_at_the_top(path: Path) -> None:
    assert load(path)["permissions"] == {}


def test_the_job_that_runs_foreign_code_has_no_secret() -> None:
    job = workflow("minify.yml")["jobs"]["minify"]
    text = json.dumps(job)
    assert "secrets." not in text
    assert "secrets[" not in text
    assert "toJSON(secrets" not in text
    assert "github.token" not in text
    assert "token" not in {key for step in job["steps"] for key in step.get("with", {})}
    checkout = next(step for step in job["steps"] if "actions/checkout@" in step.get("uses", ""))
    assert checkout["with"]["persist-credentials"] is False
    assert checkout["with"]["ref"] == "${{ matrix.commit }}"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_no_secret_is_inherited(path: Path) -> None:
    assert all(job.get("secrets") != "inherit" for job in jobs(path).values())


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_everything_is_pinned(path: Path) -> None:
    for used in [step["uses"] for step in steps(path) if "uses" in step]:
        assert re.fullmatch(r"\$/\.github/actions/light|[\w.-]+/[\w.-]+@[0-9a-f]{40}", used), used


def test_bases_are_pinned_and_alike() -> None:
    texts = [(ROOT / name).read_text(encoding="utf-8") for name in ("Dockerfile", "light.Dockerfile")]
    for text in texts:
        assert re.findall(r"(?m)^FROM (\S+)", text) == ["${BASE}"]
        assert re.search(r"(?m)^ARG BASE=\S+@sha256:[0-9a-f]{64}$", text)
    first, second = (text[text.index("ARG BASE=") : text.index("WORKDIR /src")] for text in texts)
    assert first == second


def test_the_image_holds_what_the_checkout_looks_for() -> None:
    """actions/checkout v6.0.2 runs in the job's container. Without git it refuses submodules (src/git-source-provider.ts), with `lfs` it
    fails where there is no git-lfs on PATH (src/git-command-manager.ts)."""
    checkout = next(step for step in workflow("minify.yml")["jobs"]["minify"]["steps"] if "actions/checkout@" in step.get("uses", ""))
    assert {"submodules", "lfs"} <= set(checkout["with"])
    (installed,) = re.findall(r"apt-get install ([^\\]*)", (ROOT / "Dockerfile").read_text(encoding="utf-8"))
    assert {"git", "git-lfs"} <= set(installed.split())


def checks_forks_out(text: str) -> bool:
    """Whether the checkout in the `text` of a workflow takes a fork's commit after workflow_run: v7 wants to be told, v6 does not know how
    (action.yml and src/unsafe-pr-checkout-helper.ts of actions/checkout v7.0.1)."""
    (major,) = re.findall(r"actions/checkout@[0-9a-f]{40} # v(\d+)\.", text)
    told = re.search(r"(?m)^ +allow-unsafe-pr-checkout: (?:true|\$\{\{ matrix\.fork \}\})$", text) is not None
    return told == (int(major) >= 7)


def test_a_newer_checkout_still_takes_commits_of_forks() -> None:
    text = (ROOT / ".github/workflows/minify.yml").read_text(encoding="utf-8")
    assert checks_forks_out(text)
    newer = re.sub(r"(actions/checkout@[0-9a-f]{40} # v)\d+", r"\g<1>7", text)
    assert not checks_forks_out(newer)
    assert checks_forks_out(newer.replace("          lfs:", "          allow-unsafe-pr-checkout: ${{ matrix.fork }}\n          lfs:"))


def test_no_digest_of_an_image_is_in_a_workflow() -> None:
    """The token of a workflow cannot push a change to such a file: GitHub wants the permission `workflows`, which it never has."""
    for path in WORKFLOWS:
        text = path.read_text(encoding="utf-8")
        assert "@sha256:" not in text, path.name
        assert "ghcr.io/" not in text, path.name


@pytest.mark.parametrize("path", ACTIONS, ids=lambda path: path.parent.name)
def test_a_commit_that_is_no_release_is_built_from_its_own_files(path: Path) -> None:
    """actions/runner at 2.336: the file's name ends in Dockerfile, and the folder that holds it is the context (ActionManager.cs)."""
    named = load(path)["runs"]["image"]
    file = (path.parent / named).resolve()
    assert file.name.endswith("Dockerfile")
    assert file.parent == ROOT
    assert file.is_file()


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_no_event_text_in_a_command_or_in_the_options_of_a_container(path: Path) -> None:
    for job in jobs(path).values():
        assert all("${{" not in step.get("run", "") for step in job.get("steps", []))
        container = job.get("container", {})
        assert "github.event" not in json.dumps(container)
        assert "matrix." not in json.dumps(container)


@pytest.mark.parametrize(("output", "image"), [("none", ""), ("mine:1", "mine:1"), ("", "the-gate-s-output-was-dropped")])
def test_an_output_that_github_drops_does_not_take_the_container_away(output: str, image: str) -> None:
    """One that may hold a secret is skipped (actions/runner, JobExtension.cs). `&&` and `||` give one of their operands, as Python's do."""
    said = re.fullmatch(r"\$\{\{(.+)\}\}", workflow("minify.yml")["jobs"]["minify"]["container"]["image"])
    assert said
    expression = said[1].replace("needs.gate.outputs.image", "output").replace("&&", "and").replace("||", "or").strip()
    assert eval(expression, {"output": output}) == image


@pytest.mark.parametrize(
    ("first", "second", "read"),
    [
        ("success", "skipped", "results"),
        ("failure", "success", "results"),
        ("failure", "failure", "not-taken"),
        ("cancelled", "skipped", "not-taken"),
    ],
)
def test_a_result_that_came_in_part_is_not_read(first: str, second: str, read: str) -> None:
    """A disk that is full or a lost connection ends a download with some files whole, one cut off and the others missing."""
    steps = {step["name"]: step for step in workflow("minify.yml")["jobs"]["report"]["steps"]}
    again, clear = steps["Take the results once more"], steps["Clear what came in part"]
    assert again["with"] == steps["Take the results"]["with"]
    assert again["if"] == clear["if"] == "always() && steps.taken.outcome == 'failure'"
    said = re.fullmatch(r"\$\{\{ env\.PLACE \}\}/\$\{\{ (.+) \}\}", steps["Write the comment"]["with"]["results"])
    assert said
    expression = said[1].replace("steps.taken.outcome", "first").replace("steps.retaken.outcome", "second")
    assert eval(expression.replace("&&", "and").replace("||", "or"), {"first": first, "second": second}) == read


def test_requests_are_not_believed_where_github_drops_an_output() -> None:
    """A secret of one digit is part of nearly every hash; the name of the owner of the repository is part of the matrix."""
    text = (ROOT / ".github/workflows/minify.yml").read_text(encoding="utf-8")
    taken = re.findall(r"\{\{ (needs\.gate\.outputs\.matrix && .*?) \}\}", text)
    assert len(taken) == 2
    for expression in taken:
        expression = re.sub(r"needs\.gate\.outputs\.([a-z]+)[a-z0-9-]*", r"\1", expression).replace("&&", "and").replace("||", "or")
        given = {"matrix": "[{}]", "image": "none", "request": "abc"}
        assert eval(expression, dict(given)) == "abc"
        assert {eval(expression, given | {name: ""}) for name in given} == {request_file.DROPPED}
    with pytest.raises(InputError, match="an output of the job gate did not arrive"):
        request_file.read(Path(__file__), request_file.DROPPED)


def test_the_reusable_workflow_names_nothing_by_path() -> None:
    """`./` would be the caller's checkout."""
    assert any("uses" in step for step in steps(ROOT / ".github/workflows/minify.yml"))
    assert all(not step.get("uses", "").startswith("./") for step in steps(ROOT / ".github/workflows/minify.yml"))
    assert all("uses" not in job for job in jobs(ROOT / ".github/workflows/minify.yml").values())


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_hosted_job_never_names_the_gpu_image(path: Path) -> None:
    """It is gigabytes, and pulled at the start whatever the step's `if` says."""
    for name, job in jobs(path).items():
        if (path.name, name) != ("minify.yml", "minify") and path.name != "release.yml":
            assert "minify-gpu" not in json.dumps(job), name
            assert "container" not in job, name


def test_every_job_beside_the_one_that_minifies_is_on_the_machine_that_the_caller_names() -> None:
    """An organization may have no machines of GitHub's."""
    found = {name: job["runs-on"] for name, job in workflow("minify.yml")["jobs"].items()}
    assert "inputs.runner" in found.pop("minify")
    assert all("inputs.hosted-runner" in label and "inputs.runner" not in label for label in found.values())
    (sweep,) = workflow("sweep.yml")["jobs"].values()
    # a schedule has no inputs
    assert sweep["runs-on"] == found["report"]


def test_the_matrix_goes_on_and_names_are_unique() -> None:
    job = workflow("minify.yml")["jobs"]["minify"]
    assert job["strategy"]["fail-fast"] is False
    first, again = (step for step in job["steps"] if "upload-artifact" in step.get("uses", ""))
    assert first["with"]["name"] == "torch-minify${{ inputs.name && '-' }}${{ inputs.name }}-result-${{ matrix.index }}"
    assert (first["if"], first["continue-on-error"]) == ("always()", True)
    # what could not be handed on is tried once more, and fails the job then
    assert (again["if"], again["with"]) == ("always() && steps.handed.outcome == 'failure'", first["with"] | {"overwrite": True})
    assert "continue-on-error" not in again


def test_report_runs_whatever_became_of_the_rest() -> None:
    """After a cancel too, in which a step without a condition is skipped (GitHub's documentation of how a run is cancelled)."""
    for job in ("report", "unanswered"):
        found = workflow("minify.yml")["jobs"][job]
        assert found["if"].startswith("always() && ")
        assert {step["if"].partition(" && ")[0] for step in found["steps"]} == {"always()"}


def test_two_events_do_not_cancel_each_other() -> None:
    concurrency = workflow("minify.yml")["concurrency"]
    assert concurrency["cancel-in-progress"] is False
    assert all(part in concurrency["group"] for part in ("github.event.comment.id", "github.event.workflow_run.id", "github.run_id"))


def test_the_triggers() -> None:
    assert trigger(workflow("on-comment.yml")) == {"issue_comment": {"types": ["created"]}}
    assert trigger(workflow("on-red-ci.yml"))["workflow_run"]["types"] == ["completed"]
    # by its literal name, which nothing checks on GitHub
    assert trigger(workflow("on-red-ci.yml"))["workflow_run"]["workflows"] == [workflow("ci.yml")["name"]]
    assert list(trigger(workflow("minify.yml"))) == ["workflow_call"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_nothing_is_cached(path: Path) -> None:
    """A workflow that a comment starts runs in the default branch's scope of caches."""
    assert "actions/cache" not in path.read_text(encoding="utf-8")


def test_actions_are_containers() -> None:
    assert [load(path)["runs"]["using"] for path in ACTIONS] == ["docker", "docker"]


def test_an_old_result_is_never_reported_for_a_new_one() -> None:
    """The machine of the report may be one that is kept, too."""
    job = workflow("minify.yml")["jobs"]["report"]
    assert all(f"${{{{ {word} }}}}" in job["env"]["PLACE"] for word in ("inputs.name", "github.run_id", "github.run_attempt"))
    taken = [step["with"]["path"] for step in job["steps"] if "download-artifact" in step.get("uses", "")]
    (read,) = (step["with"] for step in job["steps"] if step.get("uses") == "$/.github/actions/light")
    assert len(taken) == 3
    assert all(path.startswith("${{ env.PLACE }}/") for path in (*taken, read["request-file"], read["results"]))
    assert job["steps"][-1]["if"] == "always()"
    assert job["steps"][-1]["run"] == 'rm -rf -- "$PLACE" torch-minify-unposted'


def test_a_job_hands_on_no_result_of_another_request(tmp_path: Path) -> None:
    """Its set-up may have the account of the runner, and put another request's result beside its own."""
    steps = workflow("minify.yml")["jobs"]["minify"]["steps"]
    (given,) = (step["with"] for step in steps if step["name"] == "Hand the result on")
    for name in ("result-0", "result-1", "torch-minify-result-1/result-1", "1"):
        (tmp_path / "place/results" / name).mkdir(parents=True)
        (tmp_path / "place/results" / name / "result.json").write_text(name)
    words = {"path": given["path"], "name": given["name"], "include-hidden-files": "false", "if-no-files-found": "warn"}
    inputs = {name.upper().replace("-", "_"): re.sub(r"\$\{\{.*?\}\}", _filled, text) for name, text in words.items()}
    (tmp_path / "store").mkdir()
    variables = {f"A_{name}": text for name, text in inputs.items()} | {"ACT_ARTIFACTS": str(tmp_path / "store")}
    subprocess.run([sys.executable, ROOT / "tests/workflows/act/artifact.py", "up"], cwd=tmp_path, env=variables, check=True)
    (left,) = (path for path in (tmp_path / "store").rglob("*") if path.is_file())
    assert str(left.relative_to(tmp_path / "store")) == "torch-minify-result-0/result-0/result.json"


def _filled(expression: re.Match[str]) -> str:
    return {"${{ env.PLACE }}": "place", "${{ matrix.index }}": "0"}.get(expression[0], "")


def test_the_gate_finds_and_leaves_no_requests_on_a_machine_that_is_kept(tmp_path: Path) -> None:
    job = workflow("minify.yml")["jobs"]["gate"]
    (written,) = (step["with"]["request-file"] for step in job["steps"] if step.get("uses") == "$/.github/actions/light")
    first, last = job["steps"][0], job["steps"][-1]
    assert (last["if"], "if" in first, first["run"]) == ("always()", False, last["run"])
    # what an earlier checkout left there: a link, through which the gate would write, or a directory
    (tmp_path / "theirs").write_text("x", encoding="utf-8")
    for leave in (lambda: (tmp_path / written).symlink_to("theirs"), (tmp_path / written).mkdir):
        leave()
        subprocess.run(["bash", "-e", "-c", first["run"]], cwd=tmp_path, check=True)
        assert os.listdir(tmp_path) == ["theirs"]


def test_an_old_result_is_never_taken_for_a_new_one() -> None:
    """All that the job writes is in a directory of this job alone, and that is removed at its end, whatever happened."""
    job = workflow("minify.yml")["jobs"]["minify"]
    assert all(f"${{{{ {word} }}}}" in job["env"]["PLACE"] for word in ("github.run_id", "github.run_attempt", "matrix.index"))
    places: list[str] = []
    for step in job["steps"]:
        places += [step["with"]["path"]] if "path" in step.get("with", {}) else []
        places += [value for name, value in step.get("env", {}).items() if name in ("INPUT_CHECKOUT", "INPUT_RESULT")]
    # the checkout, the request, what the action gets and gives, and two uploads
    assert len(places) == 6
    assert all(place.startswith("${{ env.PLACE }}") for place in places)
    # what that does is tried in test_steps.py
    assert job["steps"][-1]["if"] == "always()"
