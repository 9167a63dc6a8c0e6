"""What people hold instead of a script: torch makes each form of one failure here, and all of them end in the same repro."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.e2e.e2e_harness import REPRO_LIMIT, Answer, compiling_into, environment, kill_group, minify, run

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1500)]

LOWERING = """\
import torch


def f(x):
    y = torch.cos(x)
    z = torch.ops.aten.avg_pool2d_backward(y, y, [1], [1], [0], False, True, None)
    return torch.relu(z) + 1


torch.manual_seed(0)
with torch.no_grad():
    print(torch.compile(f)(torch.randn(2, 3, 8, 8)))
"""
PLANTED = """\
import torch
import torch._inductor.config

torch._inductor.config.cpp.inject_relu_bug_TESTING_ONLY = "{}"


def f(x, y):
    return torch.relu(torch.cos(x) + y).sum(dim=0) * 2


torch.manual_seed(0)
with torch.no_grad():
    print(torch.compile(f)(torch.randn(4, 8), torch.randn(8)))
"""
# So many threads that what is kept of each takes more than the whole stack.
CRASH = """\
import torch
import torch._inductor.config

torch._inductor.config.cpp.threads = 10**9
torch._inductor.config.cpp.min_chunk_size = 0


def f(x, y):
    return torch.exp(torch.cos(x) + y).sum() * 2


torch.manual_seed(0)
with torch.no_grad():
    print(torch.compile(f)(torch.randn(4, 8), torch.randn(8)))
"""
SCRIPTS = {"lowering": LOWERING, "cpp": PLANTED.format("compile_error"), "numbers": PLANTED.format("accuracy"), "crash": CRASH}
# What the same module is as a program of its own.
EXPORTED = (
    LOWERING.replace("def f(x):", "class Net(torch.nn.Module):\n    def forward(self, x):").split("torch.manual_seed")[0]
    + """

torch.manual_seed(0)
torch.export.save(torch.export.export(Net(), (torch.randn(2, 3, 8, 8),)), "program.pt2")
"""
).replace("\n    y = ", "\n        y = ").replace("\n    z = ", "\n        z = ").replace("\n    return", "\n        return")  # fmt: skip


# The same module in a package, beside code that was compiled elsewhere: of another module, since that of this one is not to be had.
PACKAGED = EXPORTED.replace("torch.export.save(", "program = (").replace(
    ', "program.pt2")',
    """)
from torch.export.pt2_archive._package import package_pt2

with torch.no_grad():
    other = torch.export.export(torch.nn.ReLU(), (torch.randn(2, 3, 8, 8),))
    files = torch._inductor.aot_compile(other.module(), other.example_inputs[0], options={"aot_inductor.package": True})
