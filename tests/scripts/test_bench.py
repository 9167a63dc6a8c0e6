"""The bench's own parts: programs that are what their names say, counts, verdicts, ratios. Nothing here runs torch."""

import dataclasses
import importlib
import json
import os
import random
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from benchlib import corpus, graphs, lanes, measure, plant, planted, programs, report, truth, watch

from tests.processes import ended

ROOT = Path(__file__).resolve().parents[2]
bench = importlib.import_module("benchlib.__main__")


@pytest.mark.parametrize("name", programs.CATALOG)
def test_a_program_is_the_same_for_the_same_seed_and_is_python(name):
    program = programs.program(name, 3)
    assert program == programs.program(name, 3)
    assert program.name == name
    compile(program.text, name, "exec")
    compile(program.fault, name, "exec")


@pytest.mark.parametrize("name", [name for name in programs.CATALOG if name.startswith(("chain", "mixed"))])
def test_a_graph_has_its_operations_and_each_needed_one_once(name):
    program = programs.program(name, 5)
    _, n, needed, kind = name.split("-")
    assert len(re.findall(r"^    v\d+ = ", program.text, re.MULTILINE)) == int(n)
    assert program.optimum == int(needed)
    marks = {"lowering": ["fractional_max_pool2d"], "accuracy": ["relu"]}.get(kind, list(programs.NEEDED[: int(needed)]))
    if kind == "cpp" and needed == "1":
        marks = ["relu"]
    for mark in marks:
        assert len(re.findall(rf"\b{mark}\(", program.text)) == 1
        assert program.text != programs.program(name, 6).text


def test_nothing_of_a_graph_is_dead():
    body = graphs.mixed(200, ["erf"], random.Random(1))
    defined = [line.split(" = ")[0] for line in body[:-1]]
    rest = "\n".join(line.split(" = ")[-1] for line in body)
    assert len(defined) >= 200
    assert all(re.search(rf"\b{name}\b", rest) for name in defined)


def test_only_planted_faults_need_a_site():
    assert programs.program("mixed-50-1-cpp", 0).fault == ""
    assert "aten.asinh.default" in programs.program("mixed-50-3-post_grad", 0).fault
    assert "planted" not in programs.program("mixed-50-3-post_grad", 0).text


def test_which_modes_of_pytorchs_there_are():
    assert programs.program("small-aot", 0).modes == ("isolate", "no-isolate")
    assert programs.program("small-dynamo", 0).modes == programs.program("small-aoti", 0).modes == ("in-process",)


def test_a_planted_fault_breaks_a_module_right_after_it_was_loaded(tmp_path):
    package = tmp_path / "torch" / "_inductor" / "fx_passes"
    package.mkdir(parents=True)
    for place in (package, *package.parents[:2]):
        (place / "__init__.py").write_text("")
    (package / "post_grad.py").write_text("def post_grad_passes(gm, is_inference):\n    return 'done'\n")
    (tmp_path / "sitecustomize.py").write_text(plant.fault("post_grad", ["aten.erf.default", "aten.atan.default"]))
    code = """
from types import SimpleNamespace as N
from torch._inductor.fx_passes.post_grad import post_grad_passes
graph = lambda *names: N(graph=N(nodes=[N(target=f"aten.{name}.default") for name in names]))
assert post_grad_passes(graph("erf", "sin"), True) == "done"
try:
    post_grad_passes(graph("atan", "sin", "erf"), True)
except RuntimeError as error:
    print(error)
"""
    run = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=watch.environment({"PYTHONPATH": str(tmp_path)}),
                         capture_output=True, text=True)  # fmt: skip
    assert run.stderr == ""
    assert run.stdout.strip() == plant.MESSAGES["post_grad"]


