"""A GPU that isn't there, for processes of a job. The real thing, on a torch with CUDA, is in tests/e2e."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import pytest

from bot.inside.protocol import CUDA_ARCH, FOLLOW_DIRECTORY
from bot.sandbox.sandbox import Sandbox
from bot.workers import absent_gpu, environment
from bot.workers.process import Patience, run_process

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs a sandbox")


@pytest.fixture
def box(tmp_path: Path) -> Sandbox:
    (tmp_path / "scratch").mkdir()
    return Sandbox(tmp_path / "scratch")


def said(box: Sandbox, code: str) -> str:
    outcome = run_process(
        [sys.executable, "-S", "-c", code], Patience(60.0), cwd=box.scratch, env=environment.of_proof(os.environ, box.scratch), box=box
    )
    assert outcome.status == "ok", outcome.text
    return outcome.text.strip()


def test_a_torch_without_cuda_is_named(box: Sandbox) -> None:
    spec = importlib.util.find_spec("torch")
    if spec is None or any(Path(place, "lib", "libtorch_cuda.so").exists() for place in spec.submodule_search_locations or ()):
        pytest.skip("needs a torch without CUDA")
    why = absent_gpu.put_up(box, sys.executable, 90)
    assert why is not None
    assert "built without CUDA" in why


def test_a_compiler_is_needed(box: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(box.scratch))
    monkeypatch.delenv("CC", raising=False)
    assert "C compiler" in (absent_gpu.put_up(box, sys.executable, 90) or "")


def test_what_the_compiler_says_is_said(box: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = box.scratch / "wrong-cc"
    wrong.write_text("#!/bin/sh\necho 'no such target' >&2\nexit 1\n")
    wrong.chmod(0o755)
    monkeypatch.setenv("CC", str(wrong))
    assert "no such target" in (absent_gpu.put_up(box, sys.executable, 90) or "")


def test_each_process_has_the_runtime_and_what_starts_it(box: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    monkeypatch.setattr(absent_gpu, "_TRIED", "%d")
    assert absent_gpu.put_up(box, sys.executable, 86) is None
    assert said(box, "import os; print(os.environ['PYTHONPATH'])") == f"{FOLLOW_DIRECTORY}{os.pathsep}/somewhere"
    assert said(box, f"import os; print(os.environ['{CUDA_ARCH}'])") == "86"
    counted = said(
        box,
        "import ctypes\nruntime = ctypes.CDLL('libcuda.so.1')\nnumber = ctypes.c_int(7)\n"
        "assert runtime.cudaGetDeviceCount(ctypes.byref(number)) == 0\n"
        "held = ctypes.create_string_buffer(1024)\nassert runtime.cudaGetDeviceProperties(held, 0) == 0\n"
        "print(number.value, *(int.from_bytes(held.raw[place : place + 4], 'little') for place in (308, 360, 364)))",
    )
    assert counted == "1 32 8 6"
