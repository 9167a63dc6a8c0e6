"""The graph representation that passes edit without torch.

`bot.inside` writes it as JSON from the compiler's FX graph; `bot.reduce.graph.printer.script` prints it as a plain script. Nothing else
crosses between the user's interpreter and ours, so no object is ever pickled in one and unpickled in the other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Union


@dataclass(frozen=True)
class Ref:
    """A use of a value, by name."""

    name: str


@dataclass(frozen=True)
class Code:
    """A constant that is written as Python code: `torch.float32`, `torch.device("cpu")`, `...`."""

    text: str


@dataclass(frozen=True)
class Slice:
    """A slice in an index; each bound is an Arg."""

    start: Arg = None
    stop: Arg = None
    step: Arg = None


@dataclass(frozen=True)
class Mapping:
    """A dict argument, with string keys in order."""

    items: tuple[tuple[str, Arg], ...]


# Lists and tuples are kept distinct: some operators tell them apart.
Arg = Union[None, bool, int, float, complex, str, Ref, Code, Slice, Mapping, list[Any], tuple[Any, ...]]


@dataclass(frozen=True)
class Meta:
    """What is known about a value: `kind` is tensor, int, float, bool, or other (a tuple of results, None, an object).

    Shapes and strides are the concrete numbers of elements of the failing run; `dynamic` lists the dimensions that were symbolic.
    """

    kind: str = "other"
    shape: tuple[int, ...] = ()
    stride: tuple[int, ...] = ()
    dtype: str = ""  # "float32", without the "torch."
    device: str = "cpu"
    dynamic: tuple[int, ...] = ()
    items: tuple[Meta, ...] = ()  # for results that are tuples or lists
    # the compiler's symbol for a size: one entry for each dimension of a tensor (None: a plain number), or one for an int
    symbols: tuple[str | None, ...] = ()

    @property
    def is_tensor(self) -> bool:
        """Whether it is a tensor."""
        return self.kind == "tensor"

    @property
    def is_number(self) -> bool:
        """Whether it is a Python number or bool."""
        return self.kind in ("int", "float", "bool")

    @property
    def elements(self) -> int:
        """Number of elements of a tensor; 0 for anything else."""
        return math.prod(self.shape) if self.is_tensor else 0


@dataclass(frozen=True)
class Value:
    """How the script makes an input or constant.

    `kind`: randn, rand, randint (args: low, high), zeros, ones, full (args: fill), arange, literal (args: Python text), blob (args: path of
    a raw dump made by the capture, only during the search), expr (args: Python text that makes the whole value).
    """

    kind: str = "randn"
    args: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Input:
    """A placeholder, or (in `Graph.constants`) a tensor that the module owns."""

    name: str
    meta: Meta
    value: Value = Value()
    requires_grad: bool = False
    leaf: bool = True  # False: the script makes it the result of an operation on a leaf
    parameter: bool = False  # constants only: torch.nn.Parameter
    keyword: str | None = None  # passed to the module as this keyword argument


@dataclass(frozen=True)
class Node:
    """One operation.

    `op` is "function" (`target` is its full Python path, such as `torch.ops.aten.relu.default` or `operator.add`) or "method" (`target` is
    the method's name, the object is `args[0]`). `writes` are positions and keywords of the arguments that its operator writes to by its
    schema. They are empty if its name says that it writes, as `add_` does, and for a launch.
    """

    name: str
    op: str
    target: str
    args: tuple[Arg, ...] = ()
    kwargs: tuple[tuple[str, Arg], ...] = ()
    meta: Meta = Meta()
    writes: tuple[int | str, ...] = ()

    def written(self) -> Iterator[str]:
        """Names of the values that `writes` tells of."""
        named = dict(self.kwargs)
        found = (named.get(place) if isinstance(place, str) else (*self.args[place : place + 1],) for place in self.writes)
        return (leaf.name for leaf in leaves(tuple(found)) if isinstance(leaf, Ref))

    def leaves(self) -> Iterator[Arg]:
        """Every literal, `Code` and `Ref` among its arguments, in order."""
        return leaves((self.args, *(value for _, value in self.kwargs)))

    def uses(self) -> Iterator[str]:
        """Names of the values it uses, in order, with repeats."""
        return (leaf.name for leaf in self.leaves() if isinstance(leaf, Ref))


# Not counted as operations, since they compute nothing.
_FREE = ("getitem", "sym_size", "_guards_fn")


@dataclass(frozen=True)
class Graph:
    """A straight-line program: inputs, constants, operations in order, and what it returns.

    `bodies` are the graphs that higher-order operations call, under the names by which `Ref` uses them. `output` is the structure of the
    return value (tuple, list, Mapping or a single Ref).
    """

    inputs: tuple[Input, ...]
    nodes: tuple[Node, ...]
    output: Arg
    constants: tuple[Input, ...] = ()
    bodies: tuple[tuple[str, Graph], ...] = ()

    @property
    def ops(self) -> int:
        """Number of nodes that compute something, including those in bodies."""
        return sum(map(is_op, self.all_nodes()))

    @property
    def input_elements(self) -> int:
        """Number of elements of all inputs and constants."""
        return sum(i.meta.elements for i in self.sources)

    @property
    def sources(self) -> tuple[Input, ...]:
        """The inputs and the constants."""
        return (*self.inputs, *self.constants)

    def all_nodes(self) -> Iterator[Node]:
        """The operations, then those of the bodies."""
        yield from self.nodes
        for _, body in self.bodies:
            yield from body.all_nodes()

    def metas(self) -> dict[str, Meta]:
        """The metadata of each named value."""
        known = {i.name: i.meta for i in self.sources}
        known.update((n.name, n.meta) for n in self.nodes)
        return known


class Pipeline(Enum):
    """What compiles the module: `torch.compile`, or AOTInductor from an exported program."""

    COMPILE = "compile"
    AOTI = "aoti"


# The setting that makes PyTorch's own comparison trust eager results.
EAGER_ALONE = ("torch._dynamo.config.same_two_models_use_fp64", "False")


@dataclass(frozen=True)
class Recipe:
    """How the script compiles and calls the module: everything in the user's program except the graph.

    Values of `options` and `config` are Python text. `contexts` are `with` expressions around the call, `setup` lines run before it
    (`torch.set_default_dtype(torch.float64)`).
    """

    pipeline: Pipeline = Pipeline.COMPILE
    backend: str | None = None  # Python text; None: inductor by default
    mode: str | None = None
    options: tuple[tuple[str, str], ...] = ()
    dynamic: bool | None = None
    fullgraph: bool = False
    config: tuple[tuple[str, str], ...] = ()  # ("torch._inductor.config.freezing", "True")
    contexts: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()
    backward: bool = False  # the sum of the outputs is differentiated after the call
    has_backward: bool = False  # the failing graph has a backward, though the script does not differentiate
    weighted: bool = False  # with a weight for each number: the plain sum of a softmax or of normalized values has no gradient
    accuracy: bool = False  # compare with eager
    strict: bool = False  # accuracy: integral and boolean outputs are compared too
    # accuracy: (rtol, atol), or () for the defaults of torch.testing.assert_close; None: PyTorch's rule, with `repro_tolerance` for both
    tolerance: tuple[float, ...] | None = None
    repro_tolerance: float = 1e-3  # as torch._dynamo.config had it: the entry may be dropped, but what counts as wrong must stay
    # accuracy, by PyTorch's rule: both results are compared with float64, as PyTorch does when eager itself misses the tolerance
    against_float64: bool = False
    eager_alone: bool = False  # accuracy: the program's settings turn float64 off, so eager alone says what is right
    seed: int | None = 0  # None: the script does not seed
    freshness: bool = False  # inputs are cloned for each call, since the module changes them
    frees: bool = False  # each value is deleted after its last use, which a program that runs out of memory may need
    synchronize: bool = False  # waits for the GPU after the call, since an error in a kernel only shows then
    launch_when_compiled: bool = False  # the user's kernels are launched only in compiled code, because they fail in eager as well

    @property
    def needs_gradients(self) -> bool:
        """Whether whatever replaces a differentiable value must be differentiable too."""
        return self.backward or self.has_backward


@dataclass(frozen=True)
class Program:
    """Everything that a script is printed from."""

    graph: Graph
    recipe: Recipe = field(default_factory=Recipe)
    preamble: str = ""  # the user's own definitions: passes, backends, custom ops
    # the preamble with which the static-size version was run and passed: as long as the preamble is unchanged, a comment says so
    static_passes: str | None = None

    def with_graph(self, graph: Graph) -> Program:
        """The same program with another `graph`."""
        return replace(self, graph=graph)


def is_op(node: Node) -> bool:
    """Whether `node` counts as an operation."""
    last = node.target.split(".")
    return not any(part in _FREE for part in last)


def is_launch(node: Node) -> bool:
    """Whether `node` launches a kernel of the user's: `args` are the kernel's name (`Code`) and the grid, `kwargs` its arguments.

    A launch returns nothing, and nothing records which of its tensors it writes.
    """
    return node.target == "torch.ops.higher_order.triton_kernel_wrapper_mutation" and len(node.args) == 2


def kernels(graph: Graph) -> set[str]:
    """The names or dotted paths by which the script reaches the kernels that `graph` and its bodies launch."""
    launched = (n.args[0] for n in graph.all_nodes() if is_launch(n))
    return {kernel.text for kernel in launched if isinstance(kernel, Code)}


def leaves(arg: Arg) -> Iterator[Arg]:
    """Every literal, `Code` and `Ref` in `arg`, in order."""
    if isinstance(arg, (list, tuple)):
        for item in arg:
            yield from leaves(item)
    elif isinstance(arg, Slice):
        yield from leaves((arg.start, arg.stop, arg.step))
    elif isinstance(arg, Mapping):
        yield from leaves(tuple(item for _, item in arg.items))
    else:
        yield arg


def refs(arg: Arg) -> Iterator[str]:
    """Names used anywhere in `arg`."""
    return (leaf.name for leaf in leaves(arg) if isinstance(leaf, Ref))


def contiguous_stride(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides, in elements, of a new tensor of this `shape`, as torch computes them."""
    stride, step = [], 1
    for size in reversed(shape):
        stride.append(step)
        step *= max(size, 1)
    return tuple(reversed(stride))
