"""What a script looks like, and that it runs."""

from __future__ import annotations

import base64
import json
import math
import struct
import subprocess
import sys
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.inside.capture.fx_values import dump
from bot.reduce.graph.form import Code, Graph, Input, Mapping, Meta, Node, Pipeline, Program, Recipe, Ref, Slice, Value, contiguous_stride
from bot.reduce.graph.naming import bind_symbols, canonical
from bot.reduce.graph.printer.expressions import quoted, text
from bot.reduce.graph.printer.script import lines, render
from bot.reduce.graph.printer.tensors import embed_blobs, make
from tests.reduce.graph.world import op


@pytest.fixture(autouse=True)
def _fresh() -> Any:
    torch._dynamo.reset()
    config = torch._inductor.config.save_config()
    yield
    torch._inductor.config.load_config(config)
    torch._dynamo.reset()


def tensor(*shape: int, dtype: str = "float32", stride: tuple[int, ...] | None = None, **kw: Any) -> Meta:
    return Meta("tensor", shape, contiguous_stride(shape) if stride is None else stride, dtype, **kw)


def node(name: str, target: str, *args: Any, op: str = "function", meta: Meta | None = None, **kwargs: Any) -> Node:
    return Node(name, op, target, args, tuple(kwargs.items()), meta or tensor(4))


X = Input("x", tensor(4))
RELU = Graph((X,), (node("relu", "torch.ops.aten.relu.default", Ref("x")),), Ref("relu"))


def execute(script: str) -> dict[str, Any]:
    scope: dict[str, Any] = {"__name__": "__main__"}
    try:
        exec(compile(script, "repro.py", "exec"), scope)
    except Exception as error:
        raise AssertionError(script) from error
    return scope


def body(graph: Graph) -> list[str]:
    script = render(Program(graph))
    return [line.strip() for line in script.split("def forward")[1].split("\n\n")[0].split("\n")[1:]]


def test_the_plain_script() -> None:
    assert render(Program(RELU, Recipe(seed=None))) == (
        "import torch\n"
        "\n\n"
        "class Repro(torch.nn.Module):\n"
        "    def forward(self, x):\n"
        "        return torch.ops.aten.relu.default(x)\n"
        "\n\n"
        "x = torch.randn(4)\n"
        "torch.compile(Repro())(x)\n"
    )


def test_comments_and_blank_lines_do_not_count() -> None:
    assert lines("# fails 3 of 3\n\nimport torch  # the compiler\n    # x\nf(1)\n") == 2


# -- operations -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("made", "shown"),
    [
        (node("a", "operator.add", Ref("x"), 1), "x + 1"),
        (node("a", "operator.pow", -2, Ref("x")), "(-2) ** x"),
        (node("a", "operator.sub", Code("-torch.inf"), Ref("x")), "(-torch.inf) - x"),
        (node("a", "operator.invert", Ref("x")), "~x"),
        (node("a", "operator.not_", Ref("x")), "not x"),
        (node("a", "operator.getitem", Ref("x"), (Code("..."), None, Slice(1, None, 2), Ref("x"))), "x[..., None, 1::2, x]"),
        (node("a", "operator.getitem", Ref("x"), ()), "x[()]"),
        (node("a", "operator.getitem", Ref("x"), (0,)), "x[0,]"),
        (node("a", "operator.getitem", Ref("x"), Slice(None, -1)), "x[:-1]"),
        (node("a", "operator.getitem", Ref("x"), [0, 1]), "x[[0, 1]]"),
        (node("a", "operator.truth", Ref("x")), "operator.truth(x)"),
        (node("a", "builtins.getattr", Ref("x"), "T"), "x.T"),
        (node("a", "builtins.max", Ref("x"), 2), "max(x, 2)"),
        (node("a", "__main__.helper", Ref("x")), "helper(x)"),
        (node("a", "view", Ref("x"), -1, op="method"), "x.view(-1)"),
        (node("a", "torch.ops.aten.sym_size.int", Ref("x"), 0), "x.size(0)"),
        (node("a", "torch.ops.aten.sym_numel.default", Ref("x")), "x.numel()"),
        (
            node("a", "torch.zeros", (2,), device=Code('torch.device("cpu")'), dtype=Code("torch.half")),
            'torch.zeros((2,), device="cpu", dtype=torch.half)',
        ),
        (node("a", "torch.f", **{"from": 1, "to": 2}), 'torch.f(to=2, **{"from": 1})'),
        (
            node("a", "torch.f", [1, Ref("x")], (Ref("x"),), 'it\'s "so"', Mapping((("k", 1),))),
            """torch.f([1, x], (x,), 'it\\'s "so"', {"k": 1})""",
        ),
        (
            node("a", "torch.f", math.inf, complex(1, math.nan), Slice(1, 2)),
            "torch.f(torch.inf, complex(1.0, torch.nan), slice(1, 2, None))",
        ),
    ],
)
def test_operations_read_as_people_write_them(made: Node, shown: str) -> None:
    assert body(Graph((X,), (made,), Ref("a"))) == [f"return {shown}"]


