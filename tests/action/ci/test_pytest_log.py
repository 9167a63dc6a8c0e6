"""The failing tests that pytest shows in a log."""

from __future__ import annotations

import pytest

from bot.action.ci import candidates, pytest_log
from bot.action.ci.paths import CheckoutPaths

FAILS = "=== FAILURES ===\n___ TestCompile.test_a ___\nE   torch._dynamo.exc.Unsupported: made up\n\ntests/test_a.py:3: Unsupported\n"
PASSES = "___ TestCompile.test_b ___\n--- Captured stdout call ---\n======\nit runs\n======\n"
ENDS = "=== short test summary info ===\n"


@pytest.mark.parametrize("title", ["PASSES", "XPASSES", "XFAILURES"])
@pytest.mark.parametrize("above", ["", FAILS])
def test_sections_of_tests_that_did_not_fail(title: str, above: str) -> None:
    log = f"{above}=== {title} ===\n{PASSES}{ENDS}FAILED tests/test_a.py::TestCompile::test_a - Unsupported\n"
    assert [shown.title for shown in pytest_log.sections(log.splitlines())] == (["TestCompile.test_a"] if above else [])
    found = candidates.rows(f"{log}PASSED tests/test_a.py::TestCompile::test_b\n", CheckoutPaths([]))
    assert [row["test"] for row in found] == ["tests/test_a.py::TestCompile::test_a"]


def test_an_excerpt_below_what_passed_may_begin_with_a_section() -> None:
    log = f"=== PASSES ===\n{PASSES}{ENDS}{FAILS.partition(chr(10))[2]}"
    assert [shown.title for shown in pytest_log.sections(log.splitlines())] == ["TestCompile.test_a"]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("Tensor-likes ar...", "possible"),
        ("Tensor-l...", "possible"),
        ("Scalars ...", "possible"),
        ("Tens...", "not a candidate"),
        ("Tensor-made...", "not a candidate"),
    ],
)
def test_a_summary_that_is_cut_within_words_about_numbers(said: str, expected: str) -> None:
    log = f"{ENDS}FAILED tests/test_a.py::{{}}::test_a - AssertionError: {said}\n"
    assert [row["verdict"] for row in candidates.rows(log.format("TestCompile"), CheckoutPaths([]))] == [expected]
    assert [row["verdict"] for row in candidates.rows(log.format("TestEager"), CheckoutPaths([]))] == ["not a candidate"]


@pytest.mark.parametrize("title", ["=== FAILURES ===\n___ test_a ___\n", f"{'=' * 70}\nERROR: test_a (tests.test_a.TestA)\n{'-' * 70}\n"])
@pytest.mark.parametrize(
    ("raised", "expected"), [("torch._dynamo.exc.Unsupported: made up", "suggested"), ("KeyError: 1", "not a candidate")]
)
def test_a_group_of_exceptions_in_a_test(title: str, raised: str, expected: str) -> None:
    group = (
        '  + Exception Group Traceback (most recent call last):\n  |   File "/w/tests/test_a.py", line 3, in test_a\n  |     f(x)\n'
        "  | ExceptionGroup: several (2 sub-exceptions)\n  +-+---------------- 1 ----------------\n"
        '    | Traceback (most recent call last):\n    |   File "/w/tests/test_a.py", line 9, in g\n    |     h(x)\n'
        f"    | {raised}\n    +---------------- 2 ----------------\n    | ValueError: made up\n    +------------------------------------\n"
    )
    found = candidates.rows(f"{title}{group}", CheckoutPaths([]))
    assert [row["verdict"] for row in found] == [expected]
    assert raised.rpartition(".")[2] in str(found[0]["why"])


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        ("6 passed, 1 skipped, 13 warnings in 6.75s", []),
        ("===== 6 passed in 6.75s =====", []),
        ("6 passed it on", ["suggested"]),
        ("", ["suggested"]),
    ],
)
def test_what_is_printed_above_the_end_of_tests_that_passed(end: str, expected: list[str]) -> None:
    printed = 'Traceback (most recent call last):\n  File "/w/a.py", line 3, in f\n    g(x)\ntorch._dynamo.exc.Unsupported: made up\n'
    found = candidates.rows(f"{printed}\n..\n{end}\n", CheckoutPaths([]))
    assert [row["verdict"] for row in found] == expected


