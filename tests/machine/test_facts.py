from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from bot.machine.facts import of_machine

# As `nvidia-smi --query-gpu=name,driver_version --format=csv,noheader` prints it (its manual, and a machine with two of them).
TWO = "NVIDIA H200, 570.86.15\nNVIDIA H200, 570.86.15\n"


def answers(gpus: str) -> dict[str, str]:
    def ask(command: Sequence[str], _: float) -> subprocess.CompletedProcess[str]:
        said = gpus if command[0] == "nvidia-smi" else "g++ (Debian 12.2.0-14) 12.2.0\nCopyright\n"
        return subprocess.CompletedProcess(command, 0, said)

    return of_machine(ask, [Path("/dev/nvidia0")])


def test_the_system_its_processor_and_its_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "sh")
    found = answers(TWO)
    assert found["compiler"] == "g++ (Debian 12.2.0-14) 12.2.0"
    assert found["os"]
    assert "core" in found["cpu"]


def test_gpus_that_are_alike_are_counted() -> None:
    assert answers(TWO)["gpu"] == "2 × NVIDIA H200"
    assert answers(TWO)["driver"] == "570.86.15"
    assert answers("NVIDIA A100, 1.2\nTesla T4, 1.2\n")["gpu"] == "NVIDIA A100, Tesla T4"


@pytest.mark.parametrize("said", ["", "NVIDIA-SMI has failed\n", "\n", ",,,\n"])
def test_what_is_not_known_is_not_said(said: str) -> None:
    assert "gpu" not in answers(said)
    assert "driver" not in answers(said)


def test_without_a_device_no_driver_is_asked() -> None:
    def ask(command: Sequence[str], _: float) -> subprocess.CompletedProcess[str]:
        assert command[0] != "nvidia-smi"
        return subprocess.CompletedProcess(command, 0, "")

    assert "gpu" not in of_machine(ask, [])


def test_a_command_gets_no_more_time_than_there_is() -> None:
    limits: list[float] = []

    def ask(command: Sequence[str], limit: float) -> subprocess.CompletedProcess[str]:
        limits.append(limit)
        raise subprocess.TimeoutExpired(command, limit)

    for most in (0.8, 1000.0):
        assert "compiler" not in of_machine(ask, [Path("/dev/nvidia0")], most=most)
    assert limits == [0.8, 0.8, 30.0, 30.0]


def test_facts_are_short() -> None:
    assert all(len(value) <= 120 for value in answers("x" * 500 + ", 1\n").values())


def test_a_command_that_fails_says_nothing() -> None:
    def fails(command: Sequence[str], _: float) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, 1, "a word of its own\n")

    def is_not_there(command: Sequence[str], _: float) -> subprocess.CompletedProcess[str]:
        raise FileNotFoundError(command[0])

    for ask in (fails, is_not_there):
        assert not {"gpu", "compiler"} & of_machine(ask, [Path("/dev/nvidia0")]).keys()