def test_statements_in_place() -> None:
    graph = Graph(
        (X, Input("y", tensor(4)), Input("n", Meta("int"), Value("literal", ("2",)))),
        (
            node("setitem", "operator.setitem", Ref("x"), (0,), 3.0, meta=Meta()),
            node("iadd", "operator.iadd", Ref("x"), Ref("y")),
            node("iadd_1", "operator.iadd", Ref("n"), 1, meta=Meta("int")),
            node("add_", "add_", Ref("iadd"), 1, op="method"),
            node("mul", "operator.mul", Ref("iadd"), Ref("iadd_1")),
        ),
        (Ref("mul"), Ref("iadd")),
    )
    assert body(graph) == ["x[0,] = 3.0", "x += y", "iadd_1 = operator.iadd(n, 1)", "x.add_(1)", "mul = x * iadd_1", "return mul, x"]


def test_contexts_become_with_blocks() -> None:
    enter = "torch.amp.autocast_mode._enter_autocast"
    leave = "torch.amp.autocast_mode._exit_autocast"
    grad = "torch._C._set_grad_enabled"
    graph = Graph(
        (X,),
        (
            node("e", enter, "cpu", Code("torch.bfloat16"), True, None),
            node("a", "operator.add", Ref("x"), 1),
            node("e_1", enter, "cpu", None, False, None),
            node("b", "operator.add", Ref("a"), 1),
            node("l_1", leave, Ref("e_1")),
            node("l", leave, Ref("e")),
            node("g", grad, False),
            node("c", "operator.add", Ref("b"), 1),
            node("g_1", grad, True),
            node("e_2", enter, "cpu", None, True, None),
            node("l_2", leave, Ref("e_2")),
        ),
        Ref("c"),
    )
    script = render(Program(graph))
    assert script.split("def forward")[1].split("\n\n")[0].split("\n")[1:] == [
        '        with torch.autocast("cpu", dtype=torch.bfloat16):',
        "            a = x + 1",
        '            with torch.autocast("cpu", enabled=False):',
        "                b = a + 1",
        "        with torch.no_grad():",
        "            c = b + 1",
        "        return c",
    ]
    execute(script.replace("torch.compile(Repro())", "Repro()"))


def test_a_context_whose_end_was_removed_stays_open() -> None:
    graph = Graph((X,), (node("g", "torch._C._set_grad_enabled", False), node("a", "operator.add", Ref("x"), 1)), Ref("a"))
    assert body(graph) == ["with torch.no_grad():", "return x + 1"]
    graph = Graph(
        (X,), (node("l", "torch.amp.autocast_mode._exit_autocast", Ref("gone")), node("a", "operator.add", Ref("x"), 1)), Ref("a")
    )
    assert body(graph) == ["return x + 1"]


def test_higher_order_operations_call_functions() -> None:
    inner = Graph((Input("a", tensor(4)),), (node("r", "torch.relu", Ref("a")),), (Ref("r"),))
    held = replace(inner, nodes=(node("r", "operator.add", Ref("a"), Ref("c")),), constants=(Input("c", tensor(4), Value("ones")),))
    graph = Graph(
        (X,),
        (
            node("s", "torch.sum", Ref("x"), meta=tensor()),
            node("p", "operator.gt", Ref("s"), 0, meta=tensor(dtype="bool")),
            node("cond", "torch.ops.higher_order.cond", Ref("p"), Ref("true_graph_0"), Ref("false_graph_0"), (Ref("x"),)),
            node("g", "operator.getitem", Ref("cond"), 0),
            node("w", "torch.ops.higher_order.wrap_with_set_grad_enabled", False, Ref("true_graph_0"), Ref("g")),
            node("h", "operator.getitem", Ref("w"), 0),
        ),
        Ref("h"),
        bodies=(("true_graph_0", inner), ("false_graph_0", held)),
    )
    script = render(Program(canonical(graph), Recipe(backend='"eager"', fullgraph=True)))
    assert "def true_fn(x):\n    relu = torch.relu(x)\n    return (relu,)\n" in script
    assert "false_fn_c = torch.ones(4)" in script
    assert "torch.cond(gt, true_fn, false_fn, (x,))" in script
    assert "        with torch.no_grad():\n            wrap_with_set_grad_enabled = true_fn(getitem)\n" in script
    execute(script)


