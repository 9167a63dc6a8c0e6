"""What the failure itself names: lines of the user's script, and operations of the graph."""

from __future__ import annotations

import re

from bot.capture.forms import Start
from bot.reduce.graph import is_op

_FRAME = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+), in ', re.M)
# Ways in which torch names an FX node or an operator in an error.
_NODE = re.compile(r"While executing %(\w+)\b|%(\w+) : \[num_users=|node (?:named )?'?%?(\w+)'? ", re.M)
_TARGET = re.compile(r"^\s*target: (?:aten|prims|[a-z_]\w*)\.([\w.]+)", re.M)


def script_lines(text: str, name: str) -> tuple[int, ...]:
    """Line numbers (from 1) of the script's own frames in a traceback, outermost first."""
    found = [int(m["line"]) for m in _FRAME.finditer(text) if m["file"].replace("\\", "/").endswith("/" + name) or m["file"] == name]
    return tuple(dict.fromkeys(found))


def failing_line(text: str, name: str) -> int | None:
    """The line of the script that called into torch: its last frame before torch's first one."""
    last = None
    for match in _FRAME.finditer(text):
        path = match["file"].replace("\\", "/")
        if path.endswith("/" + name) or path == name:
            last = int(match["line"])
        elif last is not None and "/torch/" in path:
            break
    return last


def named_nodes(text: str, start: Start) -> list[frozenset[str]]:
    """Sets of operations that the failure names, likeliest first, by the names of the start's program."""
    ops = [node for node in start.program.graph.nodes if is_op(node)]
    by_name = {node.name for node in ops}
    found = [start.named([name]) & by_name for match in _NODE.finditer(text) for name in match.groups() if name]
    for match in _TARGET.finditer(text):
        for operator in (match[1], match[1].split(".")[0]):
            found += [frozenset({node.name}) for node in ops if node.target.endswith("." + operator)]
    return [names for names in dict.fromkeys(found) if names]
