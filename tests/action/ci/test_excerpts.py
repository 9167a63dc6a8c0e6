"""Excerpts of logs of which the words around, a title or a name above them, tell the rest."""

from __future__ import annotations

import pytest

from bot.action.ci import candidates
from bot.action.ci.paths import CheckoutPaths

PROGRAM = """\
Traceback (most recent call last):
  File "/w/train.py", line 41, in <module>
    main(config)
"""
LOWERING = """\
  File "/w/train.py", line 41, in f
    g(x)
  File "/w/lib/python3.12/site-packages/torch/_inductor/lowering.py", line 2020, in made_up
    return lowered(x)
"""


def verdicts(log: str) -> list[str | None]:
    return [row["verdict"] for row in candidates.rows(log, CheckoutPaths([])) if row["verdict"] != "not a candidate"]


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("# [Bug]: torch._dynamo.exc.Unsupported: Made up", ["possible"]),
        ("# [made][up] `BackendCompilerFailed`: backend='made_up' raised", ["possible"]),
        ("# [made][up] torch._dynamo.exc.InternalTorchDynamoError: name 'made' is not defined", ["possible"]),
        ("# [Bug]: torch._dynamo.exc.Unsupported: Made up is fixed", []),
        ("# [Bug]: torch._dynamo.exc.Unsupported with a made-up model", ["possible"]),
        ("# `torch._dynamo.exc.Unsupported` when it is made up", ["possible"]),
        ("# torch._dynamo.exc.Unsupported should be made up", []),
        ("# torch._dynamo.exc.Unsupported in a made-up model is fixed", []),
        ("# torch._dynamo.exc.Unsupported: its message should be made up", []),
        ("# Made up torch._dynamo.exc.Unsupported", []),
        ("It is about torch._dynamo.exc.Unsupported: made up", []),
    ],
)
def test_a_title_that_begins_with_what_was_raised(title: str, expected: list[str]) -> None:
    assert verdicts(f"{title}\n\n```\n+ python train.py\n{PROGRAM}```\n") == expected
    assert verdicts(f"# A title\n\n{title}\n\n```\n{PROGRAM}```\n") == []
    # what was raised is there
    assert verdicts(f"{title}\n\n```\n{PROGRAM}KeyError: 1\n```\n") == []


def test_the_program_of_a_traceback_of_which_the_title_tells() -> None:
    log = f"# torch._dynamo.exc.Unsupported: Made up\n\n```\n+ python train.py\n{PROGRAM}```\n"
    assert [row["command"] for row in candidates.rows(log, CheckoutPaths([]))] == ["python train.py"]


@pytest.mark.parametrize(
    ("above", "told"),
    [
        ("Error Message:\n torch._inductor.exc.InductorError: made up\n", "InductorError: made up"),
        ("**_torch._inductor.exc.InductorError: made up_**\n", "InductorError: made up"),
        ("It raises torch._inductor.exc.InductorError\n", "InductorError"),
        # which of them it was
        ("torch._inductor.exc.InductorError: made up\n```\ntorch._dynamo.exc.Unsupported: made up\n", None),
        ("It says nothing\n", None),
    ],
)
def test_what_was_raised_is_told_above_a_traceback_that_is_cut_off(above: str, told: str | None) -> None:
    log = f"# A title\n\n```\n{above}```\n\n```\n{PROGRAM}{LOWERING}```\n"
    (row,) = candidates.rows(log, CheckoutPaths([]))
    assert (row["verdict"], row["file"]) == ("possible", "/w/train.py")
    shown = str(row["why"]).partition(" (exception in inductor_lowering")[2].partition(")")[0]
    assert shown == (f": {told}" if told else "")
    assert " (exception in inductor_lowering" in str(row["why"])
    # a log says many other things above
    (row,) = candidates.rows("it runs\n" * 300 + log, CheckoutPaths([]))
    assert "in the compiler: what was raised may be of the machine (exception in inductor_lowering);" in str(row["why"])


