"""Shrinks dimensions.

All dimensions of one size change together, through inputs and through the sizes that operations name (`view`, `expand`, `full`, ...);
where a view splits or joins dimensions, the composed size follows its parts. Metadata of every node is propagated anew, so what
does not fit together costs no query.

Proposes, in order: every size 2 (else divided by a common factor, else 4; the first that is legal goes into the batch), every size 1; then
sizes one by one, to 2 and to 1, adaptively; where a size has to be large, bisection finds from where on; last, single dimensions that
an equal one held back. Never 0. Cost: two queries where sizes do not matter, about 2 log2 of the number of sizes for each that does,
plus log2 of its size. The ties are a cheap form of circt-reduce's width adaption.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from bot.reduce.graph import Arg, Graph, Input, Meta, Node, Program, Ref
from bot.reduce.passes.incumbent import Incumbent
from bot.reduce.passes.keep import is_floating
from bot.reduce.passes.rewrite import map_inputs, map_leaves
from bot.reduce.passes.size import contiguous_stride
from bot.reduce.passes.values import plain_value, written

_VIEWS = frozenset(("view", "reshape", "_unsafe_view", "_reshape_alias", "view_copy"))
_SIZED_NAMES = (
    "expand expand_copy broadcast_to full zeros ones empty rand randn new_full new_zeros new_ones new_empty unflatten resize_ "
    "split split_with_sizes narrow slice slice_copy slice_scatter arange as_strided native_layer_norm layer_norm rms_norm"
)
_SIZED = _VIEWS | frozenset(_SIZED_NAMES.split())
_FACTORS = (256, 128, 64, 32, 16, 8, 4, 2)
_MOST_BISECTED = 12
_MOST_DIMS = 24


def takes_sizes(node: Node) -> bool:
    """Whether an operation's integers are sizes."""
    return any(word in _SIZED for word in node.target.split("."))


def _is_view(node: Node) -> bool:
    return any(word in _VIEWS for word in node.target.split("."))


def sizes_of(program: Program) -> list[int]:
    """The distinct sizes above 1 of the inputs' dimensions, those with most elements behind them first."""
    weight: dict[int, int] = {}
    for item in (*program.graph.inputs, *program.graph.constants):
        if item.meta.kind == "tensor":
            for size in item.meta.shape:
                if size > 1:
                    weight[size] = weight.get(size, 0) + item.meta.elements
    return sorted(weight, key=lambda size: (-weight[size], -size))


def composed(graph: Graph) -> dict[int, tuple[int, ...]]:
    """Sizes that a view joins or splits: the size, and its parts."""
    found: dict[int, tuple[int, ...]] = {}
    metas = graph.metas()
    for node in graph.nodes:
        source = node.args[0] if node.args else None
        if not isinstance(source, Ref) or source.name not in metas or node.meta.kind != "tensor" or not _is_view(node):
            continue
        for one, many in _groups(metas[source.name].shape, node.meta.shape):
            if len(one) == 1 and len(many) > 1:
                found.setdefault(one[0], many)
            elif len(many) == 1 and len(one) > 1:
                found.setdefault(many[0], one)
    return found


