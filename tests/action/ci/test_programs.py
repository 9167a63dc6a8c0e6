"""The commands by which programs were started."""

from __future__ import annotations

import pytest

from bot.action.ci.failing_test import NO_HINT
from bot.action.ci.programs import Started


def command(*lines: str, path: str = "/w/bench/run.py") -> str:
    started = Started()
    for line in lines:
        started.see(line)
    hint = started.find(path)
    return " ".join([*hint.variables, hint.program])


@pytest.mark.parametrize(
    ("line", "program"),
    [
        ("+ python bench/run.py --compile", "python bench/run.py --compile"),
        ("++ python3.12 -u run.py", "python3.12 -u run.py"),
        ("$ NGPU=2 torchrun --nproc_per_node=2 run.py", "NGPU=2 torchrun --nproc_per_node=2 run.py"),
        ("##[group]Run accelerate launch --num_processes 2 run.py", "accelerate launch --num_processes 2 run.py"),
        ("+ uv run --frozen python run.py", "python run.py"),
        ("+ conda run -n env --no-capture-output python run.py", "python run.py"),
        ("+ NGPU=2 timeout -k 5 600s python run.py", "NGPU=2 python run.py"),
        ("+ env OMP_NUM_THREADS=1 LD_PRELOAD=x.so python run.py", "OMP_NUM_THREADS=1 python run.py"),
        ("+ /opt/venv/bin/python bench/run.py", "python bench/run.py"),
        ("+ python -m bench.run --compile", "python -m bench.run --compile"),
        ("+ python run.py --ids '{\"a\": [1, 2]}'", "python run.py --ids '{\"a\": [1, 2]}'"),
        ('+ python run.py --name "a b"', 'python run.py --name "a b"'),
        # not these
        ("python run.py", ""),
        ("+ python run.py | tee log", ""),
        ("+ python run.py $(id)", ""),
        ("+ python run.py \"it's $(id) isn't\"", ""),
        ("+ python run.py \\'$(id)\\'", ""),
        ("+ python run.py 'torn", ""),
        ("+ python run.py  # twice", ""),
        ("+ bash run.sh run.py", ""),
        ("+ python other.py", ""),
    ],
)
def test_one_line(line: str, program: str) -> None:
    assert command(line) == program


def test_the_lines_of_a_step() -> None:
    step = (
        "##[group]Run cd bench",
        "cd bench",
        "NGPU=2 python run.py --compile",
        "shell: /usr/bin/bash -e {0}",
        "python run.py --late",
        "##[endgroup]",
    )
    assert command(*step) == "NGPU=2 python run.py --compile"


def test_a_package_is_run_by_its_main_file() -> None:
    assert command("+ python -m bench.tool", path="/w/bench/tool/__main__.py") == "python -m bench.tool"
    assert command("+ python -m bench.tool", path="C:\\w\\bench\\tool\\__main__.py") == "python -m bench.tool"


def test_nothing_was_started() -> None:
    assert Started().find("run.py") == NO_HINT
