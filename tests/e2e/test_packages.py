"""Exported programs and AOTInductor packages whose operations fail by themselves: no setting of the compiler is in either.

A package with its program in it holds code that was compiled elsewhere, as somebody's other torch would have done. Here that is code of a
module with the same inputs, or code that was made wrong.
"""

from __future__ import annotations

import importlib.metadata
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.e2e_harness import REPRO_LIMIT, Answer, compiling_into, environment, minify, run, run_alone

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1500)]
RELEASE = tuple(int(part) for part in importlib.metadata.version("torch").split(".")[:2])


@dataclass(frozen=True)
class Program:
    """A module that fails: its last expressions, its input, and what must be true of the result."""

    forward: str
    x: str
    kind: str
    words: tuple[str, ...]  # of the repro
    mended: tuple[int, int] = (99, 0)
    options: tuple[str, ...] = ()


PROGRAMS = {
    "lowering": Program(
        "y = torch.cos(x); return torch.relu(torch.ops.aten.avg_pool2d_backward(y, y, [1], [1], [0], False, True, None)) + 1",
        "torch.randn(2, 3, 8, 8)", "exception", ("avg_pool2d_backward",),
    ),
    "cpp": Program(
        "return torch.minimum(torch.abs(x), x).float().sum(dim=1)",
        "torch.tensor([[10, 150, 201], [255, 3, 128]], dtype=torch.uint8)", "exception", ("minimum", "uint8"), mended=(2, 15),
    ),
    "negated": Program(
        "y = torch.where(-x.abs() > 100, 1.0, -1.0); return y.cos().sin() * 3 + y",
        "torch.tensor([200, 100, 150], dtype=torch.uint8)", "accuracy", ("abs", "uint8", "assert_close"), mended=(2, 15),
    ),
    "variance": Program(
        "y = torch.cos(x * 0) * 1e20; return torch.exp(-torch.var(y)) + 1", "torch.ones(40)", "accuracy", ("var", "assert_close"),
    ),
    "quotient": Program(
        "return torch.floor_divide(x.relu(), 0.1).sum(dim=0)", "torch.ones(4, 8)", "accuracy", ("assert_close",),
    ),
    "hang": Program(
        "return torch.tanh(torch.diff(torch.full((3600,), 0.5), n=32, dim=0)) + x", "torch.ones(1)", "hang", ("diff",),
        options=("--hang-after", "10s", "--budget", "8m"),
    ),
}  # fmt: skip
EXPORTED = """\
import torch


class Net(torch.nn.Module):
    def forward(self, x):
        {forward}


torch.manual_seed(0)
with torch.no_grad():
    program = torch.export.export(Net(), ({x},))
"""
SAVED = 'torch.export.save(program, "held.pt2")\n'
# The code in the package: `compiled` names what it is made of.
PACKAGED = """
import torch._inductor.config
from torch.export.pt2_archive._package import package_pt2


class Other(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x * 1.0)


{settings}
with torch.no_grad():
    compiled = {compiled}
    files = torch._inductor.aot_compile(compiled.module(), compiled.example_inputs[0], options={{"aot_inductor.package": True}})
package_pt2("held.pt2", exported_programs={programs}, aoti_files={{"model": files}})
"""
OF_ITSELF, OF_ANOTHER = "program", "torch.export.export(Other(), program.example_inputs[0])"
WITH, WITHOUT = '{"model": program}', "{}"


def held(tmp: Path, name: str, rest: str) -> Path:
    """The file that a script makes of the program called `name`."""
    place = tmp / "held"
    place.mkdir()
    program = PROGRAMS.get(name, HEALTHY)
    (place / "make.py").write_text(EXPORTED.format(forward=program.forward, x=program.x) + rest, encoding="utf-8")
    done = run([sys.executable, "make.py"], cwd=place, env=environment(compiling_into(tmp / "cache"), ours=False), limit=REPRO_LIMIT)
    assert (done.status, (place / "held.pt2").exists()) == (0, True), done.text[-3000:]
    return place / "held.pt2"


