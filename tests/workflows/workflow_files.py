"""The files that GitHub reads, as data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT / ".tools"
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
ACTIONS = [ROOT / "action.yml", ROOT / ".github/actions/light/action.yml"]


def load(path: Path) -> dict[Any, Any]:
    """A file of YAML. The key `on` is read as true."""
    data = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert isinstance(data, dict)
    return data


def trigger(workflow: dict[Any, Any]) -> dict[str, Any]:
    return workflow[True]  # YAML 1.1 reads `on` so


def workflow(name: str) -> dict[Any, Any]:
    return load(ROOT / ".github/workflows" / name)
