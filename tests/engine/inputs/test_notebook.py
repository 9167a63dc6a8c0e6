from __future__ import annotations

import ast
import json

import pytest

from bot.engine.inputs import notebook
from bot.engine.inputs.taken import NotUnderstood


def of_cells(*cells: str | tuple[str, str]) -> str:
    made = []
    for cell in cells:
        source, output = cell if isinstance(cell, tuple) else (cell, "stream")
        made.append({"cell_type": "code", "source": source.splitlines(keepends=True), "outputs": [{"output_type": output}]})
    made.insert(1, {"cell_type": "markdown", "source": ["text"]})
    return json.dumps({"cells": made, "metadata": {"kernelspec": {"language": "python"}}, "nbformat": 4, "nbformat_minor": 5})


def test_a_notebook_is_its_code_cells_up_to_the_one_that_failed():
    found = notebook.read(
        of_cells("import torch\n%matplotlib inline\n", "!pip install x\nfor i in y:\n    %time f(i)\n", ("g()", "error"), "h()")
    )
    assert found.detail == "a notebook: 3 code cells, up to the one that failed (3 of 4)"
    assert found.text is not None
    ast.parse(found.text)
    assert "    f(i)" in found.text
    assert "h()" not in found.text
    assert found.notes == (
        "left out of the notebook: %matplotlib inline",
        "left out of the notebook: !pip install x",
        "left out of the notebook: %time",
    )


def test_python_that_looks_like_a_magic_stays():
    found = notebook.read(of_cells('x = (7\n% 3)\ny = """\n!no\n"""\n', "%%bash\nls\n", "%%time\nf()\n", "z = !ls\n"))
    assert found.text is not None
    assert "% 3)" in found.text
    assert "!no" in found.text
    assert "\nls" not in found.text
    assert "f()" in found.text
    assert "a cell of %%bash" in " ".join(found.notes)


def failed(source: str, ename: str, *traceback: str) -> dict[str, object]:
    # as Jupyter keeps it: the lines of IPython's traceback, with its colors
    error = {"output_type": "error", "ename": ename, "evalue": "", "traceback": [f"\x1b[0;31m{line}\x1b[0m" for line in traceback]}
    return {"cell_type": "code", "source": source, "outputs": [error]}


def passed(source: str) -> dict[str, object]:
    return {"cell_type": "code", "source": source, "outputs": []}


OF_COMPILER = "File /opt/lib/python3.11/site-packages/\x1b[1mtorch/_inductor/graph.py:1\x1b[0m, in run_node"


def test_a_notebook_that_went_on_after_an_error_fails_where_the_compiler_does():
    cells = [
        passed("import torch"),
        failed("first = 1\nsecond = frist\nthird = 3", "NameError", "NameError: name 'frist' is not defined"),
        failed("del (", "SyntaxError", "SyntaxError: '(' was never closed"),
        passed("x = torch.ones(first)"),
        failed("torch.compile(f)(x)", "InductorError", OF_COMPILER),
        failed("print(out)", "NameError", "NameError: name 'out' is not defined"),
    ]
    found = notebook.read(json.dumps({"cells": cells}))
    assert found.text is not None
    assert found.detail == "a notebook: 4 code cells, up to the one that failed (5 of 6)"
    assert found.notes == (
        "left out of the notebook: the error of cell 2, after which the notebook went on",
        "left out of the notebook: the error of cell 3, after which the notebook went on",
    )
    assert "print(out)" not in found.text
    # what a cell did before its error stays done
    names: dict[str, object] = {}
    exec(found.text[: found.text.index("# cell 4")].replace("import torch", ""), names)
    assert (names["first"], "third" in names) == (1, False)


def test_a_notebook_without_an_error_of_the_compiler_ends_at_the_last_one():
    cells = [failed("a", "NameError"), passed("b = 1"), failed("assert_close(b, 2)", "AssertionError"), passed("c = 1")]
    assert notebook.read(json.dumps({"cells": cells})).detail.endswith("(3 of 4)")


