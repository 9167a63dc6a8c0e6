"""Files beside the script that it imports."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.engine.capture.local_modules import local_modules, module_lines, read_source, search_path


def write(root: Path, **files: str) -> Path:
    for name, text in files.items():
        file = root.joinpath(*name.split("__"))
        file = file.with_name(file.name.replace("init", "__init__") + ".py")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return root / "main.py"


def test_modules_are_followed_through_packages_and_relative_imports(tmp_path: Path) -> None:
    script = write(
        tmp_path,
        main="import torch\nimport helper\nfrom pkg.layers import Layer\nimport main\n",
        helper="import os, helper\n",
        pkg__init="",
        pkg__layers="from . import sizes\nfrom .deep.inner import f\nfrom missing import g\n",
        pkg__sizes="from ..helper import x\n",
        pkg__deep__inner="",
        unused="",
    )
    assert set(local_modules(script)) == {"helper", "pkg", "pkg.layers", "pkg.sizes", "pkg.deep.inner"}


def test_a_package_itself_counts_where_it_is_imported(tmp_path: Path) -> None:
    script = write(tmp_path, main="from pkg import f\n", pkg__init="from .a import f\n", pkg__a="f = 1\n")
    assert set(local_modules(script)) == {"pkg", "pkg.a"}


def test_what_is_not_python_is_left_out(tmp_path: Path) -> None:
    script = write(tmp_path, main="import broken, coded\n", broken="def (\n")
    (tmp_path / "coded.py").write_bytes(b"# coding: utf-8\nx = '\xff'\n")
    assert local_modules(script) == {}


def test_a_link_shows_nothing_that_the_program_may_not_read(tmp_path: Path) -> None:
    """In a stranger's checkout it may lead anywhere; what is imported is written into the repro."""
    outside, project = tmp_path / "outside", tmp_path / "project"
    (outside / "package").mkdir(parents=True)
    (project / "inner").mkdir(parents=True)
    for path in (outside / "credentials.json", outside / "package/__init__.py", project / "inner/helper.py", project / ".env"):
        path.write_text("KEY = 'canary'\n")
    for name, target in {"a.py": outside / "credentials.json", "b": outside / "package", "c.py": "inner/helper.py", "d.py": ".env"}.items():
        (project / name).symlink_to(target)
    (project / "main.py").write_text("import a, b, c, d\n")
    assert set(local_modules(project / "main.py")) == {"c"}


@pytest.mark.parametrize("raw", ["x = 1\n".encode("utf-16"), b"x = 1\0\n", b"# coding: rot13\nk = 1\n", b"x = " + b"-" * 100_000 + b"1\n"])
def test_a_script_that_cannot_be_read_has_no_modules(tmp_path: Path, raw: bytes) -> None:
    script = write(tmp_path, main="import broken\n", helper="")
    (tmp_path / "broken.py").write_bytes(raw)
    assert local_modules(script) == {}
    script.write_bytes(raw + b"import helper\n")
    assert local_modules(script) == {}


def test_modules_lie_where_the_command_looks(tmp_path: Path) -> None:
    script = write(tmp_path, main="import near, mylib, mylib.block, tool, torch, other\n", near="", other="here = 1\n")
    write(tmp_path / "src", mylib__init="from . import part\n", mylib__block="", mylib__part="", other="")
    write(tmp_path / "work", tool="", torch__init="import huge", huge="")
    write(tmp_path / "venv" / "lib" / "python3.11" / "site-packages", tool="installed = 1\n")
    environ = {"PYTHONPATH": f"../venv/lib/python3.11/site-packages:{tmp_path / 'src'}::missing"}
    further = search_path(tmp_path / "work", environ)
    assert further == (tmp_path / "work", tmp_path / "src")
    looked = [str(tmp_path), str(tmp_path / "venv" / "lib" / "python3.11" / "site-packages"), str(tmp_path / "src"), str(tmp_path / "gone")]
    assert search_path(tmp_path / "work", environ, looked) == (*further, tmp_path)
    found = local_modules(script, further)
    assert set(found) == {"near", "other", "tool", "mylib", "mylib.block", "mylib.part"}
    assert found["other"] == "here = 1\n", "what lies beside the script comes first"
    assert found["tool"] == ""
    assert set(local_modules(script)) == {"near", "other"}


def test_other_encodings_are_read(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_bytes("# -*- coding: latin-1 -*-\r\nx = 'é'\r\n".encode("latin-1"))
    assert read_source(file) == "# -*- coding: latin-1 -*-\nx = 'é'\n"


@pytest.mark.parametrize("path", ["/home/a/pkg/layers.py", "pkg/layers.py"])
def test_lines_of_a_traceback(path: str) -> None:
    text = f'Traceback\n  File "{path}", line 12, in forward\n  File "/x/other.py", line 3, in f\n'
    assert module_lines(text, {"pkg.layers": "", "helper": ""}) == {"pkg.layers": (12,), "helper": ()}
    dump = f'Fatal Python error: Aborted\n\nCurrent thread 0x1 (most recent call first):\n  File "{path}", line 12 in forward\n'
    assert module_lines(dump, {"pkg.layers": "", "helper": ""}) == {"pkg.layers": (12,), "helper": ()}
