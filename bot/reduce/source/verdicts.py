"""The conditions under which a program reports wrong results: those of `assert`, and those that guard `raise` and exits.

The message of such a failure does not change when the condition does: a program that raises for a difference above 0.001 fails with the
same words if it raises for any difference at all, which rounding alone produces. So deciding comparisons stay, with the numbers that they
compare with; what is compared may become simpler.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping

from bot.reduce.source.kept import Keeps
from bot.reduce.source.text.names import last_name

_EXITS = {"exit", "_exit", "quit", "abort", "fail"}
# Functions that compare. Their numeric arguments are tolerances.
_COMPARE = {"allclose", "isclose", "equal", "array_equal", "assert_close", "assert_allclose", "assert_equal", "same", "is_close"}
# Functions that keep rounding out of an exact comparison, besides those whose names begin with `is` (`isinf`, `is_contiguous`).
_COARSE = {"argmax", "argmin", "ceil", "floor", "round", "sign", "signbit", "trunc"}
_NOT, _ELSE = _OPPOSITES = ("not", "else")
# The words of a condition, and how many times they have to hold together.
Words = Counter[str]
# What names and functions of the program stand for.
Meanings = Mapping[str, list[ast.expr]]
# How many times in a row a name or function of the program is replaced by its definition.
_DEPTH = 3


def keeps_verdict(text: str, failing_lines: Collection[int]) -> Keeps:
    """A check whether a candidate still reports a failure under a condition of `text`.

    That is the condition in the lines that the failure names (`failing_lines`, from 1), if there is one; if the failure names no lines, as
    for an exit, any of them. Raises SyntaxError if `text` is not Python.
    """
    found = list(_verdicts(ast.parse(text)))
    wanted = [words for first, last, words in found if any(first <= line <= last for line in failing_lines)]
    if not failing_lines:
        # the last of several exits is usually that of a successful run
        wanted = [words for _, _, words in found if words]

    def keeps(candidate: str) -> bool:
        try:
            there = [words for _, _, words in _verdicts(ast.parse(candidate))]
        except SyntaxError:
            return False
        return any(words <= other and (other - words).keys().isdisjoint(_OPPOSITES) for words in wanted for other in there)

    # without a condition, nothing could be weakened
    return keeps if wanted and all(wanted) else lambda _candidate: True


def _verdicts(tree: ast.Module) -> Iterator[tuple[int, int, Words]]:
    """The places where the program reports a failure (first line, last line), each with the words of its conditions."""
    meanings = _meanings(tree)
    exits = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and last_name(node.func) in _EXITS]
    # `sys.exit(main())`: the return value is the status
    judges = {last_name(one.func) for call in exits for value in call.args for one in ast.walk(value) if isinstance(one, ast.Call)}

    def visit(node: ast.AST, conditions: Words, *, judges_here: bool = False) -> Iterator[tuple[int, int, Words]]:
        if isinstance(node, ast.Assert):
            yield node.lineno, node.end_lineno or node.lineno, conditions | _words([node.test], meanings, negated=True)
        elif isinstance(node, ast.Raise) or (isinstance(node, ast.Return) and judges_here):
            yield node.lineno, node.end_lineno or node.lineno, conditions
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and last_name(node.value.func) in _EXITS:
            yield node.lineno, node.end_lineno or node.lineno, conditions | _words(node.value.args, meanings)
        if isinstance(node, (ast.If, ast.While)):
            # the innermost condition decides; those around it say whether it is reached
            words, otherwise = (_words([node.test], meanings, negated=negated) for negated in (False, True))
            for part, more in ((node.body, words), (node.orelse, otherwise and otherwise | Counter([_ELSE]))):
                for statement in part:
                    yield from visit(statement, more or conditions, judges_here=judges_here)
            return
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            # it may be called from anywhere
            conditions, judges_here = Counter(), node.name in judges
        for child in ast.iter_child_nodes(node):
            yield from visit(child, conditions, judges_here=judges_here)

    yield from visit(tree, Counter())


def _meanings(tree: ast.Module) -> Meanings:
    """The values of names that are assigned once, and of functions that are defined once, if they are the result of a check."""
    values: dict[str, list[list[ast.expr]]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    values.setdefault(target.id, []).append([node.value])
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            returned = [one.value for one in ast.walk(node) if isinstance(one, ast.Return) and one.value is not None]
            values.setdefault(node.name, []).append(returned)
    return {name: found[0] for name, found in values.items() if len(found) == 1 and any(_is_answer(value) for value in found[0])}


def _is_answer(value: ast.expr) -> bool:
    """Whether an expression is a comparison, itself or at the top level of its parts."""
    if isinstance(value, (ast.Compare, ast.BoolOp, ast.IfExp)) or (isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not)):
        return True
    if isinstance(value, ast.Call):
        within = [value.func.value] if isinstance(value.func, ast.Attribute) else []
        name = last_name(value.func)
        return name in _COMPARE or _is_coarse(name) or any(_is_answer(one) for one in (*within, *value.args))
    return isinstance(value, ast.Name)


def _is_coarse(name: str | None) -> bool:
    return name is not None and (name in _COARSE or name.startswith("is"))


def _words(conditions: Iterable[ast.expr], meanings: Meanings, depth: int = _DEPTH, *, negated: bool = False) -> Words:
    """What decides in conditions, or in their negations: comparisons with their numbers, negations, comparing functions with their
    tolerances, and functions that keep rounding out.

    Parts that have to hold together are added up: without one of them the condition holds more often. Of alternatives, the most demanding
    counts, since one of them is enough.
    """
    found: Words = Counter()
    for condition in conditions:
        found |= _words_of(condition, meanings, depth, negated)
    return found


def _words_of(node: ast.AST, meanings: Meanings, depth: int, negated: bool) -> Words:
    here: Words = Counter()
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        here[_NOT] = 1
        negated = not negated
    elif isinstance(node, ast.Compare):
        numbers = _numbers([node.left, *node.comparators])
        here.update(f"{type(operator).__name__}{numbers}" for operator in node.ops)
    elif isinstance(node, ast.Call) and (name := last_name(node.func)) in _COMPARE:
        here[f"{name}{_numbers([*node.args, *(word.value for word in node.keywords)])}"] = 1
    elif isinstance(node, ast.Call) and _is_coarse(name):
        here[f"{name}"] = 1
    elif isinstance(node, ast.Name) and depth:
        return _words(meanings.get(node.id, ()), meanings, depth - 1, negated=negated)
    together = isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or if negated else ast.And)
    for child in ast.iter_child_nodes(node):
        inner = _words_of(child, meanings, depth, negated)
        here = here + inner if together else here | inner
    return here


def _numbers(values: Iterable[ast.expr]) -> str:
    written = []
    for value in values:
        number = value.operand if isinstance(value, ast.UnaryOp) else value
        if isinstance(number, ast.Constant) and isinstance(number.value, (int, float)):
            written.append(ast.unparse(value))
    return " ".join(["", *written])
