"""Makes a program that runs out of GPU memory do so with less memory.

Proposes smaller sizes, divided all together or else one by one, with a cap on the allocator that shrinks as much as the graph's tensors.
Then lowers the cap toward what eager needs (eager runs with each candidate), so that operations for which both sides need memory can go;
at the end raises it again, so that neither side is close to it. The cap is in bytes, independent of the GPU.

Compiled code needs some memory whatever it computes: benchmarking a kernel takes a buffer of up to 256 MiB. With a cap just above what
eager needs, everything would fail for that reason. So the cap stays `_SLACK` above it, and sizes that do not fail with that slack are not
taken.

Cost: one query for each proposal and up to nine for its cap; the same again for each smaller graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from bot.reduce.graph.form import Graph, Meta, Program
from bot.reduce.graph.incumbent import Incumbent
from bot.reduce.graph.passes.resize import free_sizes
from bot.reduce.graph.passes.sizes import with_sizes

_FACTORS, _OF_ONE = (1024, 256, 64, 16, 8, 4, 2), (64, 8, 2)
# Number of sizes that are divided alone; those with the most elements first.
_MOST_SIZES = 4
_MIB = 1 << 20
# MiB. Inductor's buffer for benchmarking is as large as the GPU's cache, Triton's has 256 MiB; the allocator takes memory in blocks of 20.
_SLACK, _LEAST = 512, 2048
_MOST_BISECTED = 7
_CAPPED = "torch.cuda.set_per_process_memory_fraction("
_WIDTHS = {
    "complex128": 16, "complex64": 8, "float64": 8, "int64": 8, "uint64": 8, "bfloat16": 2, "float16": 2, "int16": 2, "uint16": 2,
    "bool": 1, "int8": 1, "uint8": 1,
}  # fmt: skip


class Memory:
    """How much GPU memory the smallest program may take; at first what the failing run was `allowed`, in bytes."""

    def __init__(self, allowed: int) -> None:
        self._mib = allowed // _MIB
        self._tight: Graph | None = None  # the graph for which the cap cannot be lower

    def run(self, incumbent: Incumbent) -> bool:
        """Shrinks the sizes in `incumbent` and its memory cap; returns whether anything changed."""
        start = incumbent.key
        self._shrink(incumbent, _divided(free_sizes(incumbent.program), _FACTORS))
        for size in free_sizes(incumbent.program)[:_MOST_SIZES]:
            self._shrink(incumbent, _divided([size], _OF_ONE))
        if incumbent.program.graph != self._tight:
            self._tighten(incumbent)
        return incumbent.key != start

    def loosen(self, incumbent: Incumbent) -> None:
        """Raises the cap of `incumbent` between what eager needs and what the failure does, to a power of two if
        there is one in between."""
        if is_capped(incumbent.program):
            caps = dict.fromkeys((1 << self._mib.bit_length(), self._mib * 3 // 2, self._mib * 5 // 4, self._mib * 9 // 8))
            incumbent.offer_first((capped(incumbent.program, mib) for mib in caps), "memory", any_size=True)

    def _shrink(self, incumbent: Incumbent, mappings: Iterator[dict[int, int]]) -> None:
        program, most = incumbent.program, self._mib
        before = _bytes(program)
        for changed in (each for mapping in mappings for each in with_sizes(incumbent, program, mapping)):
            mib = most * _bytes(changed) // max(1, before)
            if _LEAST <= mib <= most * 7 // 8 and incumbent.offer(capped(changed, mib), "memory"):
                self._mib = mib
                if self._tighten(incumbent):
                    return
                incumbent.offer(program, "memory", any_size=True)  # this is known to fail
                self._mib = most

    def _tighten(self, incumbent: Incumbent) -> bool:
        """Lowers the cap to `_SLACK` above what eager needs, and returns whether compiled code needs more than that; if not, the cap
        stays."""
        program, most, low = incumbent.program, self._mib, 0
        for _ in range(_MOST_BISECTED):
            middle = (low + self._mib) // 2
            if self._mib - low <= max(_SLACK // 4, self._mib // 32):
                break
            # programs that differ only in their caps have no size order
            if incumbent.offer(capped(program, middle), "memory", any_size=True):
                self._mib = middle
            else:
                low = middle
        self._tight = program.graph
        if incumbent.offer(capped(program, self._mib + _SLACK), "memory", any_size=True):
            self._mib += _SLACK
            return True
        incumbent.offer(program, "memory", any_size=True)
        self._mib = most
        return False


def is_capped(program: Program) -> bool:
    """Whether the script of `program` caps the allocator."""
    return any(line.startswith(_CAPPED) for line in program.recipe.setup)


def capped(program: Program, mib: int) -> Program:
    """The `program` with its allocator capped at `mib` MiB, replacing any other cap."""
    setup = tuple(line for line in program.recipe.setup if not line.startswith(_CAPPED))
    cap = f"{_CAPPED}{mib} * 2**20 / torch.cuda.mem_get_info()[1])"
    return replace(program, recipe=replace(program.recipe, setup=(*setup, cap)))


def _divided(sizes: Sequence[int], factors: Sequence[int]) -> Iterator[dict[int, int]]:
    for factor in factors:
        mapping = {size: size // factor for size in sizes if size >= 2 * factor}
        if mapping:
            yield mapping


def _bytes(program: Program) -> int:
    """Bytes of all tensors in the graph, each counted once."""
    graph = program.graph
    return sum(map(_width, (*(item.meta for item in graph.sources), *(node.meta for node in graph.all_nodes()))))


def _width(meta: Meta) -> int:
    return meta.elements * _WIDTHS.get(meta.dtype, 4) + sum(map(_width, meta.items))