def test_what_ipython_gives_to_a_cell_is_not_missing():
    found = notebook.read(
        of_cells(
            "get_ipython().run_line_magic('matplotlib', 'inline')\nx = 1\n", "if x:\n    get_ipython().magic(\n    'x')\n", "display(x)\n"
        )
    )
    assert found.text is not None
    exec(found.text, {})
    assert "get_ipython" not in found.text
    assert found.text.startswith("display = print\n")
    own = notebook.read(of_cells("from IPython.display import display\ndisplay(1)\n")).text
    assert own is not None
    assert "print" not in own


def test_a_notebook_of_another_language_or_without_code():
    with pytest.raises(NotUnderstood, match="a notebook of julia"):
        notebook.read(of_cells("x").replace('"python"', '"Julia"'))
    with pytest.raises(NotUnderstood, match="without any code"):
        notebook.read(of_cells(" \n"))


def test_a_cell_may_await_outside_a_function():
    cells = (
        "from math import *\nimport asyncio\nasync def twice(x):\n    await asyncio.sleep(0)\n    return 2 * x\n",
        # a loop is running in cells that do not await, too
        "task = asyncio.create_task(twice(floor(21.5)))\nclass Kept:\n    n: int = 1\n",
        'x: int = await task\ntext = """\na\n  b"""\nasync def rows():\n    for i in range(x):\n        yield i\n',
        "for k in (1, 2):\n    pass\n",
        "a, *b = [i async for i in rows() if i > 39]\nfirst = lambda: x\n",
        "del k\ny: int\nif x:\n    import json as j\n",
    )
    found = notebook.read(of_cells(*cells))
    names: dict[str, object] = {"__name__": "__main__"}
    assert found.text is not None
    exec(compile(found.text, "x", "exec", dont_inherit=True), names)
    assert (names["x"], names["text"], names["a"], names["b"]) == (42, "\na\n  b", 40, [41])
    assert names["first"]() == 42  # type: ignore[operator]
    assert names["j"].__name__ == "json"  # type: ignore[attr-defined]
    assert names["Kept"].__annotations__ == {"n": int}
    assert "k" not in names


def test_what_a_cell_sets_for_its_context_is_seen_by_those_behind_it():
    source = of_cells(
        "import contextvars\nimport asyncio\nsetting = contextvars.ContextVar('setting', default='as it was')\n",
        "setting.set('by a cell')\n",
        "def held():\n    return setting.get()\n\nseen = held(), await asyncio.sleep(0, setting.get())\n",
        "after = setting.get()\n",
    )
    names: dict[str, object] = {}
    exec(notebook.read(source).text, names)
    assert names["seen"] == ("by a cell", "by a cell")
    assert names["after"] == "by a cell"


def test_a_cell_that_awaited_an_error_is_kept_as_far_as_it_came():
    cells = [
        passed("async def f():\n    raise KeyError(1)"),
        failed("first = 1\nawait f()\nthird = 3", "KeyError", "KeyError: 1"),
        failed("torch.compile(f)(first)", "InductorError", OF_COMPILER),
    ]
    found = notebook.read(json.dumps({"cells": cells}))
    assert found.text is not None
    names: dict[str, object] = {}
    exec(found.text[: found.text.index("# cell 3")], names)
    assert (names["first"], "third" in names) == (1, False)


def test_what_is_left_of_a_magic_needs_no_loop():
    found = notebook.read(of_cells("import asyncio\n%matplotlib inline\n", "await asyncio.sleep(0)\n")).text
    assert found is not None
    assert found.count("async def _cell") == 1


def test_a_notebook_without_await_has_no_loop():
    found = notebook.read(of_cells("async def f():\n    await g()\n", "x: int = 1\n"))
    assert found.text == "# cell 1\nasync def f():\n    await g()\n\n# cell 2\nx: int = 1\n"


def test_half_of_a_surrogate_pair_which_no_script_can_hold():
    found = notebook.read(of_cells("x = '\ud800'\n", "y = '\U0001f600'\n", "%time z\ud800\n"))
    assert found.text is not None
    assert "x = '?'" in found.text.encode().decode()
    assert "y = '\U0001f600'" in found.text
    "".join(found.notes).encode()
