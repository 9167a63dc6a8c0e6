"""Changes unusual dtypes to float32 (integers: to int64), everywhere at once.

Proposes, for each unusual dtype of an input, the most unusual first: that dtype replaced in all inputs, and in all arguments that name it;
recorded numbers keep their values. Part of the batch; one or two queries for a dtype that must stay. The metadata of every node is
propagated again. The idea: anyone can run float32 on any machine, and a bug that needs bfloat16 is a different bug from one that does not.
"""

from __future__ import annotations

from dataclasses import replace

from bot.reduce.graph.edits import GraphEdit
from bot.reduce.graph.form import Arg, Code, Input, Meta, Node, Program
from bot.reduce.graph.printer.tensors import recorded_dtype
from bot.reduce.graph.rewrite import map_inputs, map_node, map_nodes
from bot.reduce.graph.size import dtype_rank

_PLAIN = {
    **dict.fromkeys(("float64", "float16", "bfloat16"), "float32"),
    **dict.fromkeys(("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"), "float32"),
    **dict.fromkeys(("int32", "int16", "int8", "uint8", "uint16", "uint32", "uint64"), "int64"),
    **dict.fromkeys(("complex128", "complex32"), "complex64"),
}
# Formats with so few digits that the error of one operation may be within the comparison's tolerance.
_COARSE = ("float16", "bfloat16")


def edits(program: Program) -> list[GraphEdit]:
    """One edit for each unusual dtype of `program`, the most unusual first."""
    inputs = program.graph.sources
    present = {i.meta.dtype for i in inputs if i.meta.is_tensor and i.meta.dtype in _PLAIN}
    return [_replace(dtype) for dtype in sorted(present, key=lambda d: (-dtype_rank(d), d))]


def in_float32(program: Program) -> Program | None:
    """`program` with float32 in place of float16 and bfloat16, including in the metadata of each value; None if no input has these dtypes,
    or if the tolerance is the program's own.

    An operation that is wrong by 1 % is within the tolerance of a half-precision comparison when it stands alone: only the sum of many
    such errors shows. In float32 the single operation does.
    """
    coarse = any(item.meta.is_tensor and item.meta.dtype in _COARSE for item in program.graph.sources)
    if not coarse or program.recipe.tolerance is not None:
        return None
    for dtype in _COARSE:
        program = _replace(dtype)(program) or program
    return program.with_graph(map_nodes(program.graph, _finer))


def _finer(node: Node) -> Node:
    return replace(node, meta=_finer_meta(node.meta))


def _finer_meta(meta: Meta) -> Meta:
    dtype = "float32" if meta.dtype in _COARSE else meta.dtype
    return replace(meta, dtype=dtype, items=tuple(map(_finer_meta, meta.items)))


def _replace(dtype: str) -> GraphEdit:
    plain = _PLAIN[dtype]

    def in_argument(arg: Arg) -> Arg:
        return Code(f"torch.{plain}") if arg == Code(f"torch.{dtype}") else arg

    def in_input(item: Input) -> Input:
        if item.meta.dtype != dtype:
            return item
        value = item.value
        if value.kind == "blob":
            value = replace(value, args=(value.args[0], recorded_dtype(value, item.meta)))
        return replace(item, value=value, meta=replace(item.meta, dtype=plain))

    def edit(program: Program) -> Program | None:
        graph = map_inputs(program.graph, in_input)
        return program.with_graph(map_nodes(graph, lambda n: map_node(n, in_argument)))

    return edit
