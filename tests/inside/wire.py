"""Whether JSON that crossed the wire is what `bot.inside.protocol` declares."""

from __future__ import annotations

import types
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict


def misfit(value: Any, declared: Any, at: str = "") -> str:
    """The first place at which a value is not of the declared type, and why; empty where it is."""
    origin, arguments = get_origin(declared), get_args(declared)
    if is_typeddict(declared):
        hints = get_type_hints(declared)
        if not isinstance(value, dict):
            return f"{at}: {value!r} is no {declared.__name__}"
        if unknown := value.keys() - hints.keys():
            return f"{at}: {declared.__name__} has no {sorted(unknown)}"
        if missing := declared.__required_keys__ - value.keys():
            return f"{at}: {declared.__name__} lacks {sorted(missing)}"
        return next(filter(None, (misfit(item, hints[key], f"{at}.{key}") for key, item in value.items())), "")
    if origin in (Union, types.UnionType):
        found = [misfit(value, one, at) for one in arguments]
        return "" if "" in found else found[0]
    if origin is Literal:
        return "" if value in arguments else f"{at}: {value!r} is none of {arguments}"
    if origin in (list, dict):
        if not isinstance(value, origin):
            return f"{at}: {value!r} is no {origin.__name__}"
        items = value.items() if isinstance(value, dict) else enumerate(value)
        return next(filter(None, (misfit(item, arguments[-1], f"{at}[{key!r}]") for key, item in items)), "")
    kinds = (int, float) if declared is float else declared
    return "" if isinstance(value, kinds) and (declared is bool or not isinstance(value, bool)) else f"{at}: {value!r} is no {declared}"
