"""Which environment variables are settings of the compiler."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bot.inside.variables import is_setting, settings_of, without_settings
from bot.workers import environment


@pytest.mark.parametrize(
    "name",
    [
        "TORCHINDUCTOR_CPP_WRAPPER",
        "TORCHINDUCTOR_FREEZING",
        "TORCHINDUCTOR_MAX_AUTOTUNE",
        "TORCHINDUCTOR_CACHE_SDPA_CONSTRAINT",
        "TORCHINDUCTOR_CPP_GEMM_CACHE_BLOCKING",
        "TORCHDYNAMO_CAPTURE_SCALAR_OUTPUTS",
        "TORCH_DYNAMO_AUTOMATIC_DYNAMIC_SHAPES",
        "AOT_INDUCTOR_COMPILE_WRAPPER_OPT_LEVEL",
    ],
)
def test_of_the_program(name: str) -> None:
    assert is_setting(name)


@pytest.mark.parametrize(
    "name",
    [
        "TORCHINDUCTOR_CACHE_DIR",
        "TORCHINDUCTOR_FX_GRAPH_CACHE",
        "TORCHINDUCTOR_FX_GRAPH_CACHE_DEFAULT",
        "TORCHINDUCTOR_AUTOGRAD_REMOTE_CACHE",
        "TORCHINDUCTOR_FORCE_DISABLE_CACHES",
        "TORCHINDUCTOR_NON_BLOCKING_REMOTE_CACHE_WRITE",
        "TORCHINDUCTOR_COMPILE_THREADS",
        "TORCHINDUCTOR_WORKER_START",
        "TORCHINDUCTOR_VEC_ISA_OK",
        "TORCHINDUCTOR_PROFILE",
        "TORCHINDUCTOR_AUTOHEURISTIC_LOG_PATH",
        "TORCHDYNAMO_REPRO_AFTER",
        "TORCHDYNAMO_VERBOSE",
        "TORCHDYNAMO_EXTENDED_DEBUG_CPP",
        "TORCH_COMPILE_DEBUG",
        "TORCH_COMPILE_DEBUG_DIR",
        "TORCH_LOGS",
        "OMP_NUM_THREADS",
        "MY_TORCHINDUCTOR_FREEZING",
    ],
)
def test_of_the_machine_or_of_a_run(name: str) -> None:
    assert not is_setting(name)


def test_settings_are_taken_out() -> None:
    environ = {"TORCHINDUCTOR_FREEZING": "1", "HOME": "/", "TORCHINDUCTOR_CACHE_DIR": "/c"}
    assert settings_of(environ) == {"TORCHINDUCTOR_FREEZING": "1"}
    assert without_settings(environ) == {"HOME": "/", "TORCHINDUCTOR_CACHE_DIR": "/c"}


def test_what_compiling_processes_are_given_is_no_setting(tmp_path: Path) -> None:
    """Or workers would not get it."""
    given = {name: value for name, value in environment.of_workers(tmp_path).items() if os.environ.get(name) != value}
    assert settings_of(given) == {}
