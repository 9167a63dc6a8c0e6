"""Contexts as `with` blocks."""

from __future__ import annotations

import pytest

from bot.reduce.graph.form import Arg, Code, Node, Ref
from bot.reduce.graph.printer.contexts import Regions, called_under

ENTER = "torch.amp.autocast_mode._enter_autocast"
EXIT = "torch.amp.autocast_mode._exit_autocast"
INFERENCE = "torch.autograd.grad_mode._enter_inference_mode"
LEAVE = "torch.autograd.grad_mode._exit_inference_mode"
GRAD = "torch._C._set_grad_enabled"


def call(name: str, target: str, *args: Arg) -> Node:
    return Node(name, "function", target, args)


def printed(*nodes: Node) -> list[str]:
    """The lines that stand for the nodes; others by their names."""
    regions, found = Regions(nodes), []
    for i, node in enumerate(nodes):
        found += list(regions.at(i)) if regions.handles(i) else ["    " * regions.depth + node.name]
    return found


def test_operations_stand_in_the_block_that_they_were_recorded_in() -> None:
    nodes = (
        call("a", "torch.relu"), call("enter", ENTER, "cpu", Code("torch.bfloat16"), True, None), call("b", "torch.relu"),
        call("exit", EXIT, Ref("enter")), call("c", "torch.relu"),
    )  # fmt: skip
    assert printed(*nodes) == ["a", 'with torch.autocast("cpu", dtype=torch.bfloat16):', "    b", "c"]


def test_blocks_nest() -> None:
    nodes = (
        call("i", INFERENCE, True), call("g", GRAD, False), call("a", "torch.relu"), call("h", GRAD, True),
        call("b", "torch.relu"), call("j", LEAVE, Ref("i")), call("c", "torch.relu"),
    )  # fmt: skip
    assert printed(*nodes) == ["with torch.inference_mode():", "    with torch.no_grad():", "        a", "    b", "c"]


def test_what_does_not_nest_stays_a_call() -> None:
    nodes = (call("i", INFERENCE, True), call("e", ENTER, "cpu"), call("j", LEAVE, Ref("i")), call("f", EXIT, Ref("e")))
    assert printed(*nodes) == ["i", "e", "j", "f"]


def test_a_block_whose_end_was_removed_stays_open() -> None:
    assert printed(call("g", GRAD, False), call("a", "torch.relu")) == ["with torch.no_grad():", "    a"]


@pytest.mark.parametrize(
    ("target", "args", "context", "rest"),
    [
        ("wrap_with_set_grad_enabled", (False, Ref("f"), Ref("x")), "torch.no_grad()", (Ref("f"), Ref("x"))),
        ("wrap_with_set_grad_enabled", (True, Ref("f")), "torch.enable_grad()", (Ref("f"),)),
        (
            "wrap_with_autocast",
            ("cuda", None, False, True, Ref("f"), Ref("x")),
            'torch.autocast("cuda", enabled=False, cache_enabled=True)',
            (Ref("f"), Ref("x")),
        ),
    ],
)
def test_a_body_is_called_under_its_context(target: str, args: tuple[Arg, ...], context: str, rest: tuple[Arg, ...]) -> None:
    assert called_under(call("n", f"torch.ops.higher_order.{target}", *args)) == (context, rest)


def test_other_calls_have_no_context() -> None:
    assert called_under(call("n", "torch.ops.higher_order.wrap", Ref("f"), Ref("x"))) is None
    assert called_under(call("n", "torch.ops.higher_order.wrap_with_autocast", "cuda", Ref("f"))) is None
