"""The readable form of single `aten` operators: what people write instead of `torch.ops.aten.<name>.<overload>`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from bot.reduce.graph.form import Arg, Code, Node, Slice
from bot.reduce.graph.passes.lift_names import TORCH_FUNCTIONS

_OPERATOR_NAMES = "add sub mul matmul eq ne lt le gt ge neg pow"
_OPERATORS = {name: name for name in _OPERATOR_NAMES.split()}
_OPERATORS |= {"div": "truediv", "bitwise_and": "and_", "bitwise_or": "or_", "bitwise_xor": "xor"}
_BINARY = ("Tensor", "Scalar", "Tensor_Tensor", "Tensor_Scalar", "Scalar_Tensor")
# Methods that take a list of sizes or dimensions as separate arguments.
_SPREAD = {"view": "view", "_unsafe_view": "reshape", "reshape": "reshape", "permute": "permute", "expand": "expand", "repeat": "repeat"}
_METHOD_NAMES = "t clone detach contiguous copy_ fill_ zero_ add_ mul_ sub_ div_ relu_ unfold"
_METHODS = frozenset(_METHOD_NAMES.split())
_FUNCTIONAL = "torch.nn.functional."
_FUNCTIONAL_NAMES = "silu gelu elu hardswish hardsigmoid hardtanh leaky_relu mish softplus avg_pool2d glu one_hot linear"
_FUNCTIONALS = {name: name for name in _FUNCTIONAL_NAMES.split()} | {"_adaptive_avg_pool2d": "adaptive_avg_pool2d"}
# Factory functions: device and layout are written only if they are unusual.
_CREATIONS = frozenset(["arange", "empty", "eye", "full", "linspace", "ones", "rand", "randn", "scalar_tensor", "zeros"])
_USUAL = (("layout", Code("torch.strided")), ("pin_memory", False), ("pin_memory", None), ("device", "cpu"), ("requires_grad", False))
_IOTA = "torch.ops.prims.iota.default"
# The end of an open-ended slice.
_NO_END = 2**62

_Replacement = Callable[[Node], Node | None]


def lifted(node: Node) -> Node | None:
    """The readable form of `node`, or None if there is none."""
    name, overload = aten_name(node)
    if not name:
        return _arange(node) if node.target == _IOTA else None
    if name in _CREATIONS:
        node = replace(node, kwargs=tuple(word for word in node.kwargs if word not in _USUAL))
    special = _SPECIAL.get(name)
    if special is not None:
        return special(node)
    if name in _OPERATORS and not node.kwargs and ((len(node.args) == 2 and overload in _BINARY) or name in ("neg", "matmul")):
        return replace(node, target=f"operator.{_OPERATORS[name]}")
    if name in _SPREAD and len(node.args) == 2 and isinstance(node.args[1], (list, tuple)) and not node.kwargs:
        return replace(node, op="method", target=_SPREAD[name], args=(node.args[0], *node.args[1]))
    if name in _METHODS:
        return replace(node, op="method", target=name)
    if name in _FUNCTIONALS:
        return replace(node, target=_FUNCTIONAL + _FUNCTIONALS[name])
    return replace(node, target=f"torch.{name}") if name in TORCH_FUNCTIONS else None


def lifted_first(node: Node) -> Node | None:
    """The readable form of `node`, which has several results of which only the first is used: it returns that result itself."""
    form = _FIRST.get(aten_name(node)[0])
    found = form(node) if form is not None and node.meta.items else None
    return None if found is None else replace(found, meta=node.meta.items[0])


def aten_name(node: Node) -> tuple[str, str]:
    """Name and overload of the `aten` operator that `node` calls; empty for anything else."""
    words = node.target.split(".")
    if node.op != "function" or words[:3] != ["torch", "ops", "aten"] or len(words) < 4:
        return "", ""
    return words[3], words[4] if len(words) > 4 else "default"


def _arange(node: Node) -> Node | None:
    """The form of `arange`, which is `iota` in every graph made by AOTAutograd."""
    kwargs = dict(node.kwargs)
    length, start, step = (*node.args, None)[0], kwargs.pop("start", None), kwargs.pop("step", None)
    if not isinstance(length, int) or not isinstance(start, int) or not isinstance(step, int) or len(node.args) != 1:
        return None
    places = [start, start + length * step, step] if step != 1 else [start, start + length] if start else [length]
    usual = (*_USUAL, ("dtype", Code("torch.int64")))
    return replace(node, target="torch.arange", args=tuple(places), kwargs=tuple(word for word in kwargs.items() if word not in usual))


def _softmax(function: str) -> _Replacement:
    def form(node: Node) -> Node | None:
        if len(node.args) != 3 or node.args[2] is not False or node.kwargs:
            return None
        return replace(node, target=f"torch.{function}", args=node.args[:2])

    return form


def _to_copy(node: Node) -> Node | None:
    kwargs = dict(node.kwargs)
    if set(kwargs) == {"dtype"} and isinstance(kwargs["dtype"], Code):
        return replace(node, op="method", target="to", args=(node.args[0], kwargs["dtype"]), kwargs=())
    return replace(node, op="method", target="to") if kwargs and "layout" not in kwargs and "pin_memory" not in kwargs else None


def _index(node: Node) -> Node | None:
    if len(node.args) != 2 or not isinstance(node.args[1], (list, tuple)):
        return None
    return _item(node, [Slice() if place is None else place for place in node.args[1]])


def _slice(node: Node) -> Node | None:
    given = [*node.args[1:], *(0, None, None, None)[len(node.args) - 1 :]]
    dim, start, end, step = given
    if not isinstance(dim, int) or dim < 0 or node.kwargs:
        return None
    end = None if isinstance(end, int) and end >= _NO_END else end
    return _item(node, [*([Slice()] * dim), Slice(None if start == 0 else start, end, None if step == 1 else step)])


def _item(node: Node, places: list[Arg]) -> Node:
    return replace(node, target="operator.getitem", args=(node.args[0], places[0] if len(places) == 1 else tuple(places)))


def _convolution(node: Node) -> Node | None:
    """`conv1d`, `conv2d` or `conv3d`, with the arguments that are not the defaults."""
    if len(node.args) != 9 or node.kwargs or node.args[6] is not False or not isinstance(node.args[3], (list, tuple)):
        return None
    x, weight, bias, stride, padding, dilation, _, _, groups = node.args
    dims = len(node.args[3])
    if dims not in (1, 2, 3):
        return None
    plain: list[Arg] = [None, [1] * dims, [0] * dims, [1] * dims, 1]
    rest: list[Arg] = [bias, stride, padding, dilation, groups]
    while rest and rest[-1] == plain[len(rest) - 1]:
        rest.pop()
    return replace(node, target=f"{_FUNCTIONAL}conv{dims}d", args=(x, weight, *rest))


def _functional(name: str, *order: int) -> _Replacement:
    """A function of `torch.nn.functional` that takes the operator's arguments in another order; -1 stands for a fixed False."""

    def form(node: Node) -> Node | None:
        if node.kwargs or (order and len(node.args) <= max(order)):
            return None
        args = tuple(False if i < 0 else node.args[i] for i in order) if order else node.args
        return replace(node, target=_FUNCTIONAL + name, args=args)

    return form


