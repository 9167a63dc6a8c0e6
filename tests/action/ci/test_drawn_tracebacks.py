"""Tracebacks that IPython and rich draw, as Python prints them."""

from __future__ import annotations

import pytest

from bot.action.ci import candidates, lines
from bot.action.ci.paths import CheckoutPaths
from bot.action.ci.tracebacks import tracebacks

RULE = "-" * 75
NOTEBOOK = f"""{RULE}
Unsupported                               Traceback (most recent call last)
Cell In[11], line 14
     12 x = torch.ones(2)
---> 14 y = timed(lambda: f(x))
     15 z = 1

Cell In[6], line 5, in timed(fn)
      4 start()
----> 5 result = fn()

File /opt/venv/lib/python3.12/site-packages/torch/_dynamo/eval_frame.py:574, in _Context.__call__.<locals>._fn(*args, **kwargs)
    570 try:
   (...)
--> 574     return fn(*args, **kwargs)

File c:\\venv\\torch\\_dynamo\\exc.py:1465, in unimplemented(msg)
   1464 if made_up:
-> 1465     raise Unsupported(msg)

Unsupported: a made-up call
  Explanation: made up

from user code:
   File "a.py", line 1
"""
AS_PRINTED = """Traceback (most recent call last):
  File "Cell In[11]", line 14, in <module>
    y = timed(lambda: f(x))
  File "Cell In[6]", line 5, in timed
    result = fn()
  File "/opt/venv/lib/python3.12/site-packages/torch/_dynamo/eval_frame.py", line 574, in _Context.__call__.<locals>._fn
    return fn(*args, **kwargs)
  File "c:\\venv\\torch\\_dynamo\\exc.py", line 1465, in unimplemented
    raise Unsupported(msg)
Unsupported: a made-up call
  Explanation: made up

from user code:
   File "a.py", line 1"""
CUT = NOTEBOOK.partition("timed(fn)\n")[2]
CUT_AS_PRINTED = 'Traceback (most recent call last):\n  File "/opt' + AS_PRINTED.partition('  File "/opt')[2]
LINK = "[/opt/venv/lib/python3.12/site-packages/torch/_dynamo/eval_frame.py:574](http://localhost:8888/lab/tree/made%20up/eval_frame.py#line=573),"
OLDER = """ValueError                                Traceback (most recent call last)
<ipython-input-3-0a1b> in <module>
      1 import torch
----> 2 f(torch.ones(2))

[/opt/venv/torch/_dynamo/eval_frame.py](https://localhost:8080/#) in _fn(*args, **kwargs)
--> 209             return fn(*args, **kwargs)

ValueError: made up"""
OLDER_AS_PRINTED = """Traceback (most recent call last):
  File "<ipython-input-3-0a1b>", line 2, in <module>
    f(torch.ones(2))
  File "/opt/venv/torch/_dynamo/eval_frame.py", line 209, in _fn
    return fn(*args, **kwargs)
ValueError: made up"""
CHAIN = """KeyError                                  Traceback (most recent call last)
Cell In[1], line 1
----> 1 f()

KeyError: 'a'

The above exception was the direct cause of the following exception:

ValueError                                Traceback (most recent call last)
Cell In[1], line 2
----> 2 g()

ValueError: made up"""
CHAIN_AS_PRINTED = """Traceback (most recent call last):
  File "Cell In[1]", line 1, in <module>
    f()
KeyError: 'a'


The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "Cell In[1]", line 2, in <module>
    g()
ValueError: made up"""
BOX = """╭─────────────────────── Traceback (most recent call last) ───────────────────────╮
│ /src/made_up.py:397 in main                                                    │
│                                                                                 │
│   396 │   f = torch.compile(f)                                                  │
│ ❱ 397 │   f(torch.ones(2))                                                      │
│ ╭──── locals ────╮                                                              │
│ │ x = 'a.py:3'   │                                                              │
│ ╰────────────────╯                                                              │
│                                                                                 │
│ /opt/hostedtoolcache/Python/3.12.1/x64/lib/python3.12/site-packages/torch/_dyna │
│ mo/eval_frame.py:845 in compile_wrapper                                         │
╰─────────────────────────────────────────────────────────────────────────────────╯
InductorError: RuntimeError: made up"""
BOX_AS_PRINTED = """Traceback (most recent call last):
  File "/src/made_up.py", line 397, in main
    f(torch.ones(2))
  File "/opt/hostedtoolcache/Python/3.12.1/x64/lib/python3.12/site-packages/torch/_dynamo/eval_frame.py", line 845, in compile_wrapper
InductorError: RuntimeError: made up"""
ASCII = """+------------------- Traceback (most recent call last) ------------------+
| D:\\work\\made_up.py:7 in main                                         |
|                                                                      |
| > 7 |   f(1)                                                         |
+----------------------------------------------------------------------+
ValueError: made up"""
ASCII_AS_PRINTED = """Traceback (most recent call last):
  File "D:\\work\\made_up.py", line 7, in main
    f(1)
ValueError: made up"""


