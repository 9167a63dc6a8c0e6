"""Keeps sizes that a program computes from becoming fixed ones, if the failure is that a size became a constant.

Such a failure names the dimension, not what made it constant. A reshape to `(s // 4, 4)` keeps a size dynamic. A reshape to `(4, 4)`, with
which the program also runs, makes it constant as well: it fails with the same words, for a reason that the program does not have.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from bot.reduce.source.kept import Keeps
from bot.reduce.source.text.names import last_name

# torch.export, of a dimension that was said to be dynamic: symbolic_shapes.py of PyTorch 2.11 to 2.15.
_BECAME_CONSTANT = re.compile(r"your code specialized it to be a constant|Constraints violated \(")
# What tells the sizes of a tensor.
_SIZES = frozenset({"shape", "size", "numel", "len"})


def is_of_a_size(message: str) -> bool:
    """Whether a failure with this `message` is that a size became a constant."""
    return _BECAME_CONSTANT.search(message) is not None


def fixes_no_size(text: str) -> Keeps:
    """A check whether a candidate gives no function or method of `text` more arguments that are not computed from sizes, in one call, than
    `text` does. Raises SyntaxError if `text` is not Python."""
    before = _fixed(ast.parse(text))

    def keeps(candidate: str) -> bool:
        try:
            found = _fixed(ast.parse(candidate))
        except SyntaxError:
            return False
        return all(count <= before.get(name, count) for name, count in found.items())

    return keeps


def _fixed(tree: ast.Module) -> dict[str, int]:
    """The most arguments in one call of each function or method that are not computed from sizes."""
    sizes = _named_by_sizes(tree)
    found: dict[str, int] = {}
    for call in ast.walk(tree):
        if isinstance(call, ast.Call):
            given = _flat([*call.args, *(keyword.value for keyword in call.keywords)])
            name = last_name(call.func)
            found[name] = max(found.get(name, 0), sum(_SIZES.isdisjoint(used) and sizes.isdisjoint(used) for used in map(_words, given)))
    return found


def _named_by_sizes(tree: ast.Module) -> set[str]:
    """The names that hold what is computed from sizes."""
    assigns = [node for node in ast.walk(tree) if isinstance(node, ast.Assign)]
    assigned = [({name for target in _flat(node.targets) if (name := last_name(target))}, _words(node.value)) for node in assigns]
    found: set[str] = set()
    more = True
    while more:
        now = {name for names, used in assigned if not (_SIZES | found).isdisjoint(used) for name in names}
        more, found = not now <= found, found | now
    return found


def _flat(expressions: Iterable[ast.expr]) -> Iterator[ast.expr]:
    for one in expressions:
        if isinstance(one, (ast.Tuple, ast.List)):
            yield from _flat(one.elts)
        else:
            yield one


def _words(node: ast.expr) -> set[str]:
    """The names and attributes in an expression."""
    nodes = list(ast.walk(node))
    return {one.id for one in nodes if isinstance(one, ast.Name)} | {one.attr for one in nodes if isinstance(one, ast.Attribute)}
