"""The GPU check without a GPU: its scenarios are programs, and what is not as it has to be is said."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path
from statistics import median

import pytest
from benchlib import gpu
from benchlib.gpu_catalog import PARTS, PROGRAMS, SCENARIOS, Scenario
from benchlib.lanes import VISIBLE

from bot.models.result import Result

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


def recorded(file: str) -> list[gpu.Row]:
    """The rows of each run in one of the recorded files."""
    runs = json.loads((ROOT / "tests" / "fixtures" / "gpu" / f"{file}.json").read_text(encoding="utf-8"))
    return [gpu.Row(**row) for run in runs for row in run["rows"]]


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("goals-alone", "| aot_compile | minimized, aot | 2 → 1 | 7 | 4 | 0.6 | 6 | 4 | 9 | 21 |"),
        ("goals-alone", "| mobilenetv3_autocast | minimized, aot | 2141 → 1 | 11 | 6 | 1.0 | 66 | 85 | 9 | 163 |"),
        ("h100-whole-check", "| wasteful_pass | minimized, aot | 12 → 1 | 18 | 47 |  | 29 | 97 | 59 | 194 |"),
        ("h200-whole-check", "| transformer_663_without | minimized, aot | 860 → 1 | 7 |"),
    ],
)
def test_the_recorded_table_is_read_as_it_was_written(file: str, line: str) -> None:
    rows = recorded(file)
    table = gpu.table(rows)
    assert line in table
    assert table.count("\n") == len(rows) + 1


def test_the_page_has_the_figures_that_were_recorded() -> None:
    page = (ROOT / "docs" / "gpu.md").read_text(encoding="utf-8")
    goals = {one.name: one.seconds for one in SCENARIOS if one.seconds}
    rows = recorded("goals-alone")
    for row in rows:
        behind = f"{row.verification:.0f} | {row.wall:.0f} | {goals[row.name]:.0f}"
        lines = [f" | {row.queries} | {row.capture:.0f} | {search} | {behind}" for search in (f"{row.search:.0f}", f"{row.search:.1f}")]
        assert any(line in page for line in lines)
    each = sorted(row.search / row.queries for row in rows)
    said = f"{each[0]:.1f} to {each[-2]:.1f} in the table above, {median(each):.1f} in the median, and {each[-1]:.0f} for mobilenetv3"
    assert said in page
    assert not any(row.wrong for row in rows)
    assert not [row.name for row in rows if row.wall > goals[row.name]]


def test_the_page_has_the_figures_of_the_day_before_and_the_goal_that_was_missed() -> None:
    page = " ".join((ROOT / "docs" / "gpu.md").read_text(encoding="utf-8").split())
    rows = recorded("goals-again")
    assert not any(row.wrong for row in rows)
    training = [row.wall for row in rows if row.name == "resnet18_training"]
    assert {row.name for row in rows if row.slow} == {"resnet18_training"}
    assert "took {} and {} s there, and {} and {} s on a third machine".format(*training) in page
    first = {row.name: row for row in reversed(rows)}
    above = {row.name: row for row in recorded("goals-alone")}
    assert first.keys() == above.keys()
    large = first.pop("mobilenetv3_autocast")
    sums = (sum(row.wall for row in first.values()), sum(above[name].wall for name in first))
    assert "took {:.0f} s together, against {:.0f} s above".format(*sums) in page
    assert f"mobilenetv3 took {large.wall:.0f} s with the machine to itself" in page
    each = sorted(row.query for row in above.values() if row.query is not None)
    assert f"took {each[0]:.1f} to {each[-1]:.1f} s from question to answer, {median(each):.1f} s in the median" in page
    each = sorted(row.query for row in (*first.values(), large) if row.query is not None)
    assert f"{each[0]:.1f} to {each[-1]:.1f} s there, {median(each):.1f} s in the median" in page


def test_the_whole_check_on_one_gpu_had_every_scenario() -> None:
    rows = recorded("h100-whole-check")
    assert sorted(row.name for row in rows) == sorted(one.name for one in SCENARIOS)
    assert sorted(row.name for row in rows if row.wrong) == ["aoti_accuracy", "healthy_aoti"]
    assert all("no AOTInductor package can be loaded here" in str(row.reason) for row in rows if row.wrong)


def test_the_whole_check_on_two_gpus_had_every_scenario_and_three_of_them_twice() -> None:
    """Those three ran out of time next to four others on one GPU. Their second run counts."""
    rows = recorded("h200-whole-check")
    last = {row.name: row for row in rows}
    assert sorted(last) == sorted(one.name for one in SCENARIOS)
    assert sorted(name for name, row in last.items() if row.wrong) == ["aoti_accuracy", "healthy_aoti"]
    first = sorted(row.name for row in rows if row is not last[row.name])
    assert first == ["out_of_memory", "overwritten_output", "wasteful_pass"]


def test_with_four_cores_two_goals_were_missed() -> None:
    page = " ".join((ROOT / "docs" / "gpu.md").read_text(encoding="utf-8").split())
    rows = {row.name: row for row in recorded("h200-four-cores")}
    assert (len(rows), any(row.wrong for row in rows.values())) == (17, False)
    assert sorted(name for name, row in rows.items() if row.slow) == ["aot_compile", "gpt2_bf16_training"]
    training, search = rows["gpt2_bf16_training"].wall, rows["aot_compile"].search
    assert f"GPT-2's training step took {training:.0f} s instead of 60 in all, and the search for the two operations" in page
    assert f"that do not compile {search:.1f} s instead of 5." in page


def test_without_a_gpu_the_repro_was_the_same() -> None:
    """Recorded on an H100; each repro was run there alone, too."""
    rows = json.loads((ROOT / "tests" / "fixtures" / "gpu" / "h100-without.json").read_text(encoding="utf-8"))["rows"]
    twins = {row["name"]: row for row in rows}
    assert len([name for name in twins if name.endswith("_without")]) == 7
    assert [row["wrong"] for row in rows] == [[]] * len(rows)


def test_a_name_that_no_scenario_has_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        gpu.main(["--list", "--only", "aot_compile", "*_nowhere"])
    assert ended.value.code == 2
    assert "there is no *_nowhere" in capsys.readouterr().err


def test_without_a_gpu_it_says_so() -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("of a machine without a GPU")
    words = [str(ROOT / "scripts" / "gpu-check"), "--python", sys.executable, "--only", "aot_compile"]
    ran = subprocess.run(words, capture_output=True, text=True, check=False, timeout=100)
    assert ran.returncode == 2
    assert "sees no GPU here: " in ran.stderr
    assert not ran.stdout


@pytest.mark.parametrize(("program", "said"), [("exit 3", "it cannot say what torch it has"), (None, "No such file or directory")])
def test_an_interpreter_without_torch_is_an_unusable_argument(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], program: str | None, said: str
) -> None:
    python = tmp_path / "python"
    if program is not None:
        python.write_text(f"#!/bin/sh\n{program}\n", encoding="utf-8")
        python.chmod(0o755)
    with pytest.raises(SystemExit) as ended:
        gpu.main(["--python", str(python), "--only", "aot_compile"])
    assert ended.value.code == 2
    assert f"--python {python}: {said}" in capsys.readouterr().err


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


RECORDED = ROOT / "tests" / "fixtures" / "gpu" / "h200"


@pytest.mark.parametrize("name", sorted(path.parent.name for path in RECORDED.glob("*/result.json")))
def test_what_was_recorded_is_still_as_its_scenario_has_it(name: str) -> None:
    scenario = next(one for one in SCENARIOS if one.name == name)
    found = json.loads((RECORDED / name / "result.json").read_text(encoding="utf-8"))
    repro = (RECORDED / name / "repro.py").read_text(encoding="utf-8")
    assert gpu.as_expected(scenario, found, repro) == []
    assert re.search(scenario.says, (RECORDED / name / "log.txt").read_text(encoding="utf-8"))
    assert Result.model_validate(found).verification.same == 3
