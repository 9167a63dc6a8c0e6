"""The bodies of higher-order operations (`cond`, `while_loop`, `flex_attention`), which PyTorch's dumped scripts lack.

A dumped script has `self.true_graph_0 = <lambda>()` in their place, which is not Python. What PyTorch prints of the same graph for people
has them as nested classes.
"""

from __future__ import annotations

import ast
import re
import textwrap

_MISSING = re.compile(r"^\s+self\.(\w+) = <lambda>\(\)", re.M)
_REPRO = re.compile(r"^class Repro\(.*\):[ \t]*\n", re.M)


def lacks_bodies(text: str) -> bool:
    """Whether the dumped script `text` lacks the bodies of its operations."""
    return "= <lambda>()" in text


def with_bodies(text: str, readable: str) -> str:
    """The dumped script `text` with the bodies from `readable`, the print of the same graph; unchanged if one is missing there."""
    start = _REPRO.search(text)
    if not lacks_bodies(text) or start is None:
        return text
    found = _bodies(readable)
    wanted = _MISSING.findall(text)
    if not wanted or not set(wanted) <= found.keys():
        return text
    classes = "".join(textwrap.indent(source(found[name]), "    ") for name in dict.fromkeys(wanted))
    head, rest = text[: start.end()], text[start.end() :]
    for name in wanted:
        rest = rest.replace(f"self.{name} = <lambda>()", f"self.{name} = self.body_{name}()")
    return head + classes + rest


def _bodies(readable: str) -> dict[str, ast.ClassDef]:
    """The classes nested in the class of a printed graph."""
    text = textwrap.dedent(readable).replace("class <lambda>(", "class printed(")
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    outer = next((node for node in tree.body if isinstance(node, ast.ClassDef)), None)
    return {node.name: node for node in outer.body if isinstance(node, ast.ClassDef)} if outer is not None else {}


def source(body: ast.ClassDef) -> str:
    """The class `body` of a printed graph, as a module that creates the modules nested in it."""
    inner = [node for node in body.body if isinstance(node, ast.ClassDef)]
    lines = [f"class body_{body.name}(torch.nn.Module):\n"]
    if inner:
        made = "".join(f"        self.{node.name} = self.body_{node.name}()\n" for node in inner)
        lines.append(f"    def __init__(self):\n        super().__init__()\n{made}")
    lines += [textwrap.indent(source(node), "    ") for node in inner]
    lines += [textwrap.indent(ast.unparse(node), "    ") + "\n" for node in body.body if isinstance(node, ast.FunctionDef)]
    return "".join(lines)
