"""Doctests as pytest names them: examples in the docstrings of a module, or in a text."""

from __future__ import annotations

import re
import shlex

# Texts of which pytest reads the first two wherever a command names them.
TEXTS = (".rst", ".txt", ".md")
_ALWAYS_READ = TEXTS[:2]
_TITLE = "[doctest] "
# Below each example that failed.
_PLACE = re.compile(r"^(?P<path>(?:[A-Za-z]:(?=[\\/]))?[^\s:][^:\n]{0,500}):\d{1,7}: (?:DocTestFailure|UnexpectedException)$", re.MULTILINE)
_PYTEST = re.compile(r"(?:(?<=[\s/])|^)(?:pytest|py\.test) ")


def titled(title: str) -> str:
    """The name of the doctest of which the `title` of a section tells; empty where it is another test."""
    return title.removeprefix(_TITLE) if title.startswith(_TITLE) else ""


def places(section: str) -> tuple[str, str]:
    """What pytest shows of a doctest in a `section`, without the places of its examples, and the path of the last of these; empty
    where it has none."""
    found = [place["path"] for place in _PLACE.finditer(section)]
    return _PLACE.sub("", section), found[-1] if found else ""


def is_doctest(file: str, name: str) -> bool:
    """Whether what is called `name` in a `file` is a doctest: the module stands before those of a module, that of a text has its name.

    A test may be called as its file is.
    """
    if not file.endswith(".py"):
        return file.endswith(TEXTS) and name == file.rpartition("/")[2]
    module = file.removesuffix(".py").removesuffix("/__init__").split("/")
    parts = name.partition("[")[0].split(".")
    if module[-1] not in parts or parts[-1].startswith("test"):
        return False
    return any(parts[:i] == module[-i:] for i in range(1, len(module) + 1))


def with_option(command: str, file: str, name: str) -> str:
    """A `command` of pytest's that runs what is called `name` in a `file`, with the option without which that is no test."""
    if not is_doctest(file, name) or file.endswith(_ALWAYS_READ):
        return command
    option = "--doctest-modules" if file.endswith(".py") else shlex.quote(f"--doctest-glob=*.{file.rpartition('.')[2]}")
    return _PYTEST.sub(lambda found: f"{found[0]}{option} ", command, count=1)
