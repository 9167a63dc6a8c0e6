"""Edits of a syntax tree that can be combined: an Edit lists nodes and what replaces each.

libcst prints everything untouched exactly as it was, so a candidate is the user's own text minus what was removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Union

import libcst as cst

_NewNode = Union[cst.CSTNode, cst.RemovalSentinel, "cst.FlattenSentinel[Any]"]
Change = Callable[[cst.CSTNode], _NewNode]


@dataclass(frozen=True)
class Edit:
    """One step: each node with the function that makes its replacement; the function gets the node with its inner edits done."""

    changes: tuple[tuple[cst.CSTNode, Change], ...]
    weight: int = 1  # rough number of characters it removes: the heaviest edits are asked first

    @property
    def nodes(self) -> tuple[cst.CSTNode, ...]:
        """The nodes it changes."""
        return tuple(node for node, _ in self.changes)


def remove(*nodes: cst.CSTNode) -> Edit:
    """Removes whole `nodes` from the lists that contain them."""
    return Edit(tuple((node, _gone) for node in nodes), sum(width(n) for n in nodes))


def together(edits: Iterable[Edit]) -> Edit:
    """One edit that makes all of the `edits` or none."""
    all_edits = list(edits)
    return Edit(tuple(change for e in all_edits for change in e.changes), sum(e.weight for e in all_edits))


def apply(module: cst.Module, edits: Sequence[Edit]) -> str | None:
    """The text of `module` after the `edits`; None if the result is not a program. A body that loses all its statements becomes `pass`."""
    try:
        changed = module.visit(_Apply(edits))
    except (cst.CSTValidationError, TypeError):  # an empty tuple without parentheses, an import without names
        return None
    return changed.code if isinstance(changed, cst.Module) else None


# an `If` among another statement's clauses is an `elif`
_CLAUSES = (cst.Else, cst.Finally, cst.ExceptHandler, cst.ExceptStarHandler, cst.MatchCase, cst.If)
_PRINTER = cst.Module([])


def show(node: cst.CSTNode) -> str:
    """The text of `node`."""
    return _PRINTER.code_for_node(node)


def width(node: cst.CSTNode) -> int:
    """Number of characters in the text of `node`."""
    return len(show(node))


def walk(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The `node` and everything below it, outermost first, in source order."""
    yield node
    for child in node.children:
        yield from walk(child)


def blocks(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The statement lists directly below a statement (`node`), including those of `else`, `except` and `case`; a module is its own."""
    if isinstance(node, cst.Module):
        yield node
        return
    for child in node.children:
        if isinstance(child, cst.IndentedBlock):
            yield child
        elif isinstance(child, _CLAUSES):
            yield from blocks(child)


def body_of(block: cst.CSTNode) -> Sequence[cst.BaseStatement]:
    """The statements of a module or block (`block`)."""
    assert isinstance(block, (cst.Module, cst.IndentedBlock))
    return [s for s in block.body if isinstance(s, cst.BaseStatement)]


def statements(node: cst.CSTNode) -> Iterator[cst.BaseStatement]:
    """All statements below a module or statement (`node`), outermost first, in source order."""
    for block in blocks(node):
        for statement in body_of(block):
            yield statement
            yield from statements(statement)


def level(module: cst.Module, depth: int) -> list[cst.BaseStatement]:
    """The statements of a `module` at one `depth` of nesting (0: its own), in source order."""
    found = [s for block in blocks(module) for s in body_of(block)]
    for _ in range(depth):
        found = [inner for s in found for block in blocks(s) for inner in body_of(block)]
    return found


def small(node: cst.CSTNode) -> cst.BaseSmallStatement | None:
    """The only small statement on a line (`node`); None for compound statements."""
    if isinstance(node, cst.SimpleStatementLine) and node.body:
        return node.body[0]
    return None


def is_pass(node: cst.CSTNode) -> bool:
    """Whether a statement (`node`) is `pass`."""
    return isinstance(small(node), cst.Pass)


def _gone(_: cst.CSTNode) -> cst.RemovalSentinel:
    return cst.RemoveFromParent()


class _Apply(cst.CSTTransformer):
    def __init__(self, edits: Sequence[Edit]) -> None:
        super().__init__()
        self._changes: dict[cst.CSTNode, list[Change]] = {}
        for edit in edits:
            for node, change in edit.changes:
                self._changes.setdefault(node, []).append(change)

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.Parameters):
            star = node.star_arg
            # a star needs a parameter after it
            if isinstance(star, cst.ParamStar) and all(_gone in self._changes.get(one, ()) for one in node.kwonly_params):
                self._changes.setdefault(star, []).append(_gone)
        return _gone not in self._changes.get(node, ())

    def on_leave(self, original_node: Any, updated_node: Any) -> Any:
        changes = self._changes.get(original_node)
        if changes is None:
            if isinstance(original_node, cst.IndentedBlock) and not updated_node.body:
                return updated_node.with_changes(body=[cst.SimpleStatementLine([cst.Pass()])])
            return _last_comma(original_node, updated_node)
        if _gone in changes:
            return cst.RemoveFromParent()
        result = updated_node
        for change in changes:
            result = change(result)
            if not isinstance(result, cst.CSTNode):
                break
        return result


_LISTS = ("args", "bases", "keywords", "elements", "params", "kwonly_params", "names")


def _last_comma(original: Any, updated: Any) -> Any:
    """The node without the comma that a removed last argument or element leaves behind."""
    for name in _LISTS:
        before, after = getattr(original, name, None), getattr(updated, name, None)
        if isinstance(before, (list, tuple)) and isinstance(after, (list, tuple)) and len(after) < len(before):
            if after:
                after = [*after[:-1], after[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)]
            updated = updated.with_changes(**{name: after})
            if name == "kwonly_params" and not after and updated.params:
                last = updated.params[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
                updated = updated.with_changes(params=[*updated.params[:-1], last])
            if isinstance(updated, cst.ClassDef) and not updated.bases and not updated.keywords:
                updated = updated.with_changes(lpar=cst.MaybeSentinel.DEFAULT, rpar=cst.MaybeSentinel.DEFAULT)
    return updated
