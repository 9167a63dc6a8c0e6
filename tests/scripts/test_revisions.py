"""Two revisions on the same programs: what is chosen, who runs first, what is held against what. Nothing here runs torch."""

import dataclasses
import json
import subprocess
import sys

import pytest
from benchlib import corpus, measure, programs, revisions, watch

RUN = revisions.Run("minimized", 7, 20, search=10.0, wall=30.0, cpu=40.0, load=0.5, stages={"capture": 5.0, "search": 10.0})
PAIR = revisions.Pair("a", "before", RUN, RUN)


def case(name, kind="hang", text="import torch\n"):
    return corpus.Case(name, text, kind, "X", "says")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "cases").mkdir()
    lines = []
    for name, kind, text in (("a", "hang", ""), ("b", "hang", ""), ("c", "aoti", ""), ("gpu", "export", "x.cuda()\n")):
        (tmp_path / "cases" / f"{name}.py").write_text(text)
        lines.append(json.dumps({"id": name, "kind": kind, "exception_type": "X", "message_regex": "m"}))
    (tmp_path / "manifest.jsonl").write_text("\n".join(lines) + "\n")
    return tmp_path


def named(found):
    return [program.name for program in found]


def test_few_cases_are_of_many_kinds_and_keep_their_order():
    cases = [case("a"), case("b"), case("c", "aoti"), case("d", "export")]
    assert [one.name for one in revisions.varied(cases, 3)] == ["a", "c", "d"]
    assert [one.name for one in revisions.varied(cases, 9)] == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("text", "needs"),
    [('torch.ones(2, device="cuda")', True), ("x = x.cuda()", True), ("x = 1  # fails on CUDA too", False), ("barracuda = 1", False)],
)
def test_what_needs_a_gpu_names_cuda_in_its_code(text, needs):
    assert revisions.needs_gpu(text) is needs


def test_cases_that_need_a_gpu_are_left_out_unless_they_are_asked_for(folder):
    assert named(revisions.from_corpus(folder, [], 9, gpu=False)) == ["a", "b", "c"]
    assert named(revisions.from_corpus(folder, [], 9, gpu=True)) == ["a", "b", "c", "gpu"]
    assert named(revisions.from_corpus(folder, ["gpu", "b"], 1, gpu=False)) == ["b"]


def test_a_case_hangs_as_early_as_in_the_bench_of_a_corpus(folder):
    assert {program.hang_after for program in revisions.from_corpus(folder, [], 9, gpu=False)} == {corpus.HANG}


def test_the_generated_programs_come_first_unless_some_are_named():
    found = revisions.from_catalog([], 3, seed=4)
    assert named(found) == [name for name in programs.CATALOG if name.startswith(("chain", "mixed"))][:3]
    assert {program.seed for program in found} == {4}
    assert named(revisions.from_catalog(["small-a*"], 1, seed=0)) == ["small-aot", "small-accuracy", "small-aoti"]
    assert revisions.from_catalog([], 0, seed=0) == []


def test_each_program_goes_through_both_sides_and_they_take_turns_in_being_first():
    asked = []

    def run(program, side):
        asked.append((program.name, side))
        return dataclasses.replace(RUN, search=1.0 if side == "before" else 2.0)

    chosen = [dataclasses.replace(programs.program("small-aot", 0), name=name) for name in ("a", "b")]
    found = list(revisions.pairs(chosen, run, 2))
    assert asked == [
        ("a", "before"), ("a", "after"), ("b", "after"), ("b", "before"),
        ("a", "after"), ("a", "before"), ("b", "before"), ("b", "after"),
    ]  # fmt: skip
    assert [pair.first for pair in found] == ["before", "after", "after", "before"]
    assert {(pair.before.search, pair.after.search) for pair in found} == {(1.0, 2.0)}


@pytest.mark.parametrize(
    ("change", "equal"), [({"search": 99.0}, True), ({"status": "error"}, False), ({"lines": None}, False), ({"queries": 21}, False)]
)
def test_times_may_differ_and_results_may_not(change, equal):
    assert dataclasses.replace(PAIR, after=dataclasses.replace(RUN, **change)).equal is equal


def test_a_ratio_is_this_checkout_over_the_other_revision():
    pair = dataclasses.replace(PAIR, after=dataclasses.replace(RUN, search=5.0, stages={"capture": 30.0}, wall=33.0))
    assert [pair.ratio(time) for time in revisions.TIMES] == [0.5, 2.0, 1.1, 1.0]
    assert dataclasses.replace(PAIR, before=dataclasses.replace(RUN, search=0.0)).ratio("search") is None


def test_the_summary_has_the_median_of_the_ratios_and_the_ratio_of_the_totals():
    slow = dataclasses.replace(RUN, search=90.0)
    found = [
        PAIR,
        dataclasses.replace(PAIR, after=dataclasses.replace(RUN, search=11.0)),
        dataclasses.replace(PAIR, before=slow, after=RUN),
    ]
    summary = revisions.summary(found)
    assert summary["search"] == {"median": 1.0, "total": pytest.approx(31 / 110)}
    assert summary["wall"] == {"median": 1.0, "total": 1.0}
    none = dataclasses.replace(PAIR, before=dataclasses.replace(RUN, search=0.0))
    assert revisions.summary([none])["search"] == {"median": None, "total": None}


