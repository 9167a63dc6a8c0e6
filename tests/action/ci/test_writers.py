"""Logs of several writers that print at the same time."""

from __future__ import annotations

import random

import pytest

from bot.action.ci import lines, logs
from bot.action.ci.writers import BRANCH, MAX_WRITERS, apart, names

STARTS = "========== test session starts =========="
SHOWS = "========== FAILURES =========="
SUMS_UP = "========== short test summary info =========="
OWN = """\
Traceback (most recent call last):
  File "/w/site-packages/torch/_inductor/graph.py", line 3, in f
    g()
torch._inductor.exc.InductorError: LoweringException: AssertionError: made up""".splitlines()
JENKINS = "[2026-11-03T09:14:07.123Z] [{}] "
COMPOSE = "{}-1  | "
FORMS = [JENKINS, COMPOSE, "2026-11-03T09:14:07.1234567Z {}-1  | "]


def by_pytest(name: str, said: str) -> list[str]:
    """What pytest writes of two tests that fail, one of them with the compiler's error."""
    file = f"tests/test_{name}.py"
    shown = [f"E   ValueError: {said}", "", f"{file}:7: ValueError"]
    return [
        *(f"+ pytest -v {file}", STARTS, "collected 2 items", f"{file}::test_own_{name} FAILED", f"{file}::test_{name} FAILED", SHOWS),
        *(f"____ test_own_{name} ____", *OWN, "", f"____ test_{name} ____", ">   f()", *shown, SUMS_UP),
        *(
            f"FAILED {file}::test_own_{name} - torch._inductor.exc.InductorError: made up",
            f"FAILED {file}::test_{name} - ValueError: {said}",
        ),
        "====== 2 failed in 2.02s ======",
    ]


def by_unittest(name: str, said: str) -> list[str]:
    """What unittest writes of one test that fails."""
    shown = [
        "Traceback (most recent call last):",
        f'  File "/w/tests/test_{name}.py", line 3, in test_{name}',
        "    f()",
        f"ValueError: {said}",
    ]
    head = f"ERROR: test_{name} (tests.test_{name}.ATest.test_{name})"
    return ["=" * 70, head, "-" * 70, *shown, "", "-" * 70, "Ran 1 test in 0.100s", "", "FAILED (errors=1)"]


def written(form: str, name: str, text: list[str]) -> list[str]:
    return [form.format(name) + line for line in text]


def mixed(seed: int, *texts: list[str]) -> list[str]:
    """The lines of all `texts`, each in its order."""
    turns = [i for i, text in enumerate(texts) for _ in text]
    random.Random(seed).shuffle(turns)
    waiting = [iter(text) for text in texts]
    return [next(waiting[i]) for i in turns]


def told(log: list[str]) -> set[tuple[str, str]]:
    return {(found.test, found.text.strip()) for found in logs.failures("\n".join(log))}


@pytest.mark.parametrize(
    ("line", "writer"),
    [
        ("[2026-11-03T09:14:07.123Z] [gpu, 3.12] x", f"gpu, 3.12{BRANCH}"),
        ("cpu-1  | x", "cpu-1  |"),
        ("cpu-1  | [rank0]: x", "cpu-1  |"),
        ("[default3]:[rank3]: x", "[default3]:"),
        ("[1,3]<stdout>:x", "[1,3]"),
        ("[1,3]<stderr>:x", "[1,3]"),
        ("[2026-11-03T09:14:07.123Z] [Pipeline] x", ""),
        ("[2026-11-03T09:14:07.123Z] [ERROR] x", ""),
        ("[rank0]: x", ""),
        ("(Worker pid=3) x", ""),
        ("E1103 09:14:07.377000 24573 torch/a.py:768] x", ""),
        ("x", ""),
    ],
)
def test_who_writes(line: str, writer: str) -> None:
    # one branch alone has nobody beside it
    read = lines.read(f"{line}\n[2026-11-03T09:14:07.123Z] [made up] y")
    assert next(names(read.who)) == writer


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("report", [by_pytest, by_unittest])
def test_reports_of_two_who_run_tests_at_once(form: str, seed: int, report: type) -> None:
    one, other = written(form, "cpu", report("one", "made up")), written(form, "gpu", report("other", "not found"))
    assert told(mixed(seed, one, other)) == told([*one, *other]) == told(one) | told(other)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("cut", [0, 1, 5, 9])
