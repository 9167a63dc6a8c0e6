"""Traits of a script that decide how its failure is judged, read from its syntax tree.

A comment, a string or a variable of the same name changes nothing. Both interpreters read scripts, so this needs only the standard
library.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache

# Calls that fix random numbers.
SEEDS = frozenset({"manual_seed", "manual_seed_all", "seed_all", "seed"})
_DRAWS_A_SEED = "seed"  # torch's, without a number; `numpy.random.seed(0)` has one
_AS_EAGER = "fallback_random"
# When called, or imported or passed on by name, these run a backward.
_DIFFERENTIATE = frozenset(
    {"backward", "vjp", "grad_and_value", "value_and_grad", "jacrev", "jacobian", "hessian", "checkpoint_sequential"}
)
# `grad` is also an attribute of every tensor: it counts if it is called, imported, or taken from these.
_GRAD, _OF_GRAD = "grad", frozenset({"autograd", "func", "functorch"})
_UNINITIALIZED = frozenset(
    {"empty", "empty_like", "empty_permuted", "empty_strided", "empty_quantized", "new_empty", "new_empty_strided"}
    | {"_empty_affine_quantized", "resize_", "resize_as_", "set_fill_uninitialized_memory"}
)
# Operations that write to positions given by a tensor; `x[i] = y` is one too.
_WRITES = frozenset(
    {f"{name}{end}" for name in ("index_put", "_unsafe_index_put", "index_copy", "scatter") for end in ("", "_")} | {"put_"}
)
_WRITES |= {"setitem", "__setitem__"}
# Integer types, and the methods that convert to them.
_WHOLE = frozenset(
    {"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"} | {"byte", "char", "short", "int", "long", "type_as"}
)


@dataclass(frozen=True)
class Traits:
    """What a script asks for.

    `seeded`: it fixes its random numbers. `differentiates`: it runs a backward, so that a forward is compiled and run before that. A
    backward graph alone is called like any other, and does not. `uninitialized`: it may read uninitialized memory. `converts`: it may
    convert a number to an integer type, which is undefined if that cannot hold it. `overwrites`: it may write to one position twice, in an
    undefined order. `draws_as_eager`: compiled code draws the same random numbers as eager.
    """

    seeded: bool = False
    differentiates: bool = False
    uninitialized: bool = False
    converts: bool = False
    overwrites: bool = False
    draws_as_eager: bool = False

    @property
    def undefined(self) -> bool:
        """Whether torch may leave its results undefined."""
        return self.uninitialized or self.converts or self.overwrites

    def __or__(self, other: Traits) -> Traits:
        """What either of two scripts asks for."""
        return Traits(*(getattr(self, field.name) or getattr(other, field.name) for field in fields(self)))


# For what is not known to ask for nothing.
UNKNOWN = Traits(differentiates=True, uninitialized=True, converts=True, overwrites=True)


@lru_cache(maxsize=256)
def traits_of(text: str) -> Traits:
    """The traits of the script `text`; if Python cannot parse it, those that cost time and hide nothing."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return UNKNOWN
    found = Traits()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            found |= _of_call(node)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            found |= _of_name(node.attr, _last(node.value) in _OF_GRAD)
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            found = replace(found, overwrites=found.overwrites or any(not _in_order(one) for one in _parts_of_index(node.slice)))
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            # `from torch.func import grad as g`
            for alias in node.names:
                found |= _of_name(alias.name, isinstance(node, ast.ImportFrom))
        elif isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            targets: Sequence[ast.expr] = node.targets if isinstance(node, ast.Assign) else [node.target]
            found = replace(found, draws_as_eager=found.draws_as_eager or (_sets(targets) and not _is_false(node.value)))
        elif isinstance(node, ast.Dict):
            entries = zip(node.keys, node.values)  # noqa: B905 - of one length
            found = replace(
                found, draws_as_eager=found.draws_as_eager or any(_named(key) and not _is_false(value) for key, value in entries)
            )
    return found


def _of_call(call: ast.Call) -> Traits:
    name = _last(call.func)
    by_keyword = any((word.arg or "").endswith(_AS_EAGER) and not _is_false(word.value) for word in call.keywords)
    # `patch("fallback_random", True)`, `setattr(config, "fallback_random", True)`
    by_place = any(_named(key) and not _is_false(value) for key, value in zip(call.args, call.args[1:]))  # noqa: B905
    return Traits(
        seeded=name in SEEDS and (name != _DRAWS_A_SEED or bool(call.args)),
        differentiates=name == _GRAD or name in _DIFFERENTIATE,
        uninitialized=name in _UNINITIALIZED,
        converts=isinstance(call.func, ast.Attribute) and name in _WHOLE,
        overwrites=name in _WRITES,
        draws_as_eager=by_keyword or by_place,
    )


def _of_name(name: str, of_grad: bool) -> Traits:
    """What naming a function asks for, since it may be called elsewhere."""
    return Traits(
        seeded=name in SEEDS and name != _DRAWS_A_SEED,
        differentiates=name in _DIFFERENTIATE or (name == _GRAD and of_grad),
        uninitialized=name in _UNINITIALIZED,
        converts=name in _WHOLE,
        overwrites=name in _WRITES,
    )


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _sets(targets: Sequence[ast.expr]) -> bool:
    return any(isinstance(part, ast.Attribute) and part.attr == _AS_EAGER for part in _parts(targets)) or any(
        isinstance(part, ast.Subscript) and _named(part.slice) for part in _parts(targets)
    )


def _parts(targets: Sequence[ast.expr]) -> Iterator[ast.AST]:
    for target in targets:
        yield from ast.walk(target)


def _parts_of_index(index: ast.expr) -> Sequence[ast.expr]:
    return index.elts if isinstance(index, ast.Tuple) else [index]


def _in_order(part: ast.expr) -> bool:
    """Whether this part of an index names each position once: a slice, a number."""
    return isinstance(part, (ast.Slice, ast.Constant)) or (isinstance(part, ast.UnaryOp) and isinstance(part.operand, ast.Constant))


def _named(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.endswith(_AS_EAGER)


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and not node.value
