"""Removes one thing that a script sets, wherever it does: a compiler setting, or the random seed."""

from __future__ import annotations

from collections.abc import Collection

import libcst as cst

from bot.reduce.source.text.normal_form import UNREADABLE, legal, parsed


def without_setting(text: str, name: str) -> str | None:
    """The script `text` without anything that sets the configuration entry or keyword whose last name is `name`: assignments to an
    attribute of this name, keyword arguments, dictionary entries. None if there are none, or if `text` is not Python."""
    return _changed(text, _Without(name))


def without_calls(text: str, names: Collection[str]) -> str | None:
    """The script `text` without statements that only call something whose last name is in `names`. None if there are none, if such a call
    also occurs elsewhere, or if `text` is not Python."""
    found = _changed(text, _WithoutCalls(names))
    return None if found is None or any(f"{name}(" in found for name in names) else found


def _changed(text: str, change: cst.CSTTransformer) -> str | None:
    try:
        parsed(text)  # libcst crashes the whole process on some texts that Python only rejects
        module = cst.parse_module(text)
        changed = module.visit(change)
    except (cst.ParserSyntaxError, *UNREADABLE):
        return None
    assert isinstance(changed, cst.Module)
    return changed.code if changed.code != module.code and legal(changed.code) else None


class _Without(cst.CSTTransformer):
    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    def leave_Assign(self, original_node: cst.Assign, updated_node: cst.Assign) -> cst.BaseSmallStatement:
        targets = [one.target for one in updated_node.targets]
        sets = any(isinstance(target, cst.Attribute) and target.attr.value == self._name for target in targets)
        return cst.Pass() if sets else updated_node

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg | cst.RemovalSentinel:
        named = updated_node.keyword is not None and updated_node.keyword.value == self._name
        return cst.RemoveFromParent() if named else updated_node

    def leave_DictElement(self, original_node: cst.DictElement, updated_node: cst.DictElement) -> cst.DictElement | cst.RemovalSentinel:
        key = updated_node.key.evaluated_value if isinstance(updated_node.key, cst.SimpleString) else None
        named = isinstance(key, str) and key.rpartition(".")[2] == self._name
        return cst.RemoveFromParent() if named else updated_node


class _WithoutCalls(cst.CSTTransformer):
    def __init__(self, names: Collection[str]) -> None:
        super().__init__()
        self._names = names

    def leave_Expr(self, original_node: cst.Expr, updated_node: cst.Expr) -> cst.BaseSmallStatement:
        called = updated_node.value.func if isinstance(updated_node.value, cst.Call) else None
        name = called.attr if isinstance(called, cst.Attribute) else called
        return cst.Pass() if isinstance(name, cst.Name) and name.value in self._names else updated_node
