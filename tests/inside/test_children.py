"""Following a program into the processes that it starts; without torch. tests/inside/test_following.py does it with torch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bot.inside.children import AfterImport
from bot.inside.protocol import CUDA_ARCH, FOLLOW_DIRECTORY, INSIDE

FOLLOW = "TORCH_MINIFY_FOLLOW"
# As boot.py loads the package: under a name that nothing of the user's has.
BEGIN = f"""
import importlib.util, json, os, sys
spec = importlib.util.spec_from_file_location("boot", {os.path.join(INSIDE, "boot.py")!r})
boot = importlib.util.module_from_spec(spec)
spec.loader.exec_module(boot)
boot.load_package()
from torch_minify_inside import children
"""


def run(tmp_path: Path, text: str, **env: str) -> subprocess.CompletedProcess[str]:
    script = tmp_path / "program.py"
    script.write_text(text, encoding="utf-8")
    plain = {name: value for name, value in os.environ.items() if name not in (FOLLOW, CUDA_ARCH, "PYTHONPATH")}
    return subprocess.run(
        [sys.executable, str(script)], env={**plain, **env}, capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path
    )


def printed(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.strip().split("\n")[-1])


# -- what a process of multiprocessing does -----------------------------------------------------------------------------

WORKS = (
    BEGIN
    + """
import functools, multiprocessing.pool

def step(*args, **kwargs):
    with open("said.json", "w") as file:
        json.dump(children.work(), file)

class Away:
    def step(self):
        step()

def decorated(function):
    return functools.wraps(function)(lambda *args: function(*args))

@decorated
def wrapped(number):
    step({}, number)

def outer(first, second, /):
    middle(second, 8, 9, more=[10])

def middle(first, *rest, more):
    Away().step()

class Queue(list):
    def get(self):
        return self.pop(0)
    def put(self, value):
        pass

children.follow("capture", "order.json")
children.follow("capture", "order.json")
child = multiprocessing.get_context("fork").Process(target=%s)
child.start()
child.join()
said = json.load(open("said.json"))
print(json.dumps([said, children.work(), child.exitcode]))
"""
)


@pytest.mark.parametrize(
    ("target", "call"),
    [
        ("step, args=(1, 'x', [None, (True, b'y')]), kwargs={'lr': 0.5}", "step(1, 'x', [None, (True, b'y')], lr=0.5)"),
        ("step", "step()"),
        # what Python does not read back as it is printed
        ("step, args=(float('inf'),)", ""),
        ("step, args=({},)", ""),
        ("step, args=([object],)", ""),
        ("step, kwargs={'x': {}}", ""),
        # called by what a script cannot call by its name, or not with these values
        ("Away().step", "step()"),
        ("lambda: step({})", ""),
        ("outer, args=({}, 7)", "middle(7, 8, 9, more=[10])"),
        ("wrapped, args=(3,)", "wrapped(3)"),
        # a process of a pool has its work from a queue
        ("multiprocessing.pool.worker, args=(Queue([(0, 0, step, (1,), {}), None]), Queue())", "step(1)"),
    ],
)
def test_the_call_that_it_is_at(tmp_path: Path, target: str, call: str) -> None:
    said, own, status = printed(run(tmp_path, WORKS % target))
    assert (said, own, status) == (call, None, 0)


# -- the error with which a process ends ---------------------------------------------------------------------------------

ENDS = (
    BEGIN
    + """
def broken(error):
    raise AssertionError("a fault of ours")

def note(error):
    with open("said.json", "a") as file:
        file.write(type(error).__name__ + "\\n")

def step(error):
    raise error