def test_the_file_of_a_program_whose_command_is_not_shown() -> None:
    raised = f"{PROGRAM}{LOWERING}torch._inductor.exc.InductorError: made up\n"
    (row,) = candidates.rows(raised, CheckoutPaths(["src/train.py"]))
    assert (row["file"], row["test"], row["command"]) == ("/w/train.py", None, None)
    (row,) = candidates.rows(raised.replace("/w/train", "/w/src/train"), CheckoutPaths(["src/train.py"]))
    assert row["file"] == "src/train.py"
    # a tool that starts programs, a module that one imports, what the compiler wrote
    for other in (
        "/w/lib/python3.12/site-packages/torch/distributed/run.py",
        "/usr/lib/python3.12/multiprocessing/spawn.py",
        "/tmp/torchinductor_made/up/cmadeup.py",
        "/w/.cache/made/up/inductor_cache/up/cmadeup.py",
    ):
        (row,) = candidates.rows(raised.replace("/w/train.py", other, 1), CheckoutPaths([]))
        assert row["file"] is None
    imported = raised.replace("  File", '  File "/w/lib/python3.12/site-packages/made/up.py", line 1, in load\n    load()\n  File', 1)
    (row,) = candidates.rows(imported, CheckoutPaths([]))
    assert row["file"] is None


@pytest.mark.parametrize(("command", "found"), [("python bench/train.py --a 1", True), ("it runs python bench/train.py", False)])
def test_a_command_alone_on_its_line_in_a_text(command: str, found: bool) -> None:
    log = f"# A title\n\n```\n{command}\n{PROGRAM}{LOWERING}torch._inductor.exc.InductorError: made up\n```\n"
    assert [row["command"] for row in candidates.rows(log, CheckoutPaths([]))] == [command if found else None]
    # what a log shows so may be a help text
    assert [row["command"] for row in candidates.rows("it runs\n" * 300 + log.replace("`", ""), CheckoutPaths([]))] == [None]


@pytest.mark.parametrize(
    ("file", "runner", "test"),
    [
        ("/w/tests/made_up.py", "/usr/lib/python3.12/unittest/case.py", "tests/made_up.py::test_a"),
        ("/w/tests/made_up.py", "/w/run.py", None),
        ("/w/lib/python3.12/site-packages/made/up.py", "/usr/lib/python3.12/unittest/case.py", None),
    ],
)
def test_a_test_of_unittest_in_a_file_of_any_name(file: str, runner: str, test: str | None) -> None:
    frames = f'  File "{runner}", line 7, in run\n    method()\n  File "{file}", line 9, in test_a\n    f(x)\n'
    log = f"Traceback (most recent call last):\n{frames}{LOWERING}torch._inductor.exc.InductorError: made up\n"
    assert [row["test"] for row in candidates.rows(log, CheckoutPaths([]))] == [test]


def test_a_title_tells_what_the_process_raised_that_another_one_quotes() -> None:
    quoted = f"RuntimeError: Process 0 exited with error code 10 and exception:\n{PROGRAM}"
    log = f"{{}}\n\n```\n{PROGRAM}{quoted}```\n"
    assert verdicts(log.format("# torch._dynamo.exc.Unsupported: Made up")) == ["possible"]
    assert verdicts(log.format("# KeyError: Made up")) == []


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("test_made_up[1-a/b] ", "test_made_up[1-a/b]"),
        ("test_made_up", "test_made_up"),
        ("The error of `test_made_up[1-a/b]`:", "test_made_up[1-a/b]"),
        ("`tests/test_a.py::TestA::test_made_up` fails with:", "tests/test_a.py::TestA::test_made_up"),
        ("test_made_up is wrong", None),
        ("`test_made_up` is wrong", None),
        ("`made_up` error:", None),
        ("made_up", None),
    ],
)
def test_the_name_above_an_excerpt_of_what_pytest_shows(line: str, name: str | None) -> None:
    log = ">   raise made_up\nE   torch._dynamo.exc.Unsupported: made up\nE     Explanation: Dynamo is made up\n"
    assert [row["test"] for row in candidates.rows(f"1. It fails\n```\n\n{line}\n{log}```\n", CheckoutPaths([]))] == [name]


@pytest.mark.parametrize(("end", "expected"), [("FAILED (failures=1)", ["suggested"]), ("OK", [])])
def test_an_excerpt_of_what_unittest_shows_begins_below_the_name_of_the_test(end: str, expected: list[str]) -> None:
    again = "To execute this test, run the following from the base repo dir:\n    python test/a.py T.test_b_x:2_y-z\n"
    log = f"{LOWERING}torch._inductor.exc.InductorError: made up\n\n{again}\n{'-' * 70}\nRan 18 tests in 4.967s\n\n{end}\n"
    assert verdicts(log) == expected
    tests = ["test/a.py::T::test_b_x:2_y-z"] if expected else []
    assert [row["test"] for row in candidates.rows(log, CheckoutPaths([]))] == tests


