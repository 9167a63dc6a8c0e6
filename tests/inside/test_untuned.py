"""Kernels in one configuration."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

pytest.importorskip("torch")

from bot.inside.untuned import untuned

KINDS = importlib.import_module("torch._inductor.runtime.hints").HeuristicType
HEURISTICS: Any = importlib.import_module("torch._inductor.runtime.triton_heuristics")


@pytest.mark.parametrize(
    ("kind", "tried"), [("POINTWISE", 1), ("REDUCTION", 1), ("PERSISTENT_REDUCTION", 1), ("USER_AUTOTUNE", 3), ("TEMPLATE", 3)]
)
def test_a_kernel_of_the_compiler_is_compiled_once(kind: str, tried: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def cached_autotune(size_hints: Any, configs: Any, triton_meta: Any, heuristic_type: Any, filename: Any = None) -> Any:
        return configs, heuristic_type, filename

    monkeypatch.setattr(HEURISTICS, "cached_autotune", cached_autotune)
    configs = ["first", "second", "third"]
    with untuned():
        kept = HEURISTICS.cached_autotune([8], configs, {}, KINDS[kind], filename="a file")
    assert kept == (configs[:tried], KINDS[kind], "a file")
    assert HEURISTICS.cached_autotune is cached_autotune


def test_a_torch_with_other_parameters_compiles_as_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    def cached_autotune(kernel: Any) -> Any:
        return kernel

    monkeypatch.setattr(HEURISTICS, "cached_autotune", cached_autotune)
    with untuned():
        assert HEURISTICS.cached_autotune is cached_autotune
