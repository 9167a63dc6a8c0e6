"""Graphs of the real compiler, read, printed as a script and run without the compiler, must compute what the program computed."""

from __future__ import annotations

import itertools
import json
import sys
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.attention.flex_attention
from torch.testing import assert_close

from bot.inside.capture.fx_reader import Unreadable, read_exported, read_graph
from bot.inside.capture.fx_targets import evaluates_to, path_of
from bot.reduce.graph.codec import graph_from_json
from bot.reduce.graph.form import Graph, Pipeline, Program, Recipe
from bot.reduce.graph.naming import bind_symbols, canonical
from bot.reduce.graph.printer.script import render
from bot.reduce.graph.printer.tensors import embed_blobs
from tests.reduce.graph.json_form import graph_to_json

F = torch.nn.functional


@dataclass
class Captured:
    graphs: list[dict[str, Any]]
    outputs: list[Any]


@pytest.fixture(autouse=True)
def _fresh() -> Any:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def _copies(values: Sequence[Any]) -> list[Any]:
    return [v.detach().clone().requires_grad_(v.requires_grad) if isinstance(v, torch.Tensor) else v for v in values]


def capture_dynamo(fn: Callable[..., Any], args: Sequence[Any], tmp_path: Path, **options: Any) -> Captured:
    found = Captured([], [])

    def backend(gm: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        found.graphs.append(read_graph(gm, example_inputs, blob_dir=str(tmp_path)))

        def call(*given: Any) -> Any:
            torch.manual_seed(0)
            out = gm.forward(*given)
            found.outputs.append(out)
            return out

        return call

    torch.compile(fn, backend=backend, **options)(*args)
    return found


def capture_aot(fn: Callable[..., Any], args: Sequence[Any], tmp_path: Path, backward: bool = False, **options: Any) -> Captured:
    from torch._inductor import compile_fx

    found = Captured([], [])

    def inner(gm: torch.fx.GraphModule, example_inputs: Sequence[Any], **kwargs: Any) -> Callable[..., Any]:
        first = read_graph(gm, example_inputs, blob_dir=str(tmp_path))
        at = len(found.graphs)
        found.graphs.append(first)
        found.outputs.append(None)

        def call(given: Any) -> Any:
            # only now is there data
            found.graphs[at] = read_graph(gm, given, blob_dir=str(tmp_path))
            torch.manual_seed(0)
            with torch.no_grad():
                out = gm.forward(*given)
            found.outputs[at] = out
            given.clear()
            return out

        call._boxed_call = True
        return call

    def backend(gm: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Any:
        return compile_fx.compile_fx(gm, list(example_inputs), inner_compile=inner)

    out = torch.compile(fn, backend=backend, **options)(*args)
    if backward:
        out.sum().backward()
    return found


def decoded(data: dict[str, Any]) -> Graph:
    again = json.loads(json.dumps(data, allow_nan=False))
    graph = graph_from_json(again)
    assert graph_from_json(graph_to_json(graph)) == graph
    return graph


_COUNT = itertools.count()


def run(script: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What the script's compiled call returns when there is no compiler."""
    results: list[Any] = []
    compiled = torch.compile

    def identity(model: Any = None, **options: Any) -> Any:
        if options.get("fullgraph"):  # torch.cond and its like compile inside
            return compiled(model, **options)

        def call(*args: Any, **kwargs: Any) -> Any:
            torch.manual_seed(0)
            results.append(model(*args, **kwargs))
            return results[-1]

        return call

    with monkeypatch.context() as patch:
        patch.setattr(torch, "compile", identity)
        # Dynamo looks for the globals of what it compiles in their module, and keeps the module by its name
        module = types.ModuleType(f"repro_{next(_COUNT)}")
        patch.setitem(sys.modules, module.__name__, module)
        exec(compile(script, "repro.py", "exec"), vars(module))
    (result,) = results
    return result


def flat(value: Any) -> list[Any]:
    return [v for v in torch.utils._pytree.tree_leaves(value) if v is not None]


def assert_same(actual: Any, expected: Any) -> None:
    assert len(flat(actual)) == len(flat(expected))
    for a, e in zip(flat(actual), flat(expected), strict=True):
        if isinstance(e, torch.Tensor):
            assert a.dtype == e.dtype
            assert a.stride() == e.stride()
            assert_close(a.detach(), e.detach(), equal_nan=True)
        else:
            assert a == e


def scripts(data: dict[str, Any], recipe: Recipe | None = None) -> list[str]:
    """The script with data in files, and the one that stands alone."""
    graph = canonical(bind_symbols(decoded(data)))
    assert canonical(graph) == graph
    program = Program(graph, recipe or Recipe(dynamic=False))
    return [render(program), render(embed_blobs(program))]


def check(found: Captured, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    made = []
    assert found.graphs
    for data, expected in zip(found.graphs, found.outputs, strict=True):
        for script in scripts(data):
            try:
                assert_same(run(script, monkeypatch), expected)
            except Exception as error:
                raise AssertionError(script) from error
            made.append(script)
    return made


# -- programs ---------------------------------------------------------------------------------------------------------


def mm(x, y):
    return x @ y + 1


def conv_norm(x, w):
    x = F.conv2d(x, w, stride=(1, 1), padding="same")
    return F.relu(F.layer_norm(x, x.shape[-1:]), inplace=True)


def attention(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(2, 4, -1)


def dropout(x):
    return F.dropout(x, 0.5, training=True) + torch.rand_like(x)


def embedding(i, w):
    return F.embedding(i, w, padding_idx=0), F.one_hot(i)


def indexing(x, i):
    a = x[1:, None, ..., ::2]
    b = x[i, :2]
    c = x[..., -1]
    d = x[[0, 1], [1, 0]]
    e = x[x > 0]
    return a, b, c, d, e


def in_place(x, y):
    x = x.clone()
    x[0, 1:] = 3.0
    x += y
    x.mul_(2).add_(1)
    x[x > 2] = -1
    z = x.t()
    z *= 2
    return x


def tuples(x):
    values, indices = x.max(dim=-1)
    a, b = x.split([1, 2])
    s = torch.sort(x)
    return {"v": values, "i": [indices, a], "s": s.values, "t": b.T}


def scalars(x):
    return x * float("inf"), x**-2, 2 - x, x.clamp(min=-1.5), torch.full((2,), float("nan")), x * (1 + 2j), -x, ~(x > 0)


def dtypes(x):
    y = x.to(torch.float16).to(dtype=torch.float64, device="cpu")
    return y, torch.arange(4, dtype=torch.int32, device=x.device), torch.zeros(2, 2, device="cpu"), x.to(memory_format=torch.channels_last)


def branches(x):
    return torch.cond(x.sum() > 0, lambda a: a.sin() + 1, lambda a: a.cos(), (x,))


def nested_branches(x, y):
    def inner(a):
        return torch.cond(a.sum() > 3, lambda b: b * y, lambda b: b - y, (a,))

    return torch.cond(x.sum() > 0, inner, lambda a: a.clone(), (x,))


def autocast(x, w):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ w
        with torch.autocast("cpu", enabled=False):
            z = y.float() @ w
    with torch.no_grad():
        z = z * 2
    return y, z


def loop(x):
    def cond(i, x):
        return i < 3

    def body(i, x):
        return i + 1, x * 2

    return torch._higher_order_ops.while_loop(cond, body, (torch.tensor(0), x))


def scan(x, xs, w):
    def step(carry, item):
        return torch.tanh(carry + item @ w), item * 2

    return torch._higher_order_ops.scan(step, x, xs)


def scan_of_two(x, xs, w):
    def step(carry, items):
        (a, b), (c, d) = carry, items
        return (a + c * w, b * d), {"sum": a + b, "product": c * d}

    return torch._higher_order_ops.scan(step, (x, x + 1), (xs, xs.cos()), reverse=True)


def mapped(xs, w):
    return torch._higher_order_ops.map(lambda x: x @ w, xs)


def mapped_two(xs, w):
    return torch._higher_order_ops.map(lambda pair, w: (pair[0] @ w, pair[1] + 1), (xs, xs.sin()), w)


def checkpointed(x, w):
    return torch.utils.checkpoint.checkpoint(lambda a: torch.sin(a @ w), x, use_reentrant=False)


def kwargs_and_names(x):
    sums = torch.sum(x, dim=(0, 1), keepdim=True), torch.std(x, correction=0), x.sum(), max(x.shape[0], 2)
    return sums, torch.linalg.norm(x), torch.fft.fft(x)


def einsum(x, y):
    return torch.einsum("ij,jk->ik", x, y), torch.cat([x, y.t()], dim=0), torch.stack((x, x))


def statistics(x, mean, var):
    return F.batch_norm(x, mean, var, training=True), mean


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g


@torch.compiler.nested_compile_region
def region(x):
    return x.sin() + 1


def flex(q, k, v, bias):
    return torch.nn.attention.flex_attention.flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: s + bias[h] + i - j)


def inference(x):
    with torch.inference_mode():
        y = x * 2
    return y + 1


def many(x):
    a = torch.where(x > 0, x, 0.0), x.topk(2).indices, x.new_tensor([1, 2]), x.dtype == torch.float32, torch.finfo(x.dtype).max
    return a, abs(x), -x // 3, x.long() >> 1, F.pad(x[None], (1, 1), mode="reflect"), x.to(torch.float8_e4m3fn).float()


def r(*shape: int, **kw: Any) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)), **kw)


PROGRAMS: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "mm": (mm, [r(3, 4), r(4, 5)]),
    "mm_strided": (mm, [r(4, 3).t(), r(4, 10)[:, ::2]]),
    "mm_grad": (mm, [r(3, 4, requires_grad=True), r(4, 5)]),
    "conv_norm": (conv_norm, [r(1, 2, 8, 8), r(4, 2, 3, 3)]),
    "conv_channels_last": (conv_norm, [r(2, 3, 8, 8).to(memory_format=torch.channels_last), r(4, 3, 3, 3)]),
    "attention": (attention, [r(2, 2, 4, 8), r(2, 2, 4, 8), r(2, 2, 4, 8)]),
    "dropout": (dropout, [r(4, 4)]),
    "embedding": (embedding, [torch.tensor([[1, 2], [3, 0]]), r(5, 4)]),
    "indexing": (indexing, [r(3, 4), torch.tensor([2, 0])]),
    "in_place": (in_place, [r(3, 3), r(3)]),
    "tuples": (tuples, [r(3, 4)]),
    "scalars": (scalars, [r(3)]),
    "dtypes": (dtypes, [r(2, 3, 4, 5)]),
    "branches": (branches, [r(3, 3)]),
    "nested_branches": (nested_branches, [r(3, 3).abs(), r(3, 3)]),
    "autocast": (autocast, [r(4, 4), r(4, 4)]),
    "loop": (loop, [r(3)]),
    "scan": (scan, [r(4), r(5, 4), r(4, 4)]),
    "scan_of_two": (scan_of_two, [r(4), r(5, 4), r(4)]),
    "mapped": (mapped, [r(3, 2, 4), r(4, 4)]),
    "mapped_two": (mapped_two, [r(3, 2, 4), r(4, 4)]),
    "checkpointed": (checkpointed, [r(4, 4, requires_grad=True), r(4, 4)]),
    "kwargs_and_names": (kwargs_and_names, [r(3, 4)]),
    "einsum": (einsum, [r(3, 4), r(4, 3)]),
    "statistics": (statistics, [r(4, 3), torch.zeros(3), torch.ones(3)]),
    "own_function": (lambda x: Square.apply(x) + 1, [r(3, requires_grad=True)]),
    "nested_regions": (lambda x: region(region(x)), [r(3)]),
    "flex_attention": (flex, [r(1, 2, 16, 16), r(1, 2, 16, 16), r(1, 2, 16, 16), r(2)]),
    "jacobian": (lambda x: torch.func.jacfwd(lambda a: a.sin() * a)(x), [r(3)]),
    "vmap": (lambda x: torch.func.vmap(lambda a: a.sin() * 2)(x), [r(3, 4)]),
    "inference": (inference, [r(3)]),
    "many": (many, [r(3)]),
    "half": (mm, [r(3, 4).half(), r(4, 5).half()]),
    "bfloat16": (mm, [r(3, 4).bfloat16(), r(4, 5).bfloat16()]),
    "complex": (mm, [r(3, 4) + 1j, r(4, 5) * 1j]),
    "bool": (lambda x: x & (x | ~x), [torch.tensor([True, False])]),
    "expanded": (lambda x, y: x.expand(4, 3) + y, [r(1, 3), r(1, 3).expand(4, 3)]),
    "special_values": (lambda x: x.nan_to_num(), [torch.tensor([float("nan"), float("inf"), -0.0, 1e-45, 3.4e38])]),
    "empty": (lambda x: x.sum(0), [torch.zeros(0, 3)]),
    "scalar_tensor": (lambda x: x * 2, [torch.tensor(1.5)]),
    "large": (lambda x: x.exp(), [r(20, 20)]),
    "large_strided": (lambda x: x.exp(), [r(20, 20).t()]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_dynamo_graph_computes_the_same_as_a_script(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fn, args = PROGRAMS[name]
    check(capture_dynamo(fn, args, tmp_path), monkeypatch)


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_aot_graph_computes_the_same_as_a_script(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fn, args = PROGRAMS[name]
    check(capture_aot(fn, args, tmp_path), monkeypatch)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("level", ["dynamo", "aot"])
def test_dynamo_takes_the_script_as_one_graph(name: str, level: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fn, args = PROGRAMS[name]
    found = capture_dynamo(fn, args, tmp_path) if level == "dynamo" else capture_aot(fn, args, tmp_path)
    for data, expected in zip(found.graphs, found.outputs, strict=True):
        torch._dynamo.reset()
        script = scripts(data, Recipe(backend='"eager"', fullgraph=True, dynamic=False))[0]
        try:
            with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
                assert_same(run_compiled(script), expected)
        except Exception as error:
            raise AssertionError(script) from error


def run_compiled(script: str) -> Any:
    script = script.rstrip().rsplit("\n", 1)
    scope: dict[str, Any] = {"__name__": "__main__"}
    exec(f"{script[0]}\ntorch.manual_seed(0)\nresult = {script[1]}", scope)
    return scope["result"]


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = torch.nn.Linear(4, 4)
        self.norm = torch.nn.BatchNorm1d(4)
        self.layers = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.GELU())
        self.register_buffer("scale", torch.arange(4.0))
        self.table = torch.tensor([[0.5, 1.5]])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(self.norm(self.fc(x))) * self.scale + self.table.sum()


def test_a_module_keeps_its_parameters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(1)
    net = Net().eval()
    found = capture_dynamo(net, [torch.randn(3, 4)], tmp_path)
    made = check(found, monkeypatch)
    assert [i["name"] for i in found.graphs[0]["inputs"]] == ["l_x_", "l_self_table"]
    assert "self.fc_weight = torch.nn.Parameter(" in made[0]


def test_a_module_that_dynamo_calls_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.LayerNorm(3)).eval()

    class Holder(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = net

    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    graph.output((graph.call_module("net", (x,)),))
    gm = torch.fx.GraphModule(Holder(), graph)
    value = torch.randn(2, 4)
    data = read_graph(gm, [value], blob_dir=str(tmp_path))
    assert [n["target"] for n in data["nodes"]] == ["torch.nn.functional.linear", "torch.nn.functional.layer_norm"]
    for script in scripts(data):
        assert_same(run(script, monkeypatch), net(value))


def test_forward_and_backward_graphs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fn(x, w, i):
        h = F.gelu(F.layer_norm(x @ w, (4,)))
        return F.dropout(F.cross_entropy(h, i, reduction="none"), 0.5)

    args = [r(3, 4, requires_grad=True), r(4, 4, requires_grad=True), torch.tensor([0, 3, 1])]
    found = capture_aot(fn, args, tmp_path, backward=True)
    assert len(found.graphs) == 2
    assert not any("requires_grad" in i for g in found.graphs for i in g["inputs"])
    check(found, monkeypatch)


def test_sizes_that_were_symbolic_are_asked_of_the_tensors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fn(x, n, f):
        y = x.view(x.shape[0] * 2, -1)[:n]
        return y * f + x.shape[0], y.new_zeros(x.size(0) // 2), torch.arange(x.shape[0], device=x.device)

    found = capture_dynamo(fn, [r(6, 4), 3, 2.5], tmp_path, dynamic=True)
    made = check(found, monkeypatch)
    graph = bind_symbols(decoded(found.graphs[0]))
    assert [i.meta.kind for i in graph.inputs] == ["tensor", "int", "float"]
    assert graph.inputs[0].meta.dynamic == (0, 1)
    assert "x.size(0)" in made[0]
    marked = render(Program(canonical(graph), Recipe()))
    assert "torch._dynamo.mark_dynamic(x, 0)" in marked


def test_symbolic_aot_graphs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fn(x):
        return torch.cat([x, x]).view(-1, x.shape[1] * 2).sum(0)

    found = capture_aot(fn, [r(6, 4)], tmp_path, dynamic=True)
    made = check(found, monkeypatch)
    assert "x.size(0)" in made[0]


class Exported(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = torch.nn.Linear(4, 4)
        self.register_buffer("count", torch.zeros(4))
        self.shift = torch.arange(4)

    def forward(self, x, pair, *, mask, scale=None, name="mean"):
        self.count.add_(1)
        with torch.no_grad():
            y = self.fc(x) + pair["a"] * pair["b"][0]
        if name == "mean":
            y = y.mean(0)
        return {"y": y * mask + self.count, "rest": [x.sum(), (self.shift, 3)]}


@pytest.mark.parametrize("decomposed", [False, True])
def test_an_exported_program(decomposed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Exported()
    args = (r(2, 4), {"a": r(4), "b": [r(1)]})
    kwargs = {"mask": torch.ones(4), "scale": None, "name": "mean"}
    ep = torch.export.export(model, args, kwargs)
    if decomposed:
        ep = ep.run_decompositions()
    data = read_exported(ep, blob_dir=str(tmp_path))
    expected = ep.module()(*args, **kwargs)
    graph = canonical(bind_symbols(decoded(data)))
    assert [(i.name, i.keyword) for i in graph.inputs] == [("x", None), ("y", None), ("z", None), ("mask", "mask")]
    assert sum(c.parameter for c in graph.constants) == 2
    for script in scripts(data):
        assert_same(run(script, monkeypatch), expected)
        assert '"y": ' in script
        assert "mask=mask" in script
    exported = render(Program(graph, Recipe(pipeline=Pipeline.AOTI)))
    monkeypatch.setattr(torch._inductor, "aoti_compile_and_package", lambda ep: ep)
    monkeypatch.setattr(torch._inductor, "aoti_load_package", lambda path: path.module())
    exec(exported, {"__name__": "__main__"})
    assert 'torch.export.export(Repro(), (x, y, z), kwargs={"mask": mask})' in exported


def test_an_exported_program_with_dynamic_dimensions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Dynamic(torch.nn.Module):
        def forward(self, x):
            y = torch.nonzero(x)
            return x.view(-1, x.shape[0] // 2), y.shape[0] * 2

    ep = torch.export.export(Dynamic(), (r(8, 4),), dynamic_shapes=({0: torch.export.Dim.DYNAMIC},))
    data = read_exported(ep, blob_dir=str(tmp_path))
    for script in scripts(data):
        assert_same(run(script, monkeypatch), ep.module()(r(8, 4)))
    text = render(Program(canonical(bind_symbols(decoded(data))), Recipe(pipeline=Pipeline.AOTI)))
    assert 'dynamic_shapes={"x": {0: torch.export.Dim.DYNAMIC}}' in text
    monkeypatch.setattr(torch._inductor, "aoti_compile_and_package", lambda ep: ep)
    monkeypatch.setattr(torch._inductor, "aoti_load_package", lambda path: path.module())
    exec(text, {"__name__": "__main__"})


def test_without_data_the_values_are_sensible(tmp_path: Path) -> None:
    graph = torch.fx.Graph()
    places = [graph.placeholder(n) for n in ("x", "i", "b")]
    graph.output(tuple(places))
    gm = torch.fx.GraphModule(torch.nn.Module(), graph)
    with torch._subclasses.FakeTensorMode():
        fakes = [torch.empty(2), torch.empty(2, dtype=torch.int64), torch.empty(2, dtype=torch.bool)]
    data = read_graph(gm, fakes, blob_dir=str(tmp_path))
    assert [i["value"]["kind"] for i in data["inputs"]] == ["randn", "zeros", "randint"]


def test_what_an_operator_writes_to_by_its_schema_is_told(tmp_path: Path) -> None:
    """Its name need not say so. Without copies of the inputs, eager's call would change what the compiled one gets."""

    def reverse_into(src: torch.Tensor, times: int, dst: torch.Tensor) -> None:
        dst.copy_(src.flip(0) * times)

    namespace = torch.library.Library("written_to", "FRAGMENT")
    namespace.define("reverse_into(Tensor src, int times, Tensor(a!) dst) -> ()")
    namespace.impl("reverse_into", reverse_into, "CompositeExplicitAutograd")

    def changes(x: torch.Tensor) -> torch.Tensor:
        torch.ops.written_to.reverse_into(x.clone(), 2, dst=x)
        torch.ops.written_to.reverse_into.default(x.clone(), 2, x)
        return torch.ops.aten.add.Tensor(x, 1).mul_(x)

    (read,) = capture_dynamo(changes, [torch.arange(3.0)], tmp_path).graphs
    nodes = graph_from_json(read).nodes
    assert [node.writes for node in nodes if "written_to" in node.target] == [("dst",), (2,)]
    assert not any(node.writes for node in nodes if "written_to" not in node.target)


def test_leaves_and_results_of_operations_are_told_apart(tmp_path: Path) -> None:
    graph = torch.fx.Graph()
    graph.output((graph.placeholder("x"), graph.placeholder("y")))
    gm = torch.fx.GraphModule(torch.nn.Module(), graph)
    leaf = torch.randn(2, requires_grad=True)
    data = decoded(read_graph(gm, [leaf, leaf * 1], blob_dir=None))
    assert [(i.requires_grad, i.leaf) for i in data.inputs] == [(True, True), (True, False)]


def test_what_has_no_name_is_refused() -> None:
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    graph.output((graph.call_function(lambda v: v, (x,)),))
    gm = torch.fx.GraphModule(torch.nn.Module(), graph)
    with pytest.raises(Unreadable, match="no Python name"):
        read_graph(gm, [torch.ones(1)], blob_dir=None)


def test_sparse_inputs_are_refused() -> None:
    graph = torch.fx.Graph()
    graph.output((graph.placeholder("x"),))
    gm = torch.fx.GraphModule(torch.nn.Module(), graph)
    with pytest.raises(Unreadable, match="sparse"):
        read_graph(gm, [torch.ones(2, 2).to_sparse()], blob_dir=None)


@pytest.mark.parametrize(
    ("target", "path"),
    [
        (torch._C._nn.gelu, "torch.nn.functional.gelu"),
        (torch._C._nn.linear, "torch.nn.functional.linear"),
        (torch._C._fft.fft_rfft, "torch.fft.rfft"),
        (torch._C._linalg.linalg_norm, None),
        (torch.relu, "torch.relu"),
        (torch.Tensor.add_, "torch.Tensor.add_"),
        (torch.ops.aten.relu.default, "torch.ops.aten.relu.default"),
        (torch.ops.higher_order.cond, "torch.ops.higher_order.cond"),
        (getattr, "builtins.getattr"),
        (torch._C._set_grad_enabled, "torch._C._set_grad_enabled"),
    ],
)
def test_targets_evaluate_to_themselves(target: Any, path: str | None) -> None:
    found = path_of(target)
    assert path is None or found == path
    assert evaluates_to(found, target)


def test_a_call_with_other_sizes_than_the_first(tmp_path: Path) -> None:
    """A graph that was compiled for sizes that are symbols, read with the inputs of a later call."""
    graphs: list[Any] = []

    def backend(gm: Any, inputs: Any) -> Any:
        graphs.append(gm)
        return gm

    fn = torch.compile(lambda x: x.sum(0) / x.shape[0], backend=backend, dynamic=True)
    fn(r(6, 4))
    places = graphs[0].graph.find_nodes(op="placeholder")
    later = r(3, 4)
    values = [later if isinstance(node.meta["example_value"], torch.Tensor) else 3 for node in places]
    data = read_graph(graphs[0], values, blob_dir=str(tmp_path))
    (tensor,) = [one for one in data["inputs"] if one["meta"]["kind"] == "tensor"]
    assert tensor["meta"]["shape"] == [3, 4]
    assert tensor["meta"]["stride"] == [4, 1]
    assert "dynamic" in tensor["meta"]


def test_reading_does_not_specialize_a_symbolic_size(tmp_path: Path) -> None:
    sizes: list[Any] = []

    def backend(gm: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Any:
        places = [n for n in gm.graph.nodes if n.op == "placeholder"]
        read_graph(gm, example_inputs, blob_dir=str(tmp_path))
        sizes.extend(type(n.meta["example_value"].node.expr).__name__ for n in places if isinstance(n.meta["example_value"], torch.SymInt))
        return gm.forward

    torch.compile(lambda x: x.view(-1) * 2, backend=backend, dynamic=True)(r(6, 4))
    assert sizes
    assert set(sizes) == {"Symbol"}