def _groups(before: Sequence[int], after: Sequence[int]) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Runs of dimensions of equal product, ones left out."""
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
    """The mapping with every composed size following its parts."""
    full = dict(mapping)

    def size(n: int, above: frozenset[int]) -> int:
        if n in parts and n not in above:
            return math.prod(size(part, above | {n}) for part in parts[n])
        return mapping.get(n, n)

    for n in parts:
        full[n] = size(n, frozenset())
    return full


def resized(program: Program, mapping: Mapping[int, int], *, keep_data: bool = False) -> Program:
    """The program with sizes changed as the mapping says; sizes that a view computes from others become -1.

    An input whose shape changes gets plain values, or with `keep_data` the corner of its recorded ones.
    """
    known = set(sizes_of(program)) | set(mapping)

    def in_input(item: Input) -> Input:
        if item.meta.kind == "int" and item.value.args and str(item.value.args[0]).isdigit():
            number = int(str(item.value.args[0]))
            return replace(item, value=replace(item.value, args=(str(mapping.get(number, number)),)))
        shape = tuple(mapping.get(d, d) for d in item.meta.shape)
        return with_shape(program, item, shape, keep_data=keep_data)

    graph = map_inputs(program.graph, in_input)
    return program.with_graph(_resized_nodes(graph, mapping, known))


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
    unknown = [leaf for leaf in _ints(node) if leaf > 1 and leaf not in known]
    wild = unknown[0] if _is_view(node) and len(unknown) == 1 and -1 not in _ints(node) else None

    def change(arg: Arg) -> Arg:
        if type(arg) is not int:
            return arg
        return -1 if wild is not None and arg == wild else mapping.get(arg, arg)

    args = (*node.args[:1], *(map_leaves(arg, change) for arg in node.args[1:]))
    if node.args and isinstance(node.args[0], (list, tuple, int)):  # full([2, 3], 1): the size comes first
        args = tuple(map_leaves(arg, change) for arg in node.args)
    kwargs = tuple((key, map_leaves(value, change) if key in ("size", "shape", "sizes") else value) for key, value in node.kwargs)
    return replace(node, args=args, kwargs=kwargs)


def _ints(node: Node) -> list[int]:
    found: list[int] = []

    def note(arg: Arg) -> Arg:
        if type(arg) is int:
            found.append(arg)
        return arg

    for arg in node.args[1:]:
        map_leaves(arg, note)
    return found


def with_shape(program: Program, item: Input, shape: tuple[int, ...], *, keep_data: bool = False) -> Input:
    """The input with another shape of the same rank: its strides keep their order, its values are made anew if need be."""
    if item.meta.kind != "tensor" or shape == item.meta.shape:
        return item
    value = item.value
    if value.kind in ("blob", "literal", "expr"):
        value = (written(item, shape) if keep_data else None) or plain_value(program, item)
    elif value.kind == "randint" and not is_floating(item.meta.dtype) and len(value.args) == 2:
        value = replace(value, args=(0, min(2, int(value.args[1]))))
    return replace(item, value=value, meta=replace(item.meta, shape=shape, stride=scaled_stride(item.meta, shape)))


def scaled_stride(meta: Meta, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides for another shape of the same rank: dimensions in the same order in memory, expanded ones still expanded."""
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


def legal(incumbent: Incumbent, changed: Program) -> Program | None:
    """The resized program with true metadata, and with numbers again where a view's size was left open."""
    checked = incumbent.legal(changed)
    if checked is None or all(-1 not in _ints(n) for n in checked.graph.nodes if _is_view(n)):
        return checked
    before = {n.name: n for n in incumbent.program.graph.nodes}
    nodes = tuple(_closed(n) if _is_view(n) and -1 not in _ints(before[n.name]) else n for n in checked.graph.nodes)
    return checked.with_graph(replace(checked.graph, nodes=nodes))


def _closed(node: Node) -> Node:
    open_dim = [d for d, size in enumerate(_ints(node)) if size == -1]
    if len(open_dim) != 1 or len(_ints(node)) != len(node.meta.shape):
        return node
    size = node.meta.shape[open_dim[0]]
    return replace(
        node, args=(node.args[0], *(map_leaves(arg, lambda a: size if a == -1 and type(a) is int else a) for arg in node.args[1:]))
    )


def everything_small(incumbent: Incumbent, program: Program) -> Program | None:
    """The program with all sizes as small as is legal at once, or None; costs no query."""
    for mapping in _joint_mappings(program):
        changed = legal(incumbent, resized(program, mapping))
        if changed is not None and changed.graph.input_elements < program.graph.input_elements:
            return changed
    return None


