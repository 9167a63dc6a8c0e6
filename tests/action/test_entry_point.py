"""What the documents tell people to install on a runner, or in an image of their own, is enough to start `torch-minify-action`."""

from __future__ import annotations

import ast
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
INSTALL = re.compile(r"pip install '(torch-minify\[(\w+)\]) @ git\+https://[\w./-]+@[\w.]+'")


def extras() -> set[str]:
    """The extras that the documents name in install lines with an address."""
    return {extra for name in ("README.md", "docs/github.md") for _, extra in INSTALL.findall((ROOT / name).read_text(encoding="utf-8"))}


def test_the_documents_name_one_extra() -> None:
    assert extras() == {"action"}


def test_the_extra_has_all_that_is_imported() -> None:
    """Each module of ours that the action may load, against what is declared; the engine's own packages are dependencies in any case."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = [*project["dependencies"], *project["optional-dependencies"]["action"]]
    declared = {re.split(r"[^\w.-]", line, maxsplit=1)[0].lower() for line in lines}
    known = importlib.metadata.packages_distributions()
    for path in (ROOT / "bot/action").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and node.level == 0 else []
            for root in {name.partition(".")[0] for name in names} - sys.stdlib_module_names - {"bot", "typing_extensions"}:
                # pydantic_core comes with pydantic
                assert {each.lower() for each in known[root]} & (declared | {"pydantic_core", "pydantic-core"}), f"{path.name}: {root}"


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_it_starts_in_an_environment_with_that_alone(tmp_path: Path) -> None:
    source = tmp_path / "source"
    shutil.copytree(ROOT / "bot", source / "bot", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    python = tmp_path / "venv/bin/python"
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    (extra,) = extras()
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"{source}[{extra}]"]
    subprocess.run(install, check=True, capture_output=True, timeout=240)
    environment = {"PATH": os.environ["PATH"], "GITHUB_ACTIONS": "true", "INPUT_MODE": "minify", "INPUT_REQUEST_FILE": "none.json"}
    done = subprocess.run(
        [python.with_name("torch-minify-action")], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    # as far as the request that is not there: everything was imported
    assert (done.returncode, done.stderr.partition(":")[0]) == (2, "torch-minify")
    assert "cannot read the requests in none.json" in done.stderr
