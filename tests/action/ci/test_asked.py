"""What somebody's text shows as the command that failed: the test that pytest's `-k` names."""

from __future__ import annotations

import pytest

from bot.action.ci import candidates
from bot.action.ci.asked import asked, commanded
from bot.action.ci.failing_test import Hint
from bot.action.ci.paths import CheckoutPaths

COMMAND = "Command: cd <pytorch> && PYTORCH_TEST_WITH_SLOW=1 pytest -v inductor/test_made_up.py -k test_made_up_xpu"
CUT = """\
Traceback (most recent call last):
  File "/w/pytorch/torch/testing/_internal/common_utils.py", line 2464, in wrapper
    fn(*args, **kwargs)
  File "/w/pytorch/torch/testing/_internal/common_ut"""
WHOLE = """\
Traceback (most recent call last):
  File "/w/pytorch/test/test_made_up.py", line 817, in test_made_up
    self.assertEqual(a, b)
  File "/w/pytorch/torch/testing/_internal/common_utils.py", line 2438, in assertEqual
    assert_equal(
AssertionError: Tensor-likes are not close!
"""


def told(log: str) -> list[tuple[str, str]]:
    found = candidates.rows(log, CheckoutPaths([]))
    return [(str(row["test"]), str(row["command"])) for row in found if row["verdict"] != "not a candidate"]


def test_the_command_above_a_traceback_that_is_cut_off() -> None:
    named = ("inductor/test_made_up.py::test_made_up_xpu", "PYTORCH_TEST_WITH_SLOW=1 pytest inductor/test_made_up.py -k test_made_up_xpu")
    assert told(f"# A title\n\n```\n{COMMAND}\n{CUT}") == [named]
    # of some the one right above
    others = "pytest -v inductor/test_made_up.py -k test_other_xpu\n"
    assert told(f"# A title\n\n{others}\n```\n{COMMAND}\n{CUT}") == [named]
    assert told(f"# A title\n\n{others}{COMMAND}\n\n```\n{CUT}") == []
    # nothing says that these compile
    assert told(f"# A title\n\n```\n{COMMAND.replace('inductor/', '')}\n{CUT}") == []
    assert told(f"{COMMAND}\n1 passed in 2.00s\n{CUT}") == []


def test_the_command_has_more_of_the_name_than_the_stack() -> None:
    command = "PYTORCH_TEST_WITH_INDUCTOR=1   pytest test/test_made_up.py -k {}\n"
    device = command.format("test_made_up_cuda")
    expected = "PYTORCH_TEST_WITH_INDUCTOR=1 pytest test/test_made_up.py -k test_made_up_cuda"
    assert told(f"# A title\n\n```\n{device}```\n{WHOLE}") == [("test/test_made_up.py::test_made_up_cuda", expected)]
    assert told(f"# A title\n\n```\n{device.replace('PYTORCH_TEST_WITH_INDUCTOR=1', 'MADE_UP=1')}```\n{WHOLE}") == []


def test_an_excerpt_of_pytest_below_the_command() -> None:
    command = "pytest test/test_made_up.py -k test_made_up"
    shown = "    def test_made_up(self):\n>       torch.compile(f)(x)\nE       torch._dynamo.exc.InternalTorchDynamoError: made up\n"
    assert told(f"# A title\n\n```\n{command}\n{shown}```\n") == [("test/test_made_up.py::test_made_up", command)]


@pytest.mark.parametrize(
    ("command", "variables"),
    [
        ("pytest a/test_b.py -k test_c", ()),
        ("$ python -m pytest -v -k test_c a/test_b.py", ()),
        ("`pytest a/test_b.py -k 'test_c'`", ()),
        ("Run: RUN_SLOW=1 LD_PRELOAD=/x NGPU=2 pytest a/test_b.py -k test_c -x", ("RUN_SLOW=1", "NGPU=2")),
        ("NGPU=2 cd /w && pytest a/test_b.py -k test_c", ()),
        ("It fails (as pytest a/test_b.py -k test_c).", ()),
    ],
)
def test_what_selects_one(command: str, variables: tuple[str, ...]) -> None:
    found = asked(["words", command])
    assert found is not None
    assert (found.test, found.hint) == ("a/test_b.py::test_c", Hint(variables, "pytest a/test_b.py -k test_c"))


