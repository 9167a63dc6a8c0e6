"""Each failing program: the command line minimizes it, and its repro fails alone as the result says."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from tests.e2e.e2e_catalog import (
    AOT,
    AOT_INDUCTOR,
    DEFECTS,
    DYNAMO,
    ENVIRONMENT,
    HEALTHY,
    HIDDEN,
    HIGHER_ORDER,
    OTHERS,
    PASSES,
    ROWS,
    Row,
    params,
)
from tests.e2e.e2e_harness import CASES, ROOT, Answer, Finished, code_lines, exported_program_opens, minify_script, run_alone, without_pass

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1500)]


def check(row: Row, tmp: Path) -> Answer:
    """Minimize the row's program and check all that the row says."""
    answer = minify_script(CASES / f"{row.case}.py", tmp, "--verify-runs", "1", *row.options, env=dict(row.env))
    if row.mended_here:
        did_not_reproduce(answer)
        assert re.search(row.mended_here.reason, answer.result["reason"]), answer.described()
        return answer
    assert answer.process.status == 0, answer.described()
    assert str(tmp) not in answer.repro, "an absolute path is left in the repro"
    is_as_said(row, answer)
    fails_alone(row, run_alone(answer.directory / "repro.py") if row.kind != "hang" else None, answer)
    if row.culprit is not None:
        passes_without_its_pass(answer, tmp)
    if row.dumped:
        launchers = (answer.directory / "original" / "pytorch").rglob("minifier_launcher.py")
        written = "\n".join(path.read_text(encoding="utf-8") for path in launchers)
        assert f"torch._dynamo.repro.{row.dumped} import run_repro" in written, answer.described()
        assert answer.result["evidence"]["pytorch_dump"] is True
    if row.exported is not None:
        opened = exported_program_opens(answer.directory / answer.result["files"]["exported_program"])
        assert opened.status == 0, opened.text[-3000:]
    if row.kernel:
        alone = run_alone(answer.directory / answer.result["files"]["kernel"])
        assert alone.status not in (0, None), answer.described()
        assert re.search(row.repro, alone.text), alone.text[-3000:]
    return answer


def did_not_reproduce(answer: Answer) -> None:
    """There is nothing to minimize, and no repro that somebody could post."""
    assert answer.process.status == 4, answer.described()
    assert answer.result["status"] == "not_reproduced"
    assert answer.result["signature"] is None
    assert not (answer.directory / "repro.py").exists()
    assert answer.result["files"]["repro"] is None


def is_as_said(row: Row, answer: Answer) -> None:
    """What `result.json` and the repro's text say."""
    result, text = answer.result, answer.repro
    signature, reduction = result["signature"], result["reduction"]

    assert result["status"] == "minimized"
    assert re.fullmatch(row.stage, result["stage"]), answer.described()
    assert signature["kind"] == row.kind, answer.described()
    if row.phase is not None:
        assert re.fullmatch(row.phase, signature["phase"]), answer.described()
    if row.root is not None:
        assert signature["exception"][-1] == row.root, answer.described()
    assert row.message in signature["message"], answer.described()
    if row.backward is not None:
        assert signature["backward"] is row.backward, answer.described()
    assert result["verification"]["same"] == result["verification"]["runs"] >= 1
    assert result["verification"]["eager"] == "passes" or row.kind == "no_raise", answer.described()

    if row.ops is not None and result["stage"] != "source":
        assert reduction["ops_after"] <= row.ops, answer.described()
    if row.queries is not None:
        asked = [json.loads(line)["pass"] for line in (answer.directory / "reduction.jsonl").read_text(encoding="utf-8").splitlines()]
        assert reduction["queries"] == len(asked), answer.described()
        assert sum(not origin.startswith("start:") for origin in asked) <= row.queries, answer.described()
    assert reduction["lines_after"] == code_lines(text)
    assert code_lines(text) <= row.most_lines, answer.described()
    code = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    for part in row.has:
        assert holds(code, part), f"{part!r} is not in the repro\n{answer.described()}"
    for part in row.lacks:
        assert not holds(code, part), f"{part!r} is left in the repro\n{answer.described()}"
    assert "import bot" not in code
    assert "from bot" not in code
    if row.culprit is not None:
        assert row.culprit in (result["culprit"] or ""), answer.described()
    if row.exported:
        assert result["exported_program"]["same_signature"] is True, answer.described()
    elif row.exported is False and not result["exported_program"]["same_signature"]:
        assert result["exported_program"]["reason"], answer.described()


