"""One form for every script: a statement a line, no comments, the blank lines that a person would leave.

Reducers edit scripts in this form: a statement then owns whole lines, so that removing it is removing lines.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Union

import libcst as cst

Statement = Union[cst.SimpleStatementLine, cst.BaseCompoundStatement]
_BLANK = cst.EmptyLine(indent=False)


def legal(text: str) -> bool:
    """Whether Python accepts the text as a program (it is not run)."""
    try:
        compile(text, "<candidate>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError):
        return False
    return True


def normal(text: str) -> str:
    """The same program with one statement a line, without comments and docstrings, laid out by PEP 8's rules for blank lines.

    Raises SyntaxError where the text is not Python.
    """
    try:
        module = cst.parse_module(text)
    except cst.ParserSyntaxError as error:
        raise SyntaxError(str(error)) from error
    changed = module.visit(_Normal())
    assert isinstance(changed, cst.Module)
    return changed.code.lstrip("\n")


def measure(text: str) -> tuple[int, int, str]:
    """The total order of source texts: lines that are neither blank nor a comment, characters, the text itself."""
    lines = [line.strip() for line in text.splitlines()]
    return (sum(1 for line in lines if line and not line.startswith("#")), len(text), text)


def start_line(node: ast.stmt) -> int:
    """First line of a statement, its decorators included (1-based, as in `ast`)."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(d.lineno for d in decorators)])


def end_line(node: ast.stmt) -> int:
    """Last line of a statement (1-based)."""
    return node.end_lineno if node.end_lineno is not None else node.lineno


def _is_docstring(node: cst.BaseStatement | cst.BaseSmallStatement) -> bool:
    if isinstance(node, cst.SimpleStatementLine) and len(node.body) == 1:
        node = node.body[0]
    return isinstance(node, cst.Expr) and isinstance(node.value, (cst.SimpleString, cst.ConcatenatedString))


def _lines_of(body: Sequence[cst.BaseStatement | cst.BaseSmallStatement]) -> list[cst.BaseStatement]:
    """The body without docstrings (kept as `pass` where nothing else is left)."""
    kept = [s for s in body if not _is_docstring(s)]
    out: list[cst.BaseStatement] = []
    for statement in kept:
        out.append(cst.SimpleStatementLine([statement]) if isinstance(statement, cst.BaseSmallStatement) else statement)
    if not out and body:
        out = [cst.SimpleStatementLine([cst.Pass()])]
    return out


def _spaced(body: Sequence[cst.BaseStatement], blanks: int) -> list[cst.BaseStatement]:
    """The statements with `blanks` empty lines around definitions and after the imports, none elsewhere."""
    out: list[cst.BaseStatement] = []
    before: cst.BaseStatement | None = None
    for statement in body:
        own = isinstance(statement, (cst.FunctionDef, cst.ClassDef))
        after = isinstance(before, (cst.FunctionDef, cst.ClassDef))
        number = blanks if before is not None and (own or after) else 0
        if number == 0 and before is not None and _imports(before) and not _imports(statement):
            number = 1
        lines = [_BLANK] * number
        if isinstance(statement, (cst.SimpleStatementLine, cst.BaseCompoundStatement)):
            out.append(statement.with_changes(leading_lines=lines))
        else:
            out.append(statement)
        before = statement
    return out


def _imports(node: cst.BaseStatement) -> bool:
    return isinstance(node, cst.SimpleStatementLine) and isinstance(node.body[0], (cst.Import, cst.ImportFrom))


class _Normal(cst.CSTTransformer):
    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> Union[cst.SimpleStatementLine, cst.FlattenSentinel[cst.BaseStatement]]:
        if len(updated_node.body) == 1 and not isinstance(updated_node.body[0].semicolon, cst.Semicolon):
            return updated_node
        bare = [s.with_changes(semicolon=cst.MaybeSentinel.DEFAULT) for s in updated_node.body]
        return cst.FlattenSentinel([cst.SimpleStatementLine([s]) for s in bare])

    def leave_SimpleStatementSuite(self, original_node: cst.SimpleStatementSuite, updated_node: cst.SimpleStatementSuite) -> cst.BaseSuite:
        bare = [s.with_changes(semicolon=cst.MaybeSentinel.DEFAULT) for s in updated_node.body]
        return cst.IndentedBlock(_spaced(_lines_of(bare), 0))

    def leave_IndentedBlock(self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock) -> cst.BaseSuite:
        # one blank line between methods and nested functions
        body = _spaced(_lines_of(updated_node.body), 1)
        return updated_node.with_changes(body=body, footer=[], header=cst.TrailingWhitespace())

    def leave_Module(self, original_node: cst.Module, updated_node: cst.Module) -> cst.Module:
        kept = [s for s in updated_node.body if not _is_docstring(s)]
        return updated_node.with_changes(body=_spaced(kept, 2), header=[], footer=[], has_trailing_newline=True)

    def leave_EmptyLine(self, original_node: cst.EmptyLine, updated_node: cst.EmptyLine) -> Union[cst.EmptyLine, cst.RemovalSentinel]:
        return cst.RemoveFromParent()

    def leave_TrailingWhitespace(
        self, original_node: cst.TrailingWhitespace, updated_node: cst.TrailingWhitespace
    ) -> cst.TrailingWhitespace:
        return updated_node.with_changes(whitespace=cst.SimpleWhitespace(""), comment=None)

    def leave_Else(self, original_node: cst.Else, updated_node: cst.Else) -> cst.Else:
        return updated_node.with_changes(leading_lines=[])

    def leave_Decorator(self, original_node: cst.Decorator, updated_node: cst.Decorator) -> cst.Decorator:
        return updated_node.with_changes(leading_lines=[])
