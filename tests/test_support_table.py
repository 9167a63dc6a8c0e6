"""The README says nothing that no test backs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bot.models.failure import Kind, Stage
from tests.e2e.e2e_catalog import PASSES, ROWS

README = (Path(__file__).resolve().parents[1] / "README.md").read_text(encoding="utf-8")
SUPPORTED = README.split("\n## What is supported\n")[1].split("\n## ")[0]
STAGES, HOOKS = [block.splitlines() for block in SUPPORTED.split("\n\n") if block.startswith("|")]
BY_ID = {row.id: row for row in ROWS}


def cells(table: list[str]) -> list[tuple[str, str, str]]:
    """(row's name, column's name, text) of a Markdown table."""
    head, _, *body = ([cell.strip() for cell in line.strip("|").split("|")] for line in table)
    return [(row[0].strip("`"), column, text) for row in body for column, text in zip(head[1:], row[1:], strict=True)]


def test_every_stage_and_kind_is_in_the_table() -> None:
    found = cells(STAGES)
    assert {stage for stage, _, _ in found} == {stage.value for stage in Stage}
    assert {kind for _, kind, _ in found} == {kind.value for kind in Kind}


@pytest.mark.parametrize(("stage", "kind", "text"), cells(STAGES))
def test_a_cell_is_backed(stage: str, kind: str, text: str) -> None:
    if text == "–":
        return
    named = re.findall(r"`(\w+)`(\*?)", text)
    assert named
    for name, star in named:
        row = BY_ID[name]
        assert row.kind == kind
        assert stage == row.stage
        assert row.only_all is bool(star), f"whether {name} runs under scripts/test"


@pytest.mark.parametrize(("hook", "way", "text"), cells(HOOKS))
def test_a_hook_is_backed(hook: str, way: str, text: str) -> None:
    named = re.findall(r"`(\w+)`(\*?)", text)
    assert named
    for name, star in named:
        row = BY_ID[name]
        assert row.kind == ("exception" if way == "raises" else "accuracy")
        assert row.culprit is not None
        assert hook in row.culprit or hook.startswith("a backend")
        assert row.only_all is bool(star)


def test_what_is_said_beside_the_tables_is_backed() -> None:
    prose = "\n".join(block for block in SUPPORTED.split("\n\n") if not block.startswith("|"))
    named = [(name, star) for name, star in re.findall(r"`(\w+)`(\*?)", prose) if "_" in name]
    assert named
    assert [(name, star) for name, star in named if BY_ID[name].only_all is not bool(star)] == []


def test_every_pass_is_in_the_table() -> None:
    assert {row.id for row in PASSES} == {name for _, _, text in cells(HOOKS) for name in re.findall(r"`(\w+)`", text)}