def _joint_mappings(program: Program) -> Iterator[dict[int, int]]:
    sizes = sizes_of(program)
    parts = composed(program.graph)
    literals = {leaf for n in program.graph.nodes if takes_sizes(n) for leaf in _ints(n) if 2 < leaf < 2**31}
    atoms = {n for n in {*sizes, *(p for many in parts.values() for p in many)} if n > 2}
    tried: list[dict[int, int]] = []
    options = [with_parts(dict.fromkeys(atoms, 2), parts), dict.fromkeys(atoms, 2)]
    for factor in _FACTORS:
        options.append({n: n // factor for n in atoms | literals | set(parts) if n % factor == 0})
    options.append(with_parts({n: 4 for n in atoms if n > 4}, parts))
    for mapping in options:
        changed = {n: m for n, m in mapping.items() if n != m}
        if changed and changed not in tried:
            tried.append(changed)
            yield changed


def run(incumbent: Incumbent) -> bool:
    """Shrinks sizes as far as they go."""
    start = incumbent.key
    if not sizes_of(incumbent.program):
        return False
    _offer(incumbent, dict.fromkeys(sizes_of(incumbent.program), 1))
    for mapping in list(_joint_mappings(incumbent.program))[:4]:
        if _offer(incumbent, mapping):
            break
    for target in (2, 1):
        _adaptively(incumbent, [n for n in sizes_of(incumbent.program) if n > target], target)
    for size in sizes_of(incumbent.program):
        if size > 3:
            _bisect(incumbent, size)
    _untied(incumbent)
    return incumbent.key != start


def _offer(incumbent: Incumbent, mapping: Mapping[int, int]) -> bool:
    """Asks for the sizes changed, composed ones with their parts: values made anew, then the recorded ones."""
    program = incumbent.program
    full = with_parts(mapping, composed(program.graph))
    plain = legal(incumbent, resized(program, full))
    if plain is None and full != mapping:
        full = dict(mapping)
        plain = legal(incumbent, resized(program, full))
    kept = resized(program, full, keep_data=True)
    return incumbent.offer_first([plain, legal(incumbent, kept) if kept != resized(program, full) else None], "sizes") is not None


def _adaptively(incumbent: Incumbent, sizes: list[int], target: int) -> None:
    if not sizes or _offer(incumbent, dict.fromkeys(sizes, target)) or len(sizes) == 1:
        return
    middle = len(sizes) // 2
    _adaptively(incumbent, sizes[:middle], target)
    _adaptively(incumbent, sizes[middle:], target)


def _bisect(incumbent: Incumbent, size: int) -> None:
    """Finds the smallest size that is SAME, between 2 (which is not) and what it is; geometric, since bounds are powers of two."""
    low, high = 2, size
    for _ in range(_MOST_BISECTED):
        middle = max(low + 1, round(math.sqrt(low * high))) if high > 2 * low else (low + high) // 2
        if not low < middle < high:
            return
        if _offer(incumbent, {high: middle}):
            high = middle
        else:
            low = middle


def _untied(incumbent: Incumbent) -> None:
    """Shrinks single dimensions that their equals held back."""
    places = [
        (item.name, dim)
        for item in (*incumbent.program.graph.inputs, *incumbent.program.graph.constants)
        for dim, size in enumerate(item.meta.shape)
        if size > 2 and item.meta.kind == "tensor"
    ]
    for name, dim in places[:_MOST_DIMS]:
        programs = [_one_dim(incumbent.program, name, dim, size) for size in (1, 2)]
        incumbent.offer_first([None if p is None else legal(incumbent, p) for p in programs], "sizes")


def _one_dim(program: Program, name: str, dim: int, size: int) -> Program | None:
    def change(item: Input) -> Input:
        if item.name != name or item.meta.shape[dim] <= size:
            return item
        shape = tuple(size if d == dim else old for d, old in enumerate(item.meta.shape))
        return with_shape(program, item, shape)

    return program.with_graph(map_inputs(program.graph, change))