@pytest.mark.parametrize(
    ("place", "file"),
    [
        ("test/models/test_made_up.py:711: ", "test/models/test_made_up.py"),
        ("test/models/test_made_up.py:711:", "test/models/test_made_up.py"),
        ("/w/a/tests/made_up_test.py:711: in test_it", "tests/made_up_test.py"),
        ("src/made_up.py:711: ", None),
        ("see test/models/test_made_up.py:711: it is there", None),
    ],
)
@pytest.mark.parametrize("indent", ["", "  "])
def test_the_file_of_a_test_within_which_an_excerpt_begins(place: str, file: str | None, indent: str) -> None:
    shown = [place, "_ " * 40, "/w/lib/python3.9/site-packages/torch/_inductor/compile_fx.py:115: in aot_compile", "    return compile_fx("]
    text = "\n".join(indent + line for line in [*shown, "/w/lib/python3.9/si"])
    assert [(row["file"], row["verdict"]) for row in candidates.rows(f"It says:\n\n```\n{text}", CheckoutPaths([]))] == [(file, "possible")]


FENCED = """It fails:

```
Traceback (most recent call last):
  File "/w/first.py", line 3, in <module>
    torch.compile(f)(x)
  File "/env/lib/python3.12/site-packages/torch/_dynamo/eval_frame.py", line 600, in _fn
    raise e
{first}
```

With another option it is:

```
Traceback (most recent call last):
  File "/w/second.py", line 3, in <module>
    torch.compile(f)(x)
  File "/env/lib/python3.12/site-packages/torch/_dynamo/eval_frame.py", line 600, in _fn
    raise e
{second}
```
"""
UNSUPPORTED = "torch._dynamo.exc.Unsupported: a made up call"
LOWERED = "torch._inductor.exc.InductorError: LoweringException: AssertionError: made up"


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (UNSUPPORTED, LOWERED, ["first.py", "second.py"]),
        (UNSUPPORTED, "KeyError: 'made up'", ["first.py"]),
        # told again, with less of its message
        (UNSUPPORTED, UNSUPPORTED.removesuffix(" call"), ["second.py"]),
        # one that is cut off may be of what the other one raised
        ("", LOWERED, ["second.py"]),
        (UNSUPPORTED, "", ["second.py"]),
    ],
)
def test_each_fence_shows_a_failure_of_its_own(first: str, second: str, expected: list[str]) -> None:
    log = FENCED.format(first=first, second=second)
    found = [row for row in candidates.rows(log, CheckoutPaths([])) if row["verdict"] != "not a candidate"]
    assert [str(row["file"]).rpartition("/")[2] for row in found] == expected
    # in a log that is no text of somebody's, the last one ended the process
    bare = [row for row in candidates.rows(log.replace("```", ""), CheckoutPaths([])) if row["verdict"] != "not a candidate"]
    assert [str(row["file"]).rpartition("/")[2] for row in bare] == ([] if "KeyError" in second else ["second.py"])


@pytest.mark.parametrize(
    ("below", "file", "command"),
    [
        ("NGPU=2 python a/run.py", "a/run.py", "NGPU=2 python a/run.py"),
        ("python a/run.py\npython b/run.py", None, None),
        ("python a/run.py | tee log", "a/run.py", None),
        ("3 passed in 1.0s", None, None),
    ],
)
def test_the_only_command_of_a_text_stands_below_its_excerpt(below: str, file: str | None, command: str | None) -> None:
    log = f"# A title\n\n```\n{LOWERING}torch._inductor.exc.InductorError: made up\n```\n\nRun with:\n\n```\n{below}\n```\n"
    if "passed" in below:
        log += "```\npython a/run.py\n```\n"
    found = [(row["file"], row["command"]) for row in candidates.rows(log, CheckoutPaths([])) if row["verdict"] != "not a candidate"]
    assert found == ([] if "passed" in below else [(file, command)])
