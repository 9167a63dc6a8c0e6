"""What the failure itself names: lines of the user's script, and operations of the graph."""

from __future__ import annotations

import re

from bot.engine.capture.starts import Start
from bot.reduce.graph.form import is_op

_FRAME = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+), in ', re.M)
# faulthandler's: the innermost frame first, `...` for the outermost ones of a deep stack; a line without a number is of no use.
_DUMPED = re.compile(r'^ +(?:File "(?P<file>[^"\n]+)", line (?P<line>\d+) in (?P<function>[^\r\n]+)|\.\.\.)\r?$', re.M)
_THREAD = re.compile(r"^(?:(?P<hit>Current thread|Stack)|Thread)\b.*\(most recent call first\):\r?$", re.M)
_LEFT_OUT = "..."
# Ways in which torch names an FX node or an operator in an error.
_NODE = re.compile(r"While executing %(\w+)\b|%(\w+) : \[num_users=|node (?:named )?'?%?(\w+)'? ", re.M)
_TARGET = re.compile(r"^\s*target: (?:aten|prims|[a-z_]\w*)\.([\w.]+)", re.M)


def script_lines(text: str, name: str) -> tuple[int, ...]:
    """Line numbers (from 1) of the script's own frames in a traceback or faulthandler's dump, outermost first."""
    return tuple(dict.fromkeys(line for path, line in _frames(text) if _is_of(path, name)))


def failing_line(text: str, name: str) -> int | None:
    """The line of the script that called into torch: its last frame before torch's first one; None where that is not in the text."""
    last = None
    for path, line in _frames(text):
        if path == _LEFT_OUT:
            return None
        if _is_of(path, name):
            last = line
        elif last is not None and "/torch/" in path:
            break
    return last


def _is_of(path: str, name: str) -> bool:
    return path == name or path.endswith("/" + name)


def _frames(text: str) -> list[tuple[str, int]]:
    """Path and line of each frame, outermost first: of the tracebacks, or of a dump that follows them, which tells of the end."""
    raised = list(_FRAME.finditer(text))
    behind = raised[-1].end() if raised else 0
    start = max(text.rfind("Fatal Python error:"), text.rfind("\nTimeout ("), behind)
    return [(m["file"].replace("\\", "/"), int(m["line"])) if m["file"] else (_LEFT_OUT, 0) for m in _dumped(text[start:]) or raised]


def _dumped(text: str) -> list[re.Match[str]]:
    """The frames of the thread that was hit; where it ran no Python, of the one that ran the program. Empty if there is no dump."""
    heads = list(_THREAD.finditer(text))
    ends = [*(head.start() for head in heads[1:]), len(text)]
    stacks = [list(_DUMPED.finditer(text, head.end(), end)) for head, end in zip(heads, ends, strict=False)]
    hit = [stack for head, stack in zip(heads, stacks, strict=True) if head["hit"]]
    program = [stack for stack in stacks if any(frame["function"] == "<module>" for frame in stack)]
    return next((stack[::-1] for stack in (*hit[::-1], *program, *stacks) if stack), [])


def named_nodes(text: str, start: Start) -> list[frozenset[str]]:
    """Sets of operations that the failure names, likeliest first, by the names of the start's program."""
    ops = [node for node in start.program.graph.nodes if is_op(node)]
    by_name = {node.name for node in ops}
    found = [start.named([name]) & by_name for match in _NODE.finditer(text) for name in match.groups() if name]
    for match in _TARGET.finditer(text):
        for operator in (match[1], match[1].split(".")[0]):
            found += [frozenset({node.name}) for node in ops if node.target.endswith("." + operator)]
    return [names for names in dict.fromkeys(found) if names]