# -- inputs -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("item", "shown"),
    [
        (Input("x", tensor(2, 3)), "torch.randn(2, 3)"),
        (Input("x", tensor()), "torch.randn(())"),
        (Input("x", tensor(2, dtype="float16")), "torch.randn(2, dtype=torch.float16)"),
        (Input("x", tensor(2, device="cuda")), 'torch.randn(2, device="cuda")'),
        (Input("x", tensor(2), requires_grad=True), "torch.randn(2, requires_grad=True)"),
        (Input("x", tensor(2), requires_grad=True, leaf=False), "torch.randn(2, requires_grad=True) * 1"),
        (Input("x", tensor(2, 3, stride=(1, 2))), "torch.randn(3, 2).t()"),
        (Input("x", tensor(2, 3, stride=(1, 2)), requires_grad=True), "torch.randn(3, 2).t().requires_grad_()"),
        (Input("x", tensor(2, 3, 4, stride=(4, 8, 1))), "torch.randn(3, 2, 4).permute(1, 0, 2)"),
        (Input("x", tensor(2, 3, 4, 5, stride=(60, 1, 15, 3))), "torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)"),
        (Input("x", tensor(4, 3, stride=(0, 1))), "torch.randn(1, 3).expand(4, 3)"),
        (Input("x", tensor(4, stride=(0,))), "torch.randn(1).expand(4)"),
        (Input("x", tensor(2, 3, stride=(8, 2))), "torch.randn(13).as_strided((2, 3), (8, 2))"),
        (Input("x", tensor(2, dtype="int64"), Value("randint", (0, 5))), "torch.randint(0, 5, (2,))"),
        (Input("x", tensor(2, dtype="bool"), Value("randint", (0, 2))), "torch.randint(0, 2, (2,), dtype=torch.bool)"),
        (Input("x", tensor(2, dtype="int64")), "torch.zeros(2, dtype=torch.int64)"),
        (Input("x", tensor(2, dtype="int64"), Value("arange")), "torch.arange(2)"),
        (Input("x", tensor(2, 2), Value("arange")), "torch.arange(4, dtype=torch.float32).reshape(2, 2)"),
        (Input("x", tensor(2), Value("full", (2.5,))), "torch.full((2,), 2.5)"),
        (Input("x", tensor(2), Value("full", ("torch.inf",))), "torch.full((2,), torch.inf)"),
        (Input("x", tensor(2, dtype="int32"), Value("literal", ("[1, 2]",))), "torch.tensor([1, 2], dtype=torch.int32)"),
        (Input("x", tensor(2, dtype="int64"), Value("literal", ("[1, 2]",))), "torch.tensor([1, 2])"),
        (Input("x", tensor(0, 3, dtype="int64"), Value("literal", ("[]",))), "torch.zeros(0, 3, dtype=torch.int64)"),
        (Input("x", Meta("int"), Value("literal", ("5",))), "5"),
        (Input("x", tensor(2), Value("expr", ("torch.eye(2)[0]",))), "torch.eye(2)[0]"),
    ],
)
def test_values(item: Input, shown: str) -> None:
    assert make(item) == shown


def test_the_default_dtype_is_the_script_s() -> None:
    script = render(Program(RELU, Recipe(setup=("torch.set_default_dtype(torch.float64)",))))
    assert "x = torch.randn(4, dtype=torch.float32)" in script


dtypes = st.sampled_from(["float32", "float64", "float16", "bfloat16", "complex64", "int64", "int32", "int8", "uint8", "bool"])
kinds = st.sampled_from(["randn", "rand", "randint", "zeros", "ones", "full", "arange", "literal", "blob"])


@st.composite
def laid_out(draw: Any) -> tuple[torch.Tensor, str]:
    """A tensor of any layout, and how it is made."""
    shape = draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    made = torch.arange(math.prod(shape) * 4).reshape([*shape, 4])[..., draw(st.integers(0, 3))]
    how = draw(st.sampled_from(["plain", "permuted", "sliced", "expanded", "gaps"]))
    if how == "plain":
        made = made.contiguous()
    if how == "permuted":
        made = made.contiguous().permute(draw(st.permutations(range(made.dim()))))
    if how == "sliced":
        made = made[::2]
    if how == "expanded":
        made = made.contiguous()[:1].expand(5, *made.shape[1:])
    return made, how


@settings(deadline=None, max_examples=300)
@given(laid_out(), dtypes, kinds, st.booleans(), st.booleans())
def test_every_value_has_the_layout_and_dtype_it_is_said_to_have(
    tmp_path_factory: pytest.TempPathFactory, made: tuple[torch.Tensor, str], dtype: str, kind: str, grad: bool, leaf: bool
) -> None:
    like, how = made
    meta = tensor(*like.shape, dtype=dtype, stride=tuple(like.stride()))
    differentiable = dtype.startswith(("float", "bfloat", "complex"))
    if kind == "arange" and dtype in ("bool", "complex64"):
        kind = "zeros"
    if kind == "randint" and dtype == "complex64":
        kind = "zeros"
    data = like.to(getattr(torch, dtype)).contiguous()
    args: tuple[Any, ...] = {"full": (1,), "randint": (0, 2)}.get(kind, ())
    if kind == "literal":
        args = (repr(data.tolist()),)
    if kind == "blob":
        args = (dump("x", data, str(tmp_path_factory.getbasetemp())),)
    item = Input("x", meta, Value(kind, args), requires_grad=grad and differentiable, leaf=leaf)
    result = eval(make(item))
    assert result.shape == like.shape
    assert result.dtype == getattr(torch, dtype)
    assert result.requires_grad == item.requires_grad
    assert result.is_leaf == (leaf or not item.requires_grad)
    overlapping = how == "expanded"
    assert result.stride() == like.stride()
    if kind in ("literal", "blob"):
        expected = data[:1].expand_as(data) if overlapping else data
        assert torch.equal(result.detach(), expected)