def test_the_table_shows_both_values_where_they_differ():
    other = dataclasses.replace(PAIR, program="b", first="after", after=dataclasses.replace(RUN, lines=None, queries=21, search=12.0))
    head, same, differs, median, total = (line.split() for line in revisions.table([PAIR, other]).splitlines())
    assert head[:3] == ["program", "first", "status"]
    assert same == ["a", "before", "minimized", "7", "20", "10.0", "10.0", "1.000", "1.000", "1.000", "1.000", "yes"]
    assert differs == ["b", "after", "minimized", *["7", "|", "-"], *["20", "|", "21"], "10.0", "12.0", "1.200", *["1.000"] * 3, "NO"]
    assert (median[:2], total[:2]) == (["median", "1.100"], ["total", "1.100"])
    assert revisions.line(other).endswith("NOT EQUAL")
    assert not revisions.line(PAIR).endswith("NOT EQUAL")


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository with a package `bot` that says how often it has been changed, in place of this one."""
    root = tmp_path / "repository"
    (root / "bot").mkdir(parents=True)
    (root / "bot" / "__init__.py").write_text("")
    git = ["git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    for lines in (1, 2):
        (root / "bot" / "__main__.py").write_text(f"""\
import json, pathlib, sys
out = pathlib.Path(sys.argv[sys.argv.index("--out") + 1])
out.mkdir()
(out / "repro.py").write_text("x = 1\\n" * {lines})
(out / "result.json").write_text(json.dumps(dict(status="minimized", reduction=dict(seconds={lines}), timing=dict(search={lines}))))
(out / "reduction.jsonl").write_text(json.dumps(dict(key="a", text=sys.argv[2])) + "\\n")
""")
        subprocess.run([*git, "add", "."], check=True)
        subprocess.run([*git, "commit", "-q", "-m", "change"], check=True)
    monkeypatch.setattr(measure, "ROOT", root)
    return root


def test_a_revision_is_run_from_its_own_checkout_which_is_gone_afterwards(repository, tmp_path, capsys):
    saved = tmp_path / "out.json"
    status = revisions.main(["HEAD~1", "--only", "small-aot", "--python", sys.executable, "--json", str(saved)])
    assert status == 1
    (pair,) = json.loads(saved.read_text())["pairs"]
    assert [pair[side]["lines"] for side in revisions.SIDES] == [1, 2]
    assert [pair[side]["queries"] for side in revisions.SIDES] == [1, 1]
    assert pair["after"]["stages"] == {"search": 2}
    assert not pair["equal"]
    assert "2.000" in capsys.readouterr().out
    listed = subprocess.run(["git", "-C", str(repository), "worktree", "list"], capture_output=True, text=True, check=True).stdout
    assert len(listed.splitlines()) == 1
    assert revisions.main(["HEAD", "--only", "small-aot", "--python", sys.executable]) == 0
    assert revisions.main(["HEAD~1", "--after", "HEAD~1", "--only", "small-aot", "--python", sys.executable]) == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere"], "there is no revision nowhere"),
        (["HEAD", "--after", "nowhere"], "there is no revision nowhere"),
        (["HEAD", "--only", "nothing"], "there is no nothing"),
    ],
)
def test_what_there_is_not_is_said(repository, capsys, arguments, said):
    with pytest.raises(SystemExit) as end:
        revisions.main(arguments)
    assert end.value.code == 2
    assert said in capsys.readouterr().err


def test_the_package_of_another_place_is_not_measured(repository, tmp_path):
    with pytest.raises(SystemExit, match="does not import the package"):
        revisions.prepare(tmp_path / "nowhere", sys.executable)


def test_one_side_can_go_without_the_sandbox(monkeypatch, tmp_path):
    asked = {}

    def minimized(program, setting, side):
        asked[side] = setting.confined
        return measure.Minimized(watch.Run(0, 1.0, 1.0, ""), {}, tmp_path / "repro.py", 0, 0)

    monkeypatch.setattr(measure, "minimized", minimized)
    setting = measure.Setting("python", 1.0, tmp_path)
    roots = {"before": tmp_path, "after": tmp_path}
    for unconfined, expected in (("", {"before": True, "after": True}), ("before", {"before": False, "after": True})):
        run = revisions.runner(roots, setting, unconfined)
        for side in revisions.SIDES:
            run(None, side)
        assert asked == expected


ENGINE = """
import bot.engine.job

class Job:
    def __init__(self, options):
        raise SystemExit(f"sandbox {options.sandbox}")

bot.engine.job.Job = Job
"""


@pytest.mark.parametrize("confined", [True, False])
def test_without_the_sandbox_is_without_the_sandbox(monkeypatch, tmp_path, confined):
    """The command that is run, with an engine that only says with what it was asked for."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "program.py").write_text("import torch\n")
    (tmp_path / "sitecustomize.py").write_text(ENGINE)
    setting = measure.Setting(sys.executable, 60.0, tmp_path, confined=confined)
    env = watch.environment({"PYTHONPATH": str(tmp_path)})
    found = measure.minimize(tmp_path / "work" / "program.py", env, setting, 10.0)
    assert f"sandbox {confined}" in found.run.output
