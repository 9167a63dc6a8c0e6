"""The compiler's entry points: one table for those who take them out and for those who look for them in a program's text.

Standard library alone, so that both interpreters may import it. Names that a version of torch does not have do no harm.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Sort(Enum):
    """What an entry point takes, and what it returns."""

    COMPILE = "a function or module (none: a decorator); a compiled one"
    COMPILE_IN_PLACE = "a method of a module; nothing"
    OPTIMIZE = "a backend; a decorator"
    TRACE = "a function, then its inputs in a second call; a graph and its guards"
    COMPILE_GRAPH = "a graph or function first, whatever follows; a compiled function"
    EXPORT = "a module and its inputs; an exported program"
    SAVE = "an exported program and a file"
    LOAD = "a file; an exported program"
    UNFLATTEN = "an exported program; a module"
    PACKAGE = "an exported program; the path of its package"
    COMPILE_LIBRARY = "a module and its inputs; the path of a library"
    REPACKAGE = "an archive and the files to put into it"
    LOAD_PACKAGE = "the path of a package or library; what can be called"


class EntryPoint(NamedTuple):
    """`name` is qualified. `former` are other places of the same function, private ones and those of other versions."""

    name: str
    sort: Sort
    former: tuple[str, ...] = ()

    @property
    def places(self) -> tuple[str, ...]:
        """All its qualified names."""
        return (self.name, *self.former)


ENTRY_POINTS = (
    EntryPoint("torch.compile", Sort.COMPILE),
    EntryPoint("torch.nn.Module.compile", Sort.COMPILE_IN_PLACE),
    EntryPoint("torch._dynamo.optimize", Sort.OPTIMIZE),
    EntryPoint("torch._dynamo.optimize_assert", Sort.OPTIMIZE),
    EntryPoint("torch._dynamo.export", Sort.TRACE),
    EntryPoint("torch._inductor.compile", Sort.COMPILE_GRAPH),
    EntryPoint("torch._inductor.standalone_compile", Sort.COMPILE_GRAPH),
    EntryPoint("torch._inductor.compile_fx.compile_fx", Sort.COMPILE_GRAPH),
    EntryPoint("functorch.compile.aot_function", Sort.COMPILE_GRAPH, ("torch._functorch.aot_autograd.aot_function",)),
    EntryPoint("functorch.compile.aot_module", Sort.COMPILE_GRAPH, ("torch._functorch.aot_autograd.aot_module",)),
    EntryPoint("functorch.compile.aot_module_simplified", Sort.COMPILE_GRAPH, ("torch._functorch.aot_autograd.aot_module_simplified",)),
    EntryPoint("torch.export.export", Sort.EXPORT, ("torch.export._trace._export",)),
    EntryPoint("torch.export.export_for_training", Sort.EXPORT, ("torch.export._trace._export_for_training",)),
    EntryPoint("torch.export.export_for_inference", Sort.EXPORT),
    EntryPoint("torch.export.draft_export", Sort.EXPORT),
    EntryPoint("torch.export.save", Sort.SAVE),
    EntryPoint("torch.export.load", Sort.LOAD),
    EntryPoint("torch.export.unflatten", Sort.UNFLATTEN),
    EntryPoint("torch._inductor.aoti_compile_and_package", Sort.PACKAGE),
    EntryPoint("torch._inductor.aot_compile", Sort.COMPILE_LIBRARY, ("torch._export.aot_compile",)),
    EntryPoint("torch._inductor.aoti_load_package", Sort.LOAD_PACKAGE),
    EntryPoint("torch._inductor.package.load_package", Sort.LOAD_PACKAGE, ("torch._inductor.package.package.load_package",)),
    EntryPoint("torch._export.aot_load", Sort.LOAD_PACKAGE),
    EntryPoint("torch._inductor.package.package_aoti", Sort.REPACKAGE, ("torch._inductor.package.package.package_aoti",)),
)

# What is handed to these is compiled or traced, at once or when it is called.
COMPILING = frozenset({Sort.COMPILE, Sort.OPTIMIZE, Sort.TRACE, Sort.COMPILE_GRAPH, Sort.EXPORT, Sort.PACKAGE, Sort.COMPILE_LIBRARY})
# These run or trace what they are handed at once.
AT_ONCE = frozenset({Sort.EXPORT, Sort.TRACE, Sort.PACKAGE, Sort.COMPILE_LIBRARY})


def places(*sorts: Sort) -> tuple[str, ...]:
    """The qualified names of the entry points of these `sorts`, in the table's order."""
    return tuple(place for entry in ENTRY_POINTS if entry.sort in sorts for place in entry.places)


def last_names(*sorts: Sort) -> frozenset[str]:
    """The last parts of the names of these `sorts`: `compile` of `torch.compile`."""
    return frozenset(place.rpartition(".")[2] for place in places(*sorts))
