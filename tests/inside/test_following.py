"""A failure in a process that the program starts: it is followed there, whatever starts it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bot.engine.capture.region import Capture
from bot.engine.capture.run import Tolerance, Watch, capture
from bot.engine.evidence import verify
from bot.engine.target import Launch, Target
from bot.workers.process import Patience

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

STEP = """
import torch



def step(number):
    import torch._inductor.config
    torch._inductor.config.cpp.inject_relu_bug_TESTING_ONLY = "compile_error"
    return torch.compile(torch.relu)(torch.arange(4.0)).sum().item()
"""
PROGRAMS = {
    "spawn": """
import multiprocessing
if __name__ == "__main__":
    child = multiprocessing.get_context("spawn").Process(target=step, args=(1,))
    child.start()
    child.join()
    if child.exitcode:
        raise RuntimeError("Engine core initialization failed. See root cause above.")
""",
    "fork": """
import multiprocessing
if __name__ == "__main__":
    child = multiprocessing.get_context("fork").Process(target=step, args=(1,))
    child.start()
    child.join()
    assert child.exitcode == 0, "Engine core initialization failed"
""",
    "torch": """
import torch.multiprocessing as mp
if __name__ == "__main__":
    mp.spawn(step, nprocs=2)
""",
    "executor": """
import concurrent.futures, multiprocessing
if __name__ == "__main__":
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        pool.submit(step, 1).result()
""",
    "loader": """
class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, index):
        return step(index)

if __name__ == "__main__":
    for batch in torch.utils.data.DataLoader(Data(), num_workers=1):
        print(batch)
""",
    "subprocess": """
import subprocess, sys
if __name__ == "__main__":
    if len(sys.argv) > 1:
        step(1)
    else:
        subprocess.run([sys.executable, __file__, "child"], check=True)
""",
}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def captured(tmp_path: Path, program: str, cache: Path, *, compare: bool = False, most: float = 240.0) -> Capture:
    script = tmp_path / "fail.py"
    script.write_text(program, encoding="utf-8")
    watch = Watch(tmp_path / "out", cache, Tolerance((1e-3, 1e-3), strict=True) if compare else None)
    return capture(Target(script, None, ()), sys.executable, tmp_path, watch, Patience(most))


# these three are the ways in which a process begins; the others differ in who begins it
@pytest.mark.parametrize(
    "how", [pytest.param(how, marks=[] if how in ("torch", "spawn", "fork") else [pytest.mark.all]) for how in PROGRAMS]
)
def test_the_failure_is_the_child_s_and_its_graph_is_captured(tmp_path: Path, how: str, cache: Path) -> None:
    found = captured(tmp_path, STEP + PROGRAMS[how], cache)
    log = found.log.read_text()
    assert found.signature is not None
    assert "CppCompileError" in found.signature.exception, log[:3000]
    assert "Engine" not in found.signature.message
    assert found.child
    assert "aot" in {region.hook for region in found.regions if region.graph is not None}


COMPARES = """
import torch
import torch._inductor.config
torch._inductor.config.cpp.inject_relu_bug_TESTING_ONLY = "accuracy"

def step(number):
    x = torch.arange(4.0)
    torch.testing.assert_close(torch.compile(torch.relu)(x), torch.relu(x), rtol=1e-3, atol=1e-3)
"""


@pytest.mark.parametrize("how", [pytest.param(how, marks=[] if how == "spawn" else [pytest.mark.all]) for how in PROGRAMS])
def test_numbers_that_a_child_finds_wrong_are_the_failure(tmp_path: Path, how: str, cache: Path) -> None:
    """The compiler raised nothing there: the child ends in a comparison of the program's own."""
    found = captured(tmp_path, COMPARES + PROGRAMS[how], cache, compare=True)
    assert found.signature is not None
    assert (found.signature.kind.value, found.signature.exception) == ("accuracy", ("AssertionError",)), found.log.read_text()[:3000]
    assert found.tolerance == (1e-3, 1e-3)
    assert {region.failed for region in found.regions if region.hook == "aot"} == {"accuracy"}


