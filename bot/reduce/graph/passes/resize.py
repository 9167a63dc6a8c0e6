"""Changes the sizes in a program: those of inputs, and those in the arguments of operations.

All dimensions of one size change together. If a view splits or joins dimensions, the composed size follows its parts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from bot.reduce.graph.form import Arg, Graph, Input, Meta, Node, Program, Ref, contiguous_stride, kernels, leaves
from bot.reduce.graph.keep import is_floating
from bot.reduce.graph.passes.values import plain_value, written
from bot.reduce.graph.rewrite import map_inputs, map_leaves, map_node

_VIEWS = frozenset(("view", "reshape", "_unsafe_view", "_reshape_alias", "view_copy"))
_SIZED_NAMES = (
    "expand expand_copy broadcast_to full zeros ones empty rand randn new_full new_zeros new_ones new_empty unflatten resize_ "
    "split split_with_sizes narrow slice slice_copy slice_scatter arange as_strided native_layer_norm layer_norm rms_norm"
)
_SIZED = _VIEWS | frozenset(_SIZED_NAMES.split())


def takes_sizes(node: Node) -> bool:
    """Whether the integer arguments of `node` are sizes."""
    return any(word in _SIZED for word in node.target.split("."))


def is_view(node: Node) -> bool:
    """Whether `node` returns the same elements in the shape given by its integer arguments."""
    return any(word in _VIEWS for word in node.target.split("."))


def sizes_of(program: Program) -> list[int]:
    """The distinct sizes above 1 among the input dimensions of `program`, those with the most elements first.

    Empty if a kernel of the user's is launched: how far it writes depends on numbers that do not follow the sizes.
    """
    if kernels(program.graph):
        return []
    weight: dict[int, int] = {}
    for item in program.graph.sources:
        if item.meta.is_tensor:
            for size in item.meta.shape:
                if size > 1:
                    weight[size] = weight.get(size, 0) + item.meta.elements
    return sorted(weight, key=lambda size: (-weight[size], -size))


def free_sizes(program: Program) -> list[int]:
    """The sizes above 1 in `program` that others follow: those of inputs, and the parts of composed ones."""
    parts = composed(program.graph)
    found = dict.fromkeys(sizes_of(program))
    found.update(dict.fromkeys(part for many in parts.values() for part in many if part > 1))
    return [size for size in found if size not in parts]


def composed(graph: Graph) -> dict[int, tuple[int, ...]]:
    """Sizes that a view in `graph` joins or splits, each with its parts."""
    found: dict[int, tuple[int, ...]] = {}
    metas = graph.metas()
    for node in graph.nodes:
        source = node.args[0] if node.args else None
        if not isinstance(source, Ref) or source.name not in metas or not node.meta.is_tensor or not is_view(node):
            continue
        for one, many in _groups(metas[source.name].shape, node.meta.shape):
            if len(one) == 1 and len(many) > 1:
                found.setdefault(one[0], many)
            elif len(many) == 1 and len(one) > 1:
                found.setdefault(many[0], one)
    return found


def _groups(before: Sequence[int], after: Sequence[int]) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Runs of dimensions with equal products, ignoring dimensions of size 1."""
    left, right = [d for d in before if d != 1], [d for d in after if d != 1]
    if 0 in left or math.prod(left) != math.prod(right):
        return
    i = j = 0
    while i < len(left) and j < len(right):
        a, b = [left[i]], [right[j]]
        i, j = i + 1, j + 1
        while math.prod(a) != math.prod(b):
            if math.prod(a) < math.prod(b):
                a.append(left[i])
                i += 1
            else:
                b.append(right[j])
                j += 1
        yield tuple(a), tuple(b)


def with_parts(mapping: Mapping[int, int], parts: Mapping[int, tuple[int, ...]]) -> dict[int, int]:
    """The `mapping` with every composed size following its `parts`."""
    full = dict(mapping)

    def size(n: int, above: frozenset[int]) -> int:
        if n in parts and n not in above:
            return math.prod(size(part, above | {n}) for part in parts[n])
        return mapping.get(n, n)

    for n in parts:
        full[n] = size(n, frozenset())
    return full


def resized(program: Program, mapping: Mapping[int, int], *, keep_data: bool = False, everywhere: bool = False) -> Program:
    """The `program` with sizes changed by `mapping`; a size that a view computes from others becomes -1.

    An input whose shape changes gets plain values, or with `keep_data` the corner of its recorded ones. With `everywhere`, every integer
    argument that equals one of the sizes changes too.
    """
    known = set(sizes_of(program)) | set(mapping)

    def in_input(item: Input) -> Input:
        if item.meta.kind == "int" and item.value.args and str(item.value.args[0]).isdigit():
            number = int(str(item.value.args[0]))
            return replace(item, value=replace(item.value, args=(str(mapping.get(number, number)),)))
        shape = tuple(mapping.get(d, d) for d in item.meta.shape)
        return with_shape(program, item, shape, keep_data=keep_data)

    graph = _resized_nodes(map_inputs(program.graph, in_input), mapping, known)
    if everywhere:
        graph = replace(graph, nodes=tuple(n if takes_sizes(n) else map_node(n, partial(_mapped, mapping)) for n in graph.nodes))
    return program.with_graph(graph)


