"""Reading a log costs in proportion to its size, whatever stands in it: counted in steps of the interpreter, not in seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from bot.action.ci import candidates, lines, python_words
from bot.action.ci.paths import CheckoutPaths

SECTION = "=== FAILURES ===\n___ test_{name} ___\n"
SHOWN = SECTION + "E   ValueError: {i}\n=== x ===\nFAILED a/test_{i}.py::test_{name} - ValueError: {i}\n"
HEADER = "Traceback (most recent call last):\n"
LOWERING = (
    HEADER
    + '  File "/x/torch/_inductor/graph.py", line 7, in call_function\n    raise E\n'
    + "torch._inductor.exc.InductorError: LoweringException: A: b{}\n\n"
)
RECORD = "ERROR 11-03 09:14:07 [a.py:7]"
OP = '  File "/x/torch/_ops.py", line 9, in g\n    h()\n'
JOINT = f"{python_words.JOINTS[1]}\n"
BLAMING = f"{'=' * 70}\nERROR: test_{{i}} (m.C.test_{{i}})\n{'-' * 70}\n{HEADER}E: exited with code 1\n{'-' * 70}\nRan 1 test in 1s\n"

# What repeats in a hostile log, with the number of the repetition.
HOSTILE: dict[str, Callable[[int], str]] = {
    "deaths": lambda i: "Fatal Python error: Aborted\n",
    "deaths with frames": lambda i: f'Fatal Python error: Aborted\n  File "/x/test_a.py", line 3 in test_{i}\n',
    "cores": lambda i: f"a/test_{i}.py::test_a sh: line 1: 9 Aborted (core dumped) x\n",
    "deaths of which a shell tells": lambda i: f"Fatal Python error: Aborted\nsh: line 1: {i} Aborted (core dumped) python a{i}.py\n",
    "tests that print": lambda i: f"a/test_{i}.py::test_a {LOWERING.format(i)}{'PASSED' if i % 2 else ''}\n",
    "sections and summaries": lambda i: SHOWN.format(name=i, i=i),
    "sections of one name": lambda i: SHOWN.format(name="a", i=i),
    "sections whose child failed": lambda i: (
        f"{SECTION.format(name=i)}{HEADER}E   RuntimeError: Engine core initialization failed\n--- Captured x ---\n{LOWERING.format(i)}"
    ),
    "a line for each": lambda i: f"=== FAILURES ===\na/x{i}.py:3: ValueError: {i}\n",
    "summaries alone": lambda i: f"FAILED a/test_{i}.py::test_{i} - ValueError: {i}\n",
    "files that are not imported": lambda i: f"ERROR a/test_{i}.py - ValueError: {i}\n",
    "progress": lambda i: f"a/test_{i}.py::test_{i} FAILED [ 1%]\n",
    "marks": lambda i: f"a/test_{i}.py F.E [ 1%]\nFF.{'F' * 60} [ 2%]\n=== FAILURES ===\n___ test_{i} ___\nE   ValueError: x\n",
    "unittest": lambda i: f"{'=' * 70}\nERROR: test_{i} (m.C.test_{i})\n{'-' * 70}\n{LOWERING.format(i)}",
    "unittest without an end": lambda i: f"{'=' * 70}\nERROR: test_{i} (m.C.test_{i})\n",
    "unittest of green": lambda i: f"Error in m.C.test_{i}\n{LOWERING.format(i)}",
    "summary of tests whose children failed": lambda i: (
        ("" if i else LOWERING.format(i) * 20) + f"FAILED tests/test_a.py::test_{i} - RuntimeError: Engine core initialization failed\n"
    ),
    "unittest whose child failed": lambda i: LOWERING.format(i) + BLAMING.format(i=i),
    "tracebacks": lambda i: LOWERING.format(i),
    "tracebacks behind a logger's words": lambda i: f"E: {LOWERING.format(i)}",
    "tracebacks that are indented": lambda i: "".join(f"  {line}\n" for line in LOWERING.format(i).split("\n")),
    "records on a line": lambda i: f"{RECORD} {LOWERING.format(i)}".replace("\n", f"  {RECORD} ") + "\n",
    "errors that repeat another": lambda i: f"{LOWERING.format(i)}{JOINT}\n{HEADER}B: b{i}\n\n{JOINT}\n",
    "headers": lambda i: HEADER,
    "writers at once": lambda i: "".join(f"w-{(i + j) % 9999}  | {line}\n" for j, line in enumerate(SHOWN.format(name=i, i=i).split("\n"))),
    "writers one below the other": lambda i: "".join(f"w-{i}  | {line}\n" for line in BLAMING.format(i=i).split("\n")),
    "notebooks": lambda i: f"A      {HEADER[:-2]}\nFile /x/torch/_inductor/a.py:{i}, in f(x)\n---> 7 g()\n\nA: b{i}\n",
    "sections of notebooks": lambda i: (
        f"=== FAILURES ===\n___ /x/a/b{i}.ipynb ___\nA      {HEADER[:-2]}\nFile /x/a.py:{i}, in f(x)\n---> 7 g()\n\nA: b{i}\n"
        f"=== x ===\nFAILED a/b{i}.ipynb:: - A: b\nFAILED a/b.ipynb::Cell {i}\n"
    ),
    "sections of doctests": lambda i: (
        f"=== FAILURES ===\n___ [doctest] a.b.c{i} ___\n{HEADER}A: b{i}\n/x/a/b.py:{i}: UnexpectedException\n"
        f"=== x ===\nFAILED a/b.py::a.b.c{i}\n"
    ),
    "notebooks without an end": lambda i: f"A      {HEADER[:-2]}\nFile /x/a.py:{i}, in f(x)\n",
    "boxes": lambda i: f"+--- {HEADER[:-2]} ---+\n| /x/torch/_inductor/a.py:{i} in f |\n+---+\nA: b{i}\n",
    "boxes without an end": lambda i: f"+--- {HEADER[:-2]} ---+\n| /x/torch/_inductor/{'a' * i} |\n",
    "ranks": lambda i: "".join(f"[rank{i % 99}]: {line}\n" for line in LOWERING.format(i).split("\n")),
    "hints": lambda i: f"    A=1 python test/a{i}/test_a.py T.test_a\nFAILED test_a.py::T::test_a{i}\n",
    "commands of tests": lambda i: f"{LOWERING.format(i)}To execute this test, run:\n    python test/a{i}.py T.t\n",
    "commands that select tests": lambda i: f"To execute this test, run:\n  python test/a.py -k t{i}\n",
    "tests that the runner names": lambda i: f"Running 1 items in this shard: a/test_{i}.py::t\nFatal Python error: Aborted\n",
    "errors below their summary": lambda i: f"FAILED a/test_{i}.py::test_{i} -\nValueError: {i}\n",
    "what pytest marks": lambda i: f"a.py:{i}: in f\nE   ValueError: {i}\n",
    "made code in a deep stack": lambda i: f'{HEADER}  File "/tmp/torchinductor_a/ab/c{i}.py", line 3, in f\n' + 30 * OP + f"A: b{i}\n",
    "an excerpt of a frame": lambda i: f"    x{i}\n",
    "choices that are left out": lambda i: f"Exception {'x' * i} for benchmark choice\n{HEADER}",
    "files of run_test": lambda i: (
        f"PRINTING LOG FILE of a{i} 1/1 (x)\n{HEADER}ValueError: x\nFINISHED PRINTING LOG FILE\na{i} 1/1 failed!\n"
    ),
    "consistent": lambda i: (
        f"FAILED CONSISTENTLY: test/a{i}.py::T::test_a\nThe following tests failed consistently: ['a', 'test/b{i}.py::T::t']\n"
    ),
    "models": lambda i: f"cuda eval  Model{i} \n{LOWERING.format(i)}fail_to_run\n",
    "tables": lambda i: f"Model{i}    FAIL:   accuracy=fail_to_run, expected=pass\n",
    "programs": lambda i: f"+ python a{i}.py\n{LOWERING.format(i)}",
    "programs of a step": lambda i: f"##[group]Run x\npython a{i}.py\n{LOWERING.format(i)}",
    "indented": lambda i: f"{' ' * (i % 9)}=== FAILURES ===\n  x\n\n",
    "indented, all": lambda i: "  === FAILURES ===\n   === FAILURES ===\n",
    "tests of buck": lambda i: f"✗ Fail: a/b:c - test_{i} (a.b.test_c.T) (1.5s)\n{LOWERING.format(i)}",
    "tests of buck without an error": lambda i: f"✗ Fail: a/b:c - test_c.py::T::test_{i} (1.5s)\n",
    "fences": lambda i: '```\n  File "/x/torch/_dynamo/a.py", line 3, in f\n',
    "what is quoted": lambda i: f"> a{i}\n> b\n>\n" if i % 2 else "> a\nb\n",
    "prompts": lambda i: f"(a) me@host:~/x{i}$ pytest tests/a.py::test_{i}\n",
    "commands among words": lambda i: f"`python test/a{i}.py T.t` " * 5 + "\n",
    "joints": lambda i: JOINT,
    "the compiler's advice": lambda i: 'Set TORCH_LOGS="+dynamo"\nfrom user code:\n\n',
    "heads of functions": lambda i: '  File "/x/torch/_dynamo/eval_frame.py", line 3, in f\n    a\n  File "u.py", line 3, in g\n    @x\n',
    "tests that hung": lambda i: f"TIMED OUT: test/a{i}.py::T::t\n",
    "deaths in files": lambda i: f"tests/a{i}.py ...Fatal Python error: Aborted\n",
    "marks before frames": lambda i: "".join(f"{i} h: {line}\n" for line in LOWERING.format(i).split("\n")),
    "many marks": lambda i: f'{"h" * i}: {OP}{"h" * i}:     x\n',
    "frames with empty lines": lambda i: f'{HEADER}\n  File "/x/a.py", line {i}, in f\n\n    g()\n\n  File "/x/a.py", line 3, in f\n\n',
    "frames that are broken": lambda i: f'{HEADER}  File "/x/a.py", line 3, in made_\nup_{i}\n    g(\nx)\n  File "/x/a.py", line 3, in f\n',
    "links": lambda i: f"[a{i}](https://made.up/{i}) [b{i}](https://\n",
    "items of a list": lambda i: f'  ```\n    File "/x/a.py", line {i}, in f\n  ```\n',
    "strings": lambda i: f'made up: "{HEADER[:-1]}\\n  File \\"/x/a.py\\", line {i}, in f\\nA: b"\n',
    "guards": lambda i: "E0311 12:53:59.334000 1318 torch/_guards.py:250] Created at:\n",
    "nothing": lambda i: "\n",
}  # fmt: skip
# A line that begins as many lines do that mean something, and goes on.
LONG = (
    "FAILED a.py::t[",
    "=== x ",
    "___ x ",
    "--- Captured ",
    "_ a ",
    "[rank0]:" * 50,
    "A=1 " * 50,
    "ERROR 11-03 09:14:07 [a.py:7] ERROR 11-03 09:14:07 [a.py:7]",
    "a.py::b FAILED <- ",
    "Executing ['",
    "cuda eval ",
)


def steps(log: str) -> int:
    """How many lines of Python run while `log` is read."""
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        candidates.rows(log, CheckoutPaths(()))
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("part", HOSTILE.values(), ids=HOSTILE)
def test_four_times_the_log_takes_four_times_the_steps(part: Callable[[int], str]) -> None:
    small, large = (steps("".join(part(i) for i in range(count))) for count in (60, 240))
    assert small > 60
    assert large < 4.6 * small + 2_000


@pytest.mark.parametrize("begins", LONG, ids=range(len(LONG)))
@pytest.mark.parametrize("goes_on", ["-", "= ", "_ ", "x.py::a ", " FAILED", "::", " - "])
def test_a_long_line_is_cut(begins: str, goes_on: str) -> None:
    line = begins + goes_on * lines.MAX_LINE
    assert steps(line) < 3_000


@pytest.mark.parametrize("many", ["\r", "\r\r\n", "\x1b[0m", "\t", "_", "= "])
def test_what_stands_very_often_in_a_line_is_read_in_time(many: str) -> None:
    """What patterns cost is in no step of the interpreter."""
    began = time.process_time()
    candidates.rows(many * (250_000 // len(many)) + f"x\n{LOWERING.format(1)}", CheckoutPaths(()))
    assert time.process_time() - began < 8
