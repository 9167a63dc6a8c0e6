"""The eager and the float64 control, each on a script in a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.inside.forked import BOOT, Ended, Forks

pytest.importorskip("torch")

MODEL = """
import torch

class Repro(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)
        self.norm = torch.nn.BatchNorm1d(3)

    def forward(self, x):
        return torch.relu(self.norm(self.linear(x)))

torch.manual_seed(0)
model = Repro()
x = torch.randn(4, 3, requires_grad=True)
"""


_shared: list[Forks] = []


@pytest.fixture(scope="module", autouse=True)
def shared(forks: Forks) -> None:
    _shared[:] = [forks]


def control(path: Path, body: str, *options: str, encoding: str = "utf-8", fresh: bool = False) -> tuple[int, int, str]:
    """Exit status, calls that reached the compiler (-1: no marker), all output; where `fresh`, of an interpreter of its own, not a fork."""
    script = path / "repro.py"
    script.write_text(textwrap.dedent(body), encoding=encoding)
    words, env = ["control", *options, str(script), "argument"], {**os.environ, "PYTHONPATH": ""}
    if fresh:
        command = [sys.executable, str(BOOT), *words]
        done = subprocess.run(command, cwd=path, capture_output=True, text=True, check=False, env=env, timeout=100)
        ran = Ended(done.returncode, done.stdout, done.stderr)
    else:
        ran = _shared[0].run(*words, cwd=path, env=env)
    said = re.findall(r"^\[compiler-out\] reached: (\d+) raised: \d+.*$", ran.stderr, re.MULTILINE)
    return ran.returncode, int(said[-1]) if said else -1, ran.stdout + ran.stderr


@pytest.fixture(scope="module")
def everything() -> str:
    """All ways into the compiler; each line that may break is asserted by the script itself."""
    return MODEL + textwrap.dedent("""
        import copy, io, sys
        import torch._dynamo as dynamo
        from torch import compile as imported

        assert sys.argv[1:] == ["argument"] and __name__ == "__main__" and __file__.endswith("repro.py")
        ref = copy.deepcopy(model)(x)
        compiled = torch.compile(model, fullgraph=True, dynamic=True, options={"no_such_option": 1}, backend="no_such_backend")
        torch.testing.assert_close(compiled(x), ref)
        assert compiled._orig_mod is model and compiled.training and isinstance(compiled, torch.nn.Module)
        compiled.eval()
        assert not model.training and not compiled.training
        assert list(compiled.state_dict())[0] == "_orig_mod.linear.weight" and compiled.linear is model.linear
        copy.deepcopy(compiled)(x).sum().backward()

        @torch.compile
        def f(x): return x.sin()

        @imported(dynamic=True)
        def g(x): return f(x) + 1

        torch.testing.assert_close(g(x), x.sin() + 1)
        assert g.__name__ == "g"
        model.compile()
        model(x)
        ep = torch.export.export(model, (x,), dynamic_shapes=({0: torch.export.Dim("n")},), strict=True).run_decompositions()
        buffer = io.BytesIO()
        torch.export.save(ep, buffer)
        buffer.seek(0)
        for module in (ep.module(), torch.export.load(buffer).module(), torch.export.unflatten(ep)):
            torch.testing.assert_close(module(x), model(x))
            assert list(module.state_dict()) == list(model.state_dict())
        torch.export.save(ep, "saved.pt2")
        torch.export.export(torch.export.load("saved.pt2").module(), (x,))
        for options in ({}, {"package_path": "given.pt2"}):
            path = torch._inductor.aoti_compile_and_package(ep, **options)
            assert path.endswith(".pt2")
            torch.testing.assert_close(torch._inductor.aoti_load_package(path)(x), model(x))
        torch._export.aot_load(torch._inductor.aot_compile(ep.module(), (x,)), "cpu")(x)
        dynamo.optimize("inductor", nopython=True)(f)(x)
        graph, guards = dynamo.export(f)(x)
        graph(x)
        torch._inductor.compile(torch.fx.symbolic_trace(model), [x])(x)
        dynamo.mark_dynamic(x, 0)
        dynamo.reset()
        dynamo.config.suppress_errors = False
        print("ALL DONE")
    """)


@pytest.mark.parametrize("options", [pytest.param((), id="eager"), pytest.param(("--fp64",), id="fp64", marks=pytest.mark.all)])
def test_every_way_into_the_compiler_is_eager_and_counted(tmp_path: Path, everything: str, options: tuple[str, ...]) -> None:
    status, reached, output = control(tmp_path, everything, *options, fresh=True)
    assert status == 0, output
    assert "ALL DONE" in output
    assert reached >= 20


def test_files_of_the_user_stay_as_they_are(tmp_path: Path) -> None:
    """The control runs where the user works: what the program would write over is there when it has ended, and nothing more."""
    body = MODEL + textwrap.dedent("""
        import os, pathlib, shutil

        def check(loaded):
            torch.testing.assert_close(loaded(x), model(x))

        ep = torch.export.export(model, (x,))
        for name in ("there.pt2", "new.pt2"):
            torch.export.save(ep, pathlib.Path(name))
            assert os.path.exists(name)
            check(torch.export.load(os.path.abspath(name)).module())
            assert torch._inductor.aoti_compile_and_package(ep, package_path=name) == name
            check(torch._inductor.aoti_load_package(name))
        for move in (os.replace, os.rename, shutil.move, shutil.copy):
            torch.export.save(ep, "partial.pt2")
            move("partial.pt2", "there.pt2")
            assert os.path.exists("partial.pt2") is (move is shutil.copy)
            check(torch.export.load("there.pt2").module())
        os.replace("partial.pt2", "moved.pt2")
        check(torch.export.load("moved.pt2").module())
        torch.export.save(ep, "there.pt2")
        shutil.copy("there.pt2", "moved.pt2")
        check(torch.export.load("moved.pt2").module())
        with open("there.pt2", "rb") as file:
            check(torch.export.load(file).module())
        for move in (os.replace, shutil.copyfile):
            try:
                move("moved.pt2", "models")
            except OSError:
                pass
        os.rename("there.pt2", "renamed.pt2")
        check(torch.export.load("renamed.pt2").module())
        with open("opened.pt2", "wb") as file:
            torch.export.save(ep, file)
        check(torch.export.load("opened.pt2").module())
        os.unlink("opened.pt2")
        path = torch._inductor.aot_compile(ep.module(), (x,))
        assert os.listdir(os.path.dirname(path)) == [os.path.basename(path)]  # whoever tidies up may remove all that is beside it
    """)
    (tmp_path / "there.pt2").write_text("yesterday's")
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "best.pt2").write_text("last week's")
    for end in ("", "os._exit(0)"):
        status, _, output = control(tmp_path, body + end)
        assert status == 0, output
        assert (tmp_path / "there.pt2").read_text() == "yesterday's"
        assert (tmp_path / "models" / "best.pt2").read_text() == "last week's"
        assert sorted(path.name for path in tmp_path.iterdir()) == ["models", "repro.py", "there.pt2"]


def test_the_script_is_compiled_as_python_compiles_it(tmp_path: Path) -> None:
    body = "# coding: latin-1\nimport torch\ndef f(x: int): return torch.ones(len('é'))\nassert f.__annotations__ == {'x': int}\n"
    status, reached, output = control(tmp_path, body + "assert len(torch.compile(f)(0)) == 1\n", encoding="latin-1")
    assert (status, reached) == (0, 2), output


def test_a_script_that_leaves_at_once_is_counted(tmp_path: Path) -> None:
    body = "import os, torch\ntorch.compile(torch.sin)(torch.ones(1))\nos.close(2)\nos._exit(0)\n"
    assert control(tmp_path, body)[:2] == (0, 2)


def test_other_processes_of_the_program_run_eager(tmp_path: Path) -> None:
    """A fork says its own count; what is started anew has the whole compiler, and must not use it."""
    body = """
        import multiprocessing, os, torch

        def backend(graph, inputs):
            raise RuntimeError("the compiler ran")

        def work(count):
            compiled = torch.compile(torch.sin, backend=backend, fullgraph=True)
            for _ in range(count):
                compiled(torch.ones(1))

        if __name__ == "__main__":
            for way, count in (("fork", 6), ("spawn", 1)):
                process = multiprocessing.get_context(way).Process(target=work, args=(count,))
                process.start()
                process.join()
                assert process.exitcode == 0, way
            # what torch compiles for itself here does not see what is meant for them
            x = torch.ones(2, requires_grad=True)
            torch.cond(torch.tensor(True), lambda x: x * 2, lambda x: x - 1, (x,)).sum().backward()
            os._exit(0)
    """
    status, reached, output = control(tmp_path, body)
    assert (status, reached) == (0, 0), output
    assert [int(count) for count in re.findall(r"reached: (\d+)", output)] == [7, 2, 0]


def test_nobody_called_the_compiler(tmp_path: Path) -> None:
    collects = "import gc\nassert gc.isenabled() and not gc.get_freeze_count() and not gc.get_stats()[2]['collections']\n"
    assert control(tmp_path, f"{collects}import torch\ntorch.ones(3).sin()\n", fresh=True)[:2] == (0, 0)


def test_what_torch_compiles_for_itself_is_not_counted(tmp_path: Path) -> None:
    body = "import torch\nf = lambda x: torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))\nassert f(torch.ones(2))[0] == 2\n"
    assert control(tmp_path, body)[:2] == (0, 0)


def test_a_program_that_eager_cannot_run_fails(tmp_path: Path) -> None:
    body = """
        import torch
        class Broken(torch.nn.Module):
            def forward(self, x): return x.view(7)
        for call in (lambda m, x: torch.compile(m)(x), lambda m, x: torch.export.export(m, (x,)), lambda m, x: torch._dynamo.export(m)(x)):
            try:
                call(Broken(), torch.ones(4))
            except RuntimeError as error:
                print(error)
        torch.export.export(Broken(), (torch.ones(4),))
    """
    status, reached, output = control(tmp_path, body)
    assert (status, reached) == (1, 5), output
    assert output.count("shape '[7]' is invalid") == 4


def test_an_export_leaves_state_and_inputs_alone(tmp_path: Path) -> None:
    body = MODEL + textwrap.dedent("""
        class Writes(torch.nn.Module):
            def forward(self, x):
                return x.add_(torch.rand(()))

        y = torch.ones(2)
        state = torch.get_rng_state()
        torch.export.export(Writes(), (y,))
        torch.export.export(model, (x,))
        assert torch.equal(y, torch.ones(2)) and torch.equal(state, torch.get_rng_state())
        assert torch.equal(model.norm.running_mean, torch.zeros(3)) and model.norm.num_batches_tracked == 0
    """)
    assert control(tmp_path, body)[0] == 0


def test_a_program_of_torch_can_still_be_loaded(tmp_path: Path) -> None:
    import torch

    torch.export.save(torch.export.export(torch.nn.ReLU(), (torch.ones(2),)), tmp_path / "real.pt2")
    body = (
        "import torch\nm = torch.export.load('real.pt2').module()\nassert torch.equal(torch.compile(m)(-torch.ones(2)), torch.zeros(2))\n"
    )
    status, reached, output = control(tmp_path, body)
    assert (status, reached) == (0, 2), output


def test_exit_status_and_marker_of_a_script_that_exits(tmp_path: Path) -> None:
    status, reached, output = control(
        tmp_path, "import torch, sys\ntorch.compile(torch.sin)(torch.ones(1))\nprint('x', end='', file=sys.stderr)\nsys.exit(3)\n"
    )
    assert (status, reached) == (3, 2), output


def test_fp64_is_float64_inside_and_eager_types_outside(tmp_path: Path) -> None:
    body = MODEL + textwrap.dedent("""
        seen = []
        outer = torch.ones(3, dtype=torch.bfloat16)

        def held(t):  # a program that asks for the type is told eager's
            return t.untyped_storage().nbytes() // t.numel()

        def f(x, scale):
            y = x * outer + torch.full((3,), 0.1) + torch.zeros(3, dtype=torch.float16).float()
            seen.append([held(t) for t in (x, y, y.half(), model.linear(y), torch.tensor(1.5))])
            return y.bfloat16(), {"i": torch.arange(3), "scale": scale, "b": y > 0}

        y, rest = torch.compile(f)(x, 2)
        assert seen[-1] == [torch.float64.itemsize] * 5, seen
        assert y.dtype == torch.bfloat16 and rest["i"].dtype == torch.int64 and rest["scale"] == 2 and rest["b"].dtype == torch.bool
        y.sum().backward()
        assert x.grad.dtype == torch.float32 and torch.equal(x.grad, torch.ones(4, 3))
        assert torch.get_default_dtype() == torch.float32
    """)
    status, _, output = control(tmp_path, body, "--fp64")
    assert status == 0, output


def test_fp64_tells_rounding_from_a_bug(tmp_path: Path) -> None:
    """Eager that is itself wrong under the script's tolerance fails the control."""
    body = """
        import torch
        def f(x): return (x + 1e8) - 1e8
        x = torch.ones(3)
        torch.testing.assert_close(torch.compile(f)(x), f(x))
    """
    assert control(tmp_path, body)[0] == 0
    status, _, output = control(tmp_path, body, "--fp64")
    assert status == 1
    assert "AssertionError: Tensor-likes are not close" in output