children.follow("capture", "order.json")
children.tell_of_end(broken)
children.tell_of_end(note)
import multiprocessing  # not before: it is watched when it is imported
child = multiprocessing.get_context("fork").Process(target=step, args=(%s,))
child.start()
child.join()
print(json.dumps([open("said.json").read().split() if os.path.exists("said.json") else [], child.exitcode]))
"""
)


@pytest.mark.parametrize(("error", "told"), [("KeyError(7)", ["KeyError"]), ("SystemExit(1)", []), ("KeyboardInterrupt()", [])])
def test_its_end_is_told_once_and_stays_its_own(tmp_path: Path, error: str, told: list[str]) -> None:
    done = run(tmp_path, ENDS % error)
    assert printed(done) == [told, 1]
    assert "a fault of ours" not in done.stderr
    assert ("KeyError: 7" in done.stderr) is ("KeyError" in error)


# -- interpreters that it starts ------------------------------------------------------------------------------------------


def test_another_interpreter_gets_the_role_and_our_directory_goes_from_its_path(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('its own')\n", encoding="utf-8")
    said = "os.environ['TORCH_MINIFY_FOLLOW'], 'torch_minify_inside.children' in sys.modules, sys.path"
    ask = f"import json, os, sys; print(json.dumps([{said}]))"
    text = f"{BEGIN}\nimport subprocess\nchildren.follow('control')\nsys.stdout.flush()\nsubprocess.run([sys.executable, '-c', {ask!r}])\n"
    done = run(tmp_path, text, PYTHONPATH=str(tmp_path))
    role, loaded, path = printed(done)
    assert (role, loaded) == ("control:", True)
    assert FOLLOW_DIRECTORY not in path
    assert str(tmp_path) in path
    # one for this interpreter, one for that: ours does not hide it
    assert done.stdout.count("its own") == 2


def fake_torch(tmp_path: Path) -> str:
    package = tmp_path / "fake" / "torch"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("from . import export\ndef compile(model):\n    return model\n", encoding="utf-8")
    (package / "export.py").write_text("def export(model):\n    return model\n", encoding="utf-8")
    return str(package.parent)


@pytest.mark.parametrize("role", ["control:", "capture:order.json", ":"])
def test_nothing_is_done_before_torch_is_imported(tmp_path: Path, role: str) -> None:
    text = "import json, sys\nprint(json.dumps([name for name in sys.modules if name.endswith(('compiler_out', 'begin', 'absent_gpu'))]))\n"
    assert printed(run(tmp_path, text, PYTHONPATH=FOLLOW_DIRECTORY, **{FOLLOW: role})) == []


def test_a_capture_waits_for_the_compiler(tmp_path: Path) -> None:
    """Most children only load data."""
    text = (
        "import json, sys, torch\nplain = torch.compile.__wrapped__ is not None\n"
        "before = 'torch_minify_inside.capture.begin' in sys.modules\n"
        "try:\n    torch.compile(1)\nexcept ImportError:\n    begun = True\n"  # the hooks need torch's own modules
        "print(json.dumps([plain, before, begun, hasattr(torch.compile, '__wrapped__'), hasattr(torch.export.export, '__wrapped__')]))\n"
    )
    path = os.pathsep.join([FOLLOW_DIRECTORY, fake_torch(tmp_path)])
    assert printed(run(tmp_path, text, PYTHONPATH=path, **{FOLLOW: "capture:order.json"})) == [True, False, True, False, False]


def test_a_fault_of_ours_ends_nobodys_program(tmp_path: Path) -> None:
    path = os.pathsep.join([FOLLOW_DIRECTORY, fake_torch(tmp_path)])
    done = run(tmp_path, "import torch\nprint(torch.compile(7))\n", PYTHONPATH=path, **{FOLLOW: "control:"})
    assert printed(done) == 7
    assert done.stderr.startswith("torch-minify: cannot follow this process: ")


# -- AfterImport ------------------------------------------------------------------------------------------------------


@pytest.fixture
def meta_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    before = list(sys.meta_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.meta_path[:] = before
    for name in [name for name in sys.modules if name.startswith("minify_probe")]:
        del sys.modules[name]


def test_an_action_follows_its_import_once(meta_path: Path) -> None:
    (meta_path / "minify_probe.py").write_text("value = 1\n", encoding="utf-8")
    seen: list[int] = []
    AfterImport({"minify_probe": lambda: seen.append(sys.modules["minify_probe"].value)})
    assert seen == []
    __import__("minify_probe")
    del sys.modules["minify_probe"]
    __import__("minify_probe")
    assert seen == [1]


def test_two_that_wait_for_one_module_are_both_told(meta_path: Path) -> None:
    (meta_path / "minify_probe.py").write_text("", encoding="utf-8")
    seen: list[str] = []
    AfterImport({"minify_probe": lambda: seen.append("first")})
    AfterImport({"minify_probe": lambda: seen.append("second")})
    __import__("minify_probe")
    assert seen == ["first", "second"]


def test_a_module_that_is_not_there_stays_so(meta_path: Path) -> None:
    seen: list[str] = []
    AfterImport({"minify_probe_none": lambda: seen.append("told")})
    with pytest.raises(ModuleNotFoundError):
        __import__("minify_probe_none")
    assert seen == []


def test_an_action_that_fails_is_said_and_the_module_is_there(meta_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (meta_path / "minify_probe.py").write_text("value = 1\n", encoding="utf-8")

    def fails() -> None:
        raise ValueError("x")

    AfterImport({"minify_probe": fails})
    assert __import__("minify_probe").value == 1
    assert capsys.readouterr().err == "torch-minify: cannot follow this process: ValueError: x\n"
