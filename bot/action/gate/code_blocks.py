"""Finds the code block in a comment or an issue that is the program."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from bot.action.gate.page import code_blocks
from bot.action.report.render.text import one_line
from bot.workflow_commands import unseen

# What follows a fence for Python, including tools for notebooks and books: `ipython3`, `{python}`, `python,linenos`.
_PYTHON = re.compile(r"(?:[{.]{0,2}i?py(?:thon)?[0-9.]{0,5}(?:[,:}].*)?|pycon|python-repl)?")
# Without leading empty lines: searching from each of them for the end of all takes quadratic time.
IMPORTS_TORCH = re.compile(r"^[ \t\f]*(?:import\s+torch\b|from\s+torch\b)", re.MULTILINE)
# Input in an interpreter session follows its prompts; its output does not.
_TYPED = re.compile(r"^(>>>|\.\.\.)(?: (.*))?$", re.MULTILINE)
# A comment that names the encoding of its file (Python's reference, "Encoding declarations").
_ENCODED = re.compile(r"[ \t\f]*#.*?coding[:=][ \t]*(?P<name>[-\w.]+)", re.ASCII)
_NAMES = re.compile(r"(?<=coding)(?=[:=])")
_COMPILES = re.compile(r"\b(?:compile|export|aoti?_\w+|_dynamo|_inductor)\b")
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_MOST_WORDS = 80  # of the visible text of a fold, and of a line
# How to describe a rank, for one block and for several.
_IMPORTS = ("imports torch", "import torch")
_WHY = {4: ("imports torch and compiles", "import torch and compile"), 3: _IMPORTS, 2: ("is Python", "are Python"), 1: _IMPORTS}


@dataclass(frozen=True)
class Found:
    """A program, and for people which of several blocks it was, and in which fold; `folded`: a page does not show all of it by itself."""

    text: str
    note: str | None
    folded: bool = False


def parses(text: str) -> bool:
    """Whether `text` is Python."""
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _rank(language: str, text: str) -> int:
    """How likely it is that a block is the program; 0: it is not."""
    if not _PYTHON.fullmatch(language) or not text.strip():
        return 0
    torch = bool(IMPORTS_TORCH.search(text))
    if not parses(text):
        # If there is nothing else, half a program is still what the person meant; the run will report what is wrong with it.
        return 1 if torch and language else 0
    if torch:
        return 4 if _COMPILES.search(text) else 3
    return 2 if language else 0


def _typed(text: str) -> str:
    """The input of an interpreter session; empty if `text` is not one."""
    return "".join(f"{line[2] or ''}\n" for line in _TYPED.finditer(text)) if text.lstrip().startswith(">>>") else ""


def in_utf_8(text: str) -> str:
    """The program `text`, in which no comment names another encoding: it is written as it is shown, so in another one it would be another
    program."""
    return "".join(_NAMES.sub(" ", row) if _names_another(row) else row for row in re.split(r"([\r\n])", text))


def _names_another(row: str) -> bool:
    found = _ENCODED.match(row)
    name = found["name"].lower().replace("_", "-") if found else "utf-8"
    return name != "utf8" and not f"{name}-".startswith("utf-8-")


def _ordinal(index: int) -> str:
    return _ORDINALS[index] if index < len(_ORDINALS) else f"{index + 1}th"


def find(body: str, *, torch_only: bool = False) -> Found | None:
    """The program in a `body`: the first of the blocks that look most like one.

    Blocks that import torch and compile are preferred to those that only import torch, and these to other Python. `torch_only` is for text
    that was not written to be run: then nothing else will do.
    """
    blocks = code_blocks(body)
    texts = [in_utf_8(_typed(block.text) or block.text) for block in blocks]
    ranks = [_rank(block.language, text) for block, text in zip(blocks, texts, strict=True)]
    best = max(ranks, default=0)
    if best == 0 or (torch_only and best < 3):
        return None
    taken = ranks.index(best)
    block, text, folded = blocks[taken], texts[taken], blocks[taken].fold is not None
    more = (", what is behind its prompts" if _typed(block.text) else "") + _out_of_sight(text)
    place = f" in the closed fold “{(block.fold or '')[:_MOST_WORDS] or 'Details'}”" if folded else ""
    if len(blocks) == 1:
        return Found(text, f"the code block{place}{more}" if folded or more else None, folded or bool(more))
    one, several = _WHY[best]
    alike = ranks.count(best)
    which = f"the only one that {one}" if alike == 1 else f"the first of {alike} that {several}"
    said = f"the {_ordinal(taken)} of {len(blocks)} code blocks, {which}{',' if folded else ''}{place}{more}"
    return Found(text, said, folded or bool(more))


def _out_of_sight(text: str) -> str:
    """The parts of the program `text` that a reader does not see although the page shows it; empty if there are none."""
    hidden = [(number, words) for number, line in enumerate(text.split("\n"), 1) if (words := unseen(line))]
    if not hidden:
        return ""
    (number, words), others = hidden[0], len(hidden) - 1
    also = f", and in {others} more {'line' if others == 1 else 'lines'}" if others else ""
    return f", with what is out of sight in line {number}{also}: {one_line(words, _MOST_WORDS)}"