@pytest.mark.parametrize(
    "command",
    [
        "pytest a/test_b.py a/test_d.py -k test_c",
        "pytest a -k test_c",
        "pytest a/test_b.py -k 'test_c or test_d'",
        "pytest a/test_b.py -k test_c;x",
        "pytest a/test_b.py -k c",
        "pytest --x=a/test_b.py -k test_c",
        "mypytest a/test_b.py -k test_c",
        "pytest a/test_b.py -k test_c -k test_d",
        "pytest a/test_b.py -k",
    ],
)
def test_what_selects_none_or_others(command: str) -> None:
    assert asked([command]) is None


def test_an_id_is_more_than_what_selects() -> None:
    lines = ["pytest a/test_b.py -k test_c", "pytest 'a/test_b.py::test_c[x y]'"]
    assert list(commanded(lines)) == ["a/test_b.py::test_c[x y]"]
    found = asked(lines)
    assert found is not None
    assert (found.test, found.hint) == ("a/test_b.py::test_c[x y]", Hint())


CALLS = "pytest tests/test_made_up.py::TestA::test_b"
GUARD = "E0102 03:04:05.000000 94260 lib/python3.12/site-packages/torch/_guards.py:359] [0/0] Error while creating guard:\n"


@pytest.mark.parametrize(
    "said",
    [
        f"With `{CALLS}` it raises `torch._dynamo.exc.UserError: made up`.\n",
        f"I ran `{CALLS}`, and there it says:\n```\n{GUARD}```\n",
    ],
)
def test_the_only_command_of_a_text_that_tells_of_an_error(said: str) -> None:
    assert told(f"# A title\n\n{said}") == [("tests/test_made_up.py::TestA::test_b", CALLS)]
    assert told(f"# A title\n\n{said}\n{CALLS}2\n") == [("None", "None")]
    assert told("# A title\n\n" + said.replace("pytest", "see")) == [("None", "None")]


@pytest.mark.parametrize(
    ("said", "command"),
    [
        ("(a-3.10) ~/b$ python bench/run.py --made up", "python bench/run.py --made up"),
        ("The command: `NGPU=2 torchrun run.py`", "NGPU=2 torchrun run.py"),
        ("python run.py --a\npython run.py --b", "None"),
        ("- `CUDA_VISIBLE_DEVICES=7 pytest test/test_made_up.py -v -s `", "CUDA_VISIBLE_DEVICES=7 pytest test/test_made_up.py -v -s"),
        ("python -m pytest -q test/test_made_up.py", "python -m pytest -q test/test_made_up.py"),
        ("pytest test/test_made_up.py | tee log", "None"),
        ("pytest test/test_made_up.py\npytest test/test_other.py", "None"),
    ],
)
def test_the_only_program_of_a_text_that_tells_of_an_error(said: str, command: str) -> None:
    assert told(f"# A title\n\nIt says:\n```\n{said}\n{GUARD}```\n") == [("None", command)]
    # a log says many other things above
    assert told(f"# A title\n\n{'it runs' * 10}\n" * 300 + f"{said}\n{GUARD}") == [("None", "None")]


@pytest.mark.parametrize("said", [GUARD, '  File "/w/torch/_dynamo/convert_frame.py", line 2, in made_up\n    made_up()\n'])
@pytest.mark.parametrize(("command", "file"), [("python a/run.py --b $C | tee log", "a/run.py"), ("see a/run.py --b", None)])
def test_the_only_file_that_a_text_runs(said: str, command: str, file: str | None) -> None:
    (row,) = candidates.rows(f"# A title\n\n```\n {command}\n```\nIt says:\n```\n{said}```\n", CheckoutPaths([]))
    assert (row["file"], row["test"], row["command"]) == (file, None, None)


@pytest.mark.parametrize(
    ("progress", "verdicts"),
    [
        ("tests/test_made_up.py F                  [100%]", ["possible"]),
        ("tests/test_made_up.py ..sF.E", ["possible"]),
        ("tests/test_made_up.py ..s", []),
        ("tests/test_other.py F", []),
        ("tests/test_made_up.py F\ntests/test_other.py F", []),
    ],
)
def test_a_run_of_one_test_is_cut_off_behind_its_progress(progress: str, verdicts: list[str]) -> None:
    def rows(command: str) -> list[dict[str, object]]:
        log = f"# A title\n\n```\n\u276f {command}\n{'=' * 20} test session starts {'=' * 20}\n{progress}\n\n====="
        return [row for row in candidates.rows(log, CheckoutPaths([])) if row["verdict"] != "not a candidate"]

    command = "pytest tests/test_made_up.py -k test_compile_it"
    found = rows(command)
    assert [row["verdict"] for row in found] == verdicts
    assert all((row["test"], row["command"]) == ("tests/test_made_up.py::test_compile_it", command) for row in found)
    assert not rows("pytest tests/test_made_up.py")