def passes_without_its_pass(answer: Answer, tmp: Path) -> None:
    """The pass is to blame: with None in its place the repro runs to its end."""
    script = tmp / "without_pass.py"
    script.write_text(without_pass(answer.repro), encoding="utf-8")
    alone = run_alone(script)
    assert alone.status == 0, f"it fails without its pass\n{alone.text[-3000:]}\n{answer.described()}"


def holds(code: str, part: str) -> bool:
    """Whether the code has this text as words of its own: `exp` is not in `expected`."""
    before = r"(?<!\w)" if part[0].isalnum() else ""
    after = r"(?!\w)" if part[-1].isalnum() else ""
    return re.search(before + re.escape(part) + after, code) is not None


def fails_alone(row: Row, alone: Finished | None, answer: Answer) -> None:
    """The repro's own failure is of the row's kind."""
    if alone is None:
        with pytest.raises(AssertionError, match="still running after"):
            run_alone(answer.directory / "repro.py", limit=40.0)
        return
    if row.kind == "crash":
        assert alone.status in (-11, -6, -8, -7), f"{alone.status}\n{answer.described()}"
        return
    assert alone.status == 1, f"the repro ended with {alone.status}\n{alone.text[-3000:]}\n{answer.described()}"
    assert re.search(row.repro, alone.err), f"{row.repro!r} is not what it says\n{alone.text[-3000:]}\n{answer.described()}"


@pytest.mark.parametrize("row", params(AOT))
def test_aot(row: Row, tmp_path: Path) -> None:
    check(row, tmp_path)


@pytest.mark.parametrize("row", params(AOT_INDUCTOR))
def test_aot_inductor(row: Row, tmp_path: Path) -> None:
    check(row, tmp_path)


@pytest.mark.parametrize("row", params(DYNAMO))
def test_dynamo(row: Row, tmp_path: Path) -> None:
    check(row, tmp_path)


@pytest.mark.parametrize("row", params(OTHERS))
def test_other(row: Row, tmp_path: Path) -> None:
    check(row, tmp_path)


@pytest.mark.parametrize("row", params(HIGHER_ORDER))
def test_higher_order(row: Row, tmp_path: Path) -> None:
    check(row, tmp_path)


@pytest.mark.parametrize("row", params(ENVIRONMENT))
def test_environment(row: Row, tmp_path: Path) -> None:
    check(row, tmp_path)


@pytest.mark.parametrize("row", params(DEFECTS))
def test_defect(row: Row, tmp_path: Path) -> None:
    check(row, tmp_path)


@pytest.mark.parametrize("row", params(PASSES))
def test_custom_pass(row: Row, tmp_path: Path) -> None:
    check(row, tmp_path)


@pytest.mark.parametrize("row", params(HIDDEN))
def test_hidden(row: Row, tmp_path: Path) -> None:
    check(row, tmp_path)


def test_each_row_is_run() -> None:
    marks = [mark for value in list(globals().values()) for mark in getattr(value, "pytestmark", ()) if mark.name == "parametrize"]
    run = {id(given.values[0]) for mark in marks if mark.args[0] == "row" for given in mark.args[1]}
    assert {row.id for row in ROWS if id(row) not in run} == set()


@pytest.mark.parametrize(
    ("case", "options"),
    [
        pytest.param(case, options, id=" ".join((case, *options)), marks=[pytest.mark.all] if only_all else [])
        for case, options, only_all in HEALTHY
    ],
)
def test_healthy(case: str, options: tuple[str, ...], tmp_path: Path) -> None:
    did_not_reproduce(minify_script(CASES / f"{case}.py", tmp_path, *options))


