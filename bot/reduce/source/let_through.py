"""Lets exceptions through that a script catches: what the script does with them says nothing about the failure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import libcst as cst

from bot.reduce.source.text.normal_form import MARK, UNREADABLE, legal, marked, marks, parsed, unmarked

# Names of what prints a traceback, or formats one to be printed.
_PRINTS = re.compile(r"\b(?:print_exc|print_exception|print_last|format_exc|format_exception|excepthook|exc_info)\b|\.exception\(")


def forms(
    text: str, lines: Sequence[int], *, caught: bool, left: bool, raised: Sequence[str] = ()
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The forms of a script to start with, each with the new positions of its `lines`: modified forms to try first, then the script
    itself.

    Args:
        text: The script.
        lines: Lines (1-based) that a traceback names.
        caught: The script catches its failure: see `let_through`.
        left: The script exits with a status: see `quiet`.
        raised: The name of the exception's class, and of those that it was raised from.
    """
    if caught:
        yield from let_through(text, lines, raised[0] if raised else "")
    if left:
        yield from quiet(text, lines)
    yield text, tuple(lines)


def let_through(text: str, lines: Sequence[int], raised: str = "") -> Iterator[tuple[str, tuple[int, ...]]]:
    """The script `text` without the handlers around the `lines` (1-based) that a traceback names, then without any handlers; each with the
    new positions of these lines. At last, if it is known that an exception of a class called `raised` got there, with handlers that raise
    this one again and treat others as before: they may catch others first. Yields nothing if there are none, or if `text` is not Python."""

    def changes(module: cst.Module) -> list[cst.CSTTransformer]:
        without: list[cst.CSTTransformer] = [_WithoutHandlers(module, everywhere=everywhere) for everywhere in (False, True)]
        return [*without, _RaisingAgain(module, raised)] if raised else without

    yield from _changed(text, lines, changes)


def quiet(text: str, lines: Sequence[int]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The script `text` without the calls that print tracebacks of handled exceptions, and the new positions of its `lines` (1-based).
    Yields nothing if there are none, or if `text` is not Python.

    A process that prints such a traceback and exits with a status looks like one that died of the exception, and so would smaller
    programs.
    """
    yield from _changed(text, lines, lambda module: (_WithoutTracebacks(module),))


def _changed(
    text: str, lines: Sequence[int], changes: Callable[[cst.Module], Sequence[cst.CSTTransformer]]
) -> Iterator[tuple[str, tuple[int, ...]]]:
    try:
        parsed(text)  # libcst crashes the whole process on some texts that Python only rejects
        with_marks = marked(text, lines)
        module = cst.parse_module(with_marks)
    except (cst.ParserSyntaxError, *UNREADABLE):
        return
    asked = {with_marks}
    for change in changes(module):
        changed = module.visit(change)
        assert isinstance(changed, cst.Module)
        if changed.code not in asked and legal(changed.code):
            asked.add(changed.code)
            yield unmarked(changed.code), marks(changed.code)


class _WithoutTracebacks(cst.CSTTransformer):
    """Removes statements that only call something that prints a traceback."""

    def __init__(self, module: cst.Module) -> None:
        super().__init__()
        self._module = module

    def leave_Expr(self, original_node: cst.Expr, updated_node: cst.Expr) -> Any:
        prints = isinstance(original_node.value, cst.Call) and _PRINTS.search(self._module.code_for_node(original_node.value))
        return cst.RemoveFromParent() if prints else updated_node


class _WithoutHandlers(cst.CSTTransformer):
    """Replaces `try` and `with suppress(...)` by their bodies: only those that contain a mark, or everywhere."""

    def __init__(self, module: cst.Module, *, everywhere: bool) -> None:
        super().__init__()
        self._module = module
        self._everywhere = everywhere

    def leave_Try(self, original_node: cst.Try, updated_node: cst.Try) -> Any:
        if not updated_node.handlers or not self._counts(original_node.body):
            return updated_node
        blocks = [updated_node.body, *(part.body for part in (updated_node.orelse, updated_node.finalbody) if part is not None)]
        return cst.FlattenSentinel([statement for block in blocks for statement in _statements(block)])

    def leave_With(self, original_node: cst.With, updated_node: cst.With) -> Any:
        names = [self._module.code_for_node(item.item.func) for item in updated_node.items if isinstance(item.item, cst.Call)]
        if len(updated_node.items) != 1 or names[:1] not in (["suppress"], ["contextlib.suppress"]) or not self._counts(original_node.body):
            return updated_node
        return cst.FlattenSentinel(list(_statements(updated_node.body)))

    def _counts(self, body: cst.BaseSuite) -> bool:
        return self._everywhere or MARK in self._module.code_for_node(body)


class _RaisingAgain(cst.CSTTransformer):
    """Makes the handlers of each `try` that contains a mark raise exceptions of one class again."""

    def __init__(self, module: cst.Module, raised: str) -> None:
        super().__init__()
        self._module = module
        self._raised = raised

    def leave_Try(self, original_node: cst.Try, updated_node: cst.Try) -> cst.Try:
        if MARK not in self._module.code_for_node(original_node.body):
            return updated_node
        return updated_node.with_changes(handlers=[self._handler(one) for one in updated_node.handlers])

    def _handler(self, handler: cst.ExceptHandler) -> cst.ExceptHandler:
        if handler.type is None:
            return handler
        named = handler.name or cst.AsName(cst.Name("caught"))
        again = cst.parse_statement(f'if type({self._module.code_for_node(named.name)}).__name__ == "{self._raised}":\n    raise\n')
        return handler.with_changes(name=named, body=cst.IndentedBlock([again, *_statements(handler.body)]))


def _statements(block: cst.BaseSuite) -> Iterator[cst.BaseStatement]:
    for statement in block.body:
        if isinstance(statement, cst.BaseSmallStatement):  # `try: f()` on one line
            yield cst.SimpleStatementLine([statement])
        else:
            assert isinstance(statement, cst.BaseStatement)
            yield statement
