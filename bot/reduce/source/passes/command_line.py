"""Replaces command-line options, which a repro does not get, by their defaults where they are read."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bot.reduce.source.text.splice import code, spliced

# What these actions store if their option is not given; others store None.
_FLAGS = {"store_true": "False", "store_false": "True"}


def options(text: str) -> Iterator[str]:
    """Replaces `a.width`, where `a` comes from `argparse`'s `parse_args`, by the default of `--width`: all options in `text`, then each
    alone."""
    tree = ast.parse(text)
    found = (_default(call) for call in ast.walk(tree) if isinstance(call, ast.Call))
    known = dict(one for one in found if one is not None)
    names = {
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and _parses(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    reads = [
        (node, known[node.attr])
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and node.attr in known
        if _parses(node.value) or (isinstance(node.value, ast.Name) and node.value.id in names)
    ]
    if reads:
        yield spliced(text, reads)
    read = list(dict.fromkeys(node.attr for node, _ in reads))
    if len(read) > 1:
        for name in read:
            yield spliced(text, [(node, value) for node, value in reads if node.attr == name])


def _parses(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "parse_args"


def _default(call: ast.Call) -> tuple[str, str] | None:
    """The attribute in which `add_argument` stores an option that is not given, and the code of its value; None if that is not plain."""
    if not (isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument"):
        return None
    flags = [flag.value for flag in call.args if isinstance(flag, ast.Constant) and isinstance(flag.value, str)]
    if not flags or not all(flag.startswith("-") for flag in flags):
        return None
    words = {word.arg: word.value for word in call.keywords}
    if "dest" in words:
        name = words["dest"].value if isinstance(words["dest"], ast.Constant) else None
    else:
        name = next((flag for flag in flags if flag.startswith("--")), flags[0]).lstrip("-").replace("-", "_")
    if not isinstance(name, str) or not name.isidentifier():
        return None
    if "default" not in words:
        action = words.get("action")
        return name, _FLAGS.get(action.value, "None") if isinstance(action, ast.Constant) and isinstance(action.value, str) else "None"
    default = words["default"]
    try:
        value = ast.literal_eval(default)
    except ValueError:
        return None
    if isinstance(value, str) and "type" in words:  # argparse converts it
        return None
    return name, code(default) if isinstance(default, ast.Constant) else f"({code(default)})"