def test_the_lines_of_subtests_in_a_summary() -> None:
    test = "tests/test_a.py::test_b"
    said = "torch._dynamo.exc.Ba..."
    log = (
        f"{ENDS}SUBFAILED[case] (n=1) {test} - {said}\nSUBFAILED[case] (n=2) {test} - {said}\nFAILED {test} - contains 2 failed subtests\n"
    )
    (row,) = candidates.rows(log, CheckoutPaths([]))
    assert (row["test"], row["verdict"]) == (test, "possible")


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        ("{start}{printed}FF\n{blames}{fails}", ["suggested", "not a candidate"]),
        # it is of whatever ran before, or of a test that is named, or of either of two
        ("{printed}{start}FF\n{blames}{fails}", ["possible", "not a candidate"]),
        ("{start}tests/test_b.py::test_b {printed}PASSED\n{blames}", ["possible"]),
        ("{start}{printed}FF\n{blames}{again}", ["possible", "possible"]),
        # an excerpt begins within the run, or behind the end of another one
        ("{printed}FF\n{blames}{fails}", ["suggested", "not a candidate"]),
        ("{printed}=== 3 passed in 2.00s ===\n{blames}", ["possible"]),
        ("=== 3 passed in 2.00s ===\n{printed}{blames}", ["suggested"]),
    ],
)
def test_what_the_only_child_that_failed_has_printed(log: str, expected: list[str]) -> None:
    header = "Traceback (most recent call last):\n"
    ends = '  File "/w/torch/_inductor/scheduler.py", line 7, in codegen\n    assert made\n'
    child = "E   RuntimeError: Server exited unexpectedly.\n\ntests/test_compile.py"
    parts = {
        "start": "=== test session starts ===\n",
        "printed": f"{header}{ends}torch._inductor.exc.InductorError: AssertionError: made up\n",
        "blames": f"=== FAILURES ===\n___ test_a ___\n{child}:3: RuntimeError\n",
        "again": f"___ test_c ___\n{child}:9: RuntimeError\n",
        "fails": "___ test_b ___\nE   KeyError: 1\n\ntests/test_b.py:3: KeyError\n",
    }
    found = candidates.rows(log.format_map(parts), CheckoutPaths([]))
    assert [row["verdict"] for row in found] == expected


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        ("{printed}{summary}{blames}", ["suggested"]),
        ("{printed}{summary}{blames}{fails}", ["suggested", "not a candidate"]),
        ("{printed}{blames}", ["suggested"]),
        # it is of another run, or of a test that is named; or the error is none of the compiler's
        ("{printed}=== 3 passed in 2.00s ===\n{summary}{blames}", ["not a candidate"]),
        ("tests/test_b.py::test_c {printed}PASSED\n{summary}{blames}", ["not a candidate"]),
        ("{summary}{blames}{printed}", ["not a candidate"]),
        ("{eager}{summary}{blames}", ["not a candidate"]),
    ],
)
def test_what_the_child_of_the_only_test_of_a_summary_has_printed(log: str, expected: list[str]) -> None:
    header = "(EngineCore pid=7) Traceback (most recent call last):\n"
    ends = '(EngineCore pid=7)   File "/w/torch/_inductor/scheduler.py", line 7, in codegen\n(EngineCore pid=7)     assert made\n'
    child = "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n"
    parts = {
        "printed": f"{header}{ends}(EngineCore pid=7) torch._inductor.exc.InductorError: AssertionError: made up\n",
        "eager": f"{header}{ends.replace('torch/_inductor', 'made_up')}(EngineCore pid=7) KeyError: 1\n",
        "summary": ENDS,
        "blames": f"FAILED tests/test_a.py::test_a - {child}",
        "again": f"FAILED tests/test_a.py::test_b - {child}",
        "fails": "FAILED tests/test_b.py::test_b - KeyError: 1\n",
    }
    found = candidates.rows(log.format_map(parts), CheckoutPaths([]))
    assert [row["verdict"] for row in found] == expected
    assert found[0]["test"] == "tests/test_a.py::test_a"


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ("{made}", "possible"),
        ("{made}{made}{made}", "possible"),
        ("{made}{blames}{made}{blames}", "possible"),
        ("{made}{eager}", "not a candidate"),
        ("{eager}{made}", "not a candidate"),
        ("{eager}", "not a candidate"),
        ("tests/test_b.py::test_c {made}PASSED\n", "not a candidate"),
    ],
)
@pytest.mark.parametrize("sections", [True, False])
def test_what_children_of_several_tests_have_printed(printed: str, expected: str, sections: bool) -> None:
    child = "RuntimeError: Engine core initialization failed. See root cause above."
    header = "Traceback (most recent call last):\n"
    parts = {
        "made": f'{header}  File "/w/torch/_inductor/scheduler.py", line 7, in codegen\n    assert made\n'
        "torch._inductor.exc.InductorError: AssertionError: made up\n",
        "eager": f'{header}  File "/w/made_up.py", line 7, in run\n    f(x)\nKeyError: 1\n',
        "blames": f'{header}  File "/w/made_up.py", line 9, in start\n    run(x)\n{child}\n',
    }
    shown = "".join(f"___ test_{name} ___\nE   {child}\n\ntests/test_a.py:3: RuntimeError\n" for name in "abc")
    summary = ENDS + "".join(f"FAILED tests/test_a.py::test_{name} - {child}\n" for name in "abc")
    log = printed.format_map(parts) + (f"=== FAILURES ===\n{shown}" if sections else "") + summary
    found = candidates.rows(log, CheckoutPaths([]))
    assert [(row["test"], row["verdict"]) for row in found] == [(f"tests/test_a.py::test_{name}", expected) for name in "abc"]


