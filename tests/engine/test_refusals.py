"""Each reason code, and the check behind it: with the check failing, it is not said."""

from __future__ import annotations

import ast
import os
import re
import shlex
import sys
from pathlib import Path
from typing import Any, get_args

import pytest
import torch

from bot.engine.capture.region import Capture, Region, RegionRecipe
from bot.engine.evidence import verify
from bot.engine.options import Ended, Options
from bot.engine.refusals import Lookups, TwoRuns, with_hint
from bot.engine.target import Launch, Target
from bot.failure.machine_faults import Need
from bot.failure.outcome import Outcome
from bot.failure.signature import signature_of
from bot.inside.protocol import APART
from bot.machine import gpu
from bot.models.failure import Phase
from bot.models.result import ReasonCode
from bot.oracle.budget import Budget
from bot.workers.process import START

HEAD = "Traceback (most recent call last):\n"
FAILED = HEAD + '  File "/a/fail.py", line 5, in <module>\nKeyError: 7\n'
REACHED = Region(hook="aot", failed="compile", backward=False, recipe=RegionRecipe(), graph=None, reason=None, blobs=Path())


class Told(Lookups):
    """Lookups that find what they are told."""

    def __init__(self, lacks: bool = True, compiles: bool = False, usable: bool = True, python: bool = True) -> None:
        self.__dict__.update(told=(lacks, compiles, usable, python), asked=[], launch=Launch("/bin/true", Path(), {}))

    def lacks(self, need: Need) -> bool:
        self.asked.append(need)
        return bool(self.told[0])

    def compiles(self, seconds: float) -> bool:
        self.asked.append(seconds)
        return bool(self.told[1])

    def gpu_missing(self) -> str | None:
        return "there is none" if self.told[0] else None

    def gpu_is_usable(self) -> bool:
        return bool(self.told[2])

    def is_python(self) -> bool:
        return bool(self.told[3])


def runs(eager: dict[str, Any], behind: bool = False, regions: tuple[Region, ...] = (), **compiled: Any) -> TwoRuns:
    outcome = Outcome(**{"status": "raised", "text": FAILED, **compiled})
    found = Capture(outcome=outcome, signature=signature_of(outcome), regions=regions, versions={}, log=Path())
    return TwoRuns(found, Outcome(**{"status": "raised", **eager}), behind)


def refusal(of: TwoRuns, lookups: Told) -> tuple[str, str, str] | None:
    ended = of.refusal(lookups)
    return None if ended is None else (ended.status, ended.code, ended.reason)


PASSES = {"status": "ok", "calls": 1}
PACKAGE = HEAD + "  File \"/a/fail.py\", line 1, in <module>\nModuleNotFoundError: No module named 'ducks'\n"
FILE = HEAD + "FileNotFoundError: [Errno 2] No such file or directory: 'data.pt'\n"
DEVICE = HEAD + "RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU\n"
ORDINAL = HEAD + "torch.AcceleratorError: CUDA error: invalid device ordinal\n"


def test_the_page_has_each_code_and_the_test_of_its_check() -> None:
    root = Path(__file__).resolve().parents[2]
    page = (root / "docs" / "refusals.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \|.*\| `(tests/[\w/.]+)`: ((?:`\w+`(?:, )?)+) \|$", page, re.M)
    assert sorted(code for code, _, _ in rows) == sorted(get_args(ReasonCode))
    for _, file, names in rows:
        tree = ast.parse((root / file).read_text())
        defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert set(re.findall(r"\w+", names)) <= defined, (file, names)


def test_a_failure_of_the_compiler_is_not_refused() -> None:
    assert refusal(runs(PASSES), Told()) is None
    assert refusal(runs({"text": FAILED, "calls": 1}, behind=True), Told()) is None


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        (
            PACKAGE,
            "needs_package",
            "the program needs a package that this interpreter does not have, 'ducks': ModuleNotFoundError: No module",
        ),
        (FILE, "needs_file", "the program needs a file that is not there, 'data.pt': FileNotFoundError: [Errno 2] No such"),
        (DEVICE, "needs_hardware", "the program needs a GPU: RuntimeError: Found no NVIDIA driver"),
        (ORDINAL, "needs_hardware", "the program needs a GPU of a number that none here has: AcceleratorError: CUDA error: invalid"),
    ],
)
def test_what_a_program_needs_is_looked_up(text: str, code: str, said: str) -> None:
    found = refusal(runs({"text": text, "calls": 1}), Told())
    assert found is not None
    assert found[:2] == ("not_reproduced", code)
    assert found[2].startswith(said)
    there = refusal(runs({"text": text, "calls": 1}), Told(lacks=False))
    assert there is not None
    assert there[1] == "fails_in_eager", "it is there, so that is no reason"


