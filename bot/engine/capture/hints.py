"""What the failure itself names: lines of the user's script, and operations of the graph."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from itertools import islice, pairwise

from bot.engine.capture.region import Capture, Region
from bot.engine.capture.starts import Start, parts
from bot.failure.traceback import HEADER, Frame, exceptions, final_stack
from bot.reduce.graph.form import is_op
from bot.reduce.source.text.blocks import FUNCTIONS
from bot.reduce.source.text.names import root
from bot.reduce.source.text.normal_form import end_line, start_line

# Ways in which torch names an FX node or an operator in an error.
_NODE = re.compile(r"While executing %(\w+)\b|%(\w+) : \[num_users=|node (?:named )?'?%?(\w+)'? ", re.M)
_TARGET = re.compile(r"^(?:\s*target: |Error in op: torch\.ops\.)[a-z_]\w*\.([\w.]+)", re.M)

# A graph with this few operations is tried as a whole right away.
FEW = 4


def script_lines(text: str, name: str) -> tuple[int, ...]:
    """Line numbers (from 1) of the frames in the script called `name` in the traceback or dump `text`, outermost first, each once."""
    lines = (frame.line for frame in final_stack(text).frames if frame.is_of(name))
    return tuple(dict.fromkeys(line for line in lines if line is not None))


def launches(regions: Iterable[Region]) -> list[str]:
    """The stacks at which the failing `regions` launch the user's own Triton kernels, each as a traceback: an error about generated code,
    or a GPU error in a kernel, has no user frame that leads there."""
    stacks = dict.fromkeys(stack for region in regions for stack in region.launches)
    return [f"{HEADER}\n{stack.rstrip()}\nLaunched" for stack in stacks]


def failing_line(text: str, name: str) -> int | None:
    """The line of the script called `name` that called into torch: its last frame before torch's first one in the traceback or dump `text`.
    None if `text` does not show it."""
    stack = final_stack(text)
    last = None
    for frame in stack.frames if stack.whole else ():
        if frame.is_of(name):
            last = frame.line
        elif last is not None and frame.in_torch:
            break
    return last


def below_torch(text: str, name: str, source: str) -> tuple[str, ...]:
    """The top-level functions and classes of the script called `name`, with the text `source`, that torch had called when it failed,
    according to the traceback or dump `text`: the user's own lowering, say, or a replacement for a compiler function."""
    stacks = [raised.frames for raised in exceptions(text)] or [final_stack(text).frames]
    pairs = (pair for frames in stacks for pair in pairwise(frames))
    return defined_at({frame.line or 0 for before, frame in pairs if _compiles(before) and frame.is_of(name)}, source)


def _compiles(frame: Frame) -> bool:
    """Whether it is a torch frame. Frames that only run the program's own tests or modules do not count."""
    return frame.in_torch and not frame.path.startswith(("torch/testing/", "torch/nn/modules/"))


def defined_at(lines: Iterable[int], source: str) -> tuple[str, ...]:
    """The names that top-level statements at these `lines` (from 1) define or change, in the script with the text `source`."""
    try:
        body = ast.parse(source).body
    except SyntaxError:
        return ()
    known = set(lines)
    at = [one for one in body if known.intersection(range(start_line(one), end_line(one) + 1))]
    return tuple(dict.fromkeys(name for one in at for name in _defined(one)))


def held(capture: Capture, source: str) -> tuple[str, ...]:
    """The names in the script with the text `source` that the compiler calls, according to the `capture`, including those of its hooks."""
    recipes = [region.recipe for region in capture.regions]
    objects = [
        one for recipe in recipes for table in (recipe.config, recipe.options, recipe.custom_backend_passes) for one in table.values()
    ]
    objects += [recipe.backend for recipe in recipes if recipe.backend is not None]
    hooks = [name.split(".")[0] for one in objects if one.text is None for name in one.wanted]
    return tuple(dict.fromkeys([*defined_at(capture.installed, source), *capture.beside, *hooks]))


def _defined(statement: ast.stmt) -> list[str]:
    if isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
        return [statement.name]
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.value] if isinstance(statement, ast.Expr) else []
    return [name for target in targets if (name := root(target)) is not None]


def named_nodes(text: str, start: Start) -> list[frozenset[str]]:
    """Sets of operations named by the failure's `text` or by the rejected code, likeliest first, by their names in the program of
    `start`."""
    ops = [node for node in start.program.graph.nodes if is_op(node)]
    by_name = {node.name for node in ops}
    found = [start.named([name]) & by_name for match in _NODE.finditer(text) for name in match.groups() if name]
    for match in _TARGET.finditer(text):
        for operator in (match[1], match[1].split(".")[0]):
            found += [frozenset({node.name}) for node in ops if node.target.endswith("." + operator)]
    found += [start.named(names) & by_name for names in start.blamed]
    return [names for names in dict.fromkeys(found) if names]


def named_alone(text: str, start: Start) -> Iterator[Start]:
    """The likeliest operation that the failure's `text` or the rejected code names, on its own, if `start` has more than a few.

    It compiles long before the whole graph does. And the whole graph may not run in eager although its operations do: if an operator's fake
    implementation is wrong, everything traced after it is wrong too.
    """
    if start.program.graph.ops > FEW:
        yield from islice(parts(start, named_nodes(text, start)), 1)
