from __future__ import annotations

import ast
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from bot.engine.inputs import notebook, prepare
from bot.engine.inputs.take import take
from bot.engine.inputs.taken import NotUnderstood, Place
from tests.engine.inputs.test_dump import AOT, AOTI


def place(path: Path, **more: Any) -> Place:
    return Place(path, path.parent, torch="2.13.0+cpu", **more)


def named(tmp_path: Path, name: str, content: str | bytes) -> Path:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize(
    ("name", "content", "taken_as", "detail"),
    [
        ("fail.py", "import torch\nx = 1\n", "script", "a Python script of 2 lines"),
        # running it says what is wrong with it
        ("fail.py", "def f(:\n", "script", "a Python script of one line"),
        ("no_suffix", "import torch\n", "script", "a Python script of one line"),
        ("launcher.py", AOT, "launcher", "a launcher of PyTorch's minifier (level aot) dumped by torch 2.13.0+cpu, one graph, 1 ops"),
        ("x.txt", AOT.replace("'minify'", "'run'"), "runnable", "a repro (level aot) dumped by torch 2.13.0+cpu, one graph, 1 ops"),
    ],
)  # fmt: skip
def test_what_a_file_is_taken_for(tmp_path, name, content, taken_as, detail):
    found = take(place(named(tmp_path, name, content)))
    assert (found.taken_as, found.detail) == (taken_as, detail)


@pytest.mark.parametrize(
    ("name", "content", "looks_like"),
    [
        ("a.out", b"\x7fELF\x02\x01", "a compiled program"),
        ("model.bin", b"\x00\x01\x02", "a binary file"),
        ("shot.png", b"\x89PNG\r\n", "a picture"),
        ("data.pkl", b"\x80\x04\x95", "a pickle"),
        ("err.txt", 'Traceback (most recent call last):\n  File "x.py"\nValueError: x\n', "a traceback, or a log with one"),
        ("job.log", "2026-07-02T10:00:00.1234567Z Run pytest\nFAILED x\n", r"a log of a CI job.*torch-minify candidates --log FILE"),
        ("empty.log", "\n", "an empty file"),
        ("notes.md", "# Failing: see *below*\n", "a text that is no Python"),
        ("bad.ipynb", "{}", "holds no cells"),
        ("bad.pt2", "no zip", "a .pt2 file that is no archive"),
    ],
)
def test_what_is_not_understood_is_named(tmp_path, name, content, looks_like):
    with pytest.raises(NotUnderstood, match=looks_like):
        take(place(named(tmp_path, name, content)))


def archived(tmp_path: Path, *names: str) -> Path:
    path = tmp_path / "program.pt2"
    with zipfile.ZipFile(path, "w") as out:
        for name in names:
            out.writestr(f"program/{name}", "x")
    return path


# The names in these archives are those of torch 2.13's torch.export.save, aoti_compile_and_package, package_pt2 and torch.save.
PROGRAM = ("archive_format", "byteorder", "models/model.json", "data/weights/weight_0", "data/sample_inputs/model.pt", "version")
COMPILED = ("archive_format", "byteorder", "data/aotinductor/model/abc.wrapper.so", "data/aotinductor/model/abc.wrapper.cpp", "version")


def test_an_exported_program_is_compiled_and_packaged(tmp_path):
    found = take(place(archived(tmp_path, *PROGRAM)))
    assert (found.taken_as, found.detail) == ("exported_program", "an exported program")
    assert found.text is not None
    ast.parse(found.text)
    # one after the other: each is to be seen to fail by itself
    ast.parse(found.then)
    assert ("torch.compile(program.module())" in found.text, "aoti_" in found.text) == (True, False)
    assert ("torch.compile(" in found.then, "torch._inductor.aoti_compile_and_package(program)" in found.then) == (False, True)
    given = take(place(archived(tmp_path, *PROGRAM), inputs=named(tmp_path, "inputs.pt", "")))
    assert given.text is not None
    ast.parse(given.text)
    assert "weights_only=True" in given.text
    assert given.notes == ("its inputs are read from inputs.pt",)
    assert [path.name for path in given.read] == ["program.pt2", "inputs.pt"]


