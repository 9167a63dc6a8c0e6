"""One form for every script: one statement per line, no comments, the blank lines that a person would leave.

Reducers edit scripts in this form: each statement owns whole lines, so removing it means removing lines.
"""

from __future__ import annotations

import ast
import io
import tokenize
import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any, Union

import libcst as cst

# Follows the statements that the traceback names during a search; never in a candidate.
MARK = "#~here~"
_BLANK = cst.EmptyLine(indent=False)
# What Python raises for text that is not a program; also for a NUL (before 3.12) and for nesting that is too deep.
UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
# Edits count columns, and a tab counts as one.
_INDENT = "    "


def legal(text: str) -> bool:
    """Whether Python accepts the `text` as a program (it is not run). Warnings are ignored: no person wrote this text."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "<candidate>", "exec", dont_inherit=True)
    except UNREADABLE:
        return False
    return True


def parsed(text: str) -> ast.Module:
    """The syntax tree of `text`. Raises SyntaxError if Python cannot read it, for whatever reason."""
    try:
        return ast.parse(text)
    except UNREADABLE as error:
        raise SyntaxError(str(error)) from error


def as_far_as_legal(found: Iterable[str]) -> Iterator[str]:
    """The texts in `found`, up to the first SyntaxError while making them, which means that an edit left something other than Python."""
    with suppress(SyntaxError):
        yield from found


def normal(text: str) -> str:
    """The same program (`text`) with one statement per line, without comments and docstrings, indented and spaced by PEP 8's rules.

    Raises SyntaxError if the text is not Python, or is nested too deeply.
    """
    parsed(text)  # libcst crashes the whole process on some texts that Python only rejects
    try:
        changed = cst.parse_module(text).visit(_Normal())
    except (cst.ParserSyntaxError, *UNREADABLE) as error:
        raise SyntaxError(str(error)) from error
    assert isinstance(changed, cst.Module)
    return changed.code.lstrip("\n")


def marked(text: str, lines: Collection[int]) -> str:
    """The `text` with a mark after each statement that contains one of the `lines` (1-based; innermost statement).

    Raises SyntaxError if the text is not Python.
    """
    wanted: set[int] = set()  # last lines of the statements, or of the headers of compound ones
    tree = parsed(text)
    statements = [n for n in ast.walk(tree) if isinstance(n, ast.stmt)] if lines else []
    for line in lines:
        holders = [n for n in statements if start_line(n) <= line <= end_line(n)]
        if holders:
            inner = max(holders, key=lambda n: (start_line(n), -end_line(n), n.col_offset))
            body: list[ast.stmt] = getattr(inner, "body", [])
            wanted.add(max(line, inner.lineno, start_line(body[0]) - 1) if body else end_line(inner))
    if not wanted:
        return text
    split = text.split("\n")
    comments = _comments(text)
    for line in wanted:
        if line <= len(split):
            # a mark replaces a comment
            split[line - 1] = split[line - 1][: comments.get(line)].rstrip() + "  " + MARK
    changed = "\n".join(split)
    return changed if is_code_of(tree, changed) else text


def is_code_of(tree: ast.Module, text: str) -> bool:
    """Whether `text` is a program with the syntax tree `tree`."""
    try:
        return ast.dump(ast.parse(text)) == ast.dump(tree)
    except SyntaxError:
        return False


def _comments(text: str) -> dict[int, int]:
    """Where comments begin: column (0-based) by line (1-based)."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return {token.start[0]: token.start[1] for token in tokens if token.type == tokenize.COMMENT}


def marks(text: str) -> tuple[int, ...]:
    """The lines of `text` (1-based) that have a mark."""
    return tuple(number for number, line in enumerate(text.split("\n"), 1) if line.endswith(MARK))


def unmarked(text: str) -> str:
    """The `text` without marks."""
    return text.replace("  " + MARK, "")


def measure(text: str) -> tuple[int, int, str]:
    """The total order of source texts: number of lines of `text` that are neither blank nor comments, its characters, the text itself."""
    lines = [line.strip() for line in text.splitlines()]
    return (sum(1 for line in lines if line and not line.startswith("#")), len(text), text)