# what was copied has lines of a fixed width
WRAPPED = (
    NOTEBOOK.replace(" (most recent call last)", " (most recent call\nlast)")
    .replace("Cell In[6], line 5, in timed(fn)", "File /w/made_up.py:5, in timed(fn,\n    inputs, \n outputs)")
    .replace("_fn(*args, **kwargs)", "_fn(*args,\n**kwargs)")
)
WRAPPED_AS_PRINTED = AS_PRINTED.replace("Cell In[6]", "/w/made_up.py")


def printed(log: str) -> list[str]:
    return [block.text for block in tracebacks(lines.read(log))]


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        (NOTEBOOK, AS_PRINTED),
        (NOTEBOOK + "FAILED made_up.ipynb::Cell 3\n", AS_PRINTED),
        (OLDER, OLDER_AS_PRINTED),
        (CHAIN, CHAIN_AS_PRINTED),
        (BOX, BOX_AS_PRINTED),
        (BOX.replace("\n", "\n   "), BOX_AS_PRINTED),
        (ASCII, ASCII_AS_PRINTED),
        (WRAPPED, WRAPPED_AS_PRINTED),
        (WRAPPED.partition("result = fn()\n\n")[2], CUT_AS_PRINTED),
        # the log ends within it, or begins within its second frame
        (NOTEBOOK.partition("\nUnsupported: ")[0], AS_PRINTED.partition("\nUnsupported: ")[0] + "\nUnsupported"),
        (BOX.rpartition("\n")[0], BOX_AS_PRINTED.rpartition("\n")[0]),
        (CUT, CUT_AS_PRINTED),
        # JupyterLab makes links of the places
        (CUT.replace("/opt/venv/lib/python3.12/site-packages/torch/_dynamo/eval_frame.py:574,", LINK), CUT_AS_PRINTED),
        (CUT.partition("\nUnsupported: ")[0], CUT_AS_PRINTED.partition("\nUnsupported: ")[0]),
    ],
)
def test_it_is_read_as_python_prints_it(log: str, expected: str) -> None:
    assert printed(log) == [expected]


@pytest.mark.parametrize(
    "log",
    [
        "ValueError      Traceback (most recent call last)",
        "ValueError      Traceback (most recent call last)\nand so on",
        # another class than that of the header
        OLDER.replace("\nValueError: made up", "\nKeyError: made up"),
        BOX.replace("InductorError: ", "and so on "),
        BOX.replace("│ ❱", "  ❱"),
        "the words Traceback (most recent call last)",
        "the words Traceback (most recent call\nlast)",
        "It is /w/made_up.py in timed(fn,\nand so on",
    ],
)
def test_what_has_no_message_is_none(log: str) -> None:
    assert printed(log) == []


def test_what_comes_before_is_not_lost() -> None:
    before = 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\nValueError: a\n'
    assert printed(before + "-----\nKeyError      Traceback (most recent call last)\nand so on") == [before.rstrip()]


def test_a_box_so_narrow_that_paths_need_several_lines() -> None:
    box = """\
[11/27/26 04:54:22] ERROR    training failed                          train.py:26
                             ╭─ Traceback (most recent call last) ─╮
                             │ /srv/made/up/path/of/some/program/t │
                             │ rain.py:25 in <module>              │
                             │                                     │
                             │ ❱  25 │   main()                    │
                             │                                     │
                             │ /srv/made/up/lib/python3.12/site-pa │
                             │ ckages/torch/_inductor/select_algor │
                             │ ithm.py:1183 in made_up             │
                             │                                     │
                             │ ❱ 1183 │   raise MadeUp(x)          │
                             ╰─────────────────────────────────────╯
                             InductorError: LoweringException:
                             made up
"""
    (row,) = candidates.rows(box, CheckoutPaths([]))
    assert (row["file"], row["verdict"]) == ("/srv/made/up/path/of/some/program/train.py", "suggested")
    assert "exception in inductor_lowering: InductorError" in str(row["why"])


@pytest.mark.parametrize("mark", ["", "[rank7]: [rank7]: "])
@pytest.mark.parametrize(
    ("first", "found"),
    [("│    600 │   │   prior = f(callback)   │", True), ("│ ❱  600 │   │   return fn(x)   │", True), ("| 600 | a.py |", False)],
)
def test_what_was_copied_begins_within_the_source_of_a_box(first: str, found: bool, mark: str) -> None:
    lines = [
        first,
        "│ /w/lib/python3.12/site-packages/torch/_inductor/compile_fx.py:987 in   │",
        "│ made_up                                                               │",
        "│                                                                       │",
        "│ ❱  987 │   return x                                                   │",
    ]
    lines[1:] = lines[1:] if found else []
    box = "".join(f"{mark}{line}\n" for line in lines)
    assert [row["verdict"] for row in candidates.rows(f"It says:\n\n```\n{box}```\n", CheckoutPaths([]))] == ["possible"] * found