@pytest.mark.all
def test_dynamic_shape_is_needed(tmp_path: Path) -> None:
    """What fails only under dynamic=True keeps a symbolic size, and says which: without the mark its repro shows another face."""
    answer = minify_script(CASES / "dynamic_shapes.py", tmp_path, "--verify-runs", "1")
    assert answer.process.status == 0, answer.described()
    assert answer.repro.count("mark_dynamic(") == 1
    assert "dynamic=" not in answer.repro
    static = tmp_path / "static.py"
    static.write_text("".join(row for row in answer.repro.splitlines(True) if "mark_dynamic(" not in row), encoding="utf-8")
    # what remains of the backend need not return anything, so this need not end well
    assert "whose size is not known" not in run_alone(static).err


@pytest.mark.all
def test_same_repro_twice(tmp_path: Path) -> None:
    """The same program, seed and versions give the same repro, whatever the number of candidates that are tried at once."""
    texts = []
    for jobs in ("1", "2", "auto"):
        place = tmp_path / jobs
        place.mkdir()
        answer = minify_script(CASES / "real_aot_cpp.py", place, "--verify-runs", "1", "--seed", "7", "--jobs", jobs)
        assert answer.process.status == 0, answer.described()
        texts.append(answer.repro)
    assert texts[0] == texts[1] == texts[2]


@pytest.mark.all
@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.name)
def test_example(example: Path, tmp_path: Path) -> None:
    """What the README invites to try."""
    answer = minify_script(example, tmp_path, "--verify-runs", "1")
    assert answer.process.status == 0, answer.described()
    assert answer.result["status"] == "minimized"
    assert answer.result["reduction"]["lines_after"] <= 30
    repro = tmp_path / "alone.py"
    repro.write_text(answer.repro, encoding="utf-8")
    assert run_alone(repro).status != 0


@pytest.mark.all
def test_what_is_minimal_already_is_reproduced(tmp_path: Path) -> None:
    text = 'import torch\n\ntorch.compile(torch.relu, backend="relu_compile_error_TESTING_ONLY")(torch.ones(()))\n'
    script = tmp_path / "fail.py"
    script.write_text(text, encoding="utf-8")
    answer = minify_script(script, tmp_path, "--verify-runs", "1")
    assert (answer.process.status, answer.result["status"]) == (3, "reproduced"), answer.described()
    assert answer.repro.endswith(text)


@pytest.mark.all
def test_also_with_another_interpreter(tmp_path: Path) -> None:
    other = tmp_path / "python-without-torch"
    other.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    other.chmod(0o755)
    answer = minify_script(
        CASES / "real_aot_lowering.py", tmp_path, "--verify-runs", "1", "--also-python", sys.executable, "--also-python", str(other)
    )
    same, without = answer.result["evidence"]["elsewhere"]
    assert (same["same"], same["said"]) == (True, None)
    assert same["versions"]["torch"] == answer.result["versions"]["torch"]
    assert not without["same"]
    assert "torch" in without["said"]
    assert "the same failure" in answer.process.out


@pytest.mark.all
def test_a_failure_that_shows_now_and_then(tmp_path: Path) -> None:
    """The program fails in half of its runs: it may pass the first time, and the repro may fail three times in a row."""
    for attempt in range(6):
        place = tmp_path / str(attempt)
        place.mkdir()
        answer = minify_script(CASES / "now_and_then.py", place)
        if answer.process.status != 4:
            break
    assert answer.process.status in (0, 5), answer.described()
    assert answer.result["reduction"]["ops_after"] == 1, answer.described()
    proof = answer.result["verification"]
    assert 0 < proof["same"] <= proof["runs"]
    assert answer.result["status"] == ("flaky" if proof["same"] < proof["runs"] else "minimized")