def test_a_package_is_of_use_only_with_its_program(tmp_path):
    with pytest.raises(NotUnderstood, match=r"compiled code but not the program.*torch\.export\.save"):
        take(place(archived(tmp_path, *COMPILED)))
    assert take(place(archived(tmp_path, *COMPILED, *PROGRAM[2:5]))).taken_as == "package"
    with pytest.raises(NotUnderstood, match="no exported program"):
        take(place(archived(tmp_path, "data.pkl", "byteorder", "data/0", "version")))


def test_a_program_in_a_package_is_loaded_without_the_compiled_code(tmp_path):
    """torch.export.load loads that too, and then it would run where the compiler is taken out."""
    held = place(archived(tmp_path, *COMPILED, *PROGRAM[2:5]))
    found = take(held)
    assert found.text is not None
    ast.parse(found.text)
    ast.parse(found.otherwise)
    alone = held.scratch / "without_code.pt2"
    assert f"torch.export.load({str(alone)!r})" in found.text
    assert str(held.path) not in found.text
    assert f"found = torch._inductor.aoti_load_package({str(held.path)!r})(*args, **kwargs)" in found.otherwise
    assert set(found.read) == {alone, held.path}
    with zipfile.ZipFile(alone) as kept:
        assert not [name for name in kept.namelist() if "aotinductor" in name]
        assert kept.read("program/models/model.json") == b"x"
    other = take(place(archived(tmp_path, "archive_format", "byteorder", "models/first.json", "data/aotinductor/first/a.wrapper.so")))
    assert f"found = torch.export.pt2_archive._package.load_pt2({str(held.path)!r}).aoti_runners['first'](*args" in other.otherwise
    assert take(place(archived(tmp_path, *PROGRAM))).otherwise == ""


def test_of_several_programs_one_is_chosen(tmp_path):
    held = archived(tmp_path, *PROGRAM[:2], "models/first.json", "models/second.json")
    found = take(place(held))
    assert "its programs: first, second; first is taken, --graph chooses" in found.notes
    text = take(Place(held, tmp_path, graph="second")).text
    assert text is not None
    assert ".exported_programs['second']" in text
    with pytest.raises(NotUnderstood, match=r"without a program 'third'; it has first, second"):
        take(Place(held, tmp_path, graph="third"))


def test_a_launcher_of_aot_inductor_needs_its_program(tmp_path):
    launcher = named(tmp_path, "minifier_launcher.py", AOTI)
    with pytest.raises(NotUnderstood, match=r"loads exported_program\.pt2, which is neither beside it nor where it was"):
        take(place(launcher))
    (tmp_path / "checkpoints").mkdir()
    there = named(tmp_path / "checkpoints", "exported_program.pt2", "")
    text = take(place(launcher)).text
    assert text is not None
    assert f"torch.export.load({str(there.resolve())!r})" in text


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


def test_a_script_runs_where_it_is_and_what_is_made_of_a_dump_in_a_place_of_its_own(tmp_path):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    script = named(tmp_path, "fail.py", "import torch\n")
    target, found = prepare.prepared(script, ("--x",), "no-such-python", scratch, None, None)
    assert (target.script, target.argv, found.taken_as) == (script, ("--x",), "script")
    (scratch / "unpacked").rmdir()
    dumped = named(tmp_path, "fx graph 1.py", AOT)
    target, found = prepare.prepared(dumped, (), "no-such-python", scratch, None, None)
    assert target.script == scratch / "fx_graph_1.py"
    assert target.script.read_text() == found.text
    assert target.script.stat().st_mode & 0o777 == 0o644
    assert scratch.stat().st_mode & 0o777 == 0o755
