"""Turns `torch.ops.aten` calls into what people write: `torch.relu(x)`, `x + y`, `x.view(2, 2)`.

Proposes all operations lifted; if that is not SAME, each half, and so on. The last step of a search: the size order does not
decide here, since the readable form is the better one even where it is longer. A table knows the operators that are written
otherwise; any other `aten` operator whose name torch has as a function is called by it with the same arguments. Cost: one query
where all can be lifted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from bot.reduce.graph import Arg, Code, Graph, Node, Program, Slice
from bot.reduce.passes.incumbent import Incumbent
from bot.reduce.passes.lift_names import TORCH_FUNCTIONS

_OPERATORS = {
    "add": "add", "sub": "sub", "mul": "mul", "div": "truediv", "matmul": "matmul", "eq": "eq", "ne": "ne", "lt": "lt", "le": "le",
    "gt": "gt", "ge": "ge", "neg": "neg", "pow": "pow", "bitwise_and": "and_", "bitwise_or": "or_", "bitwise_xor": "xor",
}  # fmt: skip
_BINARY = ("Tensor", "Scalar", "Tensor_Tensor", "Tensor_Scalar", "Scalar_Tensor")
# Called on the tensor, with a list of sizes or dimensions spread out.
_SPREAD = {"view": "view", "_unsafe_view": "reshape", "reshape": "reshape", "permute": "permute", "expand": "expand", "repeat": "repeat"}
_METHOD_NAMES = "t clone detach contiguous copy_ fill_ zero_ add_ mul_ sub_ div_ relu_ unfold"
_METHODS = frozenset(_METHOD_NAMES.split())
_FUNCTIONAL_NAMES = "silu gelu elu hardswish hardsigmoid hardtanh leaky_relu mish softplus avg_pool2d glu one_hot linear"
_FUNCTIONAL = {name: name for name in _FUNCTIONAL_NAMES.split()} | {"_adaptive_avg_pool2d": "adaptive_avg_pool2d"}


def run(incumbent: Incumbent) -> bool:
    """Lifts what can be lifted."""
    names = [n.name for n in incumbent.program.graph.nodes if lifted(n) is not None]
    bodies = incumbent.program.graph.bodies != _lift_bodies(incumbent.program.graph).bodies
    if bodies and _attempt(incumbent, names, True):
        return True
    return _some(incumbent, names)


def _some(incumbent: Incumbent, names: Sequence[str]) -> bool:
    if not names:
        return False
    if _attempt(incumbent, names, False):
        return True
    if len(names) == 1:
        return False
    middle = len(names) // 2
    left = _some(incumbent, names[:middle])
    right = _some(incumbent, names[middle:])
    return left or right


def _attempt(incumbent: Incumbent, names: Sequence[str], bodies: bool) -> bool:
    changed = lift(incumbent.program, names, bodies=bodies)
    if changed == incumbent.program:
        return False
    legal = incumbent.legal(changed)
    return legal is not None and legal.graph.ops <= incumbent.program.graph.ops and incumbent.offer(legal, "lift", any_size=True)


def lift(program: Program, names: Sequence[str] | None = None, *, bodies: bool = True) -> Program:
    """The program with these operations (None: all) in their readable form, as far as there is one."""
    graph = _lift_bodies(program.graph) if bodies else program.graph
    chosen = None if names is None else set(names)
    nodes = tuple((lifted(n) or n) if chosen is None or n.name in chosen else n for n in graph.nodes)
    return program.with_graph(replace(graph, nodes=nodes))


def _lift_bodies(graph: Graph) -> Graph:
    def whole(body: Graph) -> Graph:
        return replace(_lift_bodies(body), nodes=tuple(lifted(n) or n for n in body.nodes))

    return replace(graph, bodies=tuple((name, whole(body)) for name, body in graph.bodies))


def lifted(node: Node) -> Node | None:
    """The readable form of one operation, or None."""
    words = node.target.split(".")
    if node.op != "function" or words[:3] != ["torch", "ops", "aten"] or len(words) < 4:
        return None
    name, overload = words[3], words[4] if len(words) > 4 else "default"
    special = _SPECIAL.get(name)
    if special is not None:
        return special(node)
    if name in _OPERATORS and not node.kwargs and ((len(node.args) == 2 and overload in _BINARY) or name in ("neg", "matmul")):
        return replace(node, target=f"operator.{_OPERATORS[name]}")
    if name in _SPREAD and len(node.args) == 2 and isinstance(node.args[1], (list, tuple)) and not node.kwargs:
        return replace(node, op="method", target=_SPREAD[name], args=(node.args[0], *node.args[1]))
    if name in _METHODS:
        return replace(node, op="method", target=name)
    if name in _FUNCTIONAL:
        return replace(node, target=f"torch.nn.functional.{_FUNCTIONAL[name]}")
    return replace(node, target=f"torch.{name}") if name in TORCH_FUNCTIONS else None


def _softmax(function: str) -> Callable[[Node], Node | None]:
    def special(node: Node) -> Node | None:
        if len(node.args) != 3 or node.args[2] is not False or node.kwargs:
            return None
        return replace(node, target=f"torch.{function}", args=node.args[:2])

    return special


def _to_copy(node: Node) -> Node | None:
    kwargs = dict(node.kwargs)
    if set(kwargs) == {"dtype"} and isinstance(kwargs["dtype"], Code):
        return replace(node, op="method", target="to", args=(node.args[0], kwargs["dtype"]), kwargs=())
    return replace(node, op="method", target="to") if kwargs and "layout" not in kwargs and "pin_memory" not in kwargs else None


def _index(node: Node) -> Node | None:
    if len(node.args) != 2 or not isinstance(node.args[1], (list, tuple)):
        return None
    places: list[Arg] = [Slice() if item is None else item for item in node.args[1]]
    return replace(node, target="operator.getitem", args=(node.args[0], places[0] if len(places) == 1 else tuple(places)))


def _convert_element_type(node: Node) -> Node | None:
    return replace(node, op="method", target="to") if len(node.args) == 2 and not node.kwargs else None


_SPECIAL: dict[str, Callable[[Node], Node | None]] = {
    "_softmax": _softmax("softmax"),
    "_log_softmax": _softmax("log_softmax"),
    "_to_copy": _to_copy,
    "index": _index,
    "convert_element_type": _convert_element_type,
    "addmm": lambda node: replace(node, target="torch.addmm"),
}