def test_blobs_are_embedded(tmp_path: Path) -> None:
    values = {
        "x": (tensor(3), struct.pack("<3f", 0.1, math.inf, math.nan), "torch.tensor([0.1, torch.inf, torch.nan])"),
        "y": (tensor(2, 2, dtype="int64"), struct.pack("<4q", 0, 1, 2, 3), "torch.arange(4).reshape(2, 2)"),
        "z": (tensor(100), struct.pack("<100f", *[1.0] * 100), "torch.ones(100)"),
        "x3": (tensor(2, dtype="bool"), b"\1\0", "torch.tensor([True, False])"),
        "x4": (tensor(2, dtype="bfloat16"), b"\xc0\x3f\x00\x40", "torch.tensor([1.5, 2.0], dtype=torch.bfloat16)"),
        "x5": (tensor(2), struct.pack("<2f", -0.0, -0.0), "torch.tensor([-0.0, -0.0])"),
        "x6": (tensor(3, dtype="int64"), struct.pack("<3q", 7, 7, 7), "torch.full((3,), 7)"),
        "x7": (tensor(1, dtype="complex64"), struct.pack("<2f", 1.5, -2.0), "torch.tensor([(1.5-2j)], dtype=torch.complex64)"),
    }
    inputs = []
    for name, (meta, data, _) in values.items():
        (tmp_path / name).write_bytes(data)
        inputs.append(Input(name, meta, Value("blob", (str(tmp_path / name),))))
    graph = Graph(tuple(inputs), (node("r", "torch.relu", Ref("x")),), Ref("r"))
    script = render(embed_blobs(Program(graph)))
    assert str(tmp_path) not in script
    for name, (_, _, shown) in values.items():
        assert f"\n{name} = {shown}\n" in script


@pytest.mark.parametrize(("shape", "stride"), [((10, 10), (10, 1)), ((10, 10), (1, 10)), ((10, 10), (20, 2))])
def test_large_blobs_are_compressed(tmp_path: Path, shape: tuple[int, ...], stride: tuple[int, ...]) -> None:
    values = torch.randn(shape)
    path = tmp_path / "x.bin"
    path.write_bytes(struct.pack("<100f", *values.flatten().tolist()))
    item = Input("x", tensor(*shape, stride=stride), Value("blob", (str(path),)), requires_grad=True)
    graph = replace(RELU, inputs=(item,), constants=(replace(item, name="c", parameter=True),))
    script = render(embed_blobs(Program(graph, Recipe(backend='"eager"'))))
    assert str(tmp_path) not in script
    scope = execute(script)
    assert torch.equal(scope["x"], values)
    assert scope["x"].stride() == stride
    assert scope["x"].requires_grad


@pytest.mark.parametrize("shape", [(5,), (2, 3), (10, 10), (100,)])
@pytest.mark.parametrize(
    ("recorded", "dtype"),
    [("bfloat16", "float32"), ("float64", "float32"), ("float8_e5m2", "float32"), ("int16", "int64"), ("complex128", "complex64")],
)
def test_a_dump_keeps_its_numbers_in_another_dtype(tmp_path: Path, shape: tuple[int, ...], recorded: str, dtype: str) -> None:
    torch.manual_seed(0)
    data = (torch.randn(shape, dtype=torch.float64) * 100).to(getattr(torch, recorded))
    if recorded == "float64":
        data.view(-1)[:2] = torch.tensor([1e300, -1e300])
    value = Value("blob", (dump("x", data, str(tmp_path)), recorded))
    item = Input("x", tensor(*shape, dtype=dtype), value)
    assert torch.equal(eval(make(item)), data.to(getattr(torch, dtype)))
    script = render(embed_blobs(Program(replace(RELU, inputs=(item,)), Recipe(backend='"eager"'))))
    made = next(line for line in script.splitlines() if line.startswith("x = "))
    assert str(tmp_path) not in made
    embedded = eval(made.removeprefix("x = "), {"torch": torch, "zlib": zlib, "base64": base64})
    assert torch.equal(embedded, data.to(getattr(torch, dtype)))


# -- names ------------------------------------------------------------------------------------------------------------


def test_equal_programs_have_equal_text_under_canonical_names() -> None:
    def graph(a: str, b: str, c: str, w: str) -> Graph:
        nodes = (node(b, "torch.nn.functional.linear", Ref(a), Ref(w)), node(c, "sum", Ref(b), op="method"))
        return Graph((Input(a, tensor(4)),), nodes, Ref(c), constants=(Input(w, tensor(4, 4)),))

    first, second = canonical(graph("arg0_1", "n1", "n2", "weight")), canonical(graph("lambda", "torch", "self", "weight"))
    assert first == second
    assert canonical(first) == first
    assert [n.name for n in first.nodes] == ["linear", "sum_1"]
    assert render(Program(graph("lambda", "torch", "self", "weight"))) == render(Program(first))


