"""Doctests in a log, as pytest 9.2 shows them: its titles, places and ids are those of a run of it on such files."""

from __future__ import annotations

import pytest

from bot.action.ci import candidates
from bot.action.ci.doctests import is_doctest
from bot.action.ci.failing_test import Failure, pytest_id
from bot.action.ci.paths import CheckoutPaths

BEGINS = "=== FAILURES ===\n"
RAISES = """___ [doctest] ops.fused.FusedLinear.forward ___
034             >>> m = torch.compile(FusedLinear(4, 4))
035             >>> m(torch.ones(2, 4)).shape
UNEXPECTED EXCEPTION: BackendCompilerFailed("backend='inductor' raised:\\nAssertionError: made up")
Traceback (most recent call last):
  File "/usr/lib/python3.11/doctest.py", line 1353, in __run
    exec(compile(example.source, filename, "single",
  File "<doctest ops.fused.FusedLinear.forward[1]>", line 1, in <module>
  File "/v/site-packages/torch/nn/modules/linear.py", line 134, in forward
    return F.linear(input, self.weight, self.bias)
  File "/v/site-packages/torch/_dynamo/output_graph.py", line 1564, in _call_user_compiler
    raise BackendCompilerFailed(
torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:
AssertionError: made up
/__w/ops/ops/ops/fused.py:35: UnexpectedException
"""
DIFFERS = """___ [doctest] {name} ___
012     >>> {source}
Expected:
    tensor([1., 1.])
Got:
    tensor([1.0000, 1.0000])

/__w/ops/ops/{file}:12: DocTestFailure
"""
ENDS = "=== short test summary info ===\n"
TEST = "ops/fused.py::ops.fused.FusedLinear.forward"


def rows(log: str, *files: str) -> list[dict[str, str | None]]:
    return candidates.rows(log, CheckoutPaths(files))


@pytest.mark.parametrize(
    "log",
    [
        f"{BEGINS}{RAISES}{ENDS}FAILED {TEST}\n",
        f"{BEGINS}{RAISES}",
        f"{TEST} FAILED                [ 50%]\n{BEGINS}{RAISES}{ENDS}FAILED {TEST}\n",
        f"ops/fused.py F                [100%]\n{BEGINS}{RAISES}",
    ],
)
def test_one_that_raises_is_one_row(log: str) -> None:
    (row,) = rows(log)
    assert (row["file"], row["test"], row["verdict"]) == ("ops/fused.py", TEST, "suggested")
    assert row["command"] == f"pytest --doctest-modules {TEST}"
    assert str(row["why"]).endswith("BackendCompilerFailed: AssertionError: made up)")
    (row,) = rows(log, "python/ops/fused.py")
    assert row["command"] == f"pytest --doctest-modules python/{TEST}"


@pytest.mark.parametrize(
    ("file", "name", "command"),
    [
        ("ops/norm.py", "ops.norm.rms_norm", "pytest --doctest-modules ops/norm.py::ops.norm.rms_norm"),
        ("ops/__init__.py", "ops.rms_norm", "pytest --doctest-modules ops/__init__.py::ops.rms_norm"),
        ("norm.py", "norm", "pytest --doctest-modules norm.py::norm"),
        # whatever that is called, pytest takes it for what it is where it is named
        ("docs/norm.rst", "norm.rst", "pytest docs/norm.rst::norm.rst"),
        ("docs/norm.txt", "norm.txt", "pytest docs/norm.txt::norm.txt"),
        ("docs/norm.md", "norm.md", "pytest '--doctest-glob=*.md' docs/norm.md::norm.md"),
    ],
)
@pytest.mark.parametrize("summary", [True, False])
@pytest.mark.parametrize(
    ("source", "verdict"), [("torch.compile(norm)(torch.ones(2))", "possible"), ("norm(torch.ones(2))", "not a candidate")]
)
def test_one_that_prints_something_else(file: str, name: str, command: str, source: str, verdict: str, summary: bool) -> None:
    log = BEGINS + DIFFERS.format(name=name, source=source, file=file) + (f"{ENDS}FAILED {file}::{name}\n" if summary else "")
    (row,) = rows(log)
    assert (row["file"], row["test"], row["command"]) == (file, f"{file}::{name}", command)
    assert (row["verdict"], row["kind"]) == (verdict, None)


def test_a_text_alone_is_none() -> None:
    assert rows("FAILED docs/norm.md - no such file\nERROR requirements.txt - no such file\n") == []


def test_one_that_the_summary_alone_names() -> None:
    (row,) = rows(f"{ENDS}FAILED {TEST}\n")
    assert (row["test"], row["command"]) == (TEST, f"pytest --doctest-modules {TEST}")


@pytest.mark.parametrize(
    ("file", "name", "expected"),
    [
        ("src/ops/fused.py", "ops.fused.FusedLinear", True),
        ("src/ops/fused.py", "src.ops.fused.FusedLinear", True),
        ("fused.py", "fused.FusedLinear", True),
        ("ops/fused.py", "ops.FusedLinear", False),
        ("ops/fused.py", "ops.fused_linear", False),
        ("ops/fused.py", "FusedLinear.fused", False),
        # a function, or a class, may be called as its file is
        ("test_fused.py", "test_fused", False),
        ("test_fused.py", "test_fused.test_linear", False),
        ("test_fused.py", "test_fused::test_linear", False),
        ("docs/fused.rst", "fused.rst", True),
        ("docs/fused.rst", "linear.rst", False),
        ("ops/fused.ipynb", "fused.ipynb", False),
        ("", "", False),
    ],
)
def test_what_is_one(file: str, name: str, expected: bool) -> None:
    assert is_doctest(file, name) is expected


def test_its_name_is_one_word_of_its_id() -> None:
    assert pytest_id("ops/fused.py", "ops.fused.FusedLinear") == "ops/fused.py::ops.fused.FusedLinear"
    assert pytest_id("test_fused.py", "test_fused.test_linear") == "test_fused.py::test_fused::test_linear"


@pytest.mark.parametrize(
    ("by_id", "expected"),
    [
        (f"pytest -x {TEST}", f"pytest --doctest-modules -x {TEST}"),
        (f"python -m pytest {TEST}", f"python -m pytest --doctest-modules {TEST}"),
        (f"A=pytest.ini py.test {TEST}", f"A=pytest.ini py.test --doctest-modules {TEST}"),
        ("python -m unittest ops.fused", "python -m unittest ops.fused"),
    ],
)
def test_the_option_is_in_a_command_of_the_user_s_too(by_id: str, expected: str) -> None:
    assert Failure("a", TEST, "").command(by_id, prefer_hint=False) == expected