def test_the_watch_over_pytorchs_minifier_counts_and_changes_nothing(tmp_path):
    package = tmp_path / "torch" / "_functorch"
    package.mkdir(parents=True)
    for place in (package, package.parent):
        (place / "__init__.py").write_text("")
    (package / "fx_minifier.py").write_text(
        "def dump_state(gm, inputs):\n    print('dumped')\n\n\n"
        "def minifier(gm, inputs, module_fails, dump_state=dump_state, *, save_dir=None):\n"
        "    found = [module_fails(gm, inputs), module_fails(gm, inputs)]\n    dump_state(gm, inputs)\n    return found, save_dir\n"
    )
    (tmp_path / "sitecustomize.py").write_text(plant.counter(""))
    code = """
from types import SimpleNamespace as N
from torch._functorch.fx_minifier import minifier
nodes = [N(op="placeholder", target="x"), N(op="call_function", target="aten.relu.default"),
         N(op="call_function", target="<built-in function getitem>"), N(op="output", target="output")]
gm = N(graph=N(nodes=nodes), code="def forward(x): ...")
assert minifier(gm, [N(shape=(2, 3), dtype="float32", numel=lambda: 6)], lambda gm, inputs: True, save_dir="here") == ([True, True], "here")
"""
    log = tmp_path / "log.jsonl"
    env = watch.environment({"PYTHONPATH": str(tmp_path), "BENCH_QUERIES": str(log)})
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=env, check=True, capture_output=True)
    first, second, accepted, end = measure.entries(log)
    assert (first["what"], first["ops"], first["nodes"], first["elements"], first["fails"]) == ("query", 1, 4, 6, True)
    assert first["key"] == second["key"]
    assert (accepted["what"], end["what"]) == ("accepted", "end")


def test_the_seconds_of_a_query_are_those_of_the_ledger(tmp_path):
    """A query that was cut off, and one that a kill left half written, have no time."""
    ledger = tmp_path / "reduction.jsonl"
    assert measure.seconds_per_query(ledger) is None
    ledger.write_text('{"n": 1, "ms": 9000}\n{"n": 2, "ms": 1000}\n{"n": 3}\n{"n": 4, "ms": 1250}\n{"n": 5, "m')
    assert measure.seconds_per_query(ledger) == 1.25


def test_a_command_over_its_limit_is_killed_with_what_left_its_group(tmp_path):
    # a shell says the number long before the limit, however busy the machine is
    run = watch.run(["sh", "-c", "setsid sleep 60 & echo $!; sleep 60"], cwd=tmp_path, env=dict(os.environ), limit=2, log=tmp_path / "log")
    assert run.status is None
    assert 2 <= run.seconds < 20
    assert ended(int(run.output), within=0)


def test_memory_is_that_of_the_whole_family(tmp_path):
    code = (
        "import subprocess, sys\n"
        "subprocess.run([sys.executable, '-c', 'import time; x = bytearray(b\"1\" * 150_000_000); time.sleep(2.5)'])\n"
    )
    run = watch.run([sys.executable, "-c", code], cwd=tmp_path, env=dict(os.environ), limit=60, log=tmp_path / "log")
    assert run.status == 0
    assert run.peak > 140


ROW = measure.Measure(
    "mixed-50-1-cpp", 0, "ours", "minimized", 20.0, 5.0,
    queries=8, ops_before=50, ops_after=1, elements=1, lines=8, same=True, generated=True,
)  # fmt: skip
THEIRS = dataclasses.replace(
    ROW, tool="pytorch isolate", status="minified", wall=210.0, search=200.0,
    queries=32, duplicates=10, nodes=53, isolated=True, elements=20,
)  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "change", "limit"),
    [
        ([], {}, 600.0),
        (["--enough", "26"], {}, 130.0),
        (["--enough", "26", "--limit", "100"], {}, 100.0),
        (["--enough", "26"], {"search": None, "status": "error"}, 600.0),
        (["--enough", "26"], {"cut": True}, 600.0),
    ],
)
def test_pytorchs_may_be_ended_where_its_ratio_is_enough(monkeypatch, arguments, change, limit):
    seen = []
    monkeypatch.setattr(bench, "CHILD", "import json; print(json.dumps({'torch': '2'}))")
    monkeypatch.setattr(measure, "ours", lambda program, setting: dataclasses.replace(ROW, **change))
    monkeypatch.setattr(measure, "theirs", lambda program, setting, mode, limit: seen.append(limit) or THEIRS)
    bench.main(["--only", "mixed-50-1-cpp", "--modes", "isolate", "--python", sys.executable, *arguments])
    assert seen == [limit]


