"""A capture's kernels come from torch's pool, and their errors from the process itself."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch._inductor import async_compile, config  # noqa: E402

from bot.inside.capture import kernel_pool  # noqa: E402
from bot.inside.protocol import CUDA_ARCH  # noqa: E402

Begun = Callable[..., list[int]]


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> Iterator[Begun]:
    """Begin a pool whose kernels are those that `pooled` gives, of a torch whose own process raises; how many processes each kernel that
    was asked for had."""

    def begin(pooled: Callable[[], Any], processors: int = 16) -> list[int]:
        asked: list[int] = []
        kept: dict[str, Any] = {}

        def triton(self: Any, kernel_name: str, source_code: str, device_str: str = "cuda") -> Any:
            asked.append(config.compile_threads)
            if config.compile_threads > 1:
                return kept.setdefault(source_code, async_compile.LambdaFuture(pooled))
            raise ValueError(f"{kernel_name}: in its own words")

        monkeypatch.setattr(async_compile.AsyncCompile, "triton", triton)
        monkeypatch.setattr(async_compile.AsyncCompile, "use_process_pool", classmethod(lambda cls: True))
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(processors)))
        kernel_pool.begin.cache_clear()
        kernel_pool.begin()
        return asked

    with config.patch(compile_threads=1):
        yield begin
    kernel_pool.begin.cache_clear()


def lost() -> Any:
    raise RuntimeError("what the pool says of it")


def test_a_kernel_comes_from_the_pool(begun: Begun) -> None:
    asked = begun(lambda: "made")
    assert async_compile.AsyncCompile().triton("one", "code").result() == "made"
    assert asked == [16]


def test_what_the_pool_cannot_compile_fails_as_without_it(begun: Begun) -> None:
    asked = begun(lost)
    future = async_compile.AsyncCompile().triton("one", "code")
    with pytest.raises(ValueError, match="one: in its own words") as caught:
        future.result()
    assert "what the pool says" not in "".join(traceback.format_exception(caught.value))
    assert asked == [16, 1]


def test_a_kernel_that_is_asked_for_twice_is_compiled_here_once(begun: Begun) -> None:
    asked = begun(lost)
    compiler = async_compile.AsyncCompile()
    compiler.triton("one", "code")
    with pytest.raises(ValueError, match="own words"):
        compiler.triton("one", "code").result()
    assert asked == [16, 16, 1]


@pytest.mark.parametrize("processors", [2, 4])
def test_whether_there_is_a_pool_is_known(begun: Begun, processors: int) -> None:
    kernel_pool.begin.cache_clear()
    assert not kernel_pool.is_in_use()
    begun(lost, processors)
    assert kernel_pool.is_in_use() == (processors == 4)


def test_few_processors_need_no_pool(begun: Begun) -> None:
    begun(lost, processors=2)
    with pytest.raises(ValueError, match="own words"):
        async_compile.AsyncCompile().triton("one", "code")


def test_only_a_gpu_that_is_there_has_a_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._subclasses import FakeTensorMode

    with FakeTensorMode(allow_non_fake_inputs=True):
        there = torch.empty_strided((1,), (1,), device="cuda")
    assert kernel_pool.is_of_use([3, there])
    assert not kernel_pool.is_of_use([3, torch.ones(1)])
    monkeypatch.setenv(CUDA_ARCH, "90")
    assert not kernel_pool.is_of_use([there])
