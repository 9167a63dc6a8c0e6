"""What import-linter does not see: where `inside` must run, testing hooks of PyTorch, facts of one machine."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BOT = ROOT / "bot"
MODULES = sorted(BOT.rglob("*.py"))
TEXTS = [
    path
    for folder in ("bot", "docs", "examples", "scripts", ".ci", "tests/e2e")
    for path in sorted((ROOT / folder).rglob("*"))
    if path.is_file() and "__pycache__" not in path.parts
] + [path for path in ROOT.iterdir() if path.suffix in (".md", ".toml")]


def imported(path: Path) -> set[str]:
    """Absolute names of all that a file imports, at its top or within a function."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add(node.module or "")
    return names


@pytest.mark.parametrize("path", sorted((BOT / "inside").rglob("*.py")), ids=lambda path: path.name)
def test_inside_needs_the_standard_library_and_torch_alone(path: Path) -> None:
    """Where it runs none of our dependencies need exist, and the package may go by another name."""
    roots = {name.split(".")[0] for name in imported(path)}
    # pytest is there where the user's own tests run
    foreign = {root for root in roots if root not in sys.stdlib_module_names} - {"torch", "pytest", "_pytest"}
    assert not foreign
    assert "bot" not in roots, "relative imports only"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_testing_hook_is_named(path: Path) -> None:
    assert "TESTING_ONLY" not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_of_one_machine(path: Path) -> None:
    """No home directory, no checkout path, no package registry."""
    text = path.read_text(encoding="utf-8", errors="replace")
    found = re.findall(r"(?<![\w.])/(?:home|Users|root|work|opt)/[\w.]+|https?://[\w.-]*(?:pypi|simple/|download\.pytorch)[\w./-]*", text)
    assert not found