def test_lanes_have_cpus_of_their_own_and_rows_keep_their_order(tmp_path, monkeypatch):
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        pytest.skip("one CPU")
    seen = tmp_path / "seen"
    seen.mkdir()

    def ours(program, setting):
        here = os.sched_getaffinity(0)
        (seen / program.name).write_text(json.dumps(sorted(here)))
        while len(list(seen.iterdir())) < 2:  # the other lane works at the same time
            time.sleep(0.01)
        return dataclasses.replace(ROW, program=program.name)

    monkeypatch.setattr(bench, "CHILD", "import json; print(json.dumps({'torch': '2'}))")
    monkeypatch.setattr(measure, "ours", ours)
    names = ["small-dynamo", "small-aot", "small-accuracy"]
    saved = tmp_path / "out.json"
    bench.main(["--only", *names, "--ours-only", "--lanes", "2", "--python", sys.executable, "--json", str(saved)])
    assert [row["program"] for row in json.loads(saved.read_text())["rows"]] == names
    shares = [json.loads(file.read_text()) for file in seen.iterdir()]
    assert {cpu for share in shares for cpu in share} == set(cpus)
    assert all(share in (cpus[0::2], cpus[1::2]) for share in shares)


def test_ratios_are_theirs_over_ours():
    (ratio,) = report.ratios([ROW, THEIRS])
    assert (ratio.search, ratio.whole, ratio.least) == (40.0, 10.5, False)
    found = report.summary([ROW, THEIRS])
    assert found["search_vs_isolated_median"] == found["search_vs_isolated_least"] == 40.0
    assert found["search_vs_in_process_median"] is None
    assert found["end_to_end_least_where_long"] == 10.5
    assert found["query_share_median"] == 0.25
    assert (found["optimum_share"], found["excess_ops_most"], found["more_ops_than_theirs"], found["duplicate_queries"]) == (1.0, 0, 0, 0)


def test_each_run_of_theirs_is_held_against_the_run_of_ours_before_it():
    again = dataclasses.replace(ROW, search=ROW.search * 2, queries=ROW.queries * 2)
    rows = [ROW, THEIRS, again, dataclasses.replace(THEIRS, isolated=False)]
    assert [ratio.search for ratio in report.ratios(rows)] == [40.0, 20.0]
    assert report.query_shares(rows) == [0.25, 0.5]


def test_a_list_that_was_measured_in_pieces_is_read_together(tmp_path, capsys):
    other = [dataclasses.replace(row, program="other") for row in (ROW, THEIRS)]
    files = []
    for name, rows in (("a", [ROW, THEIRS]), ("b", other)):
        files.append(tmp_path / name)
        files[-1].write_text(json.dumps({"rows": [dataclasses.asdict(row) for row in rows]}))
    assert bench.main(["--read", *map(str, files)]) == 0
    said = capsys.readouterr().out
    assert "programs: 2\n" in said
    assert said.count("40.0 x") == 2
    files[0].write_text(json.dumps({"rows": [dataclasses.asdict(dataclasses.replace(ROW, same=False))]}))
    assert bench.main(["--read", str(files[0])]) == 1


