"""Which ends of a program are a verdict of its own. Without torch."""

from __future__ import annotations

import linecache
import traceback

import pytest

from bot.inside.own_check import says_it_failed


def told(code: str, path: str = "fail.py") -> str:
    """The traceback with which this `code` ends, in a file of that name."""
    linecache.cache[path] = (len(code), None, code.splitlines(keepends=True), path)
    with pytest.raises(Exception) as caught:  # noqa: PT011 - whatever it is
        exec(compile(code, path, "exec"), {"__name__": "__main__"})
    # the first frame is ours
    of_program = caught.value.__traceback__.tb_next if caught.value.__traceback__ else None
    return "".join(traceback.format_exception(caught.type, caught.value, of_program))


OWN = "def check(d):\n    if d > 1e-3:\n        raise RuntimeError(f'off by {d}')\n\n\ncheck(0.5)\n"


def test_an_exit_is_a_verdict() -> None:
    assert says_it_failed("exit", "")
    assert not says_it_failed("ok", "")
    assert not says_it_failed("signal", told(OWN))


def test_what_the_program_raises_is_a_verdict() -> None:
    assert says_it_failed("raised", told(OWN))
    assert says_it_failed("raised", told("raise ValueError(\n    'wrong',\n)\n"))


@pytest.mark.parametrize(
    "code",
    [
        "{}['x']\n",  # an error of Python's own
        "try:\n    {}['x']\nexcept KeyError:\n    raise RuntimeError('wrong')\n",  # which may be the compiler's
        "import json\njson.loads('{')\n",  # of a library
    ],
)
def test_other_errors_are_none(code: str) -> None:
    assert not says_it_failed("raised", told(code))


@pytest.mark.parametrize(
    ("path", "is_one"),
    [
        ("/env/lib/python3.11/site-packages/torch/nn/modules/module.py", False),
        ("/src/torch/_dynamo/eval_frame.py", False),
        ("/env/lib/python3.11/site-packages/torch/utils/_contextlib.py", True),
        ("/env/lib/python3.11/site-packages/torch/amp/autocast_mode.py", True),
        ("/env/lib/python3.11/unittest/case.py", True),
    ],
)
def test_who_ran_it(path: str, is_one: bool) -> None:
    """A `raise` in a module's forward is for the compiler to see; one below a decorator is the program's own."""
    head, _, rest = told(OWN).partition("\n")
    around = f'  File "{path}", line 10, in call\n    return function(*args)\n'
    assert says_it_failed("raised", f"{head}\n{around}{rest}") is is_one


@pytest.mark.parametrize(
    "text", ["", "Traceback (most recent call last):", 'Traceback (most recent call last):\n  File "x.py", line 1, in f']
)
def test_what_was_cut_off(text: str) -> None:
    assert not says_it_failed("raised", text)