def test_the_right_numbers_are_those_of_what_the_compiler_is_given(tmp_path: Path) -> None:
    """A program that does something else when it is compiled differs from eager without the compiler's doing."""
    body = """
        import torch
        from torch.compiler import is_compiling

        def f(x):
            return x * 2 if {asked}() else x

        x = torch.ones(3)
        assert not is_compiling() and not torch.compiler.is_dynamo_compiling()
        torch.testing.assert_close(torch.compile(f)(x), f(x))
        assert not is_compiling()
    """
    for asked in ("is_compiling", "torch.compiler.is_dynamo_compiling"):
        text = body.format(asked=asked)
        assert control(tmp_path, text)[0] == 0
        status, _, output = control(tmp_path, text, "--fp64")
        assert status == 1
        assert "AssertionError: Tensor-likes are not close" in output
        assert control(tmp_path, text, "--untold")[0] == 0


def test_a_program_that_asks_is_counted_and_told_where_that_is_wanted(tmp_path: Path) -> None:
    """Plainly it runs as in eager."""
    body = """
        import torch

        def f(x):
            if torch.compiler.is_compiling():
                raise KeyError("compiled")
            return x

        torch.compiler.is_compiling()
        torch.compile(f)(torch.ones(3))
    """
    status, _, output = control(tmp_path, body)
    assert status == 0
    assert "asked: 1" in output, "where nothing is compiled nobody counts"
    status, _, output = control(tmp_path, body, "--eager")
    assert status == 1
    assert "KeyError: 'compiled'" in output


