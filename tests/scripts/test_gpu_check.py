"""The GPU check without a GPU: its scenarios are programs, and what is not as it has to be is said."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from benchlib import gpu
from benchlib.gpu_catalog import PARTS, PROGRAMS, SCENARIOS, Scenario
from benchlib.lanes import VISIBLE

ROOT = Path(__file__).resolve().parents[2]
FOUND = {"status": "minimized", "reduction": {"ops_after": 1}}


def test_each_program_has_its_scenario_and_each_scenario_its_program() -> None:
    names = [one.name for one in SCENARIOS]
    assert len(names) == len(set(names))
    assert {path.stem for path in PROGRAMS.glob("*.py")} == {one.name for one in SCENARIOS if not one.program}
    assert {one.part for one in SCENARIOS} == set(PARTS)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.name)
def test_each_is_a_program_for_a_gpu(scenario: Scenario) -> None:
    ast.parse(scenario.text)
    assert "cuda" in scenario.text
    for pattern in (*scenario.has, *scenario.lacks, scenario.says):
        re.compile(pattern)
    if scenario.status == "not_reproduced":
        assert "TESTING_ONLY" not in scenario.text


@pytest.mark.parametrize(
    ("changes", "repro", "said"),
    [
        ({}, "torch.relu(x)", []),
        ({"status": "flaky"}, "torch.relu(x)", ["status flaky"]),
        ({"reduction": {"ops_after": 2}}, "torch.relu(x)", ["2 operations"]),
        ({"reduction": {"ops_after": None}}, "torch.relu(x)", []),
        ({}, "torch.sin(x)", ["lacks 'relu'", "has 'sin'"]),
        ({}, "torch.relu(x)\n" * 21, ["21 lines"]),
    ],
)
def test_what_is_not_as_it_has_to_be_is_said(changes: dict[str, object], repro: str, said: list[str]) -> None:
    scenario = Scenario("x", 1, has=("relu",), lacks=("sin",))
    assert gpu.as_expected(scenario, {**FOUND, **changes}, repro) == said


@pytest.mark.parametrize(("devices", "named"), [(("0", "1"), ["0", "1", "0"]), (("0",), [None] * 3)])
def test_lanes_have_a_gpu_each_where_there_are_several(
    monkeypatch: pytest.MonkeyPatch, devices: tuple[str, ...], named: list[str | None]
) -> None:
    monkeypatch.setattr(gpu, "gpus", lambda: devices)
    queue = gpu.shares(3)
    assert [queue.get()[1].get(VISIBLE) for _ in named] == named


def test_a_healthy_program_must_not_be_claimed() -> None:
    scenario = Scenario("x", 4, status="not_reproduced", ops=None)
    assert gpu.as_expected(scenario, {"status": "not_reproduced", "reduction": {}}, "") == []
    assert gpu.as_expected(scenario, FOUND, "x") == ["status minimized"]


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("h200", "| transformer_663 | minimized, dynamo | 344 → 1 | 7 | 3 | 44 | 61 | 14 | 123 |"),
        ("h200-windows", "| bert_fp16_accuracy | minimized, aot | 575 → 1 | 11 | 3 | 20 | 20 | 9 | 52 |"),
        ("h200-slow-host", "| mobilenetv3_autocast | minimized, aot | 2141 → 1 | 11 | 4 | 149 | 133 | 12 | 300 |"),
        ("h200-alone", "| bert_compile | minimized, aot | 525 → 1 | 7 | 4 | 26 | 12 | 11 | 50 |"),
        ("h200-1-lane", "| transformer_663 | minimized, aot | 860 → 1 | 7 | 4 | 16 | 49 | 9 | 77 |"),
        ("h200-3-lanes", "| illegal_access | minimized, dynamo | 7 → 1 | 16 | 22 | 23 | 84 | 16 | 127 |"),
        ("h100-four-lanes", "| resnet18_training | minimized, aot | 611 → 1 | 11 | 4 | 42 | 92 | 12 | 148 |"),
        ("h100-1-lane", "| kernel_compile | minimized, dynamo | 7 → 1 | 14 | 18 | 9 | 26 | 14 | 50 |"),
        ("h100-3-lanes", "| fp8_scaled_mm | minimized, aot | 30 → 1 | 11 | 5 | 30 | 27 | 25 | 88 |"),
        ("h100-4-lanes", "| dynamo_accuracy_error | minimized, dynamo | 21 → 1 | 10 | 3 | 12 | 10 | 14 | 39 |"),
        ("h100-before-readiness", "| aot_compile | minimized, aot | 2 → 1 | 7 | 4 | 8 | 11 | 11 | 34 |"),
        ("h100-readiness", "| aot_compile | minimized, aot | 2 → 1 | 7 | 4 | 7 | 6 | 12 | 30 |"),
        ("h100-windows-beside", "| gpt2_bf16_training | minimized, dynamo | 90 → 1 | 11 | 3 | 48 | 18 | 13 | 82 |"),
        ("h100-with-and-without", "| transformer_663_without | minimized, aot | 860 → 1 | 7 | 4 | 20 | 9 | 12 | 48 |"),
        ("h100-errors-2-lanes", "| bert_compile | minimized, aot | 525 → 1 | 7 | 4 | 18 | 10 | 9 | 39 |"),
        ("h100-numbers-alone", "| gpt2_bf16_training | minimized, dynamo | 90 → 1 | 11 | 3 | 31 | 12 | 10 | 54 |"),
        ("h200-jobs-auto", "| resnet18_training | minimized, aot | 611 → 1 | 11 | 5 | 32 | 16 | 8 | 58 |"),
        ("h100-jobs-auto", "| illegal_access | minimized, dynamo | 7 → 1 | 16 | 26 | 15 | 43 | 10 | 68 |"),
        ("h100-two-operations", "| aot_compile | minimized, aot | 2 → 1 | 7 | 3 | 5 | 4 | 9 | 20 |"),
        ("h100-hooks", "| device_custom_pass_numbers | minimized, aot | 5 → 1 | 24 | 44 | 17 | 78 | 13 | 116 |"),
        ("h100-without", "| backward_only_without | minimized, aot | 16 → 1 | 7 | 4 | 7 | 12 | 13 | 39 |"),
        ("h100-warm", "| aot_compile | minimized, aot | 2 → 1 | 7 | 6 | 7 | 18 | 12 | 41 |"),
        ("h200-5-lanes", "| resnet18_training | minimized, aot | 611 → 1 | 12 | 4 | 77 | 125 | 8 | 214 |"),
    ],
)
def test_the_recorded_table_is_read_as_it_was_written(file: str, line: str) -> None:
    recorded = json.loads((ROOT / "tests" / "fixtures" / "gpu" / f"{file}.json").read_text(encoding="utf-8"))
    assert recorded["machine"]["gpu"].startswith(f"NVIDIA {file[:4].upper()}")
    rows = [gpu.Row(**row) for row in recorded["rows"]]
    table = gpu.table(rows)
    assert line in table
    assert table.count("\n") == len(rows) + 1


def test_without_a_gpu_the_repro_was_the_same() -> None:
    """Recorded on an H100; each repro was run there alone, too."""
    rows = json.loads((ROOT / "tests" / "fixtures" / "gpu" / "h100-without.json").read_text(encoding="utf-8"))["rows"]
    twins = {row["name"]: row for row in rows}
    assert len([name for name in twins if name.endswith("_without")]) == 7
    assert [row["wrong"] for row in rows] == [[]] * len(rows)


def test_without_a_gpu_it_says_so() -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("of a machine without a GPU")
    words = [str(ROOT / "scripts" / "gpu-check"), "--python", sys.executable, "--only", "aot_compile"]
    ran = subprocess.run(words, capture_output=True, text=True, check=False, timeout=100)
    assert ran.returncode == 2
    assert "sees no GPU here" in ran.stderr


def test_a_twin_has_to_come_to_the_same_repro(tmp_path: Path) -> None:
    def wrote(name: str, message: str, text: str | None) -> Path:
        out = tmp_path / name / "work" / "minified"
        out.mkdir(parents=True)
        (out / "result.json").write_text(json.dumps({"signature": {"message": message}}), encoding="utf-8")
        if text is not None:
            (out / "repro.py").write_text(text, encoding="utf-8")
        return tmp_path / name

    first = wrote("first", "said", "# with a GPU\nx = 1\n")
    assert gpu.unlike(first, tmp_path / "not run") == []
    assert gpu.unlike(first, wrote("same", "said", "# without one\nx = 1\n")) == []
    assert gpu.unlike(wrote("other text", "said", "x = 2\n"), first) == ["repro not that of first"]
    assert gpu.unlike(wrote("other failure", "else", "x = 1\n"), first) == ["signature not that of first"]
    assert gpu.unlike(wrote("nothing", "said", None), first) == ["repro not that of first"]
    assert gpu.unlike(first, first) == []
