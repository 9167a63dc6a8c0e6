"""The conditions on which a program says that results are wrong: what of them a candidate has to keep."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.reduce.source.verdicts import keeps_verdict

GUARDED = "import sys\nd = (f(x) - g(x)).abs().max()\nif d > 1e-3:\n    sys.exit(1)\n"


@pytest.mark.parametrize(
    ("text", "candidate", "keeps"),
    [
        # what is compared becomes simpler, what decides stays
        (GUARDED, "if (f(x) - g(x)).max() > 1e-3:\n    exit(1)\n", True),
        # an exact comparison of what rounding does not reach
        ("assert equal(a.isinf(), b.isinf())\n", "assert equal(a, b)\n", False),
        ("assert equal(a.isinf(), b.isinf())\n", "assert equal(x.isinf(), y.isinf())\n", True),
        ("top = a.argmax()\nassert top == 3\n", "assert a == 3\n", False),
        (GUARDED, "if d:\n    sys.exit(1)\n", False),
        (GUARDED, "if d > 0:\n    sys.exit(1)\n", False),
        (GUARDED, "sys.exit(1)\n", False),
        (GUARDED, "if d > 1e-3:\n    print(d)\nsys.exit(1)\n", False),
        (GUARDED, "if d > 1e-3:\n    pass\nelse:\n    sys.exit(1)\n", False),
        ("if n > 1:\n    raise RuntimeError(f'{n} graphs')\n", "if n:\n    raise RuntimeError(f'{n} graphs')\n", False),
        ("assert n == 1, n\n", "assert n == 1\n", True),
        ("assert n == 1, n\n", "assert not n, n\n", False),
        ("assert (a - b).max() < -1e-3\n", "assert (a - b).max() < 1e-3\n", False),
        (GUARDED, "if not d > 1e-3:\n    sys.exit(1)\n", False),
        # the innermost condition decides, others say whether it is asked
        ("if len(x) > 2:\n    if d > 1e-3:\n        exit(1)\n", "if d > 1e-3:\n    exit(1)\n", True),
        ("if d > 1e-3:\n    if verbose:\n        print(d)\n    exit(1)\n", "if d > 1e-3:\n    exit(1)\n", True),
        ("if d < 1e-3:\n    pass\nelse:\n    exit(1)\n", "if d < 1e-3:\n    exit(1)\n", False),
        # names, functions and exits whose argument decides
        ("bad = d > 0.1\nif bad:\n    exit(1)\n", "if d > 0.1:\n    exit(1)\n", True),
        ("bad = d > 0.1\nif bad:\n    exit(1)\n", "bad = d\nif bad:\n    exit(1)\n", False),
        ("def ok(a, b):\n    return (a - b).max() < 0.1\nif not ok(x, y):\n    exit(1)\n", "if not (x - y):\n    exit(1)\n", False),
        ("def main():\n    return d > 0.1\nexit(main())\n", "exit(d > 0.1)\n", True),
        ("def main():\n    return d > 0.1\nexit(main())\n", "exit(d)\n", False),
        ("def main():\n    if d > 0.1:\n        return 1\nexit(main())\n", "def main():\n    return d\nexit(main())\n", False),
        ("def main():\n    if d > 0.1:\n        return 1\nexit(main())\n", "if d > 0.1:\n    exit(1)\n", True),
        ("exit(0 if d < 0.1 else 1)\n", "exit(d)\n", False),
        # what has to hold together stays together; of alternatives one is enough
        ("if sin in ops and relu in ops:\n    raise ValueError\n", "if relu in ops:\n    raise ValueError\n", False),
        ("if relu in ops and (sin in ops or f()):\n    raise ValueError\n", "if relu in ops:\n    raise ValueError\n", False),
        ("if relu in ops and (sin in ops or f()):\n    raise ValueError\n", "if relu in ops and sin in ops:\n    raise ValueError\n", True),
        ("if a > 1 or b > 1:\n    raise ValueError\n", "if b > 1:\n    raise ValueError\n", True),
        ("assert a == b and c == d\n", "assert c == d\n", True),
        ("assert a == b or c == d\n", "assert c == d\n", False),
        ("if not (a == b and c == d):\n    exit(1)\n", "if not c == d:\n    exit(1)\n", True),
        ("if not (a == b or c == d):\n    exit(1)\n", "if not c == d:\n    exit(1)\n", False),
        ("if a == b and c == d:\n    pass\nelse:\n    exit(1)\n", "if c == d:\n    pass\nelse:\n    exit(1)\n", True),
        ("both = a > 1 and b > 1\nif both:\n    exit(1)\n", "both = a > 1\nif both:\n    exit(1)\n", False),
        # functions that compare
        ("if not torch.allclose(a, b, atol=1e-3):\n    exit(1)\n", "if not torch.allclose(b, b.sin(), atol=1e-3):\n    exit(1)\n", True),
        ("if not torch.allclose(a, b, atol=1e-3):\n    exit(1)\n", "if not torch.allclose(a, b):\n    exit(1)\n", False),
        ("if not torch.equal(a, b):\n    exit(1)\n", "if not a:\n    exit(1)\n", False),
        # no condition, nothing to weaken
        ("raise ValueError('wrong')\n", "raise ValueError\n", True),
        ("if d:\n    exit(1)\n", "exit(1)\n", True),
        ("print(f(x))\n", "f(x)\n", True),
        # a program that ends well says so with an exit, too
        (GUARDED + "sys.exit(0)\n", "if d:\n    sys.exit(1)\n", False),
        (GUARDED, "if d > 1e-3:\n    sys.exit(\n", False),
    ],
)  # fmt: skip
def test_what_decides_stays(text: str, candidate: str, keeps: bool) -> None:
    assert keeps_verdict(text, ())(candidate) is keeps


def test_the_verdict_that_the_failure_names() -> None:
    """Of several it is the one in a line of the traceback; without such a line, any."""
    text = "assert len(x) > 2\nassert d < 0.1\n"
    weakened = "assert len(x) > 2\nassert not d\n"
    assert not keeps_verdict(text, [2])(weakened)
    assert keeps_verdict(text, [2])("assert d < 0.1\n")
    assert keeps_verdict(text, ())(weakened)
    compared = "assert len(x) > 2\ntorch.testing.assert_close(a, b)\n"
    assert keeps_verdict(compared, [2])("torch.testing.assert_close(a, b)\n"), "a condition that held decides nothing"


def test_a_name_with_two_values_says_nothing() -> None:
    text = "ok = True\nok = d < 0.1\nif not ok:\n    exit(1)\n"
    assert keeps_verdict(text, ())("if not d:\n    exit(1)\n")


def test_a_text_that_is_no_python() -> None:
    with pytest.raises(SyntaxError):
        keeps_verdict("if\n", ())


@given(st.sampled_from(["==", "<", ">=", "is not"]), st.integers(-9, 9) | st.floats(allow_nan=False, allow_infinity=False))
def test_a_text_keeps_its_own_verdict(operator: str, number: float) -> None:
    for text in (f"assert d {operator} {number}\n", f"bad = d {operator} {number!r}\nif not bad:\n    raise ValueError\n"):
        assert keeps_verdict(text, [1, 3])(text)
        assert not keeps_verdict(text, [1, 3])("assert d\n")