def test_a_program_that_needs_a_gpu_is_told_what_helps() -> None:
    said = "; there is none; torch-minify run --cuda-arch compiles for one that isn't there, with a torch that was built for CUDA"
    found = refusal(runs({"text": DEVICE}), Told())
    assert found is not None
    assert found[2].endswith(said)
    # another one is there, so none has to be compiled for
    other = refusal(runs({"text": ORDINAL}), Told())
    assert other is not None
    assert "--cuda-arch" not in other[2]


def test_a_gpu_that_the_sandbox_keeps_from_the_program_is_the_machine_s_fault() -> None:
    # as CUDA's driver said it where it could neither name its threads nor make a socket
    text = (
        HEAD + "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 304: OS call failed or operation not supported on this OS\n"
    )
    of = runs({"text": text})
    kept = of.refusal(Told(lacks=False, usable=False))
    assert kept is not None
    assert (kept.status, kept.code, kept.machine_fault) == ("error", "machine_fault", "the GPU cannot be used in the sandbox")
    assert "Error 304" in kept.reason
    usable = refusal(of, Told(lacks=False))
    assert usable is not None
    assert usable[1] == "fails_before_compile", "others can use it"


@pytest.mark.parametrize(
    ("eager", "fault"),
    [
        ({"status": "infra", "text": "cannot start python: no room"}, "the program could not be run"),
        ({"status": "infra", "text": "the sandbox ended the program: no space left on the disk"}, "the disk is full"),
        ({"text": HEAD + "OSError: [Errno 28] No space left on device\n"}, "the disk is full"),
        ({"status": "signal", "signal": "SIGKILL", "text": ""}, "the program was killed, as for its memory"),
    ],
)
def test_an_eager_run_that_the_machine_broke_says_nothing_of_the_program(eager: dict[str, Any], fault: str) -> None:
    ended = runs(eager, regions=(REACHED,), calls=1).refusal(Told())
    assert ended is not None
    assert (ended.status, ended.code, ended.machine_fault) == ("error", "machine_fault", fault)
    assert "fails in eager" not in ended.reason


def test_a_program_that_was_killed_each_time_is_not_said_to_fail_before_the_compiler() -> None:
    killed = {"status": "signal", "signal": "SIGKILL", "text": ""}
    ended = runs(killed, **killed).refusal(Told())
    assert ended is not None
    assert (ended.status, ended.code, ended.machine_fault) == ("error", "machine_fault", "the program was killed, as for its memory")
    assert "fails" not in ended.reason


def test_a_program_that_kills_itself_fails_in_eager_as_well() -> None:
    killed = {"status": "signal", "signal": "SIGKILL", "text": ""}
    found = refusal(runs({**killed, "calls": 1}, regions=(REACHED,), **killed), Told())
    assert found is not None
    assert found[1] == "fails_in_eager"


@pytest.mark.parametrize(
    ("regions", "compiled", "code"),
    [
        ((), {"text": FAILED}, "fails_before_compile"),
        ((), {"text": FAILED, "calls": 1}, "not_understood"),
        ((REACHED,), {"text": FAILED}, "not_understood"),
        ((REACHED,), {"text": FAILED.replace("7", "8")}, "fails_in_eager"),
        ((), {"status": "timeout", "text": ""}, "fails_in_eager"),
    ],
)
def test_failing_before_the_compiler_is_said_only_where_our_hooks_saw_none(
    regions: tuple[Region, ...], compiled: dict[str, Any], code: str
) -> None:
    found = refusal(runs({"text": FAILED}, regions=regions, **compiled), Told())
    assert found is not None
    assert found[1] == code
    assert found[2].endswith("KeyError: 7")


