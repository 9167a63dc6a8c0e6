"""One failure in a process that the program starts, however it starts it: the repro fails alone, and has nothing of the other process."""

from __future__ import annotations

import signal
import sys
import textwrap
from pathlib import Path

import pytest

from tests.e2e.e2e_harness import Answer, minify, run_alone
from tests.e2e.test_inputs import SCRIPTS

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1500)]

PROCESS = """
import multiprocessing
import sys

if __name__ == "__main__":
    child = multiprocessing.get_context("{}").Process(target=work)
    child.start()
    child.join()
    sys.exit(child.exitcode != 0)
"""
# How `work`, a function of the program, gets to be called.
STARTS = {
    "spawn": PROCESS.format("spawn"),
    "fork": PROCESS.format("fork"),
    "executor": """
import concurrent.futures
import multiprocessing

if __name__ == "__main__":
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as executor:
        executor.submit(work).result()
""",
    "loader": """
class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, index):
        work()
        return index


if __name__ == "__main__":
    for batch in torch.utils.data.DataLoader(Data(), num_workers=1):
        print(batch)
""",
    "subprocess": """
import subprocess
import sys

if "child" in sys.argv:
    work()
else:
    sys.exit(subprocess.run([sys.executable, __file__, "child"]).returncode != 0)
""",
    "command": """
import subprocess
import sys

sys.exit(subprocess.run([sys.executable, "-c", WORK]).returncode != 0)
""",
    "another script": """
import pathlib
import subprocess
import sys
import tempfile

with tempfile.TemporaryDirectory() as directory:
    worker = pathlib.Path(directory, "worker.py")
    worker.write_text(WORK)
    subprocess.run([sys.executable, worker], check=True)
""",
    "torchrun": 'if __name__ == "__main__":\n    work()\n',
}
# What the repro has, the kind of failure, and how a process with it ends.
FAILURES = {
    "lowering": ("avg_pool2d_backward", "exception", 1),
    "numbers": ("relu", "accuracy", 1),
    "crash": ("cpp.threads", "crash", -signal.SIGSEGV),
}
# The rows that are run in any case; the rest under --all.
ALWAYS = {("executor", "lowering")}
ROWS = [
    pytest.param(
        start,
        failure,
        id=f"{start}-{failure}",
        marks=[] if (start, failure) in ALWAYS else [pytest.mark.all],
    )
    for start in STARTS
    for failure in FAILURES
]


def program(start: str, failure: str) -> str:
    definitions, rest = SCRIPTS[failure].split("torch.manual_seed")
    work = f"{definitions}def work():\n" + textwrap.indent(f"torch.manual_seed{rest}", "    ") + "\n\n"
    # what the other process runs is no function of this file
    return f"WORK = {work + 'work()'!r}\n{STARTS[start]}" if "WORK" in STARTS[start] else work + STARTS[start]


@pytest.mark.parametrize(("start", "failure"), ROWS)
def test_a_failure_in_another_process_is_minimized(tmp_path: Path, start: str, failure: str) -> None:
    word, kind, status = FAILURES[failure]
    (tmp_path / "fail.py").write_text(program(start, failure), encoding="utf-8")
    runner = "-m torch.distributed.run --nproc-per-node 2" if start == "torchrun" else ""
    out = tmp_path / "minified"
    held = ("--command", f"{sys.executable} {runner} fail.py") if runner else (tmp_path / "fail.py",)
    answer = Answer(out, minify(*held, "--out", out, "--verify-runs", "1", cwd=tmp_path))
    assert answer.process.status == 0, answer.described()
    assert answer.result["signature"]["kind"] == kind, answer.described()
    assert word in answer.repro
    others = ("work()", "multiprocessing", "subprocess", "concurrent", "DataLoader", "torch.cos", "distributed")
    assert not [other for other in others if other in answer.repro], answer.repro
    assert run_alone(out / "repro.py").status == status
