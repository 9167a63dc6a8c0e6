"""A script without one setting of the compiler, wherever it makes it."""

from __future__ import annotations

import libcst as cst

from bot.reduce.source.text.normal_form import UNREADABLE, legal, parsed


def without_setting(text: str, name: str) -> str | None:
    """The script `text` without what sets the configuration entry (or takes the keyword) with the last name `name`: assignments to an
    attribute of this name, keywords, entries of dictionaries. None where there is nothing of it, or where `text` is not Python."""
    try:
        parsed(text)  # libcst takes the whole process down where Python only refuses
        module = cst.parse_module(text)
        changed = module.visit(_Without(name))
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
