"""The script's own modules: files that it imports from its own directory, or from wherever else Python was made to look.

A repro stands alone, so they have to be written into it.
"""

from __future__ import annotations

import ast
import io
import os
import re
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bot.engine.capture.hints import script_lines
from bot.reduce.source.text.normal_form import parsed
from bot.sandbox import paths

# Characters. More than this is not a helper next to a script.
MOST_CHARACTERS = 1_000_000
# These are under test, even if their source tree is the working directory.
_NEVER = ("torch", "torchgen", "functorch", "triton")
INSTALLED = re.compile(r"site-packages|dist-packages|python\d\.\d+")


def local_modules(script: Path, further: Sequence[Path] = (), package: str = "") -> dict[str, str]:
    """Maps full names to texts of the modules that the `script` imports, directly or through others, from its own directory or from
    `further`.

    The script's directory comes first; if it runs as a module of a `package`, only `further` counts. Left out is what is not Python or not
    readable, and also links that lead elsewhere and secrets: we may read them, the program may not.
    """
    found: dict[str, str] = {}
    waiting = _imports_of(script, package)
    directories = (*further,) if package else (script.parent, *further)
    while waiting and sum(map(len, found.values())) < MOST_CHARACTERS:
        name = waiting.pop(0)
        file = _file(directories, name)
        if name in found or file is None or file.resolve() == script.resolve() or not _is_programs(file, directories):
            continue
        try:
            text = read_source(file)
            tree = parsed(text)
        except (OSError, SyntaxError):
            continue
        found[name] = text
        waiting += _imported(tree, name if file.name == "__init__.py" else name.rpartition(".")[0])
    return found


def search_path(directory: Path, environ: Mapping[str, str], looked: Sequence[str] = ()) -> tuple[Path, ...]:
    """Where modules of a command that runs in `directory` may lie, apart from its script's directory: there, in the PYTHONPATH of
    `environ`, and where the program itself made Python look (`looked`), through `sys.path` or its pytest settings.

    Directories of installed packages and of the interpreter are left out: a repro may import from these.
    """
    named = environ.get("PYTHONPATH", "")
    places = [directory, *(directory / entry for entry in (*named.split(os.pathsep), *looked) if entry)]
    return tuple(dict.fromkeys(p for p in places if p.is_dir() and not any(map(INSTALLED.fullmatch, p.resolve().parts))))


def module_lines(traceback: str, names: dict[str, str]) -> dict[str, tuple[int, ...]]:
    """Maps each module of `names` to its lines in the `traceback`."""
    paths = {name: name.replace(".", "/") for name in names}
    return {name: script_lines(traceback, f"{path}.py") or script_lines(traceback, f"{path}/__init__.py") for name, path in paths.items()}


def read_source(file: Path) -> str:
    """The text of a Python `file`, in the encoding that it declares. Raises SyntaxError if it cannot be decoded."""
    raw = file.read_bytes()
    encoding, _ = tokenize.detect_encoding(io.BytesIO(raw).readline)
    try:
        text = raw.decode(encoding)
    except (UnicodeError, LookupError) as error:  # `rot13` is a codec, but not a text encoding
        raise SyntaxError(str(error)) from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _imports_of(script: Path, package: str) -> list[str]:
    try:
        return list(_imported(parsed(read_source(script)), package))
    except (OSError, SyntaxError):
        return []


def _file(directories: Sequence[Path], name: str) -> Path | None:
    if name.partition(".")[0] in _NEVER:
        return None
    places = [directory.joinpath(*name.split(".")) for directory in directories]
    files = (file for place in places for file in (place / "__init__.py", place.with_name(place.name + ".py")))
    return next((file for file in files if file.is_file()), None)


def _is_programs(file: Path, directories: Sequence[Path]) -> bool:
    """Whether the program may read the `file` that it would import: with links resolved, it is below one of the `directories` and not a
    secret."""
    real = Path(os.path.realpath(file))
    places = [Path(os.path.realpath(place)) for place in (*directories, Path.cwd())]
    below = next((real.relative_to(place) for place in places if real.is_relative_to(place)), None)
    return below is not None and not any(map(paths.is_secret, below.parts))


def _imported(tree: ast.Module, package: str) -> Iterator[str]:
    """Names that may be modules, from every import statement; relative imports start from `package`."""
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