def minified(path: Path, tmp: Path, *options: str) -> Answer:
    out = tmp / "minified"
    return Answer(out, minify(path, "--out", out, "--verify-runs", "1", *options, cwd=tmp))


def check(name: str, answer: Answer, taken_as: str) -> None:
    program = PROGRAMS[name]
    assert answer.process.status == 0, answer.described()
    assert answer.result["input"]["taken_as"] == taken_as
    assert answer.result["signature"]["kind"] == program.kind, answer.described()
    assert all(word in answer.repro for word in program.words), answer.repro
    assert "held.pt2" not in answer.repro
    if program.kind != "hang":
        assert run_alone(answer.directory / "repro.py").status == 1


def rows(*always: str) -> list[object]:
    return [pytest.param(name, marks=[] if name in always else [pytest.mark.all]) for name in PROGRAMS]


def skip_where_mended(name: str) -> None:
    if PROGRAMS[name].mended <= RELEASE:
        pytest.skip(f"torch {'.'.join(map(str, PROGRAMS[name].mended))} compiles this")


@pytest.mark.parametrize("name", rows("variance"))
def test_an_exported_program_is_minimized(tmp_path: Path, name: str) -> None:
    skip_where_mended(name)
    check(name, minified(held(tmp_path, name, SAVED), tmp_path, *PROGRAMS[name].options), "exported_program")


@pytest.mark.parametrize("name", rows())
def test_the_program_in_a_package_is_minimized(tmp_path: Path, name: str) -> None:
    skip_where_mended(name)
    compiled = OF_ITSELF if PROGRAMS[name].kind == "accuracy" else OF_ANOTHER
    path = held(tmp_path, name, PACKAGED.format(settings="", compiled=compiled, programs=WITH))
    check(name, minified(path, tmp_path, *PROGRAMS[name].options), "package")


HEALTHY = Program("return torch.relu(torch.exp(torch.cos(x) + 1).sum() * x)", "torch.ones(4, 8)", "", ())
# What makes the code in a package wrong, and what is said of it where its program passes here.
BROKEN = {
    "numbers": ('torch._inductor.config.cpp.inject_relu_bug_TESTING_ONLY = "accuracy"', "gives other numbers than the program"),
    "raises": ('torch._inductor.config.cpp.inject_relu_bug_TESTING_ONLY = "runtime_error"', "fails ("),
    "crash": ("torch._inductor.config.cpp.threads = 10**9\ntorch._inductor.config.cpp.min_chunk_size = 0", "fails (crash in "),
    "right": ("", "gives what the program gives"),
}


@pytest.mark.all
@pytest.mark.parametrize("name", BROKEN)
def test_of_a_package_whose_program_passes_its_code_is_judged(tmp_path: Path, name: str) -> None:
    settings, said = BROKEN[name]
    path = held(tmp_path, "", PACKAGED.format(settings=settings, compiled=OF_ITSELF, programs=WITH))
    answer = minified(path, tmp_path)
    assert (answer.process.status, answer.result["reason_code"]) == (4, "passes"), answer.described()
    assert f"the compiled code in the package {said}" in answer.process.out
    assert ("attach the script that made the package" in answer.process.out) is (name != "right")


@pytest.mark.parametrize("name", [pytest.param(name, marks=[] if name == "numbers" else [pytest.mark.all]) for name in BROKEN])
def test_of_a_package_alone_it_is_said_what_to_attach(tmp_path: Path, name: str) -> None:
    path = held(tmp_path, "", PACKAGED.format(settings=BROKEN[name][0], compiled=OF_ITSELF, programs=WITHOUT))
    answer = minified(path, tmp_path)
    assert (answer.process.status, answer.result["reason_code"]) == (2, "not_understood"), answer.described()
    assert "compiled code but not the program" in answer.process.err
    assert "give the exported program that it was made from (torch.export.save), or the script" in answer.process.err