@pytest.mark.parametrize(
    ("eager", "code"),
    [
        ({"unmade": 1}, "not_understood"),
        ({}, "fails_in_eager"),
        # the exporter took the process with it, or does not end
        ({"unmade": 1, "status": "signal", "signal": "SIGSEGV"}, "not_understood"),
        ({"unmade": 1, "status": "timeout", "seconds": 90.0}, "not_understood"),
        ({"status": "timeout", "seconds": 90.0}, "fails_in_eager"),
        # what it compiles fails in eager, and an error that is the same with and without the compiler
        ({"unmade": 1, "raised": 1}, "fails_in_eager"),
        ({"unmade": 1, "text": FAILED}, "fails_in_eager"),
    ],
)
def test_who_looks_at_what_the_compiler_makes_has_no_eager_run(eager: dict[str, Any], code: str) -> None:
    found = refusal(runs({"calls": 1, "text": FAILED.replace("7", "0"), **eager}, regions=(REACHED,)), Told())
    assert found is not None
    assert found[1] == code
    assert ("looks at what only the compiler makes" in found[2]) is (code == "not_understood")


@pytest.mark.parametrize("text", [FAILED, FAILED.replace("7", "0")])
def test_who_loads_in_another_process_what_one_compiled_has_no_eager_run(text: str) -> None:
    """The error of the process that waits for it is the same with the compiler and without."""
    found = refusal(runs({"calls": 1, "text": text, "error": APART}, regions=(REACHED,)), Told())
    assert found is not None
    assert found[:2] == ("error", "not_understood")
    assert "KeyError" in found[2]
    assert "a process that it starts loads what another one compiled" in found[2]


def test_the_eager_error_is_the_exceptions_own_line() -> None:
    """The message goes on with a graph; and the program prints when it leaves."""
    error = "torch.x.GraphError: it broke\n\ngraph():\n    return (add,)\nbye\n"
    text = f'{HEAD}  File "/a/fail.py", line 5, in <module>\n{error}'
    found = refusal(runs({"text": text, "calls": 1}), Told())
    assert found == ("not_reproduced", "fails_in_eager", "the program fails in eager as well: GraphError: it broke")


@pytest.mark.parametrize(
    ("eager", "said"),
    [
        ({"status": "exit", "exit": 3, "calls": 1, "text": "so long\n"}, "fails in eager as well (exit status 3): its last line: so long"),
        ({"status": "signal", "signal": "SIGSEGV", "calls": 1}, "fails in eager as well (SIGSEGV): nothing was printed"),
    ],
)
def test_other_ends_in_eager(eager: dict[str, Any], said: str) -> None:
    found = refusal(runs(eager), Told())
    assert found is not None
    assert found[1] == "fails_in_eager"
    assert said in found[2]


def test_an_operation_that_compiles_itself_has_no_eager_run() -> None:
    """As torch 2.13's flex_attention prints it, called without `torch.compile`."""
    frames = (
        '  File "/a/fail.py", line 5, in <module>\n'
        '  File "/s/torch/nn/attention/flex_attention.py", line 2536, in flex_attention\n'
        '  File "/s/torch/_dynamo/eval_frame.py", line 1109, in compile_wrapper\n'
        '  File "/s/torch/_dynamo/exc.py", line 580, in unimplemented\n'
    )
    text = f"{HEAD}{frames}torch._dynamo.exc.Unsupported: Data-dependent branching\n"
    found = refusal(runs({"text": text, "calls": 1}, regions=(REACHED,), text=text), Told())
    assert found is not None
    assert found[:2] == ("error", "not_understood")
    assert "no eager run to compare with: Unsupported: Data-dependent branching" in found[2]
    found = refusal(runs({"text": FAILED, "calls": 1}, regions=(REACHED,), text=text), Told())
    assert found is not None
    assert found[1] == "fails_in_eager", "eager failed outside of the compiler"


