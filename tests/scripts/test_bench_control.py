"""The bench's own control: small programs, each of which the compiler would refuse, run through it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

CONTROL = Path(__file__).resolve().parents[2] / "scripts" / "benchlib" / "control.py"
# refuses to be compiled, traced or exported
HEAD = """
import io, os, torch, torch._dynamo, torch._inductor
from torch.export import export, load, save


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 2)
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x):
        if torch.compiler.is_compiling():
            raise RuntimeError("compiled")
        self.count += 1
        return self.linear(x).relu()


model, x = Model(), torch.randn(4, 3)
want = model(x)


def same(found):
    assert torch.equal(found, want)
"""

pytestmark = pytest.mark.slow


def control(tmp_path, text):
    """Exit status, calls, what was said."""
    script = tmp_path / "script.py"
    script.write_text(text)
    run = subprocess.run([sys.executable, str(CONTROL), "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=100)
    return run.returncode, int(re.findall(r"^bench-control: (\d+) calls$", run.stdout, re.MULTILINE)[-1]), run.stderr


@pytest.mark.parametrize(
    ("body", "calls"),
    [
        pytest.param(
            """
save(export(model, (x,)), "program.pt2")
same(load(os.path.abspath("program.pt2")).module()(x))
assert os.path.getsize("program.pt2") == 0
save(export(mod=model, args=(x,)), "there.pt2")
assert open("there.pt2").read() == "mine"
same(load("there.pt2").module()(x))
stream = io.BytesIO()
save(export(model, (x,)), stream)
stream.seek(0)
same(load(stream).module()(x))
assert model.count == 4, "exporting changes no state"
""",
            9,
            id="saved and loaded",
            marks=pytest.mark.all,
        ),
        pytest.param(
            """
program = export(model, (x,)).run_decompositions()
same(program.run_decompositions({}).module()(x))
same(torch.export.unflatten(program)(x))
assert sorted(program.state_dict) == ["count", "linear.bias", "linear.weight"]
assert [name for name, _ in program.named_parameters()] == ["linear.weight", "linear.bias"]
assert not list(program.graph.nodes) and program.example_inputs == ((x,), {})
print(program, program.graph_module.code)
""",
            4,
            id="looked into",
            marks=pytest.mark.all,
        ),
        pytest.param(
            """
same(torch._dynamo.optimize("inductor", nopython=True)(model)(x))
same(torch._dynamo.optimize_assert("eager")(model)(x))
same(torch._dynamo.export(model, x, aten_graph=True).graph_module(x))
traced, guards = torch._dynamo.export(model)(x)
same(traced(x))
same(torch.compiler.compile(model)(x))


@torch.compile(fullgraph=True)
def function(x):
    return model(x)


same(function(x))
model.compile(mode="default")
same(model(x))
""",
            7,
            id="compiled",
        ),
        pytest.param(
            """
same(torch._inductor.compile(model, [x])(x))
same(torch._inductor.standalone_compile(model, [x])(x))
same(torch._inductor.aoti_load_package(torch._inductor.aoti_compile_and_package(export(model, (x,))))(x))
given = torch._inductor.aoti_compile_and_package(export(model, (x,)), package_path="model.pt2")
assert given == "model.pt2" and os.path.exists(given)
loaded = torch._inductor.package.load_package(given, "model")
same(loaded(x))
loaded.load_constants({name: model.state_dict()[name] for name in loaded.get_constant_fqns()}, check_full_update=True)
library = torch._inductor.aot_compile(export(model, (x,)).module(), (x,), options={"aot_inductor.package": True})
same(torch._inductor.aoti_load_package(torch._inductor.package.package_aoti("other.pt2", {"model": library}))(x))
same(torch._export.aot_load(torch._export.aot_compile(model, (x,)), "cpu")(x))
""",
            14,
            id="packaged",
        ),
        pytest.param("same(model(x))", 0, id="eager"),
    ],
)
def test_a_program_without_its_compiler_passes_and_its_calls_are_counted(tmp_path, body, calls):
    (tmp_path / "there.pt2").write_text("mine")
    assert control(tmp_path, HEAD + body) == (0, calls, "")


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("export(model, (x.T,))", "RuntimeError: mat1 and mat2"),
        pytest.param("torch._dynamo.export(model)(x.T)", "RuntimeError: mat1 and mat2", marks=pytest.mark.all),
        pytest.param("load('nowhere.pt2')", "nowhere.pt2", marks=pytest.mark.all),
    ],
)
def test_what_eager_cannot_do_still_fails(tmp_path, body, says):
    status, calls, said = control(tmp_path, HEAD + body)
    assert (status, calls) == (1, 1)
    assert says in said