def _attention(node: Node) -> Node | None:
    if len(node.args) < 3 or any(arg not in (0, 0.0, None, False) for arg in node.args[3:4]):
        return None
    kwargs = tuple((key, value) for key, value in node.kwargs if key in ("attn_mask", "scale"))
    if len(kwargs) != len(node.kwargs) or len(node.args) > 5:
        return None
    causal: tuple[tuple[str, Arg], ...] = (("is_causal", True),) if node.args[4:] == (True,) else ()
    return replace(node, target=_FUNCTIONAL + "scaled_dot_product_attention", args=node.args[:3], kwargs=kwargs + causal)


_SPECIAL: dict[str, _Replacement] = {
    "_softmax": _softmax("softmax"),
    "_log_softmax": _softmax("log_softmax"),
    "_to_copy": _to_copy,
    "index": _index,
    "slice": _slice,
    "convolution": _convolution,
}
_FIRST: dict[str, _Replacement] = {
    "native_layer_norm": _functional("layer_norm"),
    "native_group_norm": _functional("group_norm", 0, 6, 1, 2, 7),
    "native_dropout": _functional("dropout"),
    "max_pool2d_with_indices": _functional("max_pool2d"),
    "_native_batch_norm_legit_no_training": _functional("batch_norm", 0, 3, 4, 1, 2, -1, 5, 6),
    "_scaled_dot_product_flash_attention_for_cpu": _attention,
    "_scaled_dot_product_flash_attention": _attention,
}