def test_names_that_clash_with_the_module_s_are_changed() -> None:
    graph = canonical(
        Graph((X,), (node("a", "operator.add", Ref("x"), Ref("training")),), Ref("a"), constants=(Input("training", tensor(4)),))
    )
    assert graph.constants[0].name == "training_1"
    execute(render(Program(graph, Recipe(backend='"eager"'))))


def test_keyword_inputs_keep_their_names() -> None:
    graph = canonical(
        Graph((Input("a", tensor(4), keyword="input"), Input("b", tensor(4))), (node("n", "operator.add", Ref("a"), Ref("b")),), Ref("n"))
    )
    script = render(Program(graph, Recipe(backend='"eager"')))
    assert "def forward(self, x, input):" in script
    assert "(x, input=input)" in script
    execute(script)


@given(st.lists(st.sampled_from(["relu", "sum", "max", "x", "torch", "relu_", "add_", "view", "print", "z"]), max_size=6))
def test_canonical_is_a_fixed_point(targets: list[str]) -> None:
    nodes = tuple(node(f"n{i}", f"torch.{t}", Ref("x")) for i, t in enumerate(targets))
    graph = canonical(Graph((X,), nodes, tuple(Ref(n.name) for n in nodes), constants=(Input("relu", tensor(4)),)))
    assert canonical(graph) == graph
    names = [n.name for n in graph.nodes] + ["x", graph.constants[0].name]
    assert len(set(names)) == len(names)
    compile(render(Program(graph)), "repro.py", "exec")


def test_symbols_are_bound_to_sizes() -> None:
    x = Input("a", tensor(6, 4, dynamic=(0,)), keyword=None)
    x = replace(x, meta=replace(x.meta, symbols=("s0", None)))
    s = Input("s", Meta("int", symbols=("s0",)), Value("literal", ("6",)))
    other = Input("t", Meta("int", symbols=("s1",)), Value("literal", ("3",)))
    unused = Input("u", Meta("int", symbols=("s0",)), Value("literal", ("6",)))
    graph = canonical(
        bind_symbols(Graph((s, x, other, unused), (node("v", "view", Ref("a"), Ref("s"), -1, op="method"),), (Ref("v"), Ref("t"))))
    )
    script = render(Program(graph, Recipe(backend='"eager"')))
    assert "        sym_size = x.size(0)\n        view = x.view(sym_size, -1)\n        return view, y\n" in script
    assert graph.ops == 1
    assert script.endswith('torch._dynamo.mark_dynamic(x, 0)\ntorch.compile(Repro(), backend="eager")(x, y)\n')
    execute(script)


# -- recipes ----------------------------------------------------------------------------------------------------------

LINEAR = Graph(
    (Input("x", tensor(2, 4), requires_grad=True),),
    (
        node("linear", "torch.nn.functional.linear", Ref("x"), Ref("weight"), meta=tensor(2, 3)),
        node("dropout", "torch.nn.functional.dropout", Ref("linear"), 0.5, meta=tensor(2, 3)),
    ),
    Ref("dropout"),
    constants=(
        Input("weight", tensor(3, 4), requires_grad=True, parameter=True),
        Input("scale", tensor(3), Value("ones")),
    ),
)


def test_everything_a_recipe_says() -> None:
    recipe = Recipe(
        backend='"inductor"',
        mode="max-autotune",
        dynamic=True,
        fullgraph=True,
        config=(("torch._inductor.config.freezing", "True"),),
        contexts=("torch.no_grad()", 'torch.autocast("cpu")'),
        setup=("torch.use_deterministic_algorithms(True)",),
        seed=3,
    )
    script = render(Program(RELU, recipe, preamble="from __future__ import annotations\nimport torch\n\n\ndef mine():\n    return 1\n"))
    assert script.startswith("from __future__ import annotations\nimport torch\n\n\ndef mine():\n")
    assert "torch._inductor.config.freezing = True\ntorch.use_deterministic_algorithms(True)\n" in script
    assert script.endswith(
        "torch.manual_seed(3)\nx = torch.randn(4)\n"
        'with torch.no_grad(), torch.autocast("cpu"):\n'
        '    torch.compile(Repro(), backend="inductor", mode="max-autotune", dynamic=True, fullgraph=True)(x)\n'
    )
    compile(script, "repro.py", "exec")


def test_options_are_a_dict() -> None:
    script = render(Program(RELU, Recipe(options=(("max_autotune", "True"),))))
    assert 'torch.compile(Repro(), options={"max_autotune": True})(x)' in script


