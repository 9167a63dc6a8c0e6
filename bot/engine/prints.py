"""Whether a program that passes prints other results than without the compiler.

The compiled graphs were compared and are right, but Dynamo may have captured another computation than the program's, and a program that
only prints its results ends normally all the same.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from bot.models.failure import shortened

_VALUE = re.compile(r"(?<![\w.])(?:[-+]?(?:[0-9]+\.?[0-9]*(?:e[-+]?[0-9]+)?|nan|inf)|True|False)(?![\w])", re.IGNORECASE)
_WORDS = frozenset({"true", "false"})
# How autograd names the step that a tensor comes from, which is another one in compiled code.
_STEP = re.compile(r",?\s*grad_fn=<\w+>")
# As far apart as results may be, relative to the larger one and at least.
_CLOSE = 1e-3
# Characters of a line that is compared: data of its own would take long.
_LONGEST, _MOST_SHOWN = 2_000, 80


def other_results(compiled: Sequence[str], eager: str, *, words: bool = False) -> str:
    """The first line of the output whose values are others in each of the `compiled` runs than in the one of `eager`, in words; empty if
    none is, or if fewer than two runs are known.

    Values are numbers, True and False. Numbers count as equal if they are close. A line that differs in more than its values is not
    compared, and neither is an output with more lines or fewer, unless other `words` count too.
    """
    runs = [text.splitlines() for text in compiled]
    plain = eager.splitlines()
    if len(runs) < 2 or (not words and any(len(rows) != len(plain) for rows in runs)):
        return ""
    for line, *printed in zip(plain, *runs, strict=False):
        one = printed[0]
        if len(set(printed)) == 1 and _is_other(one, line, words):
            return f"it prints {_shown(one)} each time, and {_shown(line)} without the compiler"
    return ""


def _is_other(one: str, line: str, words: bool) -> bool:
    if one == line or max(len(one), len(line)) > _LONGEST:
        return False
    if _around(one) != _around(line):
        return words
    return any(not _close(a, b) for a, b in zip(_VALUE.findall(one), _VALUE.findall(line), strict=True))


def _around(line: str) -> str:
    """The line without its values and blanks, of which a tensor's columns have more or fewer."""
    return re.sub(r"\s", "", _VALUE.sub("0", _STEP.sub("", line)))


def _close(a: str, b: str) -> bool:
    a, b = a.lower(), b.lower()
    if {a, b} & _WORDS:
        return a == b
    one, other = float(a), float(b)
    return one == other or (math.isnan(one) and math.isnan(other)) or math.isclose(one, other, rel_tol=_CLOSE, abs_tol=_CLOSE)


def _shown(line: str) -> str:
    return repr(shortened(line.strip(), _MOST_SHOWN))
