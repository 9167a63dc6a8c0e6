from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from bot.inside import bytecode as maker
from bot.sandbox.sandbox import Sandbox
from bot.workers import bytecode, environment
from bot.workers.process import Interrupted, Patience, run_process

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs a sandbox")


class Place:
    """An interpreter with a torch of two files, and a sandbox for it."""

    def __init__(self, place: Path) -> None:
        self.place = place
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", place / "venv"], check=True)
        self.python = str(place / "venv" / "bin" / "python")
        self.packages = next((place / "venv").glob("lib/python*/site-packages"))
        self.write("torch/__init__.py", "")
        self.write("torch/_inductor/__init__.py", "")
        self.write("torch/_inductor/lowering.py", "NUMBER = 7\n")
        (place / "scratch").mkdir()
        self.box = Sandbox(place / "scratch", self.python)

    def write(self, name: str, text: str) -> None:
        (self.packages / name).parent.mkdir(parents=True, exist_ok=True)
        (self.packages / name).write_text(text, encoding="utf-8")

    def run(self, code: str, write: Sequence[Path] = ()) -> str:
        env = {**environment.of_proof(os.environ, self.place), "PYTHONDONTWRITEBYTECODE": "1"}
        outcome = run_process([self.python, "-c", code], Patience(60.0), cwd=self.place, env=env, box=self.box, write=write)
        assert outcome.status == "ok", outcome.text
        return outcome.text.strip()

    def lend(self, program: str = "") -> None:
        bytecode.lend(self.python, self.box, 60.0, program)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.delenv("PYTHONPYCACHEPREFIX", raising=False)
    return Place(tmp_path)


LOADED = "import torch._inductor.lowering as it; print(it.NUMBER, it.__spec__.loader.get_data(it.__cached__)[:4].hex())"


def test_what_torch_lacks_is_compiled_once_and_found(place: Place) -> None:
    with pytest.raises(AssertionError, match="No such file"):
        place.run(LOADED)
    place.lend()
    assert place.run(LOADED).startswith("7 ")
    cached = Path(place.run("import torch._inductor.lowering as it; print(it.__cached__)"))
    made = cached.stat().st_mtime_ns
    assert cached.is_relative_to(place.box.scratch)
    place.lend()
    assert cached.stat().st_mtime_ns == made


def test_an_interpreter_may_be_named_alone(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{Path(place.python).parent}{os.pathsep}{os.environ['PATH']}")
    place.python = "python"
    place.lend()
    assert place.run(LOADED).startswith("7 ")


def test_the_standard_library_is_found_as_well(place: Place) -> None:
    place.lend()
    cached = place.run("import json.decoder as it; print(it.__cached__)")
    assert Path(cached).is_relative_to(place.box.scratch)
    assert Path(cached).is_file()


def test_a_source_that_changed_is_compiled_by_whoever_imports_it(place: Place) -> None:
    place.lend()
    place.write("torch/_inductor/lowering.py", "NUMBER = 1234\n")
    assert place.run("import torch._inductor.lowering as it; print(it.NUMBER)") == "1234"


def test_no_program_can_change_what_others_run(place: Place) -> None:
    place.lend()
    said = place.run(
        "import os, torch._inductor.lowering as it\n"
        "for act in (lambda: open(it.__cached__, 'ab'), lambda: os.unlink(it.__cached__), lambda: open(it.__cached__ + 'x', 'w')):\n"
        "    try:\n        act()\n    except OSError:\n        print('refused')\n"
    )
    assert said.split() == ["refused"] * 3
    made = list((place.box.scratch / "bytecode").rglob("*"))
    assert any(path.suffix == ".pyc" for path in made)
    assert {path.lstat().st_uid for path in made} == {os.geteuid()}


def test_nothing_is_made_where_torch_has_its_own(place: Place) -> None:
    place.write("torch/_inductor/__pycache__/lowering.cpython-999.pyc", "")
    place.lend()
    assert "PYTHONPYCACHEPREFIX" not in place.run("import os; print(list(os.environ))")


def test_a_place_of_the_users_own_stays(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(place.place / "own"))
    place.lend()
    assert place.run("import sys; print(sys.pycache_prefix)") == str(place.place / "own")


def test_an_interpreter_of_another_place_is_left_alone(place: Place) -> None:
    place.lend()
    outcome = run_process(
        [sys.executable, "-c", "import sys; print(sys.pycache_prefix)"],
        Patience(60.0),
        cwd=place.place,
        env=environment.of_proof(os.environ, place.place),
        box=place.box,
    )
    assert outcome.text.strip() == "None"


def test_what_the_program_imports_comes_too(place: Place) -> None:
    place.write("models/__init__.py", "")
    place.write("models/deep/net.py", "X = 1\n")
    place.write("models/tests/test_net.py", "X = 1\n")
    place.write("broken/__init__.py", "def (:\n")
    place.lend("import os\nfrom models.deep import net\n    import broken, nothing_of_the_kind\n")
    names = {path.name.split(".")[0] for path in (place.box.scratch / "bytecode").rglob("*.pyc") if "models" in path.parts}
    assert names == {"__init__", "net"}


def test_time_is_kept(place: Place) -> None:
    bytecode.lend(place.python, place.box, 0.0)
    assert place.run("import torch._inductor.lowering as it; print(it.NUMBER)") == "7"


def test_somebody_who_leaves_is_not_kept_waiting(place: Place) -> None:
    with pytest.raises(Interrupted):
        bytecode.lend(place.python, place.box, math.inf, wanted=lambda: False)


def test_bytecode_beside_the_source_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "prefix"))
    source = tmp_path / "module.py"
    source.write_text("X = 1\n", encoding="utf-8")
    beside = tmp_path / "__pycache__" / f"module.{sys.implementation.cache_tag}.pyc"
    beside.parent.mkdir()
    beside.write_bytes(b"kept")
    maker.write(str(source))
    assert [path.read_bytes() for path in (tmp_path / "prefix").rglob("*.pyc")] == [b"kept"]
