"""What the warm parent loads."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

torch = pytest.importorskip("torch")

from bot.inside import warm  # noqa: E402
from bot.inside.protocol import CUDA_ARCH, Question  # noqa: E402
from bot.workers.pool import Pool  # noqa: E402


@pytest.mark.parametrize("name", [*warm.MODULES, *warm.GENERATORS])
def test_every_module_is_in_this_torch(name: str) -> None:
    """A name that upstream has moved away costs each child its import again."""
    assert importlib.util.find_spec(name) is not None


def test_versions() -> None:
    found = warm.versions(torch)
    assert found["torch"] == str(torch.__version__)
    assert all(isinstance(value, str) for value in found.values())
    assert ("cuda" in found) is bool(torch.version.cuda)


WATCHED = """
import torch
from torch.utils._python_dispatch import TorchDispatchMode

calls = []

class Watch(TorchDispatchMode):
    supports_higher_order_operators = True

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        tensors = [leaf for leaf in torch.utils._pytree.tree_leaves(made) if isinstance(leaf, torch.Tensor)]
        if any(type(leaf).__name__ != "FakeTensor" and leaf.device.type != "meta" for leaf in tensors):
            calls.append(str(func))
        return made

def started(*_):
    calls.append("a device's runtime")

torch.cuda._lazy_init = started
from bot.inside import warm
with Watch():
    warm.warm_up()
    seen = list(calls)
    torch.ones(2) + 1
assert not seen, seen
assert calls, "nothing is seen at all"
from torch._dynamo import utils
# compile_file: a probe of vector instructions that some CPUs are asked for whatever the environment says; a process, no kernel
# torch_key: the hash of torch's own files, which the keys of graphs hold
compiled = set(utils.compilation_time_metrics) - {"compile_file", "inductor_codecache_torch_key"}
assert not compiled and not any(utils.counters.values()), f"something was compiled: {compiled}"
assert not torch.cuda.is_initialized()
"""


def test_the_parent_runs_nothing(tmp_path: Path) -> None:
    """No kernel (so no backward either), no compile, no device: a child inherits the threads of none of these."""
    root = Path(warm.__file__).parents[2]
    # as the pool starts it: in a new compile directory, and without Inductor's probes of vector instructions, which are compiled
    env = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path), "TORCHINDUCTOR_VEC_ISA_OK": "1"}
    ran = subprocess.run([sys.executable, "-c", WATCHED], cwd=root, env=env, capture_output=True, text=True, check=False, timeout=200)
    assert ran.returncode == 0, ran.stderr


@pytest.fixture
def triton_driver(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A file into which what stands for Triton's module of the driver says which process made it."""
    driver, made = ModuleType("triton.backends.nvidia.driver"), tmp_path / "made"
    monkeypatch.setattr(driver, "CudaUtils", lambda: made.write_text(str(os.getpid())), raising=False)
    monkeypatch.setitem(sys.modules, driver.__name__, driver)
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.delenv(CUDA_ARCH, raising=False)
    return made


def test_the_driver_of_a_gpu_is_built_by_another_process(triton_driver: Path) -> None:
    """Which is gone afterwards."""
    warm.build_gpu_driver()
    pid = int(triton_driver.read_text())
    assert pid != os.getpid()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_driver_that_cannot_be_built_is_left_to_the_children(triton_driver: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def raising() -> None:
        triton_driver.touch()
        raise AssertionError("libcuda.so cannot be found")

    monkeypatch.setattr(sys.modules["triton.backends.nvidia.driver"], "CudaUtils", raising)
    warm.build_gpu_driver()
    assert triton_driver.exists()


def test_no_driver_is_built_for_a_gpu_that_is_not_there(triton_driver: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CUDA_ARCH, "90")
    warm.build_gpu_driver()
    monkeypatch.delenv(CUDA_ARCH)
    monkeypatch.setattr(torch.version, "cuda", None)
    warm.build_gpu_driver()
    assert not triton_driver.exists()


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="there is no triton here")
def test_triton_has_its_driver_where_it_is_looked_for() -> None:
    driver = importlib.import_module("triton.backends.nvidia.driver")
    assert list(inspect.signature(driver.CudaUtils).parameters) == []


@pytest.mark.slow
def test_a_first_compile_imports_next_to_nothing(pool: Pool) -> None:
    """What a child imports, every child imports."""
    body = """
import sys, torch
before = set(sys.modules)
torch.compile(lambda x: torch.relu(x) + 1)(torch.ones(8))
print(sorted(name for name in set(sys.modules) - before if name.startswith("torch.")))
print("NEW", sum(name.startswith("torch.") for name in set(sys.modules) - before))
"""
    outcome, facts = pool.ask(Question(body, limit=100.0))
    assert outcome.status == "ok", outcome.text
    assert int(facts["printed"].rsplit("NEW", 1)[1]) <= 3, facts["printed"]


@pytest.mark.slow
def test_a_table_that_a_program_changes_before_its_first_compile_is_as_it_left_it(pool: Pool) -> None:
    body = """
import torch
from torch._inductor.decomposition import decompositions

decompositions[torch.ops.aten._softmax.default] = lambda x, dim, half_to_float: x * 0 + 7
print("GOT", torch.compile(lambda x: x.softmax(-1))(torch.ones(2)).tolist())
"""
    outcome, facts = pool.ask(Question(body, limit=100.0))
    assert outcome.status == "ok", outcome.text
    assert facts["printed"].endswith("GOT [7.0, 7.0]\n"), facts["printed"]


def test_what_is_made_for_the_gpu_keeps_no_table_that_a_program_may_change(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._inductor import decomposition
    from torch._inductor.fx_passes import joint_graph, post_grad

    # tracing the patterns asks for the table; without a GPU it is asked here
    monkeypatch.setattr(joint_graph, "lazy_init", lambda device: decomposition.select_decomp_table())
    monkeypatch.setattr(post_grad, "lazy_init", lambda: None)
    warm.initialize_for_gpu()
    own = object()
    monkeypatch.setitem(decomposition.decompositions, torch.ops.aten.softplus.default, own)
    try:
        assert decomposition.select_decomp_table()[torch.ops.aten.softplus.default] is own
    finally:
        decomposition.fast_random_decomps.cache_clear()