def test_float64_may_be_out_of_reach_for_a_program_that_asks(tmp_path: Path) -> None:
    body = """
        import torch

        def f(x):
            bits = x.view(torch.int32).view(torch.float32)
            return bits * 2 if torch.compiler.is_compiling() else x

        x = torch.ones(3)
        torch.testing.assert_close(torch.compile(f)(x), f(x))
    """
    assert control(tmp_path, body)[0] == 0
    assert "Fp64Impossible" in control(tmp_path, body, "--fp64")[2]
    assert "AssertionError: Tensor-likes are not close" in control(tmp_path, body, "--moved")[2]
    assert control(tmp_path, body, "--moved-untold")[0] == 0


def test_a_module_with_nothing_around_it(tmp_path: Path) -> None:
    body = MODEL + "assert torch.compile(model) is model and torch.compile(torch.compile(model))(x) is not None\n"
    assert control(tmp_path, body)[0] == 1
    assert control(tmp_path, body, "--bare")[0] == 0


def test_what_torch_compiles_for_itself_is_told_what_it_always_is(tmp_path: Path) -> None:
    """A conditional compiles itself in eager: Dynamo says yes to what it traces."""
    body = """
        import torch

        def f(x):
            return torch.cond(x.sum() > 0, lambda x: x + torch.compiler.is_compiling(), lambda x: x.cos(), (x,))

        assert torch.equal(torch.compile(f)(torch.ones(3)), torch.full((3,), 2.0))
    """
    for options in ((), ("--fp64",)):
        status, _, output = control(tmp_path, body, *options)
        assert status == 0, output