def test_a_program_that_dies_within_a_report(form: str, seed: int, cut: int) -> None:
    text = by_pytest("one", "made up")
    report, begun = written(form, "cpu", text[6 : len(text) - cut]), written(form, "cpu", text[:6])
    program = written(form, "gpu", [*OWN[:-1], "torch._inductor.exc.InductorError: another one"])
    assert told([*begun, *mixed(seed, report, program)]) == told([*begun, *report])


def test_what_a_server_prints_while_a_test_runs_stays_there() -> None:
    text = by_pytest("one", "made up")
    log = [*written(COMPOSE, "tests", text[:5]), *written(COMPOSE, "server", OWN), *written(COMPOSE, "tests", text[5:])]
    assert lines.read("\n".join(log)).text == [*text[:5], *OWN, *text[5:]]
    late = [*log[:-4], *written(COMPOSE, "server", ["x"]), "server-1 exited with code 1", *log[-4:]]
    assert lines.read("\n".join(late)).text == [*text[:5], *OWN, *text[5:], "x", "server-1 exited with code 1"]


@pytest.mark.parametrize("form", ["[rank{}]: ", "{}: ", "[{}] "])
def test_marks_that_stand_in_what_one_test_prints_too(form: str) -> None:
    text = by_pytest("one", "made up")
    log = [*text[:8], *written(form, "1", ["x"]), *text[8:10], *written(form, "2", OWN), *text[10:]]
    read = lines.read("\n".join(log)).text
    assert [line.endswith(each) for each, line in zip(read, log, strict=True)] == [True] * len(log)


def test_where_who_has_no_name_reports_on_tests_nothing_is_moved() -> None:
    one, other = by_unittest("one", "made up"), by_unittest("other", "not found")
    log = mixed(3, written(COMPOSE, "cpu", one), written(COMPOSE, "gpu", other))
    plain = [line.partition("| ")[2] for line in log]
    at = len(log) // 2
    assert lines.read("\n".join([*log[:at], "=" * 70, *log[at:]])).text == [*plain[:at], "=" * 70, *plain[at:]]
    # above and below it is another one's
    assert lines.read("\n".join(["=" * 70, *log, "=" * 70])).text[1:-1] in ([*one, *other], [*other, *one])


def test_those_who_print_one_below_the_other_stay_so() -> None:
    log = [*written(COMPOSE, "b", by_unittest("one", "x")), *written(COMPOSE, "c", ["x"]), *written(COMPOSE, "a", by_pytest("one", "x"))]
    assert lines.read("\n".join(log)).text == [line.partition("| ")[2] for line in log]


@pytest.mark.parametrize("form", FORMS)
def test_a_program_that_dies_while_another_ones_test_runs(form: str) -> None:
    dump = [
        "Fatal Python error: Segmentation fault",
        "",
        "Current thread 0x1 (most recent call first):",
        '  File "/w/a.py", line 3 in <module>',
    ]
    tests, died = written(form, "cpu", [STARTS, "tests/test_a.py::test_a "]), written(form, "gpu", ["+ python a.py --compile", *dump])
    (failure,) = logs.failures("\n".join([*tests, *died, *written(form, "cpu", ["PASSED", "=== 1 passed in 1.00s ==="])]))
    assert (failure.test, failure.script, failure.hint.program) == ("", "/w/a.py", "python a.py --compile")
    # a test of its own
    (failure,) = logs.failures("\n".join([*tests, *written(form, "gpu", ["x"]), *written(form, "cpu", dump)]))
    assert failure.test == "tests/test_a.py::test_a"


def test_each_apart_with_what_has_no_name() -> None:
    read = lines.read("a-1  | x\ny\nb-1  | z")
    assert apart(read.text, read.who) == [["x", "y"], ["y", "z"]]
    one = lines.read("a-1  | x\ny")
    assert apart(one.text, one.who) == [["x", "y"]]
    many = lines.read("".join(f"a-{i}  | x\n" for i in range(MAX_WRITERS + 1)))
    assert apart(many.text, many.who) == [many.text]