@pytest.mark.parametrize("content", ["", "[]", '{"rows": [{"id": "case"}]}', '{"rows": 3}'])
def test_what_is_no_file_of_programs_is_said(tmp_path, capsys, content):
    file = tmp_path / "corpus.json"
    file.write_text(content)
    with pytest.raises(SystemExit) as end:
        bench.main(["--read", str(file)])
    assert end.value.code == 2
    assert f"{file} is not the --json file" in capsys.readouterr().err


def test_what_the_limit_cut_is_a_lower_bound_and_no_query_share():
    rows = [ROW, dataclasses.replace(THEIRS, status="limit", cut=True)]
    assert report.ratios(rows)[0].least
    assert "> 40.0" in report.comparison(rows).replace(">40.0", "> 40.0")
    assert report.summary(rows)["query_share_median"] is None


@pytest.mark.parametrize("mine", [dataclasses.replace(ROW, status="error"), dataclasses.replace(ROW, search=None)])
def test_no_ratio_without_a_result_of_ours(mine):
    assert report.ratios([mine, THEIRS]) == []


def test_no_ratio_where_theirs_dumped_nothing():
    assert report.ratios([ROW, dataclasses.replace(THEIRS, status="nothing dumped", search=None)]) == []


def test_more_operations_than_theirs_are_seen_only_beside_a_repro_that_fails():
    mine = dataclasses.replace(ROW, ops_after=3)
    assert report.summary([mine, THEIRS])["more_ops_than_theirs"] == 1
    assert report.summary([mine, dataclasses.replace(THEIRS, same=False)])["more_ops_than_theirs"] == 0


def test_the_table_says_where_a_repro_does_not_fail():
    lines = report.table([ROW, dataclasses.replace(THEIRS, same=False)]).splitlines()
    assert lines[1].endswith("yes")
    assert lines[2].endswith("NO")


def test_a_repro_that_is_not_what_the_result_says_counts_for_nothing(tmp_path):
    repro = tmp_path / "repro.py"
    repro.write_text("# head\nimport torch\nx = 1\n")
    assert measure.agrees(repro, {"lines_after": 2})
    assert not measure.agrees(repro, {"lines_after": 1})
    mine = dataclasses.replace(ROW, agrees=False)
    assert report.ratios([mine, THEIRS]) == []
    assert report.summary([mine])["repro_fails_alone"] == 0
    assert "not what" in report.table([mine])


def test_lines_are_code_lines():
    assert measure.code_lines("# a\n\nimport torch\n  # b\nx = 1  # c\n") == 2


NOT_CLOSE = "AssertionError: Tensor-likes are not close!"
CASE = corpus.Case("a", "raise ValueError\n", "inductor_compile", "torch._inductor.exc.InductorError", "LoweringException:.*target: aten")


@pytest.mark.parametrize(
    ("case", "status", "output", "fits"),
    [
        (CASE, 1, "Traceback\ntorch._inductor.exc.InductorError: LoweringException: x\n  target: aten.scatter", True),
        (CASE, 1, "torch._inductor.exc.InductorError: another", False),
        (CASE, 1, "RuntimeError: LoweringException: x\n  target: aten.scatter", False),
        (CASE, 0, "torch._inductor.exc.InductorError: LoweringException: x\n  target: aten.scatter", False),
        (CASE, None, "torch._inductor.exc.InductorError: LoweringException: x\n  target: aten.scatter", False),
        (dataclasses.replace(CASE, exception="AssertionError", message="Scalars are not equal"), 1, NOT_CLOSE, True),
        (dataclasses.replace(CASE, exception="AssertionError", message="int output"), 1, NOT_CLOSE, False),
        (dataclasses.replace(CASE, exception="AssertionError", message="int output"), 1, "AssertionError: int output: 4", True),
        (dataclasses.replace(CASE, kind="crash", exception="SIGSEGV", message=""), -11, "", True),
        (dataclasses.replace(CASE, kind="crash", exception="SIGSEGV", message=""), 1, "", False),
        (dataclasses.replace(CASE, kind="hang", exception="TimeoutExpired", message=""), None, "", True),
        (dataclasses.replace(CASE, kind="hang", exception="TimeoutExpired", message=""), 0, "", False),
    ],
)  # fmt: skip
def test_whether_a_run_fails_as_its_case(case, status, output, fits):
    assert corpus.fits(case, watch.Run(status, 1.0, 0.0, output)) is fits