def test_an_error_of_what_stands_for_the_compiler_is_ours() -> None:
    frames = '  File "/a/fail.py", line 5, in <module>\n  File "/z/bot/inside/eager/stand_ins.py", line 7, in __call__\n'
    text = f"{HEAD}{frames}RuntimeError: no\n"
    found = refusal(runs({"text": text, "calls": 1}), Told())
    assert found is not None
    assert found[:2] == ("error", "internal")
    through = text.replace("RuntimeError", '  File "/a/fail.py", line 2, in f\nRuntimeError')
    found = refusal(runs({"text": through, "calls": 1}), Told())
    assert found is not None
    assert found[1] == "fails_in_eager", "it only called the program's own code"


@pytest.mark.parametrize(
    ("eager", "compiled", "status", "code"),
    [
        (300.0, {"seconds": 10.0}, "not_reproduced", "fails_in_eager"),
        (300.0, {"status": "timeout", "seconds": 600.0}, "not_reproduced", "fails_in_eager"),
        (300.0, {"seconds": 100.0}, "error", "budget"),  # it may take ten times as long
    ],
)
def test_eager_that_does_not_end(eager: float, compiled: dict[str, Any], status: str, code: str) -> None:
    found = refusal(runs({"status": "timeout", "text": "y\ny\n", "seconds": eager}, **compiled), Told())
    assert found is not None
    assert found[:2] == (status, code)
    assert "does not end within 300 s; its last line: y" in found[2]


def test_a_control_that_was_cut_off_does_not_say_that_eager_never_ends() -> None:
    """The time was over for both of them, whatever they would have done."""
    hung = {"status": "timeout", "text": "y\n", "seconds": 2.0}
    assert refusal(runs(hung, status="timeout", seconds=2.0), Told()) is not None
    found = refusal(runs({**hung, "cut": True}, status="timeout", seconds=2.0), Told())
    assert found is not None
    assert found[:2] == ("error", "budget")
    assert "was not at its end when it was cut off after 2 s" in found[2]
    assert "a longer --budget" in found[2]


def test_a_kernel_that_triton_cannot_compile_in_eager_either_fails_in_eager() -> None:
    """The calls of a kernel that `wrap_triton` launches, put together from the sources of torch 2.14.1 and its Triton; the numbers of lines
    are made up. Such a program was refused in these words on an H100 with torch 2.11."""
    frames = (
        '  File "/a/fail.py", line 5, in <module>\n'
        '  File "/s/torch/_library/custom_ops.py", line 758, in __call__\n'
        '  File "/s/torch/_library/triton.py", line 145, in backend_fn\n'
        '  File "/a/fail.py", line 3, in scale\n'
        '  File "/s/triton/runtime/jit.py", line 720, in run\n'
        '  File "/s/triton/runtime/jit.py", line 849, in _do_compile\n'
        '  File "/s/triton/compiler/compiler.py", line 80, in make_ir\n'
    )
    text = f"{HEAD}{frames}triton.compiler.errors.CompilationError: at 4:25:\n"
    found = refusal(runs({"text": text, "calls": 1}, regions=(REACHED,), text=text), Told())
    assert found is not None
    assert found[:2] == ("not_reproduced", "fails_in_eager")


def test_the_compiler_is_said_to_be_out_of_reach_only_where_no_process_comes_to_it() -> None:
    quiet, child = Told(), Told(compiles=True)
    of = runs({"status": "ok", "seconds": 4.0}, seconds=2.0)
    assert refusal(of, quiet) == (
        "not_reproduced",
        "compiler_never_reached",
        "the program fails, but never reaches torch.compile, torch.export or AOTInductor",
    )
    assert quiet.__dict__["asked"] == [40.0 + START]
    # what a run that compares prints is not kept
    skipped = refusal(runs({"status": "ok", "text": "==== 1 skipped, 2 warnings in 4.75s ====\n"}, status="ok", text=""), quiet)
    assert skipped is not None
    assert skipped[1:] == (
        "compiler_never_reached",
        "the program ends well (pytest: 1 skipped) and never reaches torch.compile, torch.export or AOTInductor",
    )
    passed = refusal(runs({"status": "ok", "text": "==== 1 passed, 1 skipped in 4.75s ====\n"}, status="ok", text=""), quiet)
    assert passed is not None
    assert "the program ends well and never reaches" in passed[2]
    found = refusal(of, child)
    assert found is not None
    assert found[:2] == ("error", "not_understood")
    seen = refusal(runs({"status": "ok"}, calls=1), quiet)
    assert seen is not None
    assert seen[1] == "not_understood", "our hooks saw it"