@pytest.mark.parametrize("accuracy", [False, True])
@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("freshness", [False, True])
@pytest.mark.parametrize("contexts", [(), ('torch.autocast("cpu", dtype=torch.bfloat16)',)])
def test_calls_of_torch_compile_run(accuracy: bool, backward: bool, freshness: bool, contexts: tuple[str, ...]) -> None:
    recipe = Recipe(backend='"aot_eager"', accuracy=accuracy, backward=backward, freshness=freshness, contexts=contexts)
    script = render(Program(LINEAR, recipe))
    execute(script)
    assert ("assert_close" in script) == accuracy
    assert ("fallback_random = True" in script) == accuracy
    assert script.count("torch.manual_seed(0)") == (3 if accuracy and not backward else 2 if accuracy else 1)


@pytest.mark.parametrize("backward", [False, True])
def test_accuracy_scripts_see_a_wrong_result(backward: bool) -> None:
    recipe = Recipe(backend="wrong", accuracy=True, backward=backward, seed=0)
    wrong = "def wrong(gm, example_inputs):\n    return lambda *args: tuple(o * 1.1 for o in gm.forward(*args))\n"
    script = render(Program(LINEAR, recipe, preamble=wrong))
    with pytest.raises(AssertionError, match="Tensor-likes are not close"):
        exec(compile(script, "repro.py", "exec"), {"__name__": "__main__"})


@pytest.mark.parametrize(
    ("dtype", "given", "shown"),
    [
        ("float32", {}, "rtol=1e-3, atol=1e-3"),
        ("bfloat16", {}, "rtol=0.016, atol=0.01"),
        ("float16", {}, "rtol=0.01, atol=0.01"),
        ("float32", {"repro_tolerance": 0.05}, "rtol=0.05, atol=0.05"),
        ("bfloat16", {"repro_tolerance": 1e-4}, "rtol=0.016, atol=0.01"),
        ("bfloat16", {"tolerance": (1e-4, 0.0)}, "rtol=1e-4, atol=0.0"),
    ],
)
@pytest.mark.parametrize("pipeline", Pipeline)
def test_what_counts_as_wrong_is_the_programs_and_its_dtypes(dtype: str, given: dict[str, Any], shown: str, pipeline: Pipeline) -> None:
    meta = tensor(4, dtype=dtype)
    graph = Graph((Input("x", meta),), (node("r", "torch.relu", Ref("x"), meta=meta),), (Ref("r"),))
    script = render(Program(graph, Recipe(pipeline=pipeline, accuracy=True, **given)))
    assert f"assert_close(actual, expected, {shown}, equal_nan=True)" in script


def test_gradients_of_low_precision_are_compared_as_such() -> None:
    x = Input("x", tensor(4, dtype="bfloat16"), requires_grad=True)
    graph = Graph((x,), (node("f", "float", Ref("x"), op="method", meta=tensor(4)),), Ref("f"))
    assert "rtol=1e-3" in render(Program(graph, Recipe(accuracy=True)))
    assert "rtol=0.016" in render(Program(graph, Recipe(accuracy=True, backward=True)))


def test_fused_operations_of_bfloat16_are_not_wrong() -> None:
    meta = tensor(2000, dtype="bfloat16")
    nodes = (node("a", "operator.mul", Ref("x"), 1.01, meta=meta), node("b", "operator.add", Ref("a"), 1.003, meta=meta))
    fused = "def fused(gm, inputs):\n    return lambda x: ((x.float() * 1.01 + 1.003).bfloat16(),)\n"
    graph = Graph((Input("x", meta, Value("rand")),), nodes, (Ref("b"),))
    script = render(Program(graph, Recipe(backend="fused", accuracy=True), preamble=fused))
    execute(script)
    with pytest.raises(AssertionError):
        execute(script.replace("rtol=0.016, atol=0.01", "rtol=1e-3, atol=1e-3"))


def test_a_wrong_gradient_alone_is_seen() -> None:
    wrong = (
        "class Wrong(torch.autograd.Function):\n"
        "    @staticmethod\n    def forward(ctx, x):\n        return x.clone()\n\n"
        "    @staticmethod\n    def backward(ctx, g):\n        return g * 2\n\n\n"
        "def backend(gm, example_inputs):\n    return lambda *args: tuple(Wrong.apply(o) for o in gm.forward(*args))\n"
    )
    recipe = Recipe(backend="backend", accuracy=True, backward=True)
    with pytest.raises(AssertionError, match="not close"):
        exec(compile(render(Program(LINEAR, recipe, preamble=wrong)), "repro.py", "exec"), {"__name__": "__main__"})


def test_gradients_of_a_weighted_sum() -> None:
    """The plain sum of a softmax has no gradient."""
    x = Input("x", tensor(2, 3), requires_grad=True)
    graph = Graph((x,), (node("y", "torch.softmax", Ref("x"), -1, meta=tensor(2, 3)),), Ref("y"))
    recipe = Recipe(backend='"aot_eager"', accuracy=True, backward=True, weighted=True)
    script = render(Program(graph, recipe))
    assert "torch.autograd.grad(out.flatten().double().cumsum(0).sum(), (x,), materialize_grads=True)" in script
    execute(script)


