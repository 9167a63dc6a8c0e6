"""Python text for values that can be written without the user's definitions."""

from __future__ import annotations

import enum
import math
import os
import site
import sys
import sysconfig
from collections.abc import Callable
from typing import Any

import torch


def scalar(value: Any) -> str | None:
    """Python text for a number, a string or one of torch's constants; None if `value` is none of these, or of a subclass."""
    # subclasses print differently, and the text would have another type
    if type(value) is str:
        return f'"{value}"' if repr(value) == f"'{value}'" and '"' not in value else repr(value)
    if type(value) in (float, complex):
        return number(value)
    if value is None or value is Ellipsis or type(value) in (bool, int, bytes, torch.Size):
        return "..." if value is Ellipsis else repr(value)
    if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
        return str(value)
    return f'torch.device("{device_text(value)}")' if isinstance(value, torch.device) else None


def number(value: float | complex) -> str:
    """Python text for a `value` that may be infinite or NaN."""
    if isinstance(value, complex):
        parts = (value.real, value.imag)
        # `1-0j` is 1+0j, and `-1j` is -0-1j: with signed zeros, `complex(...)` is needed
        if all(math.isfinite(part) and str(part) != "-0.0" for part in parts) and (value.real or value.imag >= 0):
            return repr(value)
        return f"complex({', '.join(map(number, parts))})"
    if math.isfinite(value):
        return repr(value)
    return "torch.nan" if math.isnan(value) else ("torch.inf" if value > 0 else "-torch.inf")


def device_text(device: torch.device) -> str:
    """`cuda` for the first `device` of its kind: that is what people write, and it still works on a machine with one."""
    return device.type if device.index in (None, 0) else f"{device.type}:{device.index}"


def container(value: Any, write: Callable[[Any], str]) -> str | None:
    """Python text for a list, tuple, set or dict, with items written by `write`; None if `value` is none of these, or of a subclass."""
    if type(value) is dict:
        return "{" + ", ".join(f"{write(key)}: {write(item)}" for key, item in value.items()) + "}"
    if type(value) not in (list, tuple, set):
        return None
    items = ", ".join(map(write, value))
    if type(value) is tuple:
        return f"({items},)" if len(value) == 1 else f"({items})"
    return f"[{items}]" if type(value) is list else (f"{{{items}}}" if value else "set()")


class NoText(Exception):
    """A value has no Python text."""


def text_of(value: Any) -> str | None:
    """Python text that makes an equal `value` without the user's definitions, or None if there is none."""
    try:
        return _text_of(value)
    except NoText:
        return None


def _text_of(value: Any) -> str:
    if isinstance(value, enum.Enum):
        held = _importable(type(value))
        text = f"{held}.{value.name}" if held else None
    else:
        text = scalar(value) or container(value, _text_of)
        if text is None and callable(value):
            text = _importable(value)
    if text is None:
        raise NoText
    return text


def _importable(value: Any) -> str | None:
    """`torch.a.b` for a function or class that torch itself has under that name."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if not module or not name or (not module.startswith("torch.") and module != "torch") or "<" in name:
        return None
    return f"{module}.{name}" if is_at(module, name, value) else None


def is_at(module: str, name: str, value: Any) -> bool:
    """Whether an imported `module` has this very `value` under a dotted `name`."""
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is not None and found is value


def installed(module: str | None) -> bool:
    """Whether a `module` comes with the interpreter or its packages, so that it can be imported anywhere."""
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