@pytest.mark.parametrize("ended", [{"status": "ok"}, {"status": "exit", "exit": 1}])
def test_what_is_no_python_says_nothing_of_the_program(ended: dict[str, Any]) -> None:
    """`true` and `false` end in their way whatever they are given."""
    found = refusal(runs(ended, **ended), Told(python=False))
    assert found == ("error", "machine_fault", "/bin/true does not run Python: --python names the interpreter")
    raised = refusal(runs(ended), Told(python=False))
    assert raised is None or raised[1] != "machine_fault", "what raised did so in Python"


def test_whether_an_interpreter_runs_python_is_tried(tmp_path: Path) -> None:
    assert look_up(tmp_path).is_python()
    for other in ("/bin/true", "/bin/false"):
        assert not Lookups(Launch(other, tmp_path, os.environ), "x.py", Budget(60)).is_python()
    slow = tmp_path / "slow"
    slow.write_text("#!/bin/sh\nsleep 60\n")
    slow.chmod(0o755)
    assert Lookups(Launch(str(slow), tmp_path, os.environ), "x.py", Budget(1)).is_python(), "there was no time to tell"
    slow.write_text("#!/bin/sh\nkill -STOP $$\n")
    assert Lookups(Launch(str(slow), tmp_path, os.environ), "x.py", Budget(1)).is_python(), "it was stopped"


def look_up(tmp_path: Path, script: str = "pass\n", budget: float = 120.0) -> Lookups:
    path = tmp_path / "fail.py"
    path.write_text(script)
    return Lookups(Launch(sys.executable, tmp_path, os.environ), path, Budget(budget))


def test_what_is_looked_up_of_files_and_packages(tmp_path: Path) -> None:
    lookups = look_up(tmp_path)
    (tmp_path / "data.pt").touch()
    needs = [Need("file", "data.pt"), Need("file", "/none/data.pt"), Need("package", "json"), Need("package", "ducks")]
    needs += [Need("package", "json.ducks"), Need("package", "json.decoder"), Need("package", "ducks.feet")]
    assert list(map(lookups.lacks, needs)) == [False, True, False, True, True, False, True]


def test_a_gpu_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[float] = []
    for found in ("there is none", None):
        monkeypatch.setattr(gpu, "missing", lambda python, limit, _, found=found: limits.append(limit) or found)
        assert look_up(tmp_path, budget=30.0).lacks(Need("hardware", "cuda")) is (found is not None)
        assert look_up(tmp_path, budget=30.0).gpu_missing() == found
    assert max(limits) <= 30.0


def test_a_gpu_that_is_too_full_for_any_program_is_the_machine_s_fault() -> None:
    of = runs({"text": HEAD + "torch.AcceleratorError: CUDA error: out of memory\n"})
    full = of.refusal(Told(lacks=False, usable=False))
    assert full is not None
    assert (full.status, full.code, full.machine_fault) == ("error", "machine_fault", "the GPU is full")
    assert "the GPU is full: a program that puts one number there fails as well; free it, or name another one" in full.reason
    own = refusal(of, Told(lacks=False))
    assert own is not None
    assert own[1] == "fails_before_compile", "others have room"


@pytest.mark.parametrize("usable", [False, True])
def test_a_number_of_a_gpu_is_too_high_only_where_another_one_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, usable: bool) -> None:
    monkeypatch.setattr(Lookups, "gpu_is_usable", lambda _: usable)
    assert look_up(tmp_path).lacks(Need("hardware", "such")) is usable


def test_whether_a_program_can_use_the_gpu_is_tried(tmp_path: Path) -> None:
    if torch.cuda.is_available():
        pytest.skip("of a machine without a GPU")
    assert not look_up(tmp_path).gpu_is_usable()