@pytest.mark.parametrize("tests", ["a", "abc"])
@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", "not a candidate"),
        ("RuntimeError: [Errno 2] No such file or directory: 'gcc'", "not a candidate"),
        # it may have gone on from others, and they may be of its end
        ("KeyError: 1", "possible"),
        ("", "possible"),
    ],
)
def test_children_of_tests_that_compile_which_the_machine_ended(raised: str, expected: str, tests: str) -> None:
    printed = f'Traceback (most recent call last):\n  File "/w/made_up.py", line 7, in run\n    f(x)\n{raised}\n' if raised else ""
    child = "RuntimeError: Engine core initialization failed. See root cause above."
    summary = ENDS + "".join(f"FAILED tests/test_compile.py::test_{name} - {child}\n" for name in tests)
    found = candidates.rows(f"{printed}{summary}", CheckoutPaths([]))
    assert [row["verdict"] for row in found] == [expected] * len(tests)
    found = candidates.rows(f"tests/test_compile.py::test_a {printed}FAILED\n{summary}", CheckoutPaths([]))
    assert [row["verdict"] for row in found if row["test"] == "tests/test_compile.py::test_a"] == [expected]


IN_COMPILER = """\
{path}:15: in test_compile
    torch.compile(f)(x)
/usr/lib/python3.11/site-packages/torch/_inductor/compile_fx.py:985: in _compile_fx_inner
    raise InductorError(e, currentframe()).with_traceback(
E   torch._inductor.exc.InductorError: AssertionError: buf3
"""
ELSEWHERE = "{path}:12: in test_compile\n    load()\nE   requests.exceptions.HTTPError: 503 Server Error: Service Unavailable\n"
NAMED_ALIKE = "FAILED {path}::test_compile - {said}\n"


@pytest.mark.parametrize("paths", [("integration/tests/test_x.py", "tests/test_x.py"), ("tests/test_x.py", "integration/tests/test_x.py")])
@pytest.mark.parametrize("turned", [False, True])
def test_the_path_of_one_file_may_end_like_another_s(paths: tuple[str, str], turned: bool) -> None:
    """Where both have a test of that name, the summary in another order than the sections does not swap them."""
    compiles, loads = paths
    shown = [f"___ test_compile ___\n{each}" for each in (IN_COMPILER.format(path=compiles), ELSEWHERE.format(path=loads))]
    named = [NAMED_ALIKE.format(path=compiles, said="InductorError"), NAMED_ALIKE.format(path=loads, said="HTTPError")]
    log = f"=== FAILURES ===\n{''.join(shown)}{ENDS}{''.join(reversed(named) if turned else named)}"
    found = {row["test"]: row["verdict"] for row in candidates.rows(log, CheckoutPaths([]))}
    assert found == {f"{compiles}::test_compile": "suggested", f"{loads}::test_compile": "not a candidate"}


TRACEBACK = (
    r"""'Traceback (most recent call last):\n  File "/v/site-packages/torch/_inductor/compile_fx.py", line 985, in f\n"""
    r"torch._inductor.exc.InductorError: AssertionError: buf3\n'"
)
ARGUMENTS = """
log = {string}
expected = 'InductorError'

    def test_a(log, expected):
>       assert summarize(log) == expected
E       AssertionError: assert None == 'InductorError'

tests/test_x.py:30: AssertionError
"""
VARIABLES = """
    def test_a():
        text = render(error)
>       fetch()

text       = {string}

tests/test_x.py:30:
_ _ _ _ _

>           raise HTTPError(message)
E           requests.exceptions.HTTPError: 503 Server Error

/v/site-packages/requests/models.py:9: HTTPError
"""


@pytest.mark.parametrize("section", [ARGUMENTS, VARIABLES], ids=["arguments", "variables"])
def test_a_traceback_in_a_variable_is_not_what_the_test_raised(section: str) -> None:
    log = f"=== FAILURES ===\n___ test_a ___\n{section.format(string=TRACEBACK)}{ENDS}FAILED tests/test_x.py::test_a - Error\n"
    assert [row["verdict"] for row in candidates.rows(log, CheckoutPaths([]))] == ["not a candidate"]