CRASH = """
import ctypes
import torch

def step(number):
    from torch._inductor import lowering
    lowering.lowerings[torch.ops.aten.tanh.default] = lambda x: ctypes.string_at(0)
    return torch.compile(torch.tanh)(torch.arange(4.0)).sum().item()
"""


# A process that is forked after the function was decorated; the program waits for ever for what it was to give.
POOL = """
import multiprocessing

@torch.compile
def other(x):
    return torch.tanh(x)

def step(number):
    from torch._inductor import lowering
    lowering.lowerings[torch.ops.aten.tanh.default] = lambda x: ctypes.string_at(0)
    return other(torch.arange(4.0)).sum().item()

if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(1) as pool:
        print(pool.map(step, [1]))
"""


def test_a_process_of_a_pool_that_dies_is_the_crash_and_no_hang(tmp_path: Path, cache: Path) -> None:
    found = captured(tmp_path, CRASH + POOL, cache, most=60.0)
    assert found.signature is not None, found.log.read_text()[:3000]
    assert (found.signature.kind.value, found.signature.signal, found.signature.phase.value) == ("crash", "SIGSEGV", "inductor_lowering")
    assert found.call == "step(1)"


QUEUE = """
import multiprocessing
def work(queue):
    queue.put(step(1))
if __name__ == "__main__":
    queue = multiprocessing.get_context("spawn").Queue()
    multiprocessing.get_context("spawn").Process(target=work, args=(queue,)).start()
    print(queue.get())
"""


@pytest.mark.all
def test_a_program_that_waits_for_a_child_that_raised_does_not_hang(tmp_path: Path, cache: Path) -> None:
    found = captured(tmp_path, STEP + QUEUE, cache, most=60.0)
    assert found.signature is not None, found.log.read_text()[:3000]
    assert (found.signature.kind.value, found.signature.phase.value, found.call) == ("exception", "cpp_compile", "step(1)")
    assert found.outcome.seconds < 60


@pytest.mark.parametrize("how", ["spawn", pytest.param("executor", marks=pytest.mark.all)])
def test_a_child_that_dies_in_the_compiler_is_the_crash_whatever_the_program_says_of_it(tmp_path: Path, how: str, cache: Path) -> None:
    found = captured(tmp_path, CRASH + PROGRAMS[how], cache)
    assert found.signature is not None, found.log.read_text()[:3000]
    assert (found.signature.kind.value, found.signature.signal, found.signature.phase.value) == ("crash", "SIGSEGV", "inductor_lowering")
    assert found.child
    assert found.call == "step(1)"


def test_an_error_that_a_child_deals_with_is_no_failure_of_the_program(tmp_path: Path, cache: Path) -> None:
    ending = """
import multiprocessing, contextlib
def quiet():
    with contextlib.suppress(Exception):
        step(1)
if __name__ == "__main__":
    child = multiprocessing.get_context("spawn").Process(target=quiet)
    child.start()
    child.join()
    raise KeyError("of the program itself")
"""
    found = captured(tmp_path, STEP + ending, cache)
    assert found.signature is not None
    assert found.signature.exception == ("KeyError",)
    assert (found.child, found.regions) == ("", ())
    assert found.children


def test_the_control_takes_the_compiler_out_of_children_as_well(tmp_path: Path) -> None:
    script = tmp_path / "fail.py"
    script.write_text(STEP + PROGRAMS["spawn"], encoding="utf-8")
    control = verify.run_control_fresh(Launch(sys.executable, tmp_path, os.environ, ()), script, timeout=240.0)
    assert (control.status, control.calls) == ("ok", 2), control.text


def test_a_sitecustomize_of_the_site_is_still_run(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('of the site')\n")
    follow = Path(__file__).resolve().parents[2] / "bot" / "inside" / "follow"
    code = "import sys; print([p for p in sys.path if p.endswith('follow')], 'torch' in sys.modules)"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(follow), str(tmp_path)]), "TORCH_MINIFY_FOLLOW": "capture:nowhere"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True)
    assert done.stdout == "of the site\n[] False\n"
    assert done.stderr == ""
