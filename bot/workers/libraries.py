"""The libraries that a script imports: a warm parent may import them once, instead of each of its children."""

from __future__ import annotations

import ast
import sys
from functools import lru_cache

# What every parent has imported, and what is not a library.
_KNOWN = frozenset({"torch", "torchgen", "functorch", "triton", "numpy", "sympy", "__future__", *sys.stdlib_module_names})


@lru_cache(maxsize=256)
def libraries_of(text: str) -> frozenset[str]:
    """The top-level names of the packages that the script `text` imports, anywhere in it; empty if it is not Python."""
    return frozenset(word.partition(":")[0].partition(".")[0] for word in imports_of(text))


@lru_cache(maxsize=256)
def imports_of(text: str) -> tuple[str, ...]:
    """Each library module that the script `text` imports, in order: `package.module`, or `package.module:name,name` if it takes names from
    it, since some packages load a part only when it is named."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    found: dict[str, None] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(dict.fromkeys(alias.name for alias in node.names))
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [alias.name for alias in node.names if alias.name != "*"]
            found[f"{node.module}:{','.join(names)}" if names else node.module] = None
    return tuple(word for word in found if word.partition(":")[0].partition(".")[0] not in _KNOWN)
