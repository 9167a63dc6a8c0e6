"""Recorded texts, changed at random: what a hostile or a broken writer would make of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hypothesis import strategies as st

from tests.action.report.reports import HARM

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
# What parsers stumble over, beside what would do harm in Markdown.
ATOMS = [
    *HARM,
    "/minify",
    "\n/minify\n",
    "--test '",
    '"',
    "'",
    "–-accuracy “on”",
    "https://github.com/o/r/actions/runs/1/job/2",
    "<div>\n",
    "</div>\n",
    "<![",
    "<!DOCTYPE a [",
    "<!ENTITY a 'x'>",
    "&a;",
    "<a " * 20,
    "[" * 50,
    "(" * 60,
    "> " * 30,
    "=" * 70 + "\n",
    "-" * 70 + "\n",
    "= FAILURES =\n",
    "___ t ___\n",
    "E   RuntimeError: x\n",
    "FAILED a.py::b[c d] - x\n",
    "Traceback (most recent call last):\n",
    '  File "a.py", line 1, in f\n',
    "Fatal Python error: Aborted\n",
    "Current thread 0x1 (most recent call first):\n",
    "The above exception was the direct cause of the following exception:\n",
    "2026-11-20T00:00:00.0000000Z ",
    "\ufeff",
    "\x85",
    "\x0b\x0c",
    "{",
    "}",
    "]",
    ",",
    "null",
    "1e999",
    "9" * 400,
    "x" * 300,
    "é" * 200,
]


@st.composite
def changed(draw: st.DrawFn, seeds: Sequence[str], most: int = 6, window: int = 4_000) -> str:
    """A part of one of `seeds`, of at most `window` characters, with at most `most` changes."""
    text = draw(st.sampled_from(seeds))
    if len(text) > window:
        start = draw(st.integers(0, len(text) - window))
        text = text[start : start + window]
    for _ in range(draw(st.integers(0, most))):
        at = draw(st.integers(0, len(text)))
        gone = draw(st.sampled_from([0, 0, 1, 8, 80]))
        put = draw(st.sampled_from(ATOMS) | st.text(max_size=6))
        text = text[:at] + put * draw(st.sampled_from([1, 1, 1, 1, 40])) + text[at + gone :]
    return text
