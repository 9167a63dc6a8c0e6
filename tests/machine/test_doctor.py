"""What this machine can do."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from bot.machine import doctor, gpu, interpreter
from bot.sandbox.aside import ask


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """An interpreter that answers as told, on a path that holds the programs told."""

    def make(answer: str, *programs: str, status: int = 0) -> str:
        for name in ("python", *programs):
            path = tmp_path / "bin" / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"#!/bin/sh\n/bin/cat <<'END'\n{answer}\nEND\nexit {status}\n")
            path.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path / "bin"))
        monkeypatch.delenv("CXX", raising=False)
        return str(tmp_path / "bin" / "python")

    return make


GOOD = {"python": "3.11.7", "torch": "2.13.0+cu130", "cuda": "13.0", "gpus": ["H200", "H200"], "triton": "3.5", "headers": True}


def lines(python: str) -> dict[str, tuple[str, bool]]:
    return {line.what: (line.found, line.good) for line in doctor.examine(python, interpreter.LIMIT, ask)}


def confined(_: str) -> tuple[bool, str]:
    return False, "no kernel for it"


def loads(_: str, device: str) -> tuple[bool, str]:
    return True, f"one package for {device} in 9.9 s"


def never(_: str, device: str = "") -> tuple[bool, str]:
    raise AssertionError("nobody waits for what cannot work")


def test_a_machine_that_has_everything(machine: Any, capsys: Any) -> None:
    python = machine(json.dumps(GOOD), "clang++")
    assert lines(python) == {
        "python": ("3.11.7", True),
        "torch": ("2.13.0+cu130", True),
        "C++ compiler": ("clang++", True),
        "Python headers": ("found", True),
        "GPU": ("H200, H200", True),
        "triton": ("3.5", True),
    }
    assert doctor.main(python, ask, lambda _, device: (True, f"one function for {device} in 1.2 s"), confined, loads) == 0
    said = capsys.readouterr().out
    assert "MISS" not in said
    assert "-    sandbox: no kernel for it" in said
    assert said.endswith(
        "ok   compile: one function for cpu in 1.2 s\nok   compile on the GPU: one function for cuda in 1.2 s\n"
        "ok   AOTInductor package on the GPU: one package for cuda in 9.9 s\n"
    )


def test_a_gpu_that_a_program_cannot_use(machine: Any, capsys: Any) -> None:
    # as the first sandbox kept it from CUDA's driver
    python = machine(json.dumps(GOOD), "clang++")
    assert doctor.main(python, ask, lambda _, device: (device == "cpu", "RuntimeError: Error 304"), confined, loads) == 1
    assert capsys.readouterr().out.endswith("MISS compile on the GPU: RuntimeError: Error 304\n")


def test_a_gpu_on_which_no_package_loads_is_good_for_all_else(machine: Any, capsys: Any) -> None:
    # as on each GPU that was at hand
    python = machine(json.dumps(GOOD), "clang++")
    assert doctor.main(python, ask, lambda _, device: (True, device), confined, lambda *_: (False, "SIGSEGV")) == 0
    assert capsys.readouterr().out.endswith("-    AOTInductor package on the GPU: SIGSEGV\n")


def test_a_machine_without_a_gpu_compiles_for_the_cpu_alone(machine: Any, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "gpu_files", list)
    python = machine(json.dumps({**GOOD, "gpus": []}), "clang++")
    assert doctor.main(python, ask, lambda _, device: (True, device), confined, loads) == 0
    said = capsys.readouterr().out
    assert said.endswith("ok   compile: cpu\n")
    assert "-    GPU: no GPU is visible: there is no /dev/nvidia*; " in said


def test_a_machine_whose_worker_does_not_compile(machine: Any, capsys: Any) -> None:
    python = machine(json.dumps(GOOD), "clang++")
    assert doctor.main(python, ask, lambda *_: (False, "no worker: TypeError"), confined, loads) == 1
    assert "MISS compile: no worker: TypeError\n" in capsys.readouterr().out


def test_a_machine_that_has_nothing(machine: Any, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "gpu_files", list)
    python = machine(
        json.dumps({"python": "3.11.7", "error": "ModuleNotFoundError: No module named 'torch'", "headers": False, "gpus": []})
    )
    found = lines(python)
    assert found["torch"] == ("ModuleNotFoundError: No module named 'torch'", False)
    assert found["GPU"][0].startswith("no GPU is visible: there is no /dev/nvidia*; ")
    assert not found["GPU"][1]
    assert not found["C++ compiler"][1]
    assert doctor.main(python, ask, never, confined, never) == 1
    said = capsys.readouterr().out
    assert "compile:" not in said, "nobody waits for what cannot work"
    assert "MISS torch" in said
    assert "-    GPU" in said, "not needed"


@pytest.mark.parametrize(
    ("version", "good"),
    [("2.9.0", True), ("2.10.1", True), ("3.0", True), ("2.13.0a0+git1", True), ("2.8.1", False), ("1.13", False), ("x", False)],
)
def test_versions_of_torch(machine: Any, version: str, good: bool) -> None:
    assert lines(machine(json.dumps({**GOOD, "torch": version})))["torch"] == (version, good)


@pytest.mark.parametrize(("answer", "status"), [("no json", 0), ("", 3)])
def test_an_interpreter_that_does_not_work(machine: Any, answer: str, status: int) -> None:
    python = machine(answer, status=status)
    assert lines(python)["python"] == (f"{python} does not run", False)


def test_no_interpreter(tmp_path: Path) -> None:
    assert doctor.main(str(tmp_path / "none"), ask, never, confined, never) == 1


def test_this_one() -> None:
    pytest.importorskip("torch")
    found = lines(sys.executable)
    assert found["python"] == (sys.version.split()[0], True)
    assert found["torch"][1]
