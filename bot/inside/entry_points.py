"""The compiler's entry points: one table for the code that takes them out and for the code that finds them in a program's text.

Standard library only, so that both interpreters can import it. Names that a torch version does not have do no harm.
"""

from __future__ import annotations

from enum import Enum


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


# The qualified names of each sort, with other places of the same functions: private ones, and those of other versions.
PLACES = {
    Sort.COMPILE: ("torch.compile",),
    Sort.COMPILE_IN_PLACE: ("torch.nn.Module.compile",),
    Sort.OPTIMIZE: ("torch._dynamo.optimize", "torch._dynamo.optimize_assert"),
    Sort.TRACE: ("torch._dynamo.export",),
    Sort.COMPILE_GRAPH: (
        *("torch._inductor.compile", "torch._inductor.standalone_compile", "torch._inductor.compile_fx.compile_fx"),
        *("functorch.compile.aot_function", "torch._functorch.aot_autograd.aot_function"),
        *("functorch.compile.aot_module", "torch._functorch.aot_autograd.aot_module"),
        *("functorch.compile.aot_module_simplified", "torch._functorch.aot_autograd.aot_module_simplified"),
    ),
    Sort.EXPORT: (
        *("torch.export.export", "torch.export._trace._export"),
        *("torch.export.export_for_training", "torch.export._trace._export_for_training"),
        *("torch.export.export_for_inference", "torch.export.draft_export"),
    ),
    Sort.SAVE: ("torch.export.save",),
    Sort.LOAD: ("torch.export.load",),
    Sort.UNFLATTEN: ("torch.export.unflatten",),
    Sort.PACKAGE: ("torch._inductor.aoti_compile_and_package",),
    Sort.COMPILE_LIBRARY: ("torch._inductor.aot_compile", "torch._export.aot_compile"),
    Sort.LOAD_PACKAGE: (
        *("torch._inductor.aoti_load_package", "torch._export.aot_load"),
        *("torch._inductor.package.load_package", "torch._inductor.package.package.load_package"),
    ),
    Sort.REPACKAGE: ("torch._inductor.package.package_aoti", "torch._inductor.package.package.package_aoti"),
}

# What is passed to these is compiled or traced, immediately or when it is called.
COMPILING = frozenset({Sort.COMPILE, Sort.OPTIMIZE, Sort.TRACE, Sort.COMPILE_GRAPH, Sort.EXPORT, Sort.PACKAGE, Sort.COMPILE_LIBRARY})
# These run or trace their argument immediately.
AT_ONCE = frozenset({Sort.EXPORT, Sort.TRACE, Sort.PACKAGE, Sort.COMPILE_LIBRARY})


def places(*sorts: Sort) -> tuple[str, ...]:
    """The qualified names of the entry points of these `sorts`, in the table's order."""
    return tuple(place for sort, names in PLACES.items() if sort in sorts for place in names)


def last_names(*sorts: Sort) -> frozenset[str]:
    """The last parts of the names of these `sorts`: `compile` for `torch.compile`."""
    return frozenset(place.rpartition(".")[2] for place in places(*sorts))
