"""Whether data from a pipe, or from a file of a capture, is what its TypedDict declares: a program may have written it."""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict

_LONGEST_FLOAT = 1023  # bits of a whole number that a float can hold


def misfit(message: Mapping[str, Any], kind: Any) -> str | None:
    """The first key of a parsed JSON `message` whose value is not of the type that the TypedDict `kind` declares; None if there is none.
    Undeclared keys may hold anything."""
    hints = get_type_hints(kind)
    return next((key for key, value in message.items() if key in hints and not fits(value, hints[key])), None)


def fits(value: Any, hint: Any) -> bool:
    """Whether the parsed JSON `value` is of the type `hint`: a TypedDict with all keys that it requires, or the declared type of a key."""
    if is_typeddict(hint):
        return isinstance(value, dict) and value.keys() >= hint.__required_keys__ and misfit(value, hint) is None
    kind, arguments = get_origin(hint), get_args(hint)
    if kind in (Union, types.UnionType):
        return any(fits(value, one) for one in arguments)
    if kind is Literal:
        return value in arguments
    if kind is list:
        return isinstance(value, list) and all(fits(one, arguments[0]) for one in value)
    if kind is dict:  # JSON keys are strings
        return isinstance(value, dict) and all(fits(one, arguments[1]) for one in value.values())
    if hint is float:  # JSON has larger numbers than that
        return isinstance(value, float) or (isinstance(value, int) and not isinstance(value, bool) and value.bit_length() <= _LONGEST_FLOAT)
    return isinstance(value, hint) and (hint is bool or not isinstance(value, bool))
