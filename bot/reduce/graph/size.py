"""The total order on programs: what "smaller" means.

A candidate is accepted only if it is strictly smaller, so that the search terminates, and always with the same result.
"""

from __future__ import annotations

from bot.reduce.graph.form import Arg, Graph, Input, Program, Recipe, Ref, contiguous_stride

# float32 is the default choice; int64 and bool are the plain forms of indices and masks.
_DTYPE_RANK = {"float32": 0, "int64": 1, "bool": 1, "int32": 2, "float64": 2, "bfloat16": 2, "float16": 2, "complex64": 3}
_OTHER_DTYPE = 4

_VALUE_RANK = {"randn": 0, "zeros": 1, "ones": 1, "rand": 1, "arange": 2, "randint": 2, "full": 3, "literal": 6, "expr": 8, "blob": 20}


def size_key(program: Program, text: str) -> tuple[tuple[int, ...], str]:
    """The size of `program` and of the script `text` printed from it; keys are compared directly, smaller is better.

    The numbers are, in order of weight: operations, input elements, inputs, dtype rank, arguments, config entries, length of the text. The
    text itself breaks ties.
    """
    graph = program.graph
    inputs = graph.sources
    numbers = (
        graph.ops,
        graph.input_elements,
        len(inputs),
        sum(dtype_rank(i.meta.dtype) for i in inputs if i.meta.is_tensor),
        sum(map(input_cost, inputs)) + argument_cost(graph),
        recipe_cost(program.recipe),
        len(text),
    )
    return numbers, text


def dtype_rank(dtype: str) -> int:
    """How unusual `dtype` is; float32 is 0."""
    return _DTYPE_RANK.get(dtype, _OTHER_DTYPE)


def is_contiguous(item: Input) -> bool:
    """Whether the strides of `item` are those of a new tensor (dimensions of size zero or one do not matter)."""
    meta = item.meta
    if not meta.is_tensor or not meta.stride or 0 in meta.shape:
        return True
    plain = contiguous_stride(meta.shape)
    return all(size == 1 or have == want for size, have, want in zip(meta.shape, meta.stride, plain, strict=True))


def input_cost(item: Input) -> int:
    """What making `item` costs a reader: values, layout, gradients, dynamic dimensions."""
    cost = _VALUE_RANK.get(item.value.kind, 8)
    cost += 0 if is_contiguous(item) else 2
    return cost + item.requires_grad + (not item.leaf) + item.parameter + (item.keyword is not None) + len(item.meta.dynamic)


def argument_cost(graph: Graph) -> int:
    """What the arguments in `graph` and its bodies cost: two for each keyword, and for each literal how unusual it is."""
    return sum(2 * len(node.kwargs) + sum(map(literal_cost, node.leaves())) for node in graph.all_nodes())


def literal_cost(leaf: Arg) -> int:
    """How unusual the literal `leaf` is: None, False, True, 0, 1 and names are free."""
    if leaf is None or isinstance(leaf, (bool, Ref)):
        return 0
    if isinstance(leaf, (int, float)):
        if leaf in (0, 1):
            return 0
        return 1 if leaf in (-1, 2) else 2
    return 2


def recipe_cost(recipe: Recipe) -> int:
    """Number of entries in `recipe` that say how to compile and call."""
    lists = len(recipe.options) + len(recipe.config) + len(recipe.contexts) + len(recipe.setup)
    flags = (
        recipe.mode is not None,
        recipe.dynamic is not None,
        recipe.fullgraph,
        recipe.backward,
        recipe.weighted,
        recipe.seed is not None,
        recipe.freshness,
        recipe.frees,
        recipe.against_float64,
    )
    return lists + sum(flags)