def _mapped(mapping: Mapping[int, int], arg: Arg) -> Arg:
    return mapping.get(arg, arg) if type(arg) is int else arg


def _resized_nodes(graph: Graph, mapping: Mapping[int, int], known: set[int]) -> Graph:
    nodes = tuple(_resized_node(n, mapping, known) if takes_sizes(n) else n for n in graph.nodes)
    bodies = tuple(
        (name, _resized_nodes(map_inputs(body, lambda i: _mapped_input(i, mapping)), mapping, known)) for name, body in graph.bodies
    )
    return replace(graph, nodes=nodes, bodies=bodies)


def _mapped_input(item: Input, mapping: Mapping[int, int]) -> Input:
    shape = tuple(mapping.get(d, d) for d in item.meta.shape)
    return replace(item, meta=replace(item.meta, shape=shape, stride=scaled_stride(item.meta, shape)))


def _resized_node(node: Node, mapping: Mapping[int, int], known: set[int]) -> Node:
    unknown = [leaf for leaf in ints(node) if leaf > 1 and leaf not in known]
    wild = unknown[0] if is_view(node) and len(unknown) == 1 and -1 not in ints(node) else None

    def change(arg: Arg) -> Arg:
        if type(arg) is not int:
            return arg
        return -1 if wild is not None and arg == wild else mapping.get(arg, arg)

    args = (*node.args[:1], *(map_leaves(arg, change) for arg in node.args[1:]))
    if node.args and isinstance(node.args[0], (list, tuple, int)):  # full([2, 3], 1): the size comes first
        args = tuple(map_leaves(arg, change) for arg in node.args)
    kwargs = tuple((key, map_leaves(value, change) if key in ("size", "shape", "sizes") else value) for key, value in node.kwargs)
    return replace(node, args=args, kwargs=kwargs)


def ints(node: Node) -> list[int]:
    """The integers among the arguments of `node`, except in the first."""
    return [leaf for leaf in leaves(node.args[1:]) if type(leaf) is int]


def with_shape(program: Program, item: Input, shape: tuple[int, ...], *, keep_data: bool = False) -> Input:
    """`item`, an input of `program`, with another `shape` of the same rank; its strides keep their order.

    Values that do not fit are replaced by plain ones. With `keep_data` they are the corner of the recorded ones, and random integers keep
    their range: 0 and 1 are always in bounds as an index, but otherwise reveal little.
    """
    if not item.meta.is_tensor or shape == item.meta.shape:
        return item
    value = item.value
    if value.kind in ("blob", "literal", "expr"):
        value = (written(item, shape) if keep_data else None) or plain_value(program, item)
    elif value.kind == "randint" and not keep_data and not is_floating(item.meta.dtype) and len(value.args) == 2:
        value = replace(value, args=(0, min(2, int(value.args[1]))))
    return replace(item, value=value, meta=replace(item.meta, shape=shape, stride=scaled_stride(item.meta, shape)))


def scaled_stride(meta: Meta, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides for another `shape` of the rank of `meta`: dimensions keep their order in memory, and expanded ones stay expanded."""
    if len(meta.stride) != len(shape):
        return contiguous_stride(shape)
    order = sorted(range(len(shape)), key=lambda d: (-meta.stride[d], d))
    stride, step = [0] * len(shape), 1
    for d in reversed(order):
        if meta.stride[d] == 0 and meta.shape[d] > 1:
            continue
        stride[d] = step
        step *= max(shape[d], 1)
    return tuple(stride)


def closed(node: Node) -> Node:
    """The view `node` with a number in place of its open size (-1)."""
    open_dim = [d for d, size in enumerate(ints(node)) if size == -1]
    if len(open_dim) != 1 or len(ints(node)) != len(node.meta.shape):
        return node
    size = node.meta.shape[open_dim[0]]
    return replace(
        node, args=(node.args[0], *(map_leaves(arg, lambda a: size if a == -1 and type(a) is int else a) for arg in node.args[1:]))
    )


def with_dim(program: Program, name: str, dim: int, size: int, *, keep_data: bool = False) -> Program:
    """The `program` with dimension `dim` of the input `name` reduced to `size`, if it was larger; `keep_data` as for `with_shape`."""

    def change(item: Input) -> Input:
        if item.name != name or item.meta.shape[dim] <= size:
            return item
        shape = tuple(size if d == dim else old for d, old in enumerate(item.meta.shape))
        return with_shape(program, item, shape, keep_data=keep_data)

    return program.with_graph(map_inputs(program.graph, change))