def test_a_manifest_is_read_in_its_order(tmp_path):
    (tmp_path / "cases").mkdir()
    lines = []
    for name in ("b", "a"):
        (tmp_path / "cases" / f"{name}.py").write_text(f"# {name}\n")
        lines.append(json.dumps({"id": name, "kind": "hang", "exception_type": "X", "message_regex": "m", "other": 1}))
    (tmp_path / "manifest.jsonl").write_text("\n".join(lines) + "\n")
    assert [(case.name, case.text) for case in corpus.read(tmp_path)] == [("b", "# b\n"), ("a", "# a\n")]


def test_an_embedded_case_stands_behind_a_hundred_lines():
    text = corpus.embedded("raise ValueError\n")
    assert text.endswith("\n\n\nraise ValueError\n")
    assert measure.code_lines(text) >= 100
    compile(text, "embedded", "exec")


VERDICT = corpus.Verdict(
    "a", "hang", "minimized", "fixed_point", "source", 1, 1, 1, 0, 1, 9, 3, named=True, fails=True, control=True, reaches=True
)  # fmt: skip
BROKEN = ({"fails": False}, {"control": False}, {"reaches": False}, {"agrees": False})


def test_a_case_counts_only_where_everything_holds():
    assert VERDICT.counts
    for change in (*BROKEN, {"status": "flaky"}, {"status": "error"}):
        worse = dataclasses.replace(VERDICT, **change)
        assert not worse.counts
        assert corpus.summary([VERDICT, worse])["counted"] == 1


def test_a_program_that_was_minimal_counts_where_the_search_came_to_its_end():
    same = dataclasses.replace(VERDICT, status="reproduced", lines_before=3)
    assert same.counts
    for change in (*BROKEN, {"ended_by": "budget"}, {"lines_before": 120, "lines_after": 120}):
        assert not dataclasses.replace(same, **change).counts


@pytest.mark.parametrize("status", ["minimized", "reproduced", "flaky"])
def test_a_claimed_repro_that_does_not_hold_is_wrong_whatever_it_is_called(status):
    verdict = dataclasses.replace(VERDICT, status=status)
    assert not verdict.wrong
    for change in BROKEN:
        worse = dataclasses.replace(verdict, **change)
        assert worse.wrong
        assert "WRONG" in corpus.line(worse)
        assert corpus.row(worse)["wrong"] is True
        assert not dataclasses.replace(worse, status="error").wrong
        assert not dataclasses.replace(worse, named=False).wrong


def test_the_summary_of_a_corpus_is_held_against_its_limits():
    late = dataclasses.replace(VERDICT, wall=601.0, fails=False)
    found = corpus.summary([VERDICT] * 9 + [late])
    assert (found["share"], found["wrong"], found["wall_median"], found["wall_most"], found["lines_median"]) == (0.9, 1, 1, 601.0, 3)
    assert {goal.figure: goal.met for goal in corpus.goals(found)} == {
        "share": True, "lines_median": True, "wall_median": True, "wall_most": False, "wrong": False,
    }  # fmt: skip
    lines = corpus.said([VERDICT] * 9 + [late]).splitlines()
    assert "share: 0.9 (at least 0.9: met)" in lines
    assert "wall_most: 601.0 (at most 600: MISSED)" in lines


def test_no_repro_that_counts_misses_the_limit_of_lines():
    assert "lines_median: - (at most 25: MISSED)" in corpus.said([dataclasses.replace(VERDICT, control=False)])


