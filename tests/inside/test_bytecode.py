"""Bytecode of what is imported, below PYTHONPYCACHEPREFIX."""

from __future__ import annotations

import importlib.util
import os
import py_compile
import subprocess
import sys
from pathlib import Path

import pytest

from bot.inside import bytecode
from bot.inside.protocol import BOOT


@pytest.fixture
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "prefix"))
    return tmp_path / "prefix"


def package(tmp_path: Path) -> Path:
    root = tmp_path / "site" / "probe_package"
    for name in ("__init__.py", "b.py", "a.py", "data.txt", "tests/test_a.py", "below/c.py", "below/__pycache__/d.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x = 1\n", encoding="utf-8")
    return root


def test_source_below_a_directory_without_its_tests(tmp_path: Path) -> None:
    root = package(tmp_path)
    assert [os.path.relpath(path, root) for path in bytecode.below(str(root))] == ["__init__.py", "a.py", "b.py", "below/c.py"]


def test_source_of_packages_and_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = package(tmp_path)
    alone = root.parent / "probe_module.py"
    alone.write_text("", encoding="utf-8")
    monkeypatch.syspath_prepend(str(root.parent))
    found = list(bytecode.sources(["probe_module", "no_such_module", "probe_package", "sys", "no_such.thing"]))
    assert found == [str(alone), *bytecode.below(str(root))]


def test_what_has_no_bytecode_is_compiled(tmp_path: Path, prefix: Path) -> None:
    source = tmp_path / "a.py"
    source.write_text("x = 1\n", encoding="utf-8")
    bytecode.write(str(source))
    target = Path(importlib.util.cache_from_source(str(source)))
    assert target.is_relative_to(prefix)
    assert [path.name for path in target.parent.iterdir()] == [target.name]


def test_bytecode_that_is_there_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "a.py"
    source.write_text("x = 1\n", encoding="utf-8")
    monkeypatch.setattr(sys, "pycache_prefix", None)
    beside = Path(py_compile.compile(str(source)) or "")
    beside.write_bytes(beside.read_bytes() + b"the same file")
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "prefix"))
    bytecode.write(str(source))
    target = Path(importlib.util.cache_from_source(str(source)))
    assert target != beside
    assert target.read_bytes() == beside.read_bytes()
    assert [path.name for path in target.parent.iterdir()] == [target.name]


@pytest.mark.parametrize("text", [b"def f(:\n", b"x = '\0'\n", b"\xff\n"])
def test_what_cannot_be_compiled_has_none(tmp_path: Path, prefix: Path, text: bytes) -> None:
    source = tmp_path / "a.py"
    source.write_bytes(text)
    bytecode.write(str(source))
    assert not Path(importlib.util.cache_from_source(str(source))).exists()
    bytecode.write(str(tmp_path / "none.py"))


@pytest.mark.parametrize(("seconds", "written"), [("60", True), ("0", False)])
def test_it_ends_in_time_with_what_is_there(tmp_path: Path, seconds: str, written: bool) -> None:
    """In an interpreter whose standard library is a directory of two files."""
    library, own = package(tmp_path), tmp_path / "site" / "named.py"
    own.write_text("y = 2\n", encoding="utf-8")
    text = (
        "import runpy, sys, sysconfig\n"
        f"sysconfig.get_path = lambda name: {str(library)!r}\n"
        f"sys.argv = ['boot.py', 'bytecode', {seconds!r}, 'named']\n"
        f"sys.path.insert(0, {str(own.parent)!r})\n"
        "import importlib\nload = importlib.import_module\n"
        f"runpy.run_path({BOOT!r}, run_name='boot')['load_package']()\n"
        "found = load('torch_minify_inside.bytecode')\nfound.PACKAGES = ()\nfound.main(sys.argv[2:])\n"
    )
    env = {**os.environ, "PYTHONPYCACHEPREFIX": str(tmp_path / "prefix")}
    subprocess.run([sys.executable, "-S", "-c", text], env=env, check=True, timeout=60)
    found = {path.name.partition(".")[0] for path in (tmp_path / "prefix").rglob(f"{tmp_path.name}/**/*.pyc")}
    assert found == ({"__init__", "a", "b", "c", "named"} if written else set())