package_pt2("package.pt2", exported_programs={"model": program}, aoti_files={"model": files})
""",
)


def ran(tmp: Path, script: str, env: Mapping[str, str] | None = None) -> Path:
    """The directory in which a script was run once."""
    place = tmp / "held"
    place.mkdir(exist_ok=True)
    (place / "fail.py").write_text(script, encoding="utf-8")
    env = environment({**compiling_into(tmp / "cache"), **(env or {})}, ours=False)
    run([sys.executable, "fail.py"], cwd=place, env=env, limit=REPRO_LIMIT)
    return place


def trace(tmp: Path, script: str) -> Path:
    (log,) = (ran(tmp, script, {"TORCH_TRACE": str(tmp / "trace")}).parent / "trace").glob("*.log")
    return log


def archive(tmp: Path, script: str) -> Path:
    log = trace(tmp, script)
    with tarfile.open(tmp / "trace.tar.gz", "w:gz") as out:
        out.add(log, "logs/" + log.name)
    return tmp / "trace.tar.gz"


def runnable(tmp: Path, script: str) -> Path:
    (found,) = ran(tmp, script, {"TORCH_COMPILE_DEBUG": "1"}).rglob("fx_graph_runnable.py")
    return found


def debug_directory(tmp: Path, script: str) -> Path:
    return ran(tmp, script, {"TORCH_COMPILE_DEBUG": "1"}) / "torch_compile_debug"


def launcher(tmp: Path, script: str, after: str = "aot", level: str = "") -> Path:
    # wrong numbers are looked for at level 4 alone
    level = level or ("4" if script == SCRIPTS["numbers"] else "2")
    place = ran(tmp, script, {"TORCHDYNAMO_REPRO_AFTER": after, "TORCHDYNAMO_REPRO_LEVEL": level})
    found = list(place.rglob("minifier_launcher.py"))
    return found[0] if found else place / "repro.py"


def notebook(tmp: Path, script: str) -> Path:
    definitions, rest = script.split("torch.manual_seed")
    return of_cells(tmp, f"%matplotlib inline\n!pip list\n{definitions}", f"torch.manual_seed{rest}")


def awaiting(tmp: Path, script: str) -> Path:
    definitions, rest = script.split("torch.manual_seed(0)")
    seed = "import asyncio\n\n\nasync def seed():\n    await asyncio.sleep(0)\n    return 0"
    return of_cells(tmp, definitions, seed, f"torch.manual_seed(await seed()){rest}")


def of_cells(tmp: Path, *cells: str) -> Path:
    listed = [{"cell_type": "code", "source": cell, "outputs": [], "metadata": {}, "execution_count": None} for cell in cells]
    held = {"cells": listed, "metadata": {"kernelspec": {"name": "python3", "language": "python"}}, "nbformat": 4, "nbformat_minor": 5}
    path = tmp / "fail.ipynb"
    path.write_text(json.dumps(held), encoding="utf-8")
    return path


def itself(tmp: Path, script: str) -> Path:
    path = tmp / "fail.py"
    path.write_text(script, encoding="utf-8")
    return path


def exported(tmp: Path, _: str) -> Path:
    return ran(tmp, EXPORTED) / "program.pt2"


def package(tmp: Path, _: str) -> Path:
    return ran(tmp, PACKAGED) / "package.pt2"


MADE = {
    "trace": (trace, "trace"),
    "archive": (archive, "trace"),
    "runnable": (runnable, "runnable"),
    "debug_directory": (debug_directory, "debug_dir"),
    "launcher": (launcher, "launcher"),
    "notebook": (notebook, "notebook"),
    "awaiting": (awaiting, "notebook"),
    "exported": (exported, "exported_program"),
    "package": (package, "package"),
    "script": (itself, "script"),
}
REPROS: dict[str, str] = {}
# The rows that are run in any case; the rest under --all.
ALWAYS = {("lowering", "trace"), ("lowering", "awaiting"), ("lowering", "script")}
ROWS = [
    pytest.param(failure, form, id=f"{failure}-{form}", marks=[] if (failure, form) in ALWAYS else [pytest.mark.all])
    for failure in SCRIPTS
    for form in ("script", *(form for form in MADE if form != "script"))
    # settings of the compiler are not in a program that was exported, and PyTorch's minifier sees no process die
    if (form not in ("exported", "package") or failure == "lowering") and (failure, form) != ("crash", "launcher")
]


def minified(path: Path, tmp: Path, *options: str) -> Answer:
    out = tmp / "minified"
    shutil.rmtree(out, ignore_errors=True)
    return Answer(out, minify(path, "--out", out, "--verify-runs", "1", *options, cwd=tmp))


def code(repro: str) -> str:
    return "".join(line for line in repro.splitlines(keepends=True) if not line.startswith("#"))


@pytest.mark.parametrize(("failure", "form"), ROWS)
def test_the_same_failure_ends_in_the_same_repro_whatever_it_is_given_as(tmp_path: Path, failure: str, form: str) -> None:
    make, taken_as = MADE[form]
    held = make(tmp_path, SCRIPTS[failure])
    answer = minified(held, tmp_path)
    assert answer.process.status == 0, answer.described()
    assert answer.process.err.startswith("torch-minify: took ") is (form != "script")
    assert str(tmp_path) not in answer.repro
    if failure not in REPROS:
        # the tests may be spread over several processes
        if form != "script":
            (tmp_path / "script").mkdir()
            script = minified(itself(tmp_path / "script", SCRIPTS[failure]), tmp_path / "script")
            assert script.process.status == 0, script.described()
            REPROS[failure] = code(script.repro)
        else:
            REPROS[failure] = code(answer.repro)
    assert code(answer.repro) == REPROS[failure]
    assert answer.result["input"]["taken_as"] == taken_as


# Its constants are folded, and what they were computed with stays in the graph, unused. Each difference doubles the work there.
HANG = """\
import torch


@torch.compile
def f(x):
    return torch.tanh(torch.diff(torch.full((3600,), 0.5), n=32)) + x.cos()


torch.manual_seed(0)
with torch.no_grad():
    print(f(torch.ones(1)).shape)
