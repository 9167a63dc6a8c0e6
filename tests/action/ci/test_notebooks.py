"""Notebooks that pytest ran, in a log.

The forms are those of nbmake (repr_failure and reportinfo of src/nbmake/pytest_items.py, _get_error of src/nbmake/nb_run.py, at commit
6c0dcd4, which is 1.5.5; its item had no name before commit a9cee00), of nbval (repr_failure, reportinfo and runtest of nbval/plugin.py,
at commit 3299cc6, which is 0.11.0), and of what nbclient says of a time limit (timeout_err_msg of its exceptions.py).
"""

from __future__ import annotations

import pytest

from bot.action.ci import candidates
from bot.action.ci.failing_test import pytest_id
from bot.action.ci.paths import CheckoutPaths

RULE = "-" * 75
CELL = "opt = torch.compile(model)\nopt(x)\n"
DRAWN = f"""{RULE}
InductorError                             Traceback (most recent call last)
Cell In[3], line 2
      1 opt = torch.compile(model)
----> 2 opt(x)

File /v/site-packages/torch/_inductor/compile_fx.py:985, in _compile_fx_inner(gm, example_inputs, **graph_kwargs)
    984 except Exception as e:
--> 985     raise InductorError(e, currentframe()).with_traceback(

InductorError: LoweringException: AssertionError: made up
  target: aten.addmm.default

Set TORCHDYNAMO_VERBOSE=1 for the internal stack trace
"""
OTHER = f"""{RULE}
HTTPError                                 Traceback (most recent call last)
Cell In[2], line 1
----> 1 load("data", download=True)

File /v/urllib/request.py:639, in HTTPDefaultErrorHandler.http_error_default(self, req, fp, code, msg, hdrs)
--> 639     raise HTTPError(req.full_url, code, msg, hdrs, fp)

HTTPError: HTTP Error 503: Service Unavailable
"""
BEGINS, ENDS = "=== FAILURES ===\n", "=== short test summary info ===\n"
WHY = "fails in the compiler (exception in inductor_lowering: InductorError: LoweringException: AssertionError: made up)"
TAKES = "; torch-minify run takes the notebook"
FILE = "tutorials/02_compile.ipynb"


def rows(log: str, *files: str) -> list[dict[str, str | None]]:
    return candidates.rows(log, CheckoutPaths(files))


@pytest.mark.parametrize(
    ("behind", "test"),
    [
        (f"::02_compile.ipynb - {CELL.splitlines()[-1]}", f"{FILE}::02_compile.ipynb"),
        # where pytest has no directories as nodes
        (f"::{FILE} - InductorError: made up", f"{FILE}::{FILE}"),
        ("::", f"{FILE}::"),
        (":: - InductorError: made up", f"{FILE}::"),
    ],
)
@pytest.mark.parametrize("root", ["/__w/made/made", "/app"])
def test_nbmake(root: str, behind: str, test: str) -> None:
    shown = f"{BEGINS}___ {root}/{FILE} ___\n{RULE}\n{CELL}{DRAWN}___ {root}/tutorials/04_data.ipynb ___\n{RULE}\nload()\n{OTHER}"
    log = f"rootdir: {root}\n{shown}{ENDS}FAILED {FILE}{behind}\nFAILED tutorials/04_data.ipynb::\n"
    first, second = rows(log)
    assert (first["file"], first["test"], first["verdict"]) == (FILE, test, "suggested")
    assert (first["command"], first["why"]) == (None, WHY + TAKES)
    assert (second["test"], second["verdict"]) == ("tutorials/04_data.ipynb::", "not a candidate")


def test_nbmake_without_a_summary() -> None:
    (row,) = rows(f"{BEGINS}_ /__w/made/made/{FILE} _\n{RULE}\n{CELL}{DRAWN}")
    assert (row["file"], row["test"], row["verdict"]) == (FILE, FILE, "suggested")
    (row,) = rows(f"{BEGINS}_ /app/{FILE} _\n{RULE}\n{CELL}{DRAWN}", FILE)
    assert (row["file"], row["test"], row["verdict"]) == (FILE, FILE, "suggested")


