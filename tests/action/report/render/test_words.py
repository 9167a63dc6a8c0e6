"""What is said of each status, and that nothing is said which the figures do not bear out."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.action.report.render import facts, notes
from bot.action.report.render.local import command, loading, steps
from bot.action.report.render.rendering import COMMENT_LIMIT, SUMMARY_LIMIT, annotations_of, render
from bot.action.report.render.section import module_of
from bot.action.report.render.text import clean, size
from bot.action.report.render.verdict import doubt, status, title
from bot.action.report.result_dir import Folder, section
from bot.models.failure import Kind, Phase, Signature, Stage
from bot.models.report import Download, Report, Section, Stored
from bot.models.request import Cause, CodeOrigin, Request, RequestOptions
from bot.models.result import EndedBy, Files, Reduction, Result, Timing
from tests.action.report import github_page, reports

RESULTS = Path(__file__).resolve().parents[3] / "fixtures" / "results"
COMMENTS = RESULTS.parent / "comments"
NAMES = sorted(path.name for path in RESULTS.iterdir())


def of(**changes: Any) -> Section:
    return Section(request=reports.request(), result=reports.result(**changes), repro="x = 1")


@pytest.mark.parametrize("name", NAMES)
def test_recorded_results_render_as_before(name: str) -> None:
    """`UPDATE_SNAPSHOTS=1` writes them anew; then read the difference."""
    part = section(reports.request(), Folder(RESULTS / name))
    download = Download(url="https://github.com/owner/name/actions/runs/1/artifacts/2", expires="2026-12-20")
    body = render(reports.report(part.model_copy(update={"download": download}))) + "\n"
    recorded = COMMENTS / f"{name}.md"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        recorded.parent.mkdir(exist_ok=True)
        recorded.write_text(body, encoding="utf-8")
    assert body == recorded.read_text(encoding="utf-8")


@pytest.mark.parametrize("of", [1, 2])
@pytest.mark.parametrize("name", NAMES)
def test_a_result_is_told_from_what_promises_or_refuses_one(name: str, of: int) -> None:
    part = section(reports.request(), Folder(RESULTS / name))
    body = render(reports.report(*[part] * of))
    assert notes.is_result(body) == (status(part) != "error")
    assert notes.pending(body) is None
    others = (notes.queued([reports.request()], "gpu", None), notes.refused("x"), notes.ended(None, None), notes.failed("x", None))
    assert not any(notes.is_result(f"{reports.MARKER}\n{other}") for other in others)


GPU = RESULTS.parent / "gpu" / "h200"


@pytest.mark.parametrize("name", sorted(path.parent.name for path in GPU.glob("*/result.json")))
def test_results_of_a_gpu_name_it_and_its_driver(name: str) -> None:
    body = render(reports.report(section(reports.request(), Folder(GPU / name))))
    (where,) = (line for line in body.splitlines() if line.startswith("<tr><td>Ran on</td>"))
    assert "NVIDIA H200, driver 580.159.04, CUDA " in where
    assert all(f", {name} " in where for name in ("torch", "triton", "Python"))
    assert 'device="cuda"' in body
    assert "→ 1 ops" in body


@pytest.mark.parametrize(
    ("trigger", "ended_by", "said"), [(42, "budget", 1), (None, "budget", 0), (42, "fixed_point", 0), (42, "interrupted", 0)]
)
def test_who_asked_is_told_how_to_give_it_longer(trigger: int | None, ended_by: EndedBy, said: int) -> None:
    part = of(ended_by=ended_by)
    answer = part.request.answer.model_copy(update={"trigger": trigger})
    part = part.model_copy(update={"request": part.request.model_copy(update={"answer": answer})})
    assert render(reports.report(part)).count("`/minify again --budget TIME`") == said


@pytest.mark.parametrize(("hits", "said"), [(0, " s, until nothing"), (1, "; 1 answer was known"), (2, "; 2 answers were known")])
def test_answers_known_from_before(hits: int, said: str) -> None:
    body = facts.reduction(Result(status="minimized", reduction=Reduction(queries=3, memo_hits=hits)))
    assert said in body
    assert ("known from before" in body) == (hits > 0)


def test_nothing_came_back() -> None:
    part = Section(request=reports.request())
    assert title(part) == "Could not be minimized"
    assert "There is no result. The job may not have started" in render(reports.report(part))


@pytest.mark.parametrize(
    "changes",
    [
        {"verification": {"runs": 2, "same": 2, "eager": "passes"}},
        {"verification": {"runs": 3, "same": 2, "eager": "passes"}},
        {"verification": {"runs": 3, "same": 4, "eager": "passes"}},
        {"verification": {"runs": 3, "same": 3, "eager": "fails"}},
        {"verification": {"runs": 3, "same": 3, "eager": "not_applicable"}},
        {"signature": None},
        {"status": "flaky"},
        {"status": "flaky", "verification": {"runs": 10, "same": 3, "eager": "fails"}},
        {"status": "flaky", "verification": {"runs": 10, "same": 3, "eager": "not_applicable"}},
    ],
)
def test_what_is_not_proven_is_not_called_minimized(changes: dict[str, Any]) -> None:
    part = Section(request=reports.request(), result=Result.model_validate({**reports.result().model_dump(), **changes}), repro="x = 1")
    assert status(part) == "error"
    body = render(reports.report(part))
    assert "### Could not be minimized" in body
    assert "Not repeated here: the result says" in body
    assert "### Minimized" not in body


def test_a_proof_without_a_repro_is_none() -> None:
    part = of().model_copy(update={"repro": None})
    assert doubt(part)
    assert status(part) == "error"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "Minimized"),
        ({"status": "reproduced"}, "Reproduced, not smaller"),
        ({"ended_by": "budget"}, "Minimized, stopped at the time limit"),
        ({"ended_by": "interrupted"}, "Minimized, interrupted"),
        ({"status": "flaky", "verification": {"runs": 10, "same": 3, "eager": "passes"}}, "Flaky, 3 of 10"),
        ({"status": "not_reproduced"}, "Did not reproduce here"),
        ({"status": "error"}, "Could not be minimized"),
    ],
)
def test_titles(changes: dict[str, Any], expected: str) -> None:
    part = Section(request=reports.request(), result=Result.model_validate({**reports.result().model_dump(), **changes}), repro="x = 1")
    assert title(part) == expected


def lines_of(part: Section, *others: Section) -> list[str]:
    return render(reports.report(part, *others)).splitlines()


def folded(rows: list[str], summary: str) -> str:
    """What is in the fold with that title, of which there is one."""
    (start,) = (number for number, row in enumerate(rows) if row == f"<details><summary>{summary}</summary>")
    return "\n".join(rows[start + 1 : rows.index("</details>", start)])


def test_a_section_is_titled_with_its_test_and_the_time_that_all_of_it_took() -> None:
    timed = reports.result(timing=Timing(capture=10.0, search=60.0, verification=14.0, evidence=0.4, total=84.4))
    one = Section(request=reports.request(script=None, command="pytest t.py::a"), result=timed, repro="x = 1")
    tests = ("t.py::test_b", "t.py::test_c", "t.py::test_d")
    more = Section(request=reports.request(script=None, command="A=1 pytest t.py::test_b", tests=tests), result=timed, repro="x = 1")
    rows = lines_of(one, more)
    assert [row for row in rows if row.startswith("### ")] == [
        "### 1. Minimized, 1 min 24 s: `pytest t.py::a`",
        "### 2. Minimized, 1 min 24 s: `t.py::test_b` and 2 more",
    ]
    assert "t.py::test_d" in folded(rows, "3 tests fail in this way")
    assert lines_of(of())[2] == "### Minimized"


def test_the_traceback_and_all_that_failed_beside_it_are_there_folded() -> None:
    causes = (Cause(verdict="no", reason="out of memory", failure="OutOfMemoryError: x", tests=("t.py::other",), taken=False),)
    part = Section(
        request=reports.request(causes=causes), result=reports.result(), repro="x = 1", traceback="> raise E\nE: no", log="the end"
    )
    rows = lines_of(part)
    assert "> raise E\nE: no" in folded(rows, "Traceback")
    assert "`>` marks the frame that raises" in folded(rows, "Traceback")
    assert "the end" not in "\n".join(rows)
    assert "<code>t.py::other</code>" in folded(rows, "All that failed in that run")
    # where nothing was raised, what was printed last
    gone = Section(request=reports.request(), result=reports.result(status="not_reproduced"), log="the end")
    assert "the end" in folded(lines_of(gone), "The end of its log")


def test_loading_a_program_comes_with_a_warning() -> None:
    """A small one is in the comment itself, a larger one is named."""
    stored = Stored(name="exported_program.pt2", size=5, sha256="a" * 64)
    made = {"request": reports.request(), "result": reports.result(), "repro": "x = 1", "files": (stored,), "exported_text": "graph"}
    small = lines_of(Section(**made, program="QUJD"))
    assert "QUJD" in folded(small, "The exported program as Python")
    assert "Loading it runs code of whoever wrote the program" in folded(small, "The exported program as Python")
    large = lines_of(Section(**made))
    assert 'torch.export.load("exported_program.pt2")' in folded(large, "The exported program")
    assert "Loading it runs code of whoever wrote the program" in folded(large, "The exported program")
    assert "The exported program as Python" not in "\n".join(large)


def test_whose_code_it_was() -> None:
    stranger = render(reports.report(of()))
    assert "`stranger`, who has no write permission here, from [the issue](https://github.com/owner/name/issues/7)" in stranger
    trusted = reports.request(code=CodeOrigin(where="comment", author="maintainer", trusted=True))
    assert "no write permission" not in render(reports.report(of().model_copy(update={"request": trusted})))


def test_a_traceback_stays_in_lines() -> None:
    reason = "fails in eager as well:\nTraceback (most recent call last):\n  File 'x.py'\nValueError: ```"
    body = render(reports.report(Section(request=reports.request(), result=reports.result(status="not_reproduced", reason=reason))))
    assert f"````text\n{reason}\n````" in body


def test_whose_fault_it_was_is_said_once() -> None:
    words = [render(reports.report(of(status="error", reason="no GPU here", machine_fault=fault))) for fault in ("no GPU", "the disk")]
    assert "`no GPU here`\n\nThis is the machine's fault." in words[0]
    assert "The machine's fault: `the disk`" in words[1]


def test_missing_errors_are_said_in_their_own_words() -> None:
    words = render(reports.report(of(signature=Signature(kind=Kind.NO_RAISE, phase=Phase.RUN))))
    assert "<tr><td>Without the compiler</td><td>raises, as it should</td></tr>" in words


@given(reports.requests)
def test_the_command_is_one_line_that_a_shell_reads_back(request_: Request) -> None:
    line = command(request_)
    words = shlex.split(line)
    assert words[:2] == ["torch-minify", "run"]
    if request_.command is not None:
        assert words[2:4] == ["--command", clean(request_.command).replace("\n", " ")]


def test_options_are_in_the_command() -> None:
    options = RequestOptions(stage=Stage.AOT, accuracy="strict", device="cuda", budget=90.0)
    assert command(reports.request(options=options)) == "torch-minify run fail.py --stage aot --accuracy strict --device cuda --budget 90s"


def test_the_three_lines_compile() -> None:
    for stage in Stage:
        lines = loading(reports.result(stage=stage))
        compile(lines, "loading.py", "exec")
        assert lines.count("\n") == 2


def test_the_module_of_a_repro() -> None:
    assert module_of("import torch\n\nclass Repro(Module):\n    a = 1\n\n    b = 2\n\nx = 1\nclass Repro2: pass\n") == (
        "class Repro(Module):\n    a = 1\n\n    b = 2"
    )
    assert module_of("x = 1") is None


@settings(max_examples=40)
@given(reports.reports)
def test_annotations_are_one_command_each(report: Report) -> None:
    lines = [each.command() for each in annotations_of(report)]
    assert 0 < len(lines) <= 10
    for line in lines:
        assert line.startswith(("::notice title=", "::warning title="))
        assert not set("\r\n\u2028\x00") & set(line)
        assert line.count("::", 0, line.index("::", 2) + 2) == 2


@settings(max_examples=40)
@given(st.lists(reports.requests, min_size=1, max_size=4), reports.texts, reports.maybe(reports.texts))
def test_notes_leave_room_and_mention_nobody(asked: list[Request], words: str, url: str | None) -> None:
    for body in (notes.queued(asked, words, url), notes.refused(words * 5_000), notes.problem(words * 5_000, words * 5_000)):
        assert size(body) <= COMMENT_LIMIT // 2
        github_page.check(body)
    github_page.check(notes.running(asked, 0, words, url))
    github_page.check(notes.ended(words, url))
    github_page.check(notes.opened(words, words, words))


candidates = st.builds(
    Cause,
    verdict=st.sampled_from(["suggested", "possible", "no", "?"]),
    reason=reports.texts,
    failure=reports.long_texts,
    tests=st.lists(reports.texts, max_size=3).map(tuple),
    taken=st.booleans(),
)


@settings(max_examples=40)
@given(st.lists(candidates, max_size=30))
def test_a_table_of_causes_is_bounded_and_one_block(found: list[Cause]) -> None:
    table = notes.candidates(found)
    assert size(table) <= notes.MOST_BYTES
    rows, _, more = table.partition("\n</table>")
    listed = rows.count("<tr>") - 1
    assert rows.count("\n") == listed + 1
    assert more == (f"\n\n{len(found) - listed} more causes are not listed." if listed < len(found) else "")
    github_page.check(table)


def test_causes_that_fit_are_all_listed() -> None:
    each = Cause(verdict="suggested", reason="it fails in the compiler", failure="RuntimeError: x", tests=("a::b", "a::c"), taken=True)
    table = notes.candidates([each] * 25)
    assert table.count("<td>suggested, taken</td>") == 20
    assert table.endswith("5 more causes are not listed.")
    assert "<code>a::b</code> and 1 more" in table


def test_the_queued_note_names_the_label_and_the_run() -> None:
    body = notes.queued([reports.request(), reports.request(id="c42-1")], "gpu-1", "https://github.com/owner/name/actions/runs/1")
    assert "`gpu-1`" in body
    assert "(https://github.com/owner/name/actions/runs/1)" in body
    assert "24 hours" in body
    assert body.count("no write permission") == 2
    assert "approve" not in body


def test_the_queued_note_shows_what_lay_in_a_fold() -> None:
    """Whoever asked for it may never have opened that."""
    script = "import torch\n" + "".join(f"x = {number}\n" for number in range(60)) + "wide = " + "1" * 500 + "\n"
    plain = reports.request(script=script)
    note = "the code block in the closed fold “my `repro`”"
    folded = plain.model_copy(update={"code": plain.code.model_copy(update={"folded": True, "note": note})})
    body = notes.queued([folded], "gpu-1", None)
    assert "a script of 62 lines" in body
    assert "closed fold “my `repro`”" in body
    assert "import torch\nx = 0\n" in body
    assert "x = 38\n" in body
    assert "x = 39\n" not in body
    assert "22 more lines are there." in body
    github_page.check(body)
    assert "import torch" not in notes.queued([plain], "gpu-1", None)
    short = folded.model_copy(update={"script": "wide = " + "1" * 500 + "\n"})
    assert "1" * 190 + " …\n" in notes.queued([short], "gpu-1", None)
    far = folded.model_copy(update={"script": "x = 1" + " " * 500 + "; f(\u202e)\n"})
    assert "x = 1 … ; f(\\u202e)\n" in notes.queued([far], "gpu-1", None)


def test_a_kernel_that_fails_alone_is_told() -> None:
    row = "<td>The kernel alone, without the graph</td><td>kernel.py fails in the same way</td>"
    assert row in render(reports.report(of(files={"repro": "repro.py", "kernel": "kernel.py"})))
    assert "kernel.py" not in render(reports.report(of(files={"repro": "repro.py"})))


def test_the_summary_has_room_for_more() -> None:
    files = (Stored(name="exported_program.pt2", size=7, sha256="ab"),)
    part = of().model_copy(update={"exported_text": "row\n" * 60_000, "files": files})
    assert size(render(reports.report(part), SUMMARY_LIMIT)) > COMMENT_LIMIT


def test_fixtures_are_of_this_version() -> None:
    for name in NAMES:
        text = (RESULTS / name / "result.json").read_text(encoding="utf-8")
        assert Result.model_validate_json(text).schema_ == json.loads(text)["schema"]


@pytest.mark.parametrize(
    ("version", "line"),
    [
        ("2.12.0", "pip install torch==2.12.0"),
        ("2.13.0rc1", "pip install torch==2.13.0rc1"),
        # pip would find none of these where it looks by itself
        ("nightly", "# with torch 2.14.0.dev20261101+cpu, a build of the night, from PyTorch's own index"),
        ("2.14.0.dev20261101", "# with torch 2.14.0.dev20261101+cpu, a build of the night, from PyTorch's own index"),
        ("2.13.0+cu126", "# with torch 2.13.0+cu126, from PyTorch's own index"),
    ],
)
def test_the_torch_that_was_asked_for_is_one_that_can_be_had(version: str, line: str) -> None:
    ran = version if version.endswith("+cu126") else "2.14.0.dev20261101+cpu"
    request = reports.request(options=RequestOptions(torch_version=version))
    part = Section(request=request, result=reports.result(versions={"torch": ran}), repro="x = 1")
    assert line in steps(part).splitlines()
    assert ("pip install torch" in steps(part)) == line.startswith("pip")


def test_a_nightly_of_which_nothing_came_back() -> None:
    said = steps(Section(request=reports.request(options=RequestOptions(torch_version="nightly"))))
    assert "# with torch nightly, a build of the night, from PyTorch's own index" in said.splitlines()


def test_the_same_is_done_in_the_same_directory_by_the_same_interpreter() -> None:
    request = reports.request(script=None, command="pytest tests/test_a.py::test_b", directory="sub/my python", launcher=("uv", "run"))
    rows = steps(Section(request=request, result=reports.result())).splitlines()
    place = rows.index("cd 'sub/my python'")
    # a clone has neither the head of a pull request nor that of a fork
    assert rows[place - 3] == rows[place - 2].replace("git checkout ", "git fetch origin ")
    assert rows[place - 2].startswith("git checkout ")
    # what they hold is told to nobody: it may be a secret
    assert rows[place - 1] == "# what the workflow's inputs setup and env say, where it has them"
    assert rows[place + 1].startswith("torch-minify run --command 'pytest tests/test_a.py::test_b' ")
    assert rows[place + 1].endswith("""--python "$(uv run python -c 'import sys; print(sys.executable)')\"""")