CHILD = (
    "import subprocess, sys\ncode = 'import torch; torch.compile(torch.sin, backend=\"eager\")(torch.ones(3))'\n"
    "subprocess.run([sys.executable, '-c', code])\n"
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "compiles"),
    [
        ("import torch\ntorch.ones(3).sin()\n", False),
        ("import torch\ntorch.compile(torch.sin, backend='eager')(torch.ones(3))\n", True),
        (CHILD, True),
        ("import torch\ntorch.export.export(torch.nn.Linear(2, 2), (torch.ones(1, 2),))\n", True),
    ],
)
def test_a_process_that_compiles_is_noticed(tmp_path: Path, how: str, compiles: bool) -> None:
    pytest.importorskip("torch")
    assert look_up(tmp_path, how).compiles(100.0) is compiles


LOADING = """Fatal Python error: Segmentation fault

Current thread 0x00007f7f12284140 (most recent call first):
  File "/site-packages/torch/export/pt2_archive/_package.py", line 1045 in _load_aoti
  File "/site-packages/torch/export/pt2_archive/_package.py", line 1173 in load_pt2
  File "/site-packages/torch/_inductor/package/package.py", line 110 in load_package
  File "/site-packages/torch/_inductor/__init__.py", line 267 in aoti_load_package
  File "/a/fail.py", line 17 in <module>
"""


@pytest.mark.parametrize(
    ("healthy", "alike"),
    [
        (Outcome(status="signal", signal="SIGSEGV", text=LOADING.replace("fail.py", "package.py")), True),
        (Outcome(status="signal", signal="SIGABRT", text=LOADING), False),
        (Outcome(status="ok"), False),
        (Outcome(status="raised", text=HEAD + "RuntimeError: no compiler\n", exit=1), False),
    ],
)
def test_no_package_can_be_loaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, healthy: Outcome, alike: bool) -> None:
    """The stack is that of torch 2.11 on a machine where loading any package dies."""
    asked: list[str] = []

    def run(launch: Launch, script: Path, **_: object) -> Outcome:
        asked.append(script.read_text())
        return healthy

    monkeypatch.setattr(verify, "run_fresh", run)
    lookups = Lookups(Launch(sys.executable, tmp_path, {}, ("fail.py",)), "-m", Budget(60))
    failure = signature_of(Outcome(status="signal", signal="SIGSEGV", text=LOADING))
    assert failure is not None
    assert failure.phase is Phase.LOAD
    assert lookups.fails_to_load_alike(failure, LOADING, "cuda") is alike
    assert len(asked) == 1
    assert "device='cuda'" in asked[0]
    ast.parse(asked[0])


def test_a_package_is_loaded_only_where_one_failed_to(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(verify, "run_fresh", lambda *_, **__: pytest.fail("asked"))
    lookups = Lookups(Launch(sys.executable, tmp_path, {}, ("fail.py",)), "-m", Budget(60))
    failure = signature_of(Outcome(status="raised", text=FAILED, exit=1))
    assert failure is not None
    assert not lookups.fails_to_load_alike(failure, FAILED, "cpu")


def test_a_script_that_only_defines_tests_is_told_how_to_run_them(tmp_path: Path) -> None:
    script = tmp_path / "its tests.py"
    options, lookups = (
        Options(Target(script, None, ()), "python", tmp_path / "out"),
        Lookups(Launch("python", tmp_path, {}), "-m", Budget(60)),
    )
    unreached = Ended("not_reproduced", "compiler_never_reached", "it never does")
    script.write_text("def test_x():\n    torch.compile(f)()\n")
    hinted = with_hint(unreached, options, lookups)
    said = hinted.reason.partition("; it only defines tests: --command ")[2].removesuffix(" runs them")
    assert shlex.split(shlex.split(said)[0]) == ["pytest", str(script)]
    assert (hinted.status, hinted.code) == ("not_reproduced", "compiler_never_reached")
    passes = Ended("not_reproduced", "passes", "it passes")
    assert with_hint(passes, options, lookups) is passes
    script.write_text("torch.ones(1)\n")
    assert with_hint(unreached, options, lookups) is unreached


@pytest.mark.e2e
def test_a_healthy_package_is_loaded_here(tmp_path: Path) -> None:
    lookups = Lookups(Launch(sys.executable, tmp_path, dict(os.environ), ("fail.py",)), "-m", Budget(300))
    failure = signature_of(Outcome(status="signal", signal="SIGSEGV", text=LOADING))
    assert failure is not None
    assert not lookups.fails_to_load_alike(failure, LOADING, "cpu")
