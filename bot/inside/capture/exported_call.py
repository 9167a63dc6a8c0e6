"""The call of an exported program: the order of its arguments, their keywords, the structure of its results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from .fx_form import is_ref
from .fx_targets import Unreadable


def held_by(ep: Any, spec: Any) -> Any:
    """The tensor in the exported program `ep` for an input `spec` that the caller does not pass. Raises `Unreadable`."""
    for place in (ep.state_dict, ep.constants):
        if spec.target in place:
            return place[spec.target]
    raise Unreadable(f"the exported program does not hold {spec.target}")


def leaves(ep: Any, args: Sequence[Any] | None, kwargs: Mapping[str, Any] | None) -> list[Any] | None:
    """The leaves of a call's `args` and `kwargs` in the order of the program `ep`, which may differ from the caller's; None if there was
    no call."""
    if args is None:
        return None
    flat = torch.utils._pytree.tree_leaves
    given = kwargs or {}
    found: list[Any] = list(flat(tuple(args)))
    for key in _keyword_order(ep) or list(given):
        found += flat(given[key])
    return found


def keywords(ep: Any) -> list[str | None]:
    """For each leaf of the arguments of the program `ep`, the keyword that passes exactly this leaf, or None."""
    children = _children(ep.call_spec.in_spec)
    if len(children) != 2:
        return [None] * len(ep.graph_signature.user_inputs)
    found: list[str | None] = [None] * children[0].num_leaves
    for key, child in zip(_keyword_order(ep), _children(children[1]), strict=True):
        found += [key] if not _children(child) and child.num_leaves == 1 else [None] * child.num_leaves
    return found


def nested(ep: Any, results: list[Any]) -> Any:
    """The `results` in the JSON form of an argument, nested as the program `ep` returns them; a flat tuple if that is not known."""
    spec = getattr(ep.call_spec, "out_spec", None)
    if spec is None or not all(item is None or isinstance(item, (int, float)) or is_ref(item) for item in results):
        return {"$tuple": results}
    return _structure(torch.utils._pytree.tree_unflatten([_Leaf(item) for item in results], spec))


class _Leaf:
    """A placeholder for one result while the structure is rebuilt: pytree looks into lists and dicts, but not into this."""

    def __init__(self, value: Any) -> None:
        self.value = value


def _structure(nested: Any) -> Any:
    if isinstance(nested, _Leaf):
        return nested.value
    if type(nested) is list:
        return [_structure(item) for item in nested]
    if type(nested) is tuple:
        return {"$tuple": [_structure(item) for item in nested]}
    if isinstance(nested, dict) and all(isinstance(key, str) for key in nested):
        return {"$map": [[key, _structure(item)] for key, item in nested.items()]}
    # A structure of the user's own (a dataclass output): its leaves, in order.
    return {"$tuple": [leaf.value for leaf in torch.utils._pytree.tree_leaves(nested, is_leaf=lambda x: isinstance(x, _Leaf))]}


def _children(spec: Any) -> list[Any]:
    new = getattr(spec, "children", None)  # 2.12 and later; `children_specs` warns there
    return list(new() if callable(new) else spec.children_specs)


def _keyword_order(ep: Any) -> list[str]:
    children = _children(ep.call_spec.in_spec)
    context = children[1].context if len(children) == 2 else None
    return list(context or [])