def answering(script):
    """A stand-in for an interpreter: `-m bot` writes a result with a repro, whatever else is run does as the script says."""
    return f"""#!{sys.executable}
import json, pathlib, sys
if "-m" in sys.argv:
    out = pathlib.Path(sys.argv[sys.argv.index("--out") + 1])
    out.mkdir()
    (out / "repro.py").write_text("raise ValueError\\n")
    reduction = dict(lines_after=1, seconds=0.5)
    files = dict(repro="repro.py")
    result = dict(status="flaky", ended_by="fixed_point", stage="aot", reduction=reduction, files=files)
    (out / "result.json").write_text(json.dumps(result))
elif "control.py" in sys.argv[1]:
    print("bench-control: 2 calls")
else:
    runs = pathlib.Path("../runs")
    count = len(runs.read_text()) if runs.exists() else 0
    runs.write_text("x" * (count + 1))
{script}
"""


@pytest.mark.parametrize(("script", "fails"), [("    sys.exit('ValueError: bad' if count == 2 else 0)", True), ("    pass", False)])
def test_a_flaky_repro_may_pass_but_not_every_time(tmp_path, script, fails):
    python = tmp_path / "python"
    python.write_text(answering(script))
    python.chmod(0o755)
    case = corpus.Case("a", "x = 1\nraise ValueError\n", "frontend", "ValueError", "bad")
    verdict = corpus.judge(case, measure.Setting(str(python), 20.0, tmp_path / "scratch"), embed=False)
    assert (verdict.status, verdict.named, verdict.fails, verdict.control, verdict.reaches) == ("flaky", True, fails, True, True)
    assert verdict.wrong is not fails
    runs = (tmp_path / "scratch" / "a" / "runs").read_text()
    assert len(runs) == (3 if fails else corpus.FLAKY_RUNS)


def test_when_a_search_begins_is_said_beside_what_the_program_takes(tmp_path):
    python = tmp_path / "python"
    python.write_text(
        answering("    sys.exit('ValueError: bad')")
        .replace("seconds=0.5)", "seconds=0.5)\n    timing = dict(capture=2.5)")
        .replace("files=files)", "files=files, timing=timing)")
    )
    python.chmod(0o755)
    case = corpus.Case("a", "x = 1\nraise ValueError\n", "frontend", "ValueError", "bad")
    setting = measure.Setting(str(python), 20.0, tmp_path / "scratch")
    verdict = corpus.judge(case, setting, embed=False, timed=True)
    assert verdict.begins == 2.5
    assert verdict.program is not None
    assert 0 < verdict.program < 20
    assert "began after 2.5 s, the program takes" in corpus.line(verdict)
    assert "began" not in corpus.line(corpus.judge(case, setting, embed=False))


def test_others_are_busy_while_a_case_is_minimized(tmp_path):
    """And not while what came of it is judged; how long it may take is left to the tool."""
    count = f"""
busy = 0
for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
    try:
        busy += b"while os.getppid() == {os.getpid()}:" in path.read_bytes()
    except OSError:
        pass  # one that has ended meanwhile
"""
    python = tmp_path / "python"
    python.write_text(
        answering("    sys.exit('ValueError: bad')").replace("import json, pathlib, sys\n", f"import json, pathlib, sys\n{count}", 1)
        + f"pathlib.Path({str(tmp_path / 'seen')!r}).open('a').write(f'{{busy}}\\n')\n"
    )
    python.chmod(0o755)
    case = corpus.Case("a", "x = 1\nraise ValueError\n", "frontend", "ValueError", "bad")
    corpus.judge(case, measure.Setting(str(python), 20.0, tmp_path / "scratch"), embed=False, beside=2)
    minimized, *judged = map(int, (tmp_path / "seen").read_text().split())
    assert minimized - 2 == judged[0] == judged[-1]