def test_several_outputs_are_differentiated() -> None:
    graph = replace(LINEAR, output=(Ref("linear"), Ref("dropout")))
    script = render(Program(graph, Recipe(backend='"aot_eager"', backward=True)))
    assert script.endswith("sum(o.sum() for o in out if o.requires_grad).backward()\n")
    execute(script)
    graph = replace(LINEAR, output=Mapping((("a", Ref("linear")), ("b", [Ref("dropout"), 3, None]))))
    execute(render(Program(graph, Recipe(backend='"aot_eager"', backward=True))))
    execute(render(Program(graph, Recipe(backend='"aot_eager"', backward=True, accuracy=True))))


def test_outputs_that_are_none_are_not_compared() -> None:
    execute(render(Program(replace(RELU, output=(Ref("relu"), None, 3)), Recipe(backend='"aot_eager"', accuracy=True))))


def execute_packaged(script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a script of AOTInductor with the exported program in place of the package."""
    monkeypatch.setattr(torch._inductor, "aoti_compile_and_package", lambda ep, **_: ep)
    monkeypatch.setattr(torch._inductor, "aoti_load_package", lambda path: path.module())
    execute(script)


@pytest.mark.parametrize("accuracy", [False, True])
def test_what_is_packaged_is_exported_with_its_keywords_and_dynamic_sizes(accuracy: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    x = Input("x", tensor(6, 4, dynamic=(0,)))
    mask = Input("mask", tensor(4), keyword="mask")
    graph = Graph(
        (mask, x),
        (
            node("n", "torch.ops.aten.sym_size.int", Ref("x"), 0, meta=Meta("int")),
            node("v", "view", Ref("x"), Ref("n"), 2, 2, op="method", meta=tensor(6, 2, 2)),
            node("m", "operator.mul", Ref("x"), Ref("mask"), meta=tensor(6, 4)),
        ),
        (Ref("v"), Ref("m")),
        constants=(Input("scale", tensor(4), Value("ones")),),
    )
    script = render(Program(graph, Recipe(pipeline=Pipeline.AOTI, accuracy=accuracy, contexts=("torch.no_grad()",))))
    shapes = '{"x": {0: torch.export.Dim.DYNAMIC}, "mask": None}'
    model = "model" if accuracy else "Repro()"
    assert f'torch.export.export({model}, (x,), kwargs={{"mask": mask}}, dynamic_shapes={shapes})' in script
    assert 'self.register_buffer("scale", torch.ones(4))' in script
    execute_packaged(script, monkeypatch)


@pytest.mark.parametrize("accuracy", [False, True])
def test_aoti_lines(accuracy: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = Recipe(
        pipeline=Pipeline.AOTI, accuracy=accuracy, options=(("max_autotune", "True"),), contexts=("torch.no_grad()",), seed=None
    )
    script = render(Program(RELU, recipe))
    model = "model" if accuracy else "Repro()"
    wanted = [
        f"    ep = torch.export.export({model}, (x,))",
        '    path = torch._inductor.aoti_compile_and_package(ep, inductor_configs={"max_autotune": True})',
    ]
    assert "\n".join(wanted) in script
    execute_packaged(script, monkeypatch)


@given(st.text(max_size=12))
def test_strings_evaluate_to_themselves(value: str) -> None:
    assert eval(quoted(value)) == value


@given(st.floats() | st.complex_numbers())
def test_numbers_evaluate_to_themselves(value: complex) -> None:
    assert repr(eval(text(value, {}))) == repr(value)


def test_only_tensors_are_compared() -> None:
    size = node("size", "torch.ops.aten.sym_size.int", Ref("x"), 0, meta=Meta("int"))
    output = Mapping((("relu", Ref("relu")), ("n", Ref("size")), ("six", 6), ("none", None)))
    script = render(Program(replace(RELU, nodes=(*RELU.nodes, size), output=output), Recipe(accuracy=True)))
    assert 'return {"relu": relu}' in script


# -- associative scans ------------------------------------------------------------------------------------------------


def associative(*closed: str, over: int = 2, output: Any = None) -> str:
    """The script of a scan over pairs: sums of the one, products of the other."""
    names = [f"{side}_{i}" for side in ("a", "b") for i in range(over)]
    nodes = tuple(
        node(f"c_{i}", f"operator.{name}", Ref(f"a_{i}"), Ref(f"b_{i}"), meta=tensor(4))
        for i, name in zip(range(over), ("add", "mul"))  # noqa: B905
    )
    combine = Graph(tuple(Input(name, tensor(4)) for name in (*names, *closed)), nodes, output or [Ref(n.name) for n in nodes])
    given = [Ref(f"x_{i}") for i in range(over)]
    call = node("scan", "torch.ops.higher_order.associative_scan", Ref("combine"), given, tuple(Ref(n) for n in closed), meta=Meta())
    items = tuple(node(f"o_{i}", "operator.getitem", Ref("scan"), i, meta=tensor(5, 4)) for i in range(over))
    inputs = tuple(Input(f"x_{i}", tensor(5, 4)) for i in range(over)) + tuple(Input(n, tensor(4)) for n in closed)
    graph = Graph(inputs, (call, *items), tuple(Ref(n.name) for n in items), bodies=(("combine", combine),))
    return render(Program(canonical(graph), Recipe(backend='"eager"', seed=0)))


def test_an_associative_scan_is_called_by_its_public_name() -> None:
    script = associative()
    assert "def fn(left, right):\n    [x, y] = left\n    [z, x3] = right\n" in script
    assert "    return [add, mul]\n" in script
    assert "torch._higher_order_ops.associative_scan(fn, [x, y], 0)" in script
    assert "torch.ops.higher_order" not in script


def test_what_an_associative_scan_closes_over_is_given_to_its_body() -> None:
    script = associative("w")
    assert "def fn(left, right, x4):\n" in script
    assert "associative_scan(lambda left, right: fn(left, right, z), [x, y], 0)" in script


@pytest.mark.parametrize("over", [1, 2])
def test_the_body_of_an_associative_scan_runs(over: int) -> None:
    # a pointwise one is for GPUs; the generic one calls the same body
    output = Ref("c_0") if over == 1 else None
    script = associative(over=over, output=output).replace(", 0)\n", ', 0, combine_mode="generic")\n')
    assert "generic" in script
    scope = execute(script.replace("torch.compile(", "found = torch.compile("))
    sums, *products = scope["found"] if isinstance(scope["found"], tuple) else (scope["found"],)
    torch.testing.assert_close(sums, scope["x"].cumsum(0))
    for product in products:
        torch.testing.assert_close(product, scope["y"].cumprod(0))


# What operators there are before anything compiles, and which the compiler brings with it.
REGISTERED = """
import json
import torch

names = lambda: {s.name for s in torch._C._jit_get_all_schemas()}
before = names()
import torch._inductor.compile_fx
import torch._inductor.lowering
print(json.dumps(sorted(names() - before)))
"""
# Whether each can be named behind the lines that a script has for it.
NAMED = """
import json
import os
import sys
import torch

for lines, names in json.load(sys.stdin):
    if os.fork() == 0:
        exec(lines)
        for name in names:
            try:
                getattr(getattr(torch.ops, name.split("::")[0]), name.split("::")[1])
            except AttributeError as error:
                print(name, error, flush=True)
        os._exit(0)
    os.wait()
"""
# Of exporters, and of what stands around a graph.
NO_GRAPH_S = {"onnx", "onnx_symbolic", "cplib", "inductor", "_dtensor", "_c10d_functional"}


@pytest.mark.slow
def test_operators_that_are_registered_late_can_be_named() -> None:
    done = subprocess.run([sys.executable, "-c", REGISTERED], capture_output=True, text=True, check=True)
    late = [name for name in json.loads(done.stdout.splitlines()[-1]) if name.split("::")[0] not in NO_GRAPH_S]
    assert "prims::fma" in late
    asked: dict[str, list[str]] = {}
    for name in late:
        script = render(Program(Graph((X,), (node("y", f"torch.ops.{name.replace('::', '.')}.default", Ref("x")),), Ref("y"))))
        imports = "\n".join(line for line in script.split("\n") if line.startswith("import torch"))
        asked.setdefault(imports, []).append(name)
    done = subprocess.run([sys.executable, "-c", NAMED], input=json.dumps([*asked.items()]), capture_output=True, text=True, check=True)
    assert done.stdout == "", done.stdout


def test_values_are_deleted_after_their_last_use() -> None:
    nodes = (
        op("a", "relu.default", Ref("x"), meta=tensor(4, 4)),
        op("b", "add.Tensor", Ref("a"), Ref("x"), meta=tensor(4, 4)),
        op("c", "sin.default", Ref("a"), meta=tensor(4, 4)),
        op("d", "add.Tensor", Ref("c"), Ref("b"), meta=tensor(4, 4)),
        op("e", "operator.iadd", Ref("d"), Ref("c"), meta=tensor(4, 4)),
        op("f", "cos.default", Ref("e"), meta=tensor(4, 4)),
    )
    program = Program(Graph((Input("x", tensor(4, 4)),), nodes, Ref("f")), Recipe(frees=True))
    body = [line.strip() for line in render(program).split("def forward")[1].split("\n\n")[0].split("\n")[1:]]
    assert body == [
        "a = torch.ops.aten.relu.default(x)",
        "b = torch.ops.aten.add.Tensor(a, x)",
        "c = torch.ops.aten.sin.default(a)",
        "del a",
        "d = torch.ops.aten.add.Tensor(c, b)",
        "del b",
        "d += c",
        "del c",
        "return torch.ops.aten.cos.default(d)",
    ]
    compile(render(program), "repro.py", "exec")
    assert "del" not in render(replace(program, recipe=Recipe()))