def start_line(node: ast.stmt) -> int:
    """First line of a statement (`node`), including its decorators (1-based, as in `ast`)."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(d.lineno for d in decorators)])


def end_line(node: ast.stmt) -> int:
    """Last line of a statement (`node`; 1-based)."""
    return node.end_lineno if node.end_lineno is not None else node.lineno


def _is_docstring(node: cst.BaseStatement | cst.BaseSmallStatement) -> bool:
    if isinstance(node, cst.SimpleStatementLine) and len(node.body) == 1:
        node = node.body[0]
    return isinstance(node, cst.Expr) and isinstance(node.value, (cst.SimpleString, cst.ConcatenatedString))


def _lines_of(
    body: Sequence[cst.BaseStatement | cst.BaseSmallStatement], end: cst.TrailingWhitespace | None = None
) -> list[cst.BaseStatement]:
    """The body without docstrings (`pass` if nothing else is left)."""
    out = [
        cst.SimpleStatementLine([s], trailing_whitespace=end or cst.TrailingWhitespace()) if isinstance(s, cst.BaseSmallStatement) else s
        for s in body
        if not _is_docstring(s)
    ]
    return out or [cst.SimpleStatementLine([cst.Pass()])] if body else []


def _spaced(body: Sequence[cst.BaseStatement], blanks: int) -> list[cst.BaseStatement]:
    """The statements with `blanks` empty lines around definitions and after the imports, none elsewhere."""
    out = [statement.with_changes(leading_lines=[]) for statement in body[:1]]
    for before, statement in pairwise(body):
        defines = isinstance(before, (cst.FunctionDef, cst.ClassDef)) or isinstance(statement, (cst.FunctionDef, cst.ClassDef))
        number = blanks if defines else 0
        if number == 0 and _imports(before) and not _imports(statement):
            number = 1
        out.append(statement.with_changes(leading_lines=[_BLANK] * number))
    return out


def _imports(node: cst.BaseStatement) -> bool:
    return isinstance(node, cst.SimpleStatementLine) and isinstance(node.body[0], (cst.Import, cst.ImportFrom))


def _bare(value: cst.BaseExpression) -> cst.BaseExpression:
    """The expression without the parentheses around it if they only group: it is on one line and does not need them."""
    if not value.lpar or "\n" in cst.Module([]).code_for_node(value):
        return value
    # those that need parentheses keep one pair
    kept = 1 if isinstance(value, (cst.Tuple, cst.GeneratorExp, cst.Yield, cst.NamedExpr, cst.Await)) else 0
    return value.with_changes(lpar=value.lpar[:kept], rpar=value.rpar[:kept])


class _Normal(cst.CSTTransformer):
    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> Union[cst.SimpleStatementLine, cst.FlattenSentinel[cst.BaseStatement]]:
        if len(updated_node.body) == 1 and not isinstance(updated_node.body[0].semicolon, cst.Semicolon):
            return updated_node
        bare = [s.with_changes(semicolon=cst.MaybeSentinel.DEFAULT) for s in updated_node.body]
        end = updated_node.trailing_whitespace  # a mark on the line marks each of its statements
        return cst.FlattenSentinel([cst.SimpleStatementLine([s], trailing_whitespace=end) for s in bare])

    def leave_SimpleStatementSuite(self, original_node: cst.SimpleStatementSuite, updated_node: cst.SimpleStatementSuite) -> cst.BaseSuite:
        bare = [s.with_changes(semicolon=cst.MaybeSentinel.DEFAULT) for s in updated_node.body]
        return cst.IndentedBlock(_spaced(_lines_of(bare, updated_node.trailing_whitespace), 0), header=updated_node.trailing_whitespace)

    def leave_IndentedBlock(self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock) -> cst.BaseSuite:
        # one blank line between methods and nested functions
        body = _spaced(_lines_of(updated_node.body), 1)
        return updated_node.with_changes(body=body, footer=[], indent=None)

    def leave_Module(self, original_node: cst.Module, updated_node: cst.Module) -> cst.Module:
        kept = [s for s in updated_node.body if not _is_docstring(s)]
        return updated_node.with_changes(body=_spaced(kept, 2), header=[], footer=[], has_trailing_newline=True, default_indent=_INDENT)

    def leave_EmptyLine(self, original_node: cst.EmptyLine, updated_node: cst.EmptyLine) -> Union[cst.EmptyLine, cst.RemovalSentinel]:
        return cst.RemoveFromParent()

    def leave_TrailingWhitespace(
        self, original_node: cst.TrailingWhitespace, updated_node: cst.TrailingWhitespace
    ) -> cst.TrailingWhitespace:
        if updated_node.comment is not None and updated_node.comment.value == MARK:
            return updated_node.with_changes(whitespace=cst.SimpleWhitespace("  "))
        return updated_node.with_changes(whitespace=cst.SimpleWhitespace(""), comment=None)

    def visit_FormattedString(self, node: cst.FormattedString) -> bool:
        return False  # before Python 3.12, a string inside it must not use its quotes

    def leave_SimpleString(self, original_node: cst.SimpleString, updated_node: cst.SimpleString) -> cst.SimpleString:
        # unparsed statements use single quotes: use one kind of quotes in the whole text
        value = updated_node.value
        if value.startswith("'") and not value.startswith("'''") and '"' not in value and "\\" not in value:
            return updated_node.with_changes(value=f'"{value[1:-1]}"')
        return updated_node

    def _with_bare_value(self, original_node: Any, updated_node: Any) -> Any:
        return updated_node if updated_node.value is None else updated_node.with_changes(value=_bare(updated_node.value))

    leave_Arg = leave_Element = leave_Assign = leave_Return = _with_bare_value  # noqa: N815

    def _without_leading_lines(self, original_node: Any, updated_node: Any) -> Any:
        return updated_node.with_changes(leading_lines=[])

    leave_Else = leave_Decorator = _without_leading_lines  # noqa: N815
