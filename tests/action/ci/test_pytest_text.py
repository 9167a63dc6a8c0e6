"""pytest's way to show an exception, rewritten as Python prints it."""

from __future__ import annotations

import pytest

from bot.action.ci.pytest_text import as_traceback, bare_frames, own_source

HEADER = "Traceback (most recent call last):\n"
JOINT = "During handling of the above exception, another exception occurred:"
SHORT = """\
tests/test_a.py:7: in test_b[x::y z]
    f(x)
C:\\w\\lib\\b.py:3: in <lambda>
    raise ValueError("made up")
E   ValueError: made up
E     more of it
"""
LONG = """\
self = <test_a.TestA testMethod=test_b>

    @pytest.mark.parametrize("x", [1])
    async def test_b(self, x):
>       f(x)

tests/test_a.py:7:
_ _ _ _ _ _ _ _ _ _ _ _

    def f(x):
>       raise ValueError("made up")
E       ValueError: made up
E         more of it

lib/b.py:3: ValueError
"""


def test_the_short_form() -> None:
    assert as_traceback(SHORT) == (
        f'{HEADER}  File "tests/test_a.py", line 7, in test_b[x::y z]\n  File "C:\\w\\lib\\b.py", line 3, in <lambda>\n'
        "ValueError: made up\n  more of it"
    )


def test_the_long_form() -> None:
    frames = '  File "tests/test_a.py", line 7, in test_b\n  File "lib/b.py", line 3, in f\n'
    assert as_traceback(LONG) == f"{HEADER}{frames}ValueError: made up\n  more of it"
    # it may raise in its first line
    shown = ">   def f(x=g()):\nE   KeyError: 1\n\nlib/b.py:3: KeyError\n"
    assert as_traceback(shown) == f'{HEADER}  File "lib/b.py", line 3, in f\nKeyError: 1'


@pytest.mark.parametrize(
    ("shown", "raised"),
    [
        (
            "E       assert 1 == 2\nE        +  where 1 = f()\n\ntests/test_a.py:7: AssertionError",
            "AssertionError: assert 1 == 2\n +  where 1 = f()",
        ),
        ("E       made up\n\ntests/test_a.py:7: Failed", "Failed: made up"),
        ("E       torch._dynamo.exc.Unsupported: made up\n\ntests/test_a.py:7: Unsupported", "torch._dynamo.exc.Unsupported: made up"),
        (
            'E       made up\nE\nE       from user code:\nE          File "/w/a.py"\n\ntests/test_a.py:7:',
            'made up\n\nfrom user code:\n   File "/w/a.py"',
        ),
    ],
)
def test_what_was_raised(shown: str, raised: str) -> None:
    place = '  File "tests/test_a.py", line 7, in <unknown>\n'
    assert as_traceback(shown) == HEADER + place + raised


def test_a_chain() -> None:
    last = SHORT.replace("made up", "the last")
    first, second = as_traceback(SHORT), as_traceback(last)
    assert as_traceback(f"{SHORT}\n{JOINT}\n{last}") == f"{first}\n\n{JOINT}\n\n{second}"


def test_another_processs_traceback_in_the_message() -> None:
    quoted = [HEADER.rstrip(), '  File "/w/a.py", line 3, in f', "    g(x)", "KeyError: 1"]
    whole = "\n".join(quoted)
    assert as_traceback("".join(f"E   {line}\n" for line in quoted)).endswith(whole)
    # words before its header, and frames without one
    assert as_traceback("".join(f"E   {line}\n" for line in [f"It says: {quoted[0]}", *quoted[1:]])).endswith(whole)
    assert as_traceback("".join(f"E   {line}\n" for line in quoted[1:])).endswith(whole)


def test_a_traceback_as_python_prints_it() -> None:
    native = f'{HEADER}  File "/w/a.py", line 3, in f\n    g(x)\nKeyError: 1'
    assert as_traceback(f"made up\n{native}") == native


def test_a_group_of_exceptions() -> None:
    group = """\
  + Exception Group Traceback (most recent call last):
  |   File "/w/a.py", line 2, in f
  |     g()
  | ExceptionGroup: made up (2 sub-exceptions)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "/w/b.py", line 3, in h
    |     k()
    | ValueError: the first
    +---------------- 2 ----------------
    | KeyError: the second
    +------------------------------------
"""
    assert as_traceback(group).rstrip() == f'{HEADER}  File "/w/b.py", line 3, in h\n    k()\nValueError: the first'


@pytest.mark.parametrize("end", ["", "E\n", "\n\n"])
def test_an_end_that_is_cut_off_tells_nothing_of_what_was_raised(end: str) -> None:
    cut = SHORT.partition("E   ")[0] + end
    assert (
        as_traceback(cut) == f'{HEADER}  File "tests/test_a.py", line 7, in test_b[x::y z]\n  File "C:\\w\\lib\\b.py", line 3, in <lambda>'
    )
    assert as_traceback("made up\n" + end) == ""


def test_the_source_of_the_test() -> None:
    assert own_source(LONG) == LONG.partition("\ntests/test_a.py")[0]
    assert own_source(SHORT) == "    f(x)"


def test_frames_without_a_header() -> None:
    assert bare_frames(['    File "/w/a.py", line 3, in f', "      g(x)", "KeyError: 1"], 4) == [
        '  File "/w/a.py", line 3, in f',
        "    g(x)",
        "KeyError: 1",
    ]