def test_torch_itself_is_not_told_that_it_is_being_compiled(tmp_path: Path) -> None:
    body = """
        import torch
        torch.nn.functional.asks = eval("lambda: torch.compiler.is_compiling()", {"__name__": "torch.nn.functional", "torch": torch})
        def f(x): return x + torch.nn.functional.asks()
        assert torch.compile(f)(torch.zeros(1)).item() == 0
    """
    status, _, output = control(tmp_path, body, "--fp64")
    assert status == 0, output


def test_fp64_of_inference_mode(tmp_path: Path) -> None:
    body = MODEL + textwrap.dedent("""
        kept = torch.zeros(3)

        def f(x, y):
            y.mul_(2)
            kept.add_(x.sum(0))
            return model(x) + y

        with torch.inference_mode():
            y = torch.ones(4, 3)
            z = torch.compile(f)(x * 1, y)
            assert torch.equal(y, torch.full((4, 3), 2.0)) and z.dtype == torch.float32
            torch.testing.assert_close(kept, x.sum(0))
    """)
    status, _, output = control(tmp_path, body, "--fp64")
    assert status == 0, output


def test_fp64_writes_are_carried_over(tmp_path: Path) -> None:
    body = MODEL + textwrap.dedent("""
        kept = torch.zeros(3)

        def f(x):
            kept.view(-1).add_(x.detach().sum(0))
            return model(x)

        torch.compile(f)(x)
        torch.testing.assert_close(kept, x.detach().sum(0))
        mean = model.linear(x).mean(0).detach() * 0.1
        torch.testing.assert_close(model.norm.running_mean, mean)
        assert model.norm.num_batches_tracked == 1
        y = torch.ones(2)
        assert torch.compile(lambda y: y.mul_(3))(y) is y and torch.equal(y, torch.full((2,), 3.0))
    """)
    status, _, output = control(tmp_path, body, "--fp64")
    assert status == 0, output


