"""What higher-order operations call, written out in their place."""

from __future__ import annotations

import pytest

from bot.reduce.graph.form import Arg, Graph, Input, Meta, Node, Program, Ref, refs
from bot.reduce.graph.inline import flattened, on_one_stream
from bot.reduce.graph.printer.script import render
from tests.reduce.graph.world import op, tensor, words

META = tensor(4)
RESULT, OUT, CONDITION = Ref("r"), Ref("out"), Ref("p")
BOOL = Meta("tensor", (), (), "bool")


def body(target: str, *, output: Arg = (RESULT,), bodies: tuple[tuple[str, Graph], ...] = ()) -> Graph:
    return Graph((Input("a", META), Input("b", META)), (op("r", target, Ref("a"), meta=META),), output, bodies=bodies)


def call(name: str, target: str, *args: Arg, bodies: dict[str, Graph], output: Arg = OUT) -> Program:
    """A call of bodies that is given `x.sin()`, and the cosine of what it gives first."""
    nodes = (
        op("sin", "sin.default", Ref("x"), meta=META),
        op("p", "torch.any", Ref("sin"), meta=BOOL),
        op(name, f"torch.ops.higher_order.{target}", *args, meta=Meta()),
        op("item", "operator.getitem", Ref(name), 0, meta=META),
        op("out", "cos.default", Ref("item"), meta=META),
    )
    return Program(Graph((Input("x", META), Input("y", META)), nodes, output, bodies=tuple(bodies.items())))


def cond(condition: Arg = CONDITION, **given: Arg) -> Program:
    branches = {"yes": body("exp.default"), "no": body("tanh.default")}
    return call("c", "cond", condition, Ref("yes"), Ref("no"), (Ref("sin"), Ref("y")), bodies=branches, **given)


def taken(rows: int) -> object:
    return lambda text: {"return": tensor(rows, 0), **({"nonzero": tensor(rows, 0)} if "nonzero = " in text else {})}


@pytest.mark.parametrize(("rows", "branch"), [(1, "exp"), (0, "tanh")])
def test_a_cond_becomes_the_branch_that_is_taken(rows: int, branch: str) -> None:
    found = flattened(cond(), render, taken(rows))  # type: ignore[arg-type]
    assert found is not None
    assert words(found) == ["sin", "any", branch, "cos"]
    assert found.graph.bodies == ()
    made = found.graph.nodes[2]
    assert (made.name, made.args) == ("item", (Ref("sin"),))  # what the call gave keeps its name


def test_what_is_known_is_not_asked() -> None:
    def never(text: str) -> None:
        raise AssertionError(text)

    found = flattened(cond(condition=False), render, never)
    assert found is not None
    assert words(found) == ["sin", "any", "tanh", "cos"]


def test_a_branch_that_nobody_knows_stays() -> None:
    assert flattened(cond(), render, lambda _: None) is None
    assert flattened(cond(output=(Ref("out"), Ref("c"))), render, taken(1)) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("target", "before"), [("invoke_subgraph", ("marked",)), ("tag_activation_checkpoint", ()), ("wrap", ())], ids=lambda value: str(value)
)
def test_a_body_that_is_called_once_is_written_out(target: str, before: tuple[str, ...]) -> None:
    found = flattened(call("c", target, Ref("f"), *before, Ref("sin"), Ref("y"), bodies={"f": body("exp.default")}), render, lambda _: None)
    assert found is not None
    assert words(found) == ["sin", "any", "exp", "cos"]


def test_a_body_that_gives_back_what_it_got() -> None:
    found = flattened(
        call("c", "wrap", Ref("f"), Ref("sin"), Ref("y"), bodies={"f": body("exp.default", output=(Ref("b"),))}), render, lambda _: None
    )
    assert found is not None
    assert found.graph.nodes[-1].args == (Ref("y"),)


def test_a_body_within_a_body() -> None:
    """Its names are those of another one."""
    inner = body("tanh.default")
    nodes = (
        op("c", "torch.ops.higher_order.wrap", Ref("f"), Ref("a"), Ref("b"), meta=Meta()),
        op("item", "operator.getitem", Ref("c"), 0, meta=META),
    )
    outer = Graph((Input("a", META), Input("b", META)), nodes, (Ref("item"),), bodies=(("f", inner),))
    found = flattened(call("c", "wrap", Ref("f"), Ref("sin"), Ref("y"), bodies={"f": outer}), render, lambda _: None)
    assert found is not None
    assert words(found) == ["sin", "any", "tanh", "cos"]
    names = [n.name for n in found.graph.nodes]
    assert len(set(names)) == len(names)
    assert {used for n in found.graph.nodes for used in n.uses()} | set(refs(found.graph.output)) <= {*names, "x", "y"}


def test_other_calls_stay() -> None:
    loop = call(
        "c", "while_loop", Ref("f"), Ref("g"), (Ref("sin"), Ref("y")), (), bodies={"f": body("exp.default"), "g": body("cos.default")}
    )
    assert flattened(loop, render, lambda _: None) is None
    plain = Program(Graph((Input("x", META),), (Node("r", "function", "torch.relu", (Ref("x"),), (), META),), Ref("r")))
    assert flattened(plain, render, lambda _: None) is None


def ordered(*before: Node, output: Arg = OUT) -> Graph:
    """The sine of `x`, an event recorded behind it, and the cosine of it once another stream has waited for that event.

    `control_deps` is called as torch 2.14.1 does it (`_wrap_sync_node` in torch/_functorch/_aot_autograd/streams.py): what it comes after,
    the body, what passes through; the body gives the result of the wait first.
    """
    wait = Node("r", "function", "torch.ops.streams.wait_event.default", (4, 5), (), Meta())
    nodes = (
        Node("made", "function", "torch._dynamo.variables.streams.new_event", (), (), Meta("int")),
        op("sin", "sin.default", Ref("x"), meta=META),
        Node("recorded", "function", "torch.ops.streams.record_event.default", (Ref("made"), 0), (), Meta()),
        Node("event", "function", "torch._dynamo.graph_bytecode_inputs.get_external_object_by_index", (4,), (), Meta()),
        *before,
        op("deps", "torch.ops.higher_order.control_deps", (Ref("sin"),), Ref("f"), Ref("sin"), meta=Meta()),
        op("later", "torch.ops.higher_order.control_deps", (Ref("deps"), Ref("sin")), Ref("g"), Ref("sin"), meta=Meta()),
        op("passed", "operator.getitem", Ref("deps"), 1, meta=META),
        op("out", "cos.default", Ref("passed"), meta=META),
    )
    waiting = Graph((Input("a", META),), (wait,), (RESULT, Ref("a")))
    return Graph((Input("x", META),), nodes, output, bodies=(("f", waiting), ("g", waiting)))


def test_what_orders_streams_goes() -> None:
    found = on_one_stream(ordered())
    assert [(node.target, node.args) for node in found.nodes] == [
        ("torch.ops.aten.sin.default", (Ref("x"),)),
        ("torch.ops.aten.cos.default", (Ref("sin"),)),
    ]
    assert found.bodies == ()
    assert on_one_stream(found) is found


def test_an_event_that_something_else_reads_stays() -> None:
    asked = Node("query", "method", "query", (Ref("event"),), (), Meta("bool"))
    assert [node.name for node in on_one_stream(ordered(asked, output=(OUT, Ref("query")))).nodes] == ["sin", "event", "query", "out"]
