"""Paths of a log, in the checkout."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.action.ci.failing_test import Failure, Hint
from bot.action.ci.paths import MAX_DEPTH, CheckoutPaths, in_directory
from bot.action.ci.pytest_log import root_of

AO = CheckoutPaths(["test/quant/test_int8.py", "test/test_ops.py", "setup.py", "packages/core/tests/test_ops.py", "README.md"])


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("test/quant/test_int8.py", "test/quant/test_int8.py"),
        ("/home/me/actions-runner/_work/ao/ao/pytorch/ao/test/quant/test_int8.py", "test/quant/test_int8.py"),
        ("/pytorch/ao/test/quant/test_int8.py", "test/quant/test_int8.py"),
        ("/var/lib/jenkins/workspace/test/test_ops.py", "test/test_ops.py"),
        ("D:\\a\\ao\\ao\\test\\test_ops.py", "test/test_ops.py"),
        ("../test/test_ops.py", "test/test_ops.py"),
        ("quant/test_int8.py", "test/quant/test_int8.py"),
        ("test_int8.py", "test/quant/test_int8.py"),
        ("core/tests/test_ops.py", "packages/core/tests/test_ops.py"),
        ("tests/test_ops.py", "packages/core/tests/test_ops.py"),
        ("test_ops.py", None),
        ("/elsewhere/setup.py", None),
        ("setup.py", "setup.py"),
        ("other/test_none.py", None),
        ("README.md", None),
    ],
)
def test_the_longest_suffix_that_exists(path: str, found: str | None) -> None:
    assert AO.find(path) == found


def test_a_failure_moves_with_its_file() -> None:
    moved = AO.locate(Failure("T.test_a[x/y.py::z]", "quant/test_int8.py::T::test_a[x/y.py::z]", ""))
    assert moved.test == "test/quant/test_int8.py::T::test_a[x/y.py::z]"
    whole = AO.locate(Failure("quant/test_int8.py", "quant/test_int8.py", ""))
    assert (whole.name, whole.test) == ("test/quant/test_int8.py", "test/quant/test_int8.py")
    model = Failure("Model", "org/model-2b", "")
    assert AO.locate(model) == model


def test_a_directory(tmp_path: Path) -> None:
    for name in ("a/test_a.py", ".git/test_a.py", "a/b/test_b.py", "venv/test_b.py", "test_c.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    paths = in_directory(tmp_path)
    assert [paths.find(name) for name in ("test_a.py", "test_b.py", "test_c.py")] == ["a/test_a.py", "a/b/test_b.py", "test_c.py"]


def test_the_command_has_the_path_of_the_test() -> None:
    failure = Failure("test_a", "pytorch/test/test_made_up.py::test_a", "", hint=Hint((), "pytest pytorch/test/test_made_up.py -k test_a"))
    located = CheckoutPaths(["test/test_made_up.py"]).locate(failure)
    assert (located.test, located.hint.program) == ("test/test_made_up.py::test_a", "pytest test/test_made_up.py -k test_a")


def test_a_directory_that_is_too_deep(tmp_path: Path) -> None:
    deep = tmp_path
    for _ in range(MAX_DEPTH + 20):
        deep /= "d"
        deep.mkdir()
        (deep / "a.py").touch()
    found = in_directory(tmp_path)
    assert found.find("d/" * 3 + "a.py") == "d/" * 3 + "a.py"
    assert found.find("d/" * (MAX_DEPTH + 20) + "a.py") != "d/" * (MAX_DEPTH + 20) + "a.py"


# Where GitHub's runners have their checkouts: each in a directory named after its repository.
RUNNER = "/".join(("", "home", "runner", "work"))
TWO = CheckoutPaths(["packages/core/tests/test_a.py", "packages/other/tests/test_a.py"], "packages/other")


@pytest.mark.parametrize(
    ("root", "found"),
    [
        (f"{RUNNER}/mono/mono/packages/core", "packages/core/tests/test_a.py::t"),
        # the log does not say, so it is the one where programs run
        ("", "packages/other/tests/test_a.py::t"),
        ("/somewhere/else", "packages/other/tests/test_a.py::t"),
    ],
)
def test_of_two_files_with_one_path_that_of_the_directory_is_meant(root: str, found: str) -> None:
    located = TWO.locate(Failure("t", "tests/test_a.py::t", "", root=root))
    assert (located.test, located.located) == (found, True)
    assert not TWO.locate(Failure("t", "tests/test_b.py::t", "", root=root)).located


@pytest.mark.parametrize(
    ("directory", "found"),
    [("packages/core", "packages/core/tests/test_a.py::t"), ("", "tests/test_a.py::t"), ("packages/none", "tests/test_a.py::t")],
)
def test_pytest_counts_from_where_it_was_started(directory: str, found: str) -> None:
    """Below a root whose settings are those of all packages: of two files the one where nothing runs was taken."""
    paths = CheckoutPaths(["tests/test_a.py", "packages/core/tests/test_a.py"], directory)
    assert paths.locate(Failure("t", "tests/test_a.py::t", "", root=f"{RUNNER}/mono/mono")).test == found


@pytest.mark.parametrize(
    ("root", "found"),
    [
        (f"{RUNNER}/proj/proj", "tests/test_a.py::t"),
        (f"{RUNNER}/proj/proj/proj", "proj/tests/test_a.py::t"),
        ("/__w/proj/proj", "tests/test_a.py::t"),
        ("/__w/proj/proj/proj", "proj/tests/test_a.py::t"),
        # elsewhere it cannot be told which of the two is the checkout
        ("/builds/proj", "tests/test_a.py::t"),
        (f"{RUNNER.replace('/work', '/homework')}/proj/proj/proj", "tests/test_a.py::t"),
    ],
)
def test_a_directory_that_is_called_as_the_checkout_is(root: str, found: str) -> None:
    """Another file was taken for the test's."""
    paths = CheckoutPaths(["tests/test_a.py", "proj/tests/test_a.py"])
    assert paths.locate(Failure("t", "tests/test_a.py::t", "", root=root)).test == found


@pytest.mark.parametrize(
    ("lines", "root"),
    [
        (["rootdir: /builds/mono/packages/core"], "/builds/mono/packages/core"),
        (["rootdir: /builds/mono, configfile: pytest.ini, testpaths: tests", "rootdir: /builds/mono"], "/builds/mono"),
        (["rootdir: /builds/mono", "rootdir: /builds/other"], ""),
        (["made up"], ""),
    ],
)
def test_from_where_pytest_counts(lines: list[str], root: str) -> None:
    assert root_of(lines) == root
