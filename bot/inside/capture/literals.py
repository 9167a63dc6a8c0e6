"""Python text for a value: what can be written down without the user's definitions."""

from __future__ import annotations

import enum
import math
import os
import site
import sys
import sysconfig
import types
from typing import Any

import torch


def text_of(value: Any) -> str | None:
    """Python text that makes an equal value without the user's definitions, or None where there is none."""
    if isinstance(value, enum.Enum):
        held = _importable(type(value))
        return f"{held}.{value.name}" if held else None
    # their subclasses print otherwise, and would be of another type
    if type(value) is str:
        return f'"{value}"' if repr(value) == f"'{value}'" and '"' not in value else repr(value)
    if type(value) is float and not math.isfinite(value):
        return f'float("{value}")'
    if value is None or type(value) in (bool, int, float):
        return repr(value)
    if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
        return str(value)
    if isinstance(value, torch.device):
        return f'torch.device("{value}")'
    if type(value) in (list, tuple, set, dict):
        items = [text_of(item) for item in (value if not isinstance(value, dict) else [x for pair in value.items() for x in pair])]
        if any(item is None for item in items):
            return None
        if isinstance(value, dict):
            return "{" + ", ".join(f"{k}: {v}" for k, v in zip(items[::2], items[1::2], strict=False)) + "}"
        inside = ", ".join(str(item) for item in items)
        if isinstance(value, tuple):
            return f"({inside},)" if len(items) == 1 else f"({inside})"
        return f"[{inside}]" if isinstance(value, list) else (f"{{{inside}}}" if items else "set()")
    if isinstance(value, types.BuiltinFunctionType) or (callable(value) and _importable(value)):
        return _importable(value)
    return None


def _importable(value: Any) -> str | None:
    """`torch.a.b` for a function or class that torch itself holds under that name."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if not module or not name or (not module.startswith("torch.") and module != "torch") or "<" in name:
        return None
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return f"{module}.{name}" if found is value else None


def installed(module: str | None) -> bool:
    """Whether a module comes with the interpreter or its packages, so that an import finds it anywhere."""
    found = sys.modules.get(module or "")
    if found is None or module is None or module == "__main__":
        return False
    if module in sys.builtin_module_names or getattr(getattr(found, "__spec__", None), "origin", None) == "frozen":
        return True
    path = getattr(found, "__file__", None) or next(iter(getattr(found, "__path__", ())), None)
    if path is None or not os.path.isabs(path):
        return "." in module and installed(module.rpartition(".")[0])
    roots = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    roots |= {*site.getsitepackages(), site.getusersitepackages()}
    return any(root and path.startswith(os.path.join(root, "")) for root in roots)