def test_an_interpreter_is_found_from_where_the_bench_was_called(tmp_path, monkeypatch):
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases" / "a.py").write_text("")
    (tmp_path / "manifest.jsonl").write_text('{"id": "a", "kind": "hang", "exception_type": "", "message_regex": ""}\n')
    (tmp_path / "python").symlink_to(sys.executable)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(bench, "CHILD", "import json; print(json.dumps({'torch': '2'}))")
    seen = []
    monkeypatch.setattr(corpus, "judge", lambda case, setting, embed, beside, timed: seen.append(setting.python) or VERDICT)
    bench.main(["corpus", ".", "--python", "./python"])
    assert seen == [str(tmp_path / "python")]


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, 0),
        ({"status": "error", "fails": False}, 0),
        ({"fails": False}, 1),
        ({"duplicates": 1}, 1),
        ({"status": "exit 1", "named": False}, 1),
        ({"status": "killed", "named": False}, 1),
    ],
)
def test_a_corpus_ends_with_0_only_where_nothing_is_wrong(tmp_path, monkeypatch, change, status):
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases" / "a.py").write_text("")
    (tmp_path / "manifest.jsonl").write_text('{"id": "a", "kind": "hang", "exception_type": "", "message_regex": ""}\n')
    verdict = dataclasses.replace(VERDICT, **change)
    monkeypatch.setattr(corpus, "judge", lambda *args, **kwargs: verdict)
    monkeypatch.setattr(bench, "CHILD", "import json; print(json.dumps({'torch': '2'}))")
    saved = tmp_path / "out.json"
    assert bench.main(["corpus", str(tmp_path), "--python", sys.executable, "--json", str(saved)]) == status
    written = json.loads(saved.read_text())
    assert written["rows"][0]["wrong"] is verdict.wrong
    assert {goal["figure"]: goal["met"] for goal in written["goals"]}["share"] is verdict.counts


def test_a_question_is_its_script_where_the_ledger_says_it(tmp_path):
    ledger = tmp_path / "reduction.jsonl"
    lines = [{"key": "a", "text": "1"}, {"key": "b", "text": "1"}, {"key": "c"}, {"key": "c"}, {"other": 1}]
    ledger.write_text("\n".join(map(json.dumps, lines)) + '\n{"key": "cut')
    assert measure.questions(ledger) == (4, 2)
    assert measure.questions(tmp_path / "nothing") == (0, 0)


def test_names_are_chosen(capsys):
    assert bench.main(["--list", "--quick"]) == 0
    assert capsys.readouterr().out.split() == list(programs.QUICK)
    assert bench.main(["--list", "--only", "small*", "mixed-50-1-cpp"]) == 0
    assert capsys.readouterr().out.split() == ["small-dynamo", "small-aot", "small-accuracy", "small-aoti", "mixed-50-1-cpp"]


@pytest.mark.parametrize(
    "argv", [["--only", "nothing"], ["corpus"], ["speed", "here"], ["--limit", "0"], ["--seeds", "0"], ["--lanes", "1000"]]
)
def test_what_cannot_be_benched_is_refused(argv, capsys):
    with pytest.raises(SystemExit) as end:
        bench.main(argv)
    assert end.value.code == 2
    assert "scripts/bench: error:" in capsys.readouterr().err