@pytest.mark.parametrize("quote", ["'", '"'])
def test_the_id_of_a_crash_is_quoted_as_python_does(quote: str) -> None:
    """pytest-xdist writes its repr, as of 3.8."""
    test = f"tests/test_x.py::test_compiled[{'it' + chr(39) + 's' if quote == chr(34) else 'it is'} on]"
    log = (
        f"=== FAILURES ===\n___ tests/test_x.py ___\n[gw2] linux -- Python 3.11.13 /usr/bin/python\n"
        f"worker 'gw2' crashed while running {quote}{test}{quote}\n{ENDS}FAILED {test}\n"
    )
    found = candidates.rows(log, CheckoutPaths([]))
    assert [(row["test"], row["verdict"], row["kind"]) for row in found] == [(test, "possible", "crash")]


UNSUPPORTED = (
    "{path}:15: in test_compile\n    torch.compile(f)(x)\n/v/site-packages/torch/__init__.py:9: in compile\n    raise RuntimeError(\n"
    "E   RuntimeError: torch.compile is not supported on Python 3.14+\n"
)


@pytest.mark.parametrize("turned", [False, True])
def test_of_a_test_in_two_environments_the_compiler_s_failure_counts(turned: bool) -> None:
    runs = [
        f"=== FAILURES ===\n___ test_compile ___\n{shown.format(path='tests/test_x.py')}{ENDS}"
        "FAILED tests/test_x.py::test_compile - Error\n=== 1 failed in 3.01s ===\n"
        for shown in (UNSUPPORTED, IN_COMPILER)
    ]
    found = candidates.rows("".join(reversed(runs) if turned else runs), CheckoutPaths([]))
    assert [row["verdict"] for row in found] == ["suggested"]


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        ("AssertionError: assert 500 == 200", "possible"),
        ("AssertionError: assert 404 == 200", "not a candidate"),
        ("subprocess.TimeoutExpired: Command '['python', 'compile_it.py']' timed out after 600 seconds", "possible"),
    ],
)
def test_a_compiled_test_whose_server_or_program_failed_out_of_sight(raised: str, expected: str) -> None:
    log = (
        f"=== FAILURES ===\n___ test_compile ___\ntests/test_x.py:12: in test_compile\n    ask()\nE   {raised}\n"
        f"{ENDS}FAILED tests/test_x.py::test_compile - {raised}\n"
    )
    assert [row["verdict"] for row in candidates.rows(log, CheckoutPaths([]))] == [expected]


def test_what_another_test_printed_is_not_what_the_last_one_raised() -> None:
    """With `-rA` the sections of tests that passed stand below."""
    printed = TRACEBACK.strip("'").replace(r"\n", "\n")
    shown = f"=== FAILURES ===\n___ test_compile ___\n{ELSEWHERE.format(path='tests/test_x.py')}"
    passes = f"=== PASSES ===\n___ test_b ___\n--- Captured log call ---\n{printed}{ENDS}PASSED tests/test_x.py::test_b\n"
    log = f"tests/test_x.py::test_compile FAILED [100%]\n{shown}{passes}FAILED tests/test_x.py::test_compile - HTTPError\n"
    assert [row["verdict"] for row in candidates.rows(log, CheckoutPaths([]))] == ["not a candidate"]


@pytest.mark.parametrize(
    ("shown", "behind"),
    [
        # pytest 7 has no reason in its summary, where pytest 8 repeats it
        ("[XPASS(strict)] graph break, see #12\n", ""),
        ("[XPASS(strict)] \n", ""),
        ("[XPASS(strict)] graph break, see #12\n", " - [XPASS(strict)] graph break, see #12"),
        # a test of unittest's
        ("Unexpected success\n", " - Unexpected success"),
        ("Unexpected success\n", ""),
        ("[XPASS(strict)] torch.compile(f) fails\nE   torch._dynamo.exc.Unsupported: made up\n", ""),
    ],
)
def test_one_that_passed_and_was_expected_to_fail(shown: str, behind: str) -> None:
    for log in (f"=== FAILURES ===\n___ test_compile_a ___\n{shown}", ""):
        rows = candidates.rows(f"{log}{ENDS}FAILED tests/test_a.py::test_compile_a{behind}\n", CheckoutPaths([]))
        if log or behind:
            assert [(row["test"], row["verdict"]) for row in rows] == [("tests/test_a.py::test_compile_a", "not a candidate")]
            assert rows[0]["why"] == "no failure of the compiler: it passed, and was expected to fail"
