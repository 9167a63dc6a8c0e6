"""Notebooks: the code cells, in order, as one script."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import dataclass

from bot.engine.inputs.taken import NotUnderstood, Taken

# A magic that runs its own line or cell as Python, and what stands in front of the Python.
_TIMED = re.compile(r"^(?P<indent>\s*)%{1,2}(?:time|timeit|prun|capture)\b(?P<code>.*)$")
_MAGIC = re.compile(r"^\s*(?:[%!]|\w+\s*=\s*[!%]|\?|[\w.]+\?+\s*$)")
# Cell magics whose cell is no Python for this process.
_OTHER_CELL = re.compile(r"\A\s*%%(?!time\b|timeit\b|prun\b|capture\b)(\w+)")


@dataclass
class _Cells:
    texts: list[str]
    dropped: list[str]


def read(raw: str) -> Taken:
    """The notebook in the JSON text `raw` as a script: up to the cell whose kept output is an error, else all cells.

    Raises:
        NotUnderstood: it is no notebook of Python, or holds no code.
    """
    try:
        held = json.loads(raw)
        language = str(((held.get("metadata") or {}).get("kernelspec") or {}).get("language") or "python").lower()
        sheets = held["cells"] if "cells" in held else [cell for sheet in held["worksheets"] for cell in sheet["cells"]]
        cells = [cell for cell in sheets if cell["cell_type"] == "code"]
        sources = [_joined(cell["source"] if "source" in cell else cell["input"]) for cell in cells]
        failing = [
            index for index, cell in enumerate(cells) if any(o.get("output_type") in ("error", "pyerr") for o in cell.get("outputs", ()))
        ]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise NotUnderstood("a file that is called a notebook, but holds no cells in the notebook format") from error
    if language != "python":
        raise NotUnderstood(f"a notebook of {language[:40]}: only Python is understood")
    kept = sources[: failing[0] + 1] if failing else sources
    found = _Cells([], [])
    for number, source in enumerate(kept, 1):
        text = _plain(source, found.dropped)
        if text.strip():
            found.texts.append(f"# cell {number}\n{text.rstrip()}\n")
    if not found.texts:
        raise NotUnderstood("a notebook without any code")
    until = f", up to the one that failed ({failing[0] + 1} of {len(sources)})" if failing else ""
    notes = [f"left out of the notebook: {line}" for line in found.dropped[:10]]
    if len(found.dropped) > 10:
        notes.append(f"left out of the notebook: {len(found.dropped) - 10} more lines")
    detail = f"a notebook: {len(found.texts)} code cells{until}"
    return Taken("notebook", detail, "\n".join(found.texts), tuple(notes))


def _joined(source: object) -> str:
    return "".join(map(str, source)) if isinstance(source, list) else str(source)


def _plain(cell: str, dropped: list[str]) -> str:
    """A cell without what only IPython understands."""
    if other := _OTHER_CELL.match(cell):
        dropped.append(f"a cell of %%{other[1]}")
        return ""
    try:
        ast.parse(cell)
        return cell  # `%` may begin a line inside brackets or a string
    except (SyntaxError, ValueError):
        pass
    lines = []
    for line in cell.split("\n"):
        if timed := _TIMED.match(line):
            code = re.sub(r"^(?:\s+-\w+(?:\s+\d+)?)*\s*", "", timed["code"])
            lines.append(timed["indent"] + (code if code and not line.lstrip().startswith("%%") else "pass"))
            dropped.append(line.strip().split()[0])
        elif _MAGIC.match(line):
            indent = line[: len(line) - len(line.lstrip())]
            lines.append(f"{indent}pass")  # it may be the only statement of its block
            dropped.append(line.strip()[:100])
        else:
            lines.append(line)
    return "\n".join(lines)
