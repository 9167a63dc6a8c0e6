"""Programs that a text for people quotes."""

from __future__ import annotations

import pytest

from bot.engine.inputs import quoted
from bot.engine.inputs.take import take
from bot.engine.inputs.taken import NotUnderstood, Place
from tests.engine.inputs.test_dump import AOT

SCRIPT = "import torch\n\nfor x in (1, 2):\n    f(x)\n"
TRACEBACK = 'Traceback (most recent call last):\n  File "x.py"\nValueError: x\n'
SESSION = ">>> import torch\n>>> for x in (1, 2):\n...     f(x)\n...\n1\n...\n>>> f(3)\n" + TRACEBACK


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"Fails:\n\n```python\n{SCRIPT}```\n\n```\n{TRACEBACK}```\n", (SCRIPT, "in a code block")),
        (f"~~~~ py\n{SCRIPT}~~~~~\n", (SCRIPT, "in a code block")),
        # what does not import torch, or is no Python, is another block
        (f"```\n$ ls\n```\n```py\nx = 1\n```\n```\n{SCRIPT}```\n", (SCRIPT, "in a code block")),
        (SESSION, ("import torch\nfor x in (1, 2):\n    f(x)\nf(3)\n", "in a session of the interpreter")),
        (f"```python\n{SCRIPT}", None),
        ("```\nimport torch (\n```\n", None),
        (">>> x = 1\n", None),
        (TRACEBACK, None),
    ],
)
def test_what_a_text_quotes(text, found):
    assert quoted.program(text) == found


def test_of_several_programs_one_has_to_be_named():
    with pytest.raises(NotUnderstood, match="a text with 2 programs in code blocks: give the one that fails"):
        quoted.program(f"```\n{SCRIPT}```\nor\n```\nfrom torch import nn\n```\n")


@pytest.mark.parametrize(
    ("text", "taken_as", "begin", "end"),
    [
        (f"Fails:\n```python\n{SCRIPT}```\n{TRACEBACK}", "script", "a Python script of 4 lines", ", in a code block"),
        (SESSION, "script", "a Python script of 4 lines", ", in a session of the interpreter"),
        (f"```\n{AOT}```\n", "launcher", "a launcher of PyTorch's minifier (level aot)", ", one graph, 1 ops, in a code block"),
    ],
)  # fmt: skip
def test_what_a_quoted_program_is_taken_for(tmp_path, text, taken_as, begin, end):
    path = tmp_path / "issue.md"
    path.write_text(text, encoding="utf-8")
    (scratch := tmp_path / "scratch").mkdir()
    found = take(Place(path, scratch, torch="2.13.0+cpu"))
    assert found.taken_as == taken_as
    assert found.detail.startswith(begin)
    assert found.detail.endswith(end)
    assert found.text
