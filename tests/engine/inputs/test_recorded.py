"""What three versions of torch dumped of one program: the same one each time. tests/fixtures/dumps/README.md says how they were made."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from bot.engine.inputs.take import take
from bot.engine.inputs.taken import Place, Taken

DUMPS = Path(__file__).parents[2] / "fixtures" / "dumps"
VERSIONS = ("2.9.1", "2.13.0", "2.15.0")
# The form, its name when torch writes it, and what is said of it.
FORMS = {
    "runnable.py": ("fx_graph_runnable.py", "a repro (level aot) dumped by torch {}, one graph, 5 ops"),
    "launcher_aot.py": ("minifier_launcher.py", "a launcher of PyTorch's minifier (level aot) dumped by torch {}, one graph, 5 ops"),
    # this one does not say which torch it was
    "launcher_dynamo.py": ("minifier_launcher.py", "a launcher of PyTorch's minifier (level dynamo), one graph, 5 ops"),
    "launcher_aoti.py": ("minifier_launcher.py", "a launcher of PyTorch's minifier (level aot_inductor) dumped by torch {}, one graph"),
    "repro_accuracy.py": ("repro.py", "a repro (level aot) dumped by torch {}, one graph, 5 ops"),
    "trace.log": (
        "dedicated_log_torch_trace_x.log",
        "a trace dumped by torch {}, one graph: InductorError: CppCompileError: C++ compile error, 5 ops",
    ),
}
_LOCAL = {"2.9.1": "+cu128", "2.13.0": "+cpu", "2.15.0": "+cu132"}


def taken(form: str, version: str, tmp_path: Path, torch: str) -> Taken:
    name, _ = FORMS[form]
    held = tmp_path / "held"
    held.mkdir()
    (held / "exported_program.pt2").write_bytes(b"")
    (held / name).write_bytes((DUMPS / version / f"{form}.txt").read_bytes())
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    return take(Place(held / name, scratch, torch=torch))


def module_of(text: str) -> str:
    return "\n".join(ast.unparse(node) for node in ast.parse(text).body if isinstance(node, ast.ClassDef))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("version", VERSIONS)
def test_what_each_version_dumped_is_understood(form: str, version: str, tmp_path: Path) -> None:
    found = taken(form, version, tmp_path, version + _LOCAL[version])
    assert found.text is not None
    assert found.detail == FORMS[form][1].format(version + _LOCAL[version])
    assert found.wrong_numbers is (form == "repro_accuracy.py")
    relu = "accuracy" if form == "repro_accuracy.py" else "compile_error"
    assert f"torch._inductor.config.cpp.inject_relu_bug_TESTING_ONLY = '{relu}'" in found.text
    # nothing of the run that dumped it, nor of PyTorch's minifier
    assert not re.search(
        r"run_repro|load_args\._version|__compile_source__|TORCH_TRACE|TORCH_COMPILE_DEBUG|CACHE_DIR|/home/user", found.text
    )
    assert not any("it was dumped by" in note for note in found.notes)
    if form != "launcher_dynamo.py":
        assert "suppress(AttributeError)" not in found.text


@pytest.mark.parametrize("form", ["runnable.py", "launcher_aot.py", "launcher_dynamo.py", "trace.log"])
def test_the_graph_is_the_same_whichever_version_dumped_it(form: str, tmp_path: Path) -> None:
    modules = set()
    for version in VERSIONS:
        place = tmp_path / version
        place.mkdir()
        text = taken(form, version, place, "2.13.0+cpu").text
        assert text is not None
        modules.add(module_of(text))
    assert len(modules) == 1
    assert "relu" in modules.pop()


@pytest.mark.parametrize("version", VERSIONS)
def test_another_torch_is_said(version: str, tmp_path: Path) -> None:
    found = taken("trace.log", version, tmp_path, "2.12.0+cpu")
    assert any(f"dumped by torch {version}" in note and "here is torch 2.12.0+cpu" in note for note in found.notes)
    assert found.text is not None
    assert "with contextlib.suppress(AttributeError):" in found.text