def test_planted_programs_are_python_and_no_two_have_one_name():
    found = planted.rows()
    assert len({row.name for row in found}) == len(found) == 10 * 3 * 4 * 2 + 4 * 2 * 3
    for row in found[:: len(found) // 40]:
        for device in ("cpu", "cuda"):
            compile(row.text(device), row.name, "exec")
        assert ("class Planted" in row.text() or "def planted" in row.text()) is bool(row.percent)


@pytest.mark.parametrize("operator", ["relu", "gelu"])
def test_a_planted_program_without_its_plant(operator):
    row = planted.Row(operator, 10, "fp32", "training", 2)
    text = row.text()
    assert "(node, 1.1))" in text
    assert planted.healed(text) == text.replace("(node, 1.1))", "(node, 1.0))")


@pytest.mark.parametrize(
    ("line", "operator", "held"),
    [
        ("torch.relu(x)", "relu", True),
        ("torch.sin(x)", "relu", False),
        ("x @ y", "matmul", True),
        ("x.sum(0)", "sum", True),
        ("x.sin()", "gelu", False),
    ],
)
def test_whether_a_repro_calls_the_operator(line, operator, held):
    """The pass or the lowering names it as well, which does not count."""
    text = planted.Row(operator, 10, "fp32", "training", 1).text().partition("def rounded")[0]
    assert planted.holds(f"{text}\nclass Repro(torch.nn.Module):\n    def forward(self, x, y):\n        return {line}\n", operator) is held


def test_a_sample_deals_out_operators_and_healthy_twins():
    drawn = planted.sample(planted.rows(), 24, 3)
    assert len({row.name for row in drawn}) == 36
    assert {row.operator for row in drawn[:10]} == set(planted.OPERATORS)
    assert [row.percent == 0 for row in drawn] == [False] * 24 + [True] * 12


def test_a_slip_is_not_hidden(capsys, tmp_path):
    facts = {
        "status": "minimized",
        "stage": "aot",
        "ops_before": 9,
        "ops_after": 1,
        "lines": 9,
        "queries": 3,
        "seconds": 1.0,
        "reason": None,
    }
    for verdict, status in (("found", 0), ("refused", 0), ("SLIP", 1), ("FALSE", 1), ("LOST", 1)):
        file = tmp_path / "truth.json"
        file.write_text(json.dumps({"endings": [{"name": "relu-1-fp32-training-2", "verdict": verdict, **facts}]}))
        assert bench.main(["truth", "--read", str(file)]) == status
        assert (f"not as they have to be: {'relu-1-fp32-training-2' if status else 'none'}") in capsys.readouterr().out


def test_what_was_planted_on_a_cpu_was_found_or_refused(capsys):
    first, then = (str(ROOT / "tests/fixtures/planted" / name) for name in ("cpu.json", "cpu-eighty-four.json"))
    assert bench.main(["truth", "--read", first]) == 0
    assert "| gelu | 7 | 7 | 0 | 0 | 1 |" in capsys.readouterr().out
    assert bench.main(["truth", "--read", first, then]) == 0
    said = capsys.readouterr().out
    assert "| gelu | 18 | 15 | 3 | 0 | 1 |" in said
    assert "142 programs; not as they have to be: none" in said


def test_each_lane_has_its_cpus_and_one_gpu(tmp_path):
    for name in ("nvidia0", "nvidia1", "nvidia-uvm", "nvidiactl"):
        (tmp_path / name).touch()
    seen = lanes.gpus({}, tmp_path)
    assert seen == ("0", "1")
    assert lanes.gpus({"CUDA_VISIBLE_DEVICES": "3"}, tmp_path) == ("3",)
    shares = lanes.shared(3, [0, 1, 2, 3, 4, 5, 6], seen)
    assert [cpus for cpus, _ in shares] == [{0, 3, 6}, {1, 4}, {2, 5}]
    assert [env["CUDA_VISIBLE_DEVICES"] for _, env in shares] == ["0", "1", "0"]
    assert lanes.shared(1, [0, 1], seen) == [({0, 1}, {})]
    assert lanes.shared(4, [0, 1], ()) == [({0, 1}, {})] * 4


def test_a_program_without_a_result_is_no_refusal(tmp_path):
    row = planted.rows([1])[0]
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho no module of that name >&2\nexit 1\n")
    python.chmod(0o755)
    ended = truth.ending(row, "cpu", str(python), tmp_path / "place", 20.0)
    assert (ended.verdict, ended.status, ended.reason) == ("LOST", "nothing", "no module of that name")