@pytest.mark.parametrize("options", [("--fp64",), ("--spread",), ("--moved",)])
def test_arguments_that_share_memory_share_it_in_every_run(tmp_path: Path, options: tuple[str, ...]) -> None:
    """What is written to one is read from the other: copies of their own would give other numbers than eager."""
    body = """
        import torch

        def f(a, b):
            a.mul_(0.5).add_(1)
            return (a + b).cumsum(0)

        def parts(memory):
            return [(memory[1:5], memory[3:7]), (memory[3:7], memory[1:5]), (memory, memory[2:3]), (memory[2:3], memory), (memory, memory)]

        for place in range(5):
            expected, actual = torch.arange(8.0), torch.arange(8.0)
            torch.testing.assert_close(torch.compile(f)(*parts(actual)[place]), f(*parts(expected)[place]))
            torch.testing.assert_close(actual, expected)
    """
    status, _, output = control(tmp_path, body, *options)
    assert status == 0, output


def test_fp64_forgets_what_the_program_makes(tmp_path: Path) -> None:
    body = """
        import gc, torch
        q = torch.quantize_per_tensor(torch.ones(1000), 0.1, 0, torch.qint8)
        alive = []

        def f(x):
            for _ in range(5):
                x = x + q.dequantize() + torch.zeros(1000, dtype=torch.float32)
                alive.append(sum(isinstance(o, torch.Tensor) and o.numel() == 1000 for o in gc.get_objects()))
            return x

        assert torch.compile(f)(torch.ones(1000)).dtype == torch.float32
        assert len(alive) == 5 and alive[0] == alive[4], alive  # in double: what the run for the types appended is gone
    """
    status, _, output = control(tmp_path, body, "--fp64")
    assert status == 0, output