"""


def hanging_trace(tmp: Path, script: str) -> Path:
    # a record is there once the next one is begun
    return ended_at(tmp, script, "TORCH_TRACE", str(tmp / "trace"), "trace/*.log", "fx_graph_runnable")


def hanging_runnable(tmp: Path, script: str) -> Path:
    return ended_at(tmp, script, "TORCH_COMPILE_DEBUG", "1", "**/fx_graph_runnable.py", "run_repro(")


def ended_at(tmp: Path, script: str, name: str, value: str, pattern: str, says: str) -> Path:
    """The file that torch writes before the script hangs, which is then ended."""
    env = environment({**compiling_into(tmp / "cache"), name: value}, ours=False)
    child = subprocess.Popen(
        [sys.executable, itself(tmp, script)], cwd=tmp, env=env, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        end = time.monotonic() + REPRO_LIMIT
        while time.monotonic() < end and child.poll() is None:
            for path in tmp.glob(pattern):
                if says in path.read_text(encoding="utf-8", errors="replace"):
                    time.sleep(2)  # the rest of it
                    return path
            time.sleep(0.5)
    finally:
        kill_group(child)
    raise AssertionError(f"no {pattern} that says {says}; exit status {child.returncode}")


@pytest.mark.all
@pytest.mark.parametrize(
    ("make", "words"),
    [(itself, ("diff",)), (awaiting, ("diff",)), (hanging_trace, ("full", "sub")), (hanging_runnable, ("full", "sub"))],
    ids=["script", "awaiting", "trace", "runnable"],
)
def test_a_hang(tmp_path: Path, make: Callable[[Path, str], Path], words: tuple[str, ...]) -> None:
    """PyTorch's minifier writes none: it waits for an error."""
    answer = minified(make(tmp_path, HANG), tmp_path, "--hang-after", "10s", "--budget", "8m")
    # of the dumped graph most operations are needed, and each that is left out is waited for
    assert answer.process.status in (0, 3), answer.described()
    assert (answer.result["signature"]["kind"], answer.result["verification"]["same"]) == ("hang", 1)
    assert all(word in answer.repro for word in words), answer.repro


@pytest.mark.all
def test_a_graph_of_dynamo_s_level_with_its_recorded_inputs(tmp_path: Path) -> None:
    held = launcher(tmp_path, PLANTED.format("compile_error"), after="dynamo")
    answer = minified(held, tmp_path)
    assert answer.process.status == 0, answer.described()
    assert "level dynamo" in answer.process.err
    assert "torch.relu" in answer.repro or "aten.relu" in answer.repro


@pytest.mark.all
def test_a_launcher_of_aot_inductor_whose_directory_was_moved(tmp_path: Path) -> None:
    script = EXPORTED.replace("torch.export.save(", "torch._inductor.aoti_compile_and_package(").replace(', "program.pt2")', ")")
    (held,) = ran(tmp_path, script, {"DUMP_AOTI_MINIFIER": "1"}).rglob("minifier_launcher.py")
    moved = shutil.copytree(held.parent, tmp_path / "sent")
    shutil.rmtree(tmp_path / "held")
    answer = minified(Path(moved) / "minifier_launcher.py", tmp_path)
    assert answer.process.status == 0, answer.described()
    assert answer.result["stage"] == "aot_inductor"


# What the compiler makes wrong, told by the ranks together.
RANKS = """\
import torch, torch.distributed as dist
import torch._inductor.config as config

config.cpp.inject_relu_bug_TESTING_ONLY = "accuracy"


def main():
    dist.init_process_group("gloo")
    total = torch.stack([torch.compile(torch.relu)(torch.ones(4)).sum(), torch.tensor(float(dist.get_rank()))])
    dist.all_reduce(total)
    if str(total.tolist()) == "[16.0, 1.0]":
        raise RuntimeError("the ranks diverge")
    dist.destroy_process_group()


main()
"""


@pytest.mark.all
def test_a_failure_that_takes_two_ranks(tmp_path: Path) -> None:
    """No rank alone has these sums. Conditions of numbers were made smaller until one rank met them."""
    (tmp_path / "train.py").write_text(RANKS, encoding="utf-8")
    out = tmp_path / "minified"
    options = ("--out", out, "--verify-runs", "1", "--budget", "400s")
    answer = Answer(out, minify("--command", "torchrun --nproc-per-node 2 train.py", *options, cwd=tmp_path))
    # each form in which one rank waits for the other costs its patience, so the time may be over before the script is smaller
    assert answer.process.status in (0, 3), answer.described()
    assert answer.result["signature"]["exception"] == ["RuntimeError"]
    assert answer.result["verification"]["same"] == 1
    assert "world_size=2" in answer.repro
    assert "torch.relu" in answer.repro


def test_what_is_not_understood_ends_at_once_with_what_would_do(tmp_path: Path) -> None:
    (tmp_path / "err.txt").write_text('Traceback (most recent call last):\n  File "x.py", line 1\nValueError: x\n')
    answer = minified(tmp_path / "err.txt", tmp_path)
    assert answer.process.status == 2
    assert re.search(r"looks like a traceback, .*it says how a program failed, but does not hold the program", answer.process.err)
    assert "a TORCH_TRACE log" in answer.process.err
    assert (answer.result["reason_code"], answer.result["status"]) == ("not_understood", "error")