def test_a_script_also_runs_where_the_workflow_has_set_up() -> None:
    rows = steps(Section(request=reports.request(), result=reports.result())).splitlines()
    place = rows.index("# what the workflow's inputs setup and env say, where it has them")
    assert rows[place + 1] == "# the code in fail.py, then:"


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"runs": 0}, "Nothing is running for this in this repository."),
        ({"runs": 1}, "Stopped 1 run."),
        ({"runs": 2}, "Stopped 2 runs."),
        ({"runs": 0, "refused": 1}, "Stopped 0 runs. GitHub did not stop 1 run: ask again, or cancel on the page of the run."),
        ({"runs": 1, "unread": True}, "Stopped 1 run. A command here has no answer yet, and was not stopped: ask again once it has one."),
    ],
)
def test_what_was_stopped(told: dict[str, Any], said: str) -> None:
    assert notes.stopped(**told) == said


@pytest.mark.parametrize(
    ("repro", "ended_by", "said"),
    [
        ("repro.py", "fixed_point", "until nothing more could be removed"),
        (None, "fixed_point", "with no result"),  # a search that began, and a refusal that came after it
        (None, "budget", "until the time limit"),
        ("repro.py", "interrupted", "until it was interrupted"),
    ],
)
def test_a_reduction_without_a_repro_was_no_reduction_to_the_end(repro: str | None, ended_by: EndedBy, said: str) -> None:
    result = Result(status="error", ended_by=ended_by, reduction=Reduction(queries=7, seconds=3), files=Files(repro=repro))
    assert facts.reduction(result).splitlines()[0] == f"- 7 programs tried; the search took 3.0 s, {said}"