def test_a_long_forward_fails_with_the_traceback_of_its_text(tmp_path: Path) -> None:
    lines = "\n".join(f"        v{i} = v{i - 1} + 1" for i in range(1, 40))
    call = "torch.compile(Repro())(torch.ones(2))\n"
    body = f"import torch\nclass Repro(torch.nn.Module):\n    def forward(self, v0):\n{lines}\n        return v39.view(7)\n{call}"
    status, reached, output = control(tmp_path, body)
    assert (status, reached) == (1, 2), output
    for line in ("line 43, in forward\n    return v39.view(7)", "line 44, in <module>\n    torch.compile(Repro())(torch.ones(2))"):
        assert line in output


def test_fp64_that_cannot_be_says_so(tmp_path: Path) -> None:
    body = """
        import torch

        @torch.library.custom_op("mine::only_float", mutates_args=())
        def only_float(x: torch.Tensor) -> torch.Tensor:
            if x.dtype != torch.float32: raise RuntimeError("needs float32")
            return x.clone()

        w = torch.ones(3, requires_grad=True).clone()
        for reason, function in {
            "random numbers": lambda x: x + torch.rand(3),
            "read as another type": lambda x: x.view(torch.int32),
            "needs float32": lambda x: torch.ops.mine.only_float(x),
            "24 in float64 and 12 in eager": lambda x: x.untyped_storage().nbytes(),
            "does something else": lambda x: x.sin() if x.untyped_storage().nbytes() > 12 else x.cos(),
            "needs a gradient": lambda x: w.mul_(x),
            "eager itself": lambda x: x.view(7),
        }.items():
            try:
                torch.compile(function)(torch.ones(3))
            except Exception as error:
                print(reason, "|", type(error).__name__, "|", error)
    """
    status, _, output = control(tmp_path, body, "--fp64")
    assert status == 0, output
    lines = [line.split(" | ") for line in output.splitlines() if " | " in line]
    assert len(lines) == 7, output
    for reason, name, message in lines[:-1]:
        assert name == "Fp64Impossible"
        assert reason in message
    assert lines[-1][1] == "RuntimeError", "what eager raises goes through"


def test_a_graph_that_is_looked_at_and_a_backend_of_the_programs_own_count(tmp_path: Path) -> None:
    """In eager nobody calls that backend, and what only the compiler makes is not eager's."""
    body = """
        import torch

        def backend(graph, inputs):
            raise KeyError("never called")

        torch.compile(torch.sin, backend="inductor")(torch.ones(3))
        torch.compile(torch.sin, backend=backend)(torch.ones(3))
        torch.compile(backend=backend)(torch.sin)(torch.ones(3))
        torch.nn.ReLU().compile(backend=backend)
        torch._dynamo.optimize(backend)(torch.sin)
        exported = torch.export.export(torch.nn.ReLU(), (torch.ones(3),))
        exported.module()(torch.ones(3))
        assert "relu" in str(exported.graph), exported.graph
    """
    status, _, output = control(tmp_path, body)
    assert status == 0, output
    assert re.findall("unmade: ([0-9]+)", output) == ["5", "5"], "before the exporter is called, too: it may end the process"
