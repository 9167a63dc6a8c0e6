"""Programs that are quoted in a text for people: in Markdown code blocks, or in an interpreter session."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from bot.engine.inputs.taken import NotUnderstood

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_PROMPT = re.compile(r"(?P<prompt>>>>|\.\.\.)(?: (?P<code>.*))?\Z")
_IMPORTS_TORCH = re.compile(r"^[ \t]*(?:import|from)[ \t]+torch\b", re.MULTILINE)


def program(text: str) -> tuple[str, str] | None:
    """The program that `text` quotes, and where; None if there is none. Raises NotUnderstood if there are several."""
    blocks = [block for block in _blocks(text) if _is_program(block)]
    if len(blocks) > 1:
        raise NotUnderstood(f"a text with {len(blocks)} programs in code blocks: give the one that fails")
    if blocks:
        return blocks[0], "in a code block"
    typed = _typed(text)
    return (typed, "in a session of the interpreter") if _is_program(typed) else None


def is_python(text: str) -> bool:
    """Whether `text` is Python, and more than comments."""
    try:
        return bool(ast.parse(text).body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def _is_program(text: str) -> bool:
    return _IMPORTS_TORCH.search(text) is not None and is_python(text)


def _blocks(text: str) -> Iterator[str]:
    opened, held = "", list[str]()
    for line in text.split("\n"):
        fence = _FENCE.match(line)
        if not opened:
            opened, held = fence[1] if fence else "", []
        elif fence and fence[1].startswith(opened) and not line.strip(" \r" + opened[0]):
            yield "\n".join([*held, ""])
            opened = ""
        else:
            held.append(line)


def _typed(text: str) -> str:
    """What somebody typed after the prompts of an interpreter."""
    typed = list[str]()
    entering = False
    for line in text.splitlines():
        prompt = _PROMPT.match(line)
        # output may begin with dots, too
        entering = prompt is not None and (entering or prompt["prompt"] == ">>>")
        if entering and prompt and (prompt["code"] or "").strip():
            typed.append(prompt["code"])
    return "\n".join([*typed, ""])