@pytest.mark.parametrize("file", ["tutorials/a.ipynb", "Data Preprocessing/a (1).ipynb"])
@pytest.mark.parametrize("summary", [True, False])
def test_nbval(file: str, summary: bool) -> None:
    cell = "Notebook cell execution failed\nCell {}: Cell execution caused an exception\n\nInput:\n{}\n\nTraceback:\n\n{}\n\n"
    other = "Notebook cell execution failed\nCell 4: Cell outputs differ\n\nInput:\nx + 1\n\nTraceback:\n mismatch 'text/plain'\n\n"
    log = f"{BEGINS}__ {file}::Cell 2 __\n{cell.format(2, CELL, DRAWN)}__ {file}::Cell 3 __\n{cell.format(3, 'load()', OTHER)}"
    log += f"__ {file}::Cell 4 __\n{other}"
    log += f"{ENDS}FAILED {file}::Cell 2\nFAILED {file}::Cell 3\nFAILED {file}::Cell 4\n" if summary else ""
    found = rows(log)
    assert [(row["file"], row["test"]) for row in found] == [(file, f"{file}::Cell {number}") for number in (2, 3, 4)]
    assert [row["verdict"] for row in found] == ["suggested", "not a candidate", "not a candidate"]
    assert (found[0]["why"], found[0]["command"]) == (WHY + TAKES, None)


@pytest.mark.parametrize(
    "said",
    [
        f"A cell timed out while it was being executed, after 300 seconds.\nThe message was: Cell execution timed out.\n{CELL}",
        f"Notebook cell execution failed\nCell 2: Timeout of 2000 seconds exceeded executing cell\n\nInput:\n{CELL}\n"
        + f"\nTraceback:\n\n{DRAWN}".replace("InductorError", "KeyboardInterrupt"),
    ],
)
def test_a_time_limit(said: str) -> None:
    (row,) = rows(f"{BEGINS}___ {FILE}{'::Cell 2' if 'Cell 2' in said else ''} ___\n{said}")
    assert (row["file"], row["verdict"], row["kind"]) == (FILE, "possible", "hang")


def test_what_the_plugin_raised() -> None:
    (row,) = rows(
        f"{BEGINS}___ ERROR collecting {FILE} ___\n/v/site-packages/nbformat/reader.py:22: in parse_json\nE   KeyError: 'cells'\n"
    )
    assert (row["file"], row["verdict"]) == (FILE, "not a candidate")
    assert "KeyError: 'cells'" in str(row["why"])


def test_its_path_in_the_checkout() -> None:
    (row,) = rows(f"{ENDS}FAILED {FILE}::Cell 2\n", f"docs/{FILE}")
    assert (row["file"], row["test"]) == (f"docs/{FILE}", f"docs/{FILE}::Cell 2")


def test_a_drawn_traceback_below_the_title_of_any_test() -> None:
    log = f"{BEGINS}___ test_a ___\n{DRAWN}{ENDS}FAILED tests/test_a.py::test_a\n"
    (row,) = rows(log)
    assert (row["test"], row["verdict"], row["why"]) == ("tests/test_a.py::test_a", "suggested", WHY)


def test_the_dots_of_its_name_part_nothing() -> None:
    assert pytest_id(FILE, "02_compile.ipynb") == f"{FILE}::02_compile.ipynb"


# How a test that runs a notebook by nbclient, papermill or nbconvert says that a cell failed (exec_err_msg of nbclient's exceptions.py).
RUNS = """=== FAILURES ===
___ test_tutorial ___
tests/test_notebooks.py:12: in test_tutorial
    client.execute()
/v/site-packages/nbclient/client.py:918: in _check_raise_for_error
    raise CellExecutionError.from_cell_and_msg(cell, exec_reply_content)
E   nbclient.exceptions.CellExecutionError: An error occurred while executing the following cell:
E   ------------------
{}
"""


@pytest.mark.parametrize(("drawn", "verdict"), [(DRAWN, "suggested"), (OTHER, "not a candidate")])
def test_one_that_a_test_runs(drawn: str, verdict: str) -> None:
    said = "\n".join(f"E   {line}" for line in f"{CELL}------------------\n\n\n{drawn}".split("\n"))
    (row,) = rows(f"{RUNS.format(said)}{ENDS}FAILED tests/test_notebooks.py::test_tutorial - nbclient.exceptions.CellExecutionError: An\n")
    assert (row["test"], row["verdict"]) == ("tests/test_notebooks.py::test_tutorial", verdict)
    assert ("HTTPError" in str(row["why"])) is (drawn is OTHER)
