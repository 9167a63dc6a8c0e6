"""Failing tests in logs and JUnit XML: recorded, hostile, and made up."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.action.ci import archive as files
from bot.action.ci import junit, logs
from bot.action.ci.failing_test import Failure, Hint, pytest_id, repository_path
from bot.action.ci.pytest_text import as_traceback, own_source
from bot.failure.outcome import Outcome
from bot.failure.signature import signature_of

CI = Path(__file__).resolve().parents[2] / "fixtures" / "ci"
MODELS = {f"tests/test_models.py::TestCompiled::test_{name}" for name in ("class_in_function", "eager", "numbers", "pool", "pool_large")}
NAMES = ["plain", "with space", "a;b$(c)`d`", "[x]", "\\xe9-\\xfc"]
PARAMS = {f"tests/test_params.py::test_pool_by_name[{name}]" for name in NAMES} | {
    f"tests/test_params.py::test_{name}" for name in ("setup_fails", "prints_a_traceback")
}
POOL = {name for name in MODELS | PARAMS if "_pool" in name}


def recorded(name: str) -> tuple[Failure, ...]:
    path = next(CI.glob(f"*/{name}"))
    if path.suffix == ".xml":
        return junit.failures(path.read_bytes())
    return logs.failures(path.read_bytes().decode(), "tests")


def causes(failures: tuple[Failure, ...]) -> dict[str, set[str]]:
    """The tests by what they die of."""
    found: dict[str, set[str]] = {}
    for failure in failures:
        signature = signature_of(Outcome(status="signal" if failure.signal else "raised", text=failure.text, signal=failure.signal))
        assert signature is not None, failure
        found.setdefault(f"{signature.exception[-1]}: {signature.message.splitlines()[0]}", set()).add(failure.test)
    return found


@pytest.mark.parametrize(
    "name", ["pytest.txt", "pytest-short.txt", "pytest-native.txt", "pytest-xdist.txt", "pytest.xml", "pytest-short.xml"]
)
def test_every_way_of_pytest_to_tell_a_failure_says_the_same(name: str) -> None:
    found = recorded(name)
    assert {failure.test for failure in found} == MODELS | PARAMS
    assert len(found) == 12
    grouped = causes(found)
    assert grouped["AssertionError: max not supported for zero-dimension tensors!"] == POOL
    (unsupported,) = (tests for cause, tests in grouped.items() if cause.startswith("Unsupported: "))
    assert unsupported == {"tests/test_models.py::TestCompiled::test_class_in_function"}
    assert grouped["AssertionError: Tensor-likes are not close!"] == {"tests/test_models.py::TestCompiled::test_numbers"}
    assert grouped["OSError: no such device: <path>"] == {"tests/test_params.py::test_setup_fails"}
    assert len(grouped) == 6


@pytest.mark.parametrize("name", ["unittest.txt", "unittest-file.txt"])
def test_unittest(name: str) -> None:
    found = recorded(name)
    assert {failure.test for failure in found} == MODELS
    assert causes(found)["AssertionError: max not supported for zero-dimension tensors!"] == POOL & MODELS


def test_unittest_of_python_3_10_names_the_method_once() -> None:
    log = (CI / "logs" / "unittest.txt").read_bytes().decode()
    for name in MODELS:
        method = name.rpartition("::")[2]
        log = log.replace(f"(tests.test_models.TestCompiled.{method})", "(tests.test_models.TestCompiled)")
    assert {failure.test for failure in logs.failures(log)} == MODELS


def test_a_death_names_its_test_and_signal() -> None:
    (found,) = recorded("crash.txt")
    assert (found.test, found.signal) == ("crashing/test_crash.py::TestDies::test_dies", "SIGSEGV")
    signature = signature_of(Outcome(status="signal", text=found.text, signal=found.signal))
    assert signature is not None
    assert (signature.kind.value, signature.signal) == ("crash", "SIGSEGV")


@pytest.mark.parametrize(
    ("ran", "expected"),
    [
        ("test/test_a.py::TestA::test_pool", "test/test_a.py::TestA::test_pool"),
        # torch's own parameters are part of the method's name, which the frame has without them
        ("test/test_a.py::TestA::test_pool_size_2_mode_max", "test/test_a.py::TestA::test_pool_size_2_mode_max"),
        ("test/test_a.py::TestA::test_pool_size_2[x_y::z]", "test/test_a.py::TestA::test_pool_size_2[x_y::z]"),
        # of another file, or of another test
        ("test/test_b.py::TestB::test_pool_size_2", "test/test_a.py::test_pool"),
        ("test/test_a.py::TestA::test_pooled", "test/test_a.py::test_pool"),
    ],
)
def test_a_death_in_a_test_that_torch_parametrized(ran: str, expected: str) -> None:
    (found,) = logs.failures(f'{ran} Fatal Python error: Aborted\n\n  File "/w/test/test_a.py", line 3 in test_pool\n')
    assert (found.test, found.signal) == (expected, "SIGABRT")


def test_run_test_of_pytorch_names_the_path_from_the_repository_s_root() -> None:
    (found,) = logs.failures((CI / "run-test.txt").read_text(encoding="utf-8"))
    assert found.test == "test/inductor/test_pool.py::CpuTests::test_pool_cpu"
    assert list(causes((found,))) == ["AssertionError: max not supported for zero-dimension tensors!"]


def test_a_chain_of_exceptions_keeps_its_cause() -> None:
    section = """
    def test_chain():
        try:
>           inner()

tests/test_c.py:5:
_ _ _ _ _ _ _ _

    def inner():
>       raise KeyError("root")
E       KeyError: 'root'

tests/test_c.py:2: KeyError

The above exception was the direct cause of the following exception:

    def test_chain():
        try:
            inner()
        except KeyError as e:
>           raise ValueError("outer\\nsecond line") from e
E           ValueError: outer
E           second line

tests/test_c.py:7: ValueError
"""
    signature = signature_of(Outcome(status="raised", text=as_traceback(section)))
    assert signature is not None
    assert signature.exception == ("ValueError", "KeyError")
    assert '  File "tests/test_c.py", line 2, in inner' in as_traceback(section)


def test_the_source_of_a_test_is_that_of_its_own_frame() -> None:
    long = "    def test_a():\n>       f(x)\n\ntests/test_a.py:5: \n_ _ _\n\n    def f(x):\n>       torch.compile(g)\nE       ValueError: x"
    assert own_source(long) == "    def test_a():\n>       f(x)\n"
    short = "\ntests/test_a.py:5: in test_a\n    f(x)\ntests/a.py:7: in f\n    torch.compile(g)\nE   ValueError: x"
    assert own_source(short) == "\n    f(x)"
    alone = "    def test_a():\n>       assert f(x)\nE       assert 0\n\ntests/test_a.py:5: AssertionError"
    assert own_source(alone) == "    def test_a():\n>       assert f(x)\n"


def test_what_is_printed_is_not_what_is_raised() -> None:
    found = {failure.test: failure for failure in recorded("pytest.txt")}["tests/test_params.py::test_prints_a_traceback"]
    assert "InductorError" not in found.text


def test_paths_and_ids() -> None:
    assert repository_path("/".join(["", "home", "runner", "work", "models", "models", "tests", "a.py"])) == "tests/a.py"
    assert repository_path("/runner/_work/models/models/a.py") == "a.py"
    assert repository_path("/__w/models/models/tests/_work/a.py") == "tests/_work/a.py"
    assert repository_path("../tests/a.py") == "tests/a.py"
    assert repository_path("/w/buck-out/v2/gen/5f/made/test/__up__/up#link-tree/made/test/test_up.py") == "made/test/test_up.py"
    runfiles = "/root/.cache/bazel/_bazel_root/9f1e/execroot/_main/bazel-out/k8-opt/bin/tests/up_test.runfiles"
    assert repository_path(f"{runfiles}/_main/tests/up_test.py") == "tests/up_test.py"
    assert repository_path(f"{runfiles}/made/python/up_test.py") == "python/up_test.py"
    assert repository_path("bazel-bin\\tests\\up_test.exe.runfiles\\_main\\tests\\up_test.py") == "tests/up_test.py"
    assert repository_path("a.runfiles/_main") == "a.runfiles/_main"
    assert repository_path("third_party/ops/test/../../../test/a.py") == "test/a.py"
    assert pytest_id("a.py", "T.test_x[1.5-b.c]") == "a.py::T::test_x[1.5-b.c]"


# hostile


@given(st.text(max_size=2000))
def test_any_log(text: str) -> None:
    logs.failures(text)
    as_traceback(text)


lines = st.sampled_from(
    (
        "= FAILURES =|== ERRORS ==|___ test_a ___|_ _ _|E   ValueError: x|E|a.py:1: in f|a.py:2: ValueError|ERROR: test_x (m.C.test_x)||x|"
        f"FAILED a.py::test_a - x|Traceback (most recent call last):|Fatal Python error: Aborted|{'=' * 70}|{'-' * 70}"
    ).split("|")
)


@given(st.lists(lines, max_size=60))
def test_logs_of_torn_pieces(parts: list[str]) -> None:
    for failure in logs.failures("\n".join(parts)):
        assert failure.name
        assert failure.test in ("", "test_a", "C::test_x") or ".py" in failure.test


@given(st.binary(max_size=500))
def test_any_bytes_for_an_archive_or_a_report(content: bytes) -> None:
    assert junit.in_archive(content) == ()
    junit.failures(content)


def archive(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, content in files.items():
            opened.writestr(name, content)
    return buffer.getvalue()


def test_archives() -> None:
    xml = (CI / "junit" / "pytest.xml").read_bytes()
    assert len(junit.in_archive(archive({"a/junit.xml": xml, "b.txt": xml, "c.XML": b"<torn"}))) == 12
    assert junit.in_archive(archive({"big.xml": b" " * (files.MAX_FILE + 1) + xml})) == ()
    entities = b'<!DOCTYPE a [<!ENTITY b "c">]><testsuite><testcase name="x"><failure>&b;</failure></testcase></testsuite>'
    for encoding in ("utf-8", "utf-16"):
        assert junit.failures(entities.decode().encode(encoding)) == ()
        assert len(junit.failures(b"<testsuite><testcase name='x'><failure/></testcase></testsuite>".decode().encode(encoding))) == 1
    quoted = b"<testsuite><testcase name='x'><failure><![CDATA[<!DOCTYPE html>]]></failure></testcase></testsuite>"
    assert len(junit.failures(quoted)) == 1


@pytest.mark.parametrize("odd", [b"\x1b[31m", b"&#27;[31m", b"&#x1B;[31m", b"\0", b"\xff\xfe", b"\xed\xa0\x80"])
def test_what_a_program_printed_does_not_make_a_report_unreadable(odd: bytes) -> None:
    """Not every writer takes out what no XML may hold."""
    xml = b"<testsuite><testcase name='x'><failure>a " + odd + b"ValueError: y</failure></testcase></testsuite>"
    (failure,) = junit.failures(xml)
    assert "ValueError: y" in failure.text
    assert junit.failures(b"<!DOCTYPE a>" + xml) == ()


def test_a_report_with_files_and_without_classes() -> None:
    xml = b"""<testsuites><testsuite><testcase name="test_a" classname="" file="test/a.py"><error message="ValueError: m"/></testcase>
    <testcase name="test_b" classname="pkg.test_b.TestB"><failure message="x">ValueError: y</failure><system-out>z</system-out></testcase>
    <testcase name="test_c" classname="pkg.test_b"><skipped/></testcase></testsuite></testsuites>"""
    assert [(failure.test, failure.text) for failure in junit.failures(xml)] == [
        ("test/a.py::test_a", "Traceback (most recent call last):\nValueError: m"),
        ("pkg/test_b.py::TestB::test_b", "ValueError: y"),
    ]


@pytest.mark.parametrize("test", ["-pevil.py::test_a", "@options.py::test_a", "a.py::test_\n", "a.py::" + "x" * 1000])
def test_an_id_that_is_none_is_in_no_command_though_the_log_has_one(test: str) -> None:
    failure = Failure(test, test, "", hint=Hint(program="python test/test_a.py"))
    for prefer_hint in (True, False):
        assert failure.command(f"pytest '{test}'", prefer_hint=prefer_hint) == "python test/test_a.py"
    assert Failure("a", "a.py::b", "", hint=Hint(program="python a.py")).command("pytest a.py::b", prefer_hint=False) == "pytest a.py::b"
