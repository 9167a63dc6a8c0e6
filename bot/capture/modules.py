"""The script's own modules: files beside it that it imports. A repro stands alone, so they have to be written into it."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator
from pathlib import Path

from bot.capture.named import script_lines

# More text than this is no helper beside a script.
MOST_CHARACTERS = 1_000_000


def local_modules(script: Path) -> dict[str, str]:
    """Full name to text of each module that the script imports, itself or through others, and that lies beside it.

    What is not Python, or not readable, is left out.
    """
    found: dict[str, str] = {}
    waiting = list(_imported(_tree(read_source(script)), ""))
    while waiting and sum(map(len, found.values())) < MOST_CHARACTERS:
        name = waiting.pop(0)
        file = _file(script.parent, name)
        if name in found or file is None or file.resolve() == script.resolve():
            continue
        try:
            text = read_source(file)
            tree = _tree(text)
        except (OSError, SyntaxError, UnicodeError):
            continue
        found[name] = text
        waiting += _imported(tree, name if file.name == "__init__.py" else name.rpartition(".")[0])
    return found


def module_lines(traceback: str, names: dict[str, str]) -> dict[str, tuple[int, ...]]:
    """The lines of each module that a traceback names."""
    paths = {name: name.replace(".", "/") for name in names}
    return {name: script_lines(traceback, f"{path}.py") or script_lines(traceback, f"{path}/__init__.py") for name, path in paths.items()}


def read_source(file: Path) -> str:
    """The text of a Python file, in the encoding that it declares.

    Raises:
        UnicodeError or SyntaxError: it is not in that encoding.
    """
    raw = file.read_bytes()
    encoding, _ = tokenize.detect_encoding(io.BytesIO(raw).readline)
    return raw.decode(encoding).replace("\r\n", "\n").replace("\r", "\n")


def _tree(text: str) -> ast.Module:
    return ast.parse(text)


def _file(directory: Path, name: str) -> Path | None:
    place = directory.joinpath(*name.split("."))
    for file in (place / "__init__.py", place.with_name(place.name + ".py")):
        if file.is_file():
            return file
    return None


def _imported(tree: ast.Module, package: str) -> Iterator[str]:
    """Names that may be modules, from every import statement; relative ones below `package`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package
            for _ in range(node.level - 1):
                base = base.rpartition(".")[0]
            parent = ".".join(part for part in (base if node.level else "", node.module or "") if part)
            if parent:
                yield parent
            yield from (f"{parent}.{alias.name}".strip(".") for alias in node.names if alias.name != "*")
