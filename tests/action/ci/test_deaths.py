"""What a shell tells of the death of a command."""

from __future__ import annotations

import pytest

from bot.action.ci import candidates, deaths
from bot.action.ci.paths import CheckoutPaths

DIED = "/w/_temp/a.sh: line 4:  2369 Segmentation fault      (core dumped) {}\n"
DUMP = """\
Fatal Python error: Segmentation fault

Current thread 0x00007f0000000000 (most recent call first):
  File "/w/site-packages/torch/_inductor/output_code.py", line 7 in __call__
  File "/w/a.py", line 3 in <module>
"""


def found(log: str) -> list[tuple[str | None, ...]]:
    keys = ("verdict", "kind", "test", "command")
    return [tuple(row[key] for key in keys) for row in candidates.rows(log, CheckoutPaths([]))]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("python a.py --compile", [("possible", "crash", None, "python a.py --compile")]),
        ("python a.py", [("not a candidate", "crash", None, "python a.py")]),
        ("python a.py --compile ${N} > b", [("possible", "crash", None, None)]),
        ("python test/a.py TestA.test_aoti", [("possible", "crash", "test/a.py::TestA::test_aoti", "python test/a.py TestA.test_aoti")]),
        ("./a.out --compile", []),
    ],
)
def test_a_command_of_a_script(command: str, expected: list[tuple[str | None, ...]]) -> None:
    assert found(DIED.format(command)) == expected


def test_what_was_killed_may_have_been_ended_from_outside() -> None:
    assert found("/w/a.sh: line 4: 2369 Killed      python a.py --compile\n") == []


def test_the_command_of_what_dumped_its_stack() -> None:
    assert found(DUMP + DIED.format("TORCH_COMPILE_DEBUG=1 python a.py")) == [
        ("possible", "crash", None, "TORCH_COMPILE_DEBUG=1 python a.py")
    ]
    assert found(DUMP + DIED.format("python a.py")) == [("possible", "crash", None, "python a.py")]
    assert found(DUMP) == [("possible", "crash", None, None)]
    other = DIED.format("python b.py").replace("Segmentation fault", "Aborted")
    assert sorted(map(str, (row[0] for row in found(DUMP + other)))) == ["not a candidate", "possible"]


def test_the_test_in_whose_file_python_died_by_the_only_command() -> None:
    command = "PYTORCH_TEST_WITH_INDUCTOR=1   pytest test/test_a.py -k test_b"
    died = f"test/test_a.py {DUMP}"
    assert found(f"{command}\n\n{died}") == [
        ("possible", "crash", "test/test_a.py::test_b", "PYTORCH_TEST_WITH_INDUCTOR=1 pytest test/test_a.py -k test_b")
    ]
    assert found(f"{command.replace('test_a', 'test_c')}\n\n{died}") == [("possible", "crash", "test/test_a.py", "pytest test/test_a.py")]
    assert found(f"{command}\n{command}_c\n\n{died}") == [("possible", "crash", "test/test_a.py", "pytest test/test_a.py")]


def test_the_stacks_that_pytest_prints_at_a_time_limit() -> None:
    bar = "+" * 35
    stack = '~~~ Stack of MainThread (140) ~~~\n  File "/w/tests/test_compile.py", line 7, in test_a\n'
    log = f"tests/test_compile.py::test_a \n{bar} Timeout {bar}\n{stack}{bar} Timeout {bar}\n"
    assert found(log) == [("possible", "hang", "tests/test_compile.py::test_a", "pytest tests/test_compile.py::test_a")]


@pytest.mark.parametrize(
    ("started", "path", "script", "program"),
    [
        ("+ NGPU=2 python -X faulthandler bench.py --a", "/w/bench.py", "/w/bench.py", "python -X faulthandler bench.py --a"),
        ("+ taskset -c 0-3 python bench.py", "/w/bench.py", "/w/bench.py", "python bench.py"),
        ("+ ./run.sh", "/w/bench.py", "/w/bench.py", ""),
        ("+ python other.py", "/w/bench.py", "/w/bench.py", ""),
        # what runs others
        ("+ python -m pytest", "/w/lib/python3.12/site-packages/pytest/__main__.py", "", ""),
        ("+ pytest", "/w/bin/pytest", "", ""),
        ("+ python tool.py", "/w/bin/tool.py", "", ""),
        ("+ python -m made_up", "/w/lib/python3.12/runpy.py", "", ""),
    ],
)
def test_a_program_that_died_and_how_it_was_started(started: str, path: str, script: str, program: str) -> None:
    dump = (
        *("Fatal Python error: Segmentation fault", "", "Current thread 0x00007f0000000000 (most recent call first):"),
        *('  File "/w/lib/torch/_inductor/output_code.py", line 7 in __call__', f'  File "{path}", line 12 in <module>'),
        *('  File "<frozen runpy>", line 88 in _run_code', "", "Extension modules: made_up (total: 1)"),
    )
    (failure,) = deaths.failures([started, *dump])
    assert (failure.test, failure.script, failure.hint.program, failure.signal) == ("", script, program, "SIGSEGV")
