"""A failing test, wherever it was read."""

from __future__ import annotations

import re
from dataclasses import dataclass

# Runners put a checkout into NAME/NAME below a directory `work` (hosted ones), `_work` (others) or `__w` (containers).
_CHECKOUT = re.compile(r"^.*?/(?:_?work|__w)/([^/]+)/\1/")
_ABOVE = re.compile(r"^(?:\.\.?/)+")

MAX_ID = 1_000


@dataclass(frozen=True)
class Failure:
    """One failing test.

    `test` is what pytest calls it (`tests/test_x.py::TestY::test_z[param]`), empty where the file is not known; `name` is
    for people. `text` ends in a traceback as Python prints it, or holds faulthandler's dump where `signal` is set.
    """

    name: str
    test: str
    text: str
    signal: str | None = None
    job: str = ""

    @property
    def runnable(self) -> bool:
        """Whether the id can stand in a command: it is known, one line, and no option."""
        return bool(self.test) and not self.test.startswith("-") and self.test.isprintable() and len(self.test) <= MAX_ID


def repository_path(path: str) -> str:
    """A path in a log as the repository has it; as it is where that cannot be seen."""
    return _ABOVE.sub("", _CHECKOUT.sub("", path.replace("\\", "/")))


def file_of_module(module: str) -> str:
    """The path of `module`: `tests/test_x.py` for `tests.test_x`."""
    return module.replace(".", "/") + ".py"


def pytest_id(file: str, qualified: str) -> str:
    """What pytest calls a test in `file`, from its `qualified` name like `TestY.test_z[param]`.

    Dots within brackets belong to the parameters.
    """
    head, bracket, parameters = qualified.partition("[")
    return "::".join([file, *head.split(".")]) + bracket + parameters
