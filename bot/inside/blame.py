"""Finds which operations went into the code that a C++ or Triton compiler rejected.

Inductor knows which graph nodes were fused into each kernel, and for which operation it made each variable of the kernel. The rejected
kernel is the one whose code is in the file that the compiler complains about, or whose name is in the error; the rejected operation is the
one whose variable is in the line.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .shortcuts import function_at, shortcut

# Where kernels are defined; both take the code first and the fused nodes second, and return the kernel's name.
_SCHEDULINGS = (("torch._inductor.codegen.cpp", "CppScheduling"), ("torch._inductor.codegen.triton", "TritonScheduling"))
_COMPLAINT = re.compile(r"^(?P<file>\S+\.(?:cpp|cc|h)):(?P<line>\d+):\d+: (?:fatal )?error:", re.M)
# Generated Python code that Python itself rejects, usually a Triton kernel.
_IMPORT = re.compile(r"Failed to import (?P<file>\S+\.py)\s[^\n]*\(\w+\.py, line (?P<line>\d+)\)")
_VARIABLE = re.compile(r"\btmp\d+\b")


class Blame:
    """Records what Inductor makes, and interprets errors with it. `named` returns the names that are reported for graph nodes."""

    def __init__(self, named: Callable[[Iterable[Any]], frozenset[str]]) -> None:
        self.named = named
        self.kernels: list[tuple[str, str, frozenset[str]]] = []  # name, code, values
        # for each variable: the expression that it is set to, the operation, and the values fused around it
        self.variables: dict[str, list[tuple[str, str, frozenset[str]]]] = {}

    def install(self) -> None:
        """Start watching, until the process ends."""
        for module, name in _SCHEDULINGS:
            with shortcut("watching kernels"):
                scheduling = getattr(importlib.import_module(module), name)
                scheduling.define_kernel = self.defining(function_at(scheduling, "define_kernel", "self", "src_code"))
        with shortcut("watching variables"):
            cse: Any = importlib.import_module("torch._inductor.codegen.common").CSE
            virtualized = importlib.import_module("torch._inductor.virtualized")
            cse.generate = self.making(function_at(cse, "generate", "self", "buffer", "expr"), virtualized.V)

    def forget(self) -> None:
        """Forget everything: another graph begins."""
        self.kernels.clear()
        self.variables.clear()

    def defining(self, define: Callable[..., Any]) -> Callable[..., Any]:
        """Inductor's `define_kernel` (`define`), wrapped to record the kernel."""

        def defined(*args: Any, **kwargs: Any) -> Any:
            name = define(*args, **kwargs)
            with shortcut("watching kernels"):
                _, code, nodes, *_ = args
                self.kernels.append((str(name), code, self._values(nodes)))
            return name

        return defined

    def making(self, make: Callable[..., Any], virtual: Any) -> Callable[..., Any]:
        """Inductor's `CSE.generate` (`make`), wrapped to record the variable; `virtual` tells which operation it is made for."""

        def made(*args: Any, **kwargs: Any) -> Any:
            variable = make(*args, **kwargs)
            with shortcut("watching variables"):
                node = getattr(virtual.kernel, "current_node", None)
                operation = getattr(getattr(virtual.interpreter, "current_node", None), "target", "")
                if node is not None:
                    self.variables.setdefault(str(variable), []).append((str(args[2]), str(operation), self._values([node])))
            return variable

        return made

    def guesses(self, error: str) -> list[list[str]]:
        """What the `error` points at, smallest first: operations of their variable's kind, what is fused around them, the kernel."""
        found: list[frozenset[str]] = []
        refused = [values for name, code, values in self.kernels if _stands_in(name, code, error)]
        inside = frozenset().union(*refused)
        for operation, values in self._of_lines(error):
            # every kernel numbers its variables from zero
            if not refused or values <= inside:
                found += [frozenset(v for v in values if re.sub(r"_\d+$", "", v) == operation), values]
        found += refused
        return [sorted(values) for values in sorted(dict.fromkeys(found), key=len) if values]

    def _of_lines(self, error: str) -> Iterator[tuple[str, frozenset[str]]]:
        for match in _complaints(error):
            lines = _read(match["file"]).split("\n")
            number = int(match["line"])
            line = lines[number - 1] if number <= len(lines) else ""
            made = [one for variable in _VARIABLE.findall(line) for one in self.variables.get(variable, ())]
            # every loop numbers its variables from zero: the right one has its expression in the line
            meant = [one for one in made if one[0] in line] or made
            for _, operation, values in meant:
                yield operation, values

    def _values(self, nodes: Iterable[Any]) -> frozenset[str]:
        """The names of the graph nodes that the scheduler's `nodes` come from."""
        # a schedule also contains loop markers between its nodes
        return self.named(origin for node in nodes for origin in getattr(getattr(node, "node", None), "origins", ()))


def node_names(nodes: Iterable[Any]) -> frozenset[str]:
    """The compiler's names of graph `nodes`."""
    return frozenset(str(node.name) for node in nodes)


def _stands_in(name: str, code: str, error: str) -> bool:
    if re.search(rf"\b{re.escape(name)}\b", error):
        return True
    # in C++ the function's name is filled in later, so compare its body
    known = code[code.find("{", code.rfind('extern "C"')) :].strip() if 'extern "C"' in code else f"def {name}("
    return any(known in _read(file) for file in dict.fromkeys(match["file"] for match in _complaints(error)))


def _complaints(error: str) -> Iterator[re.Match[str]]:
    """Each place in `error` where a compiler or Python rejected a file, with the groups `file` and `line`."""
    yield from _COMPLAINT.finditer(error)
    yield from _IMPORT.finditer(error)


def _read(file: str) -> str:
    try:
        with open(file, encoding="utf-8") as source:
            return source.read()
    except (OSError, UnicodeDecodeError):
        return ""
