"""The kernel alone: the code that Inductor generated for the minimal module, if its compiler rejects that without the graph as well."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

from bot.failure.outcome import Outcome
from bot.inside.protocol import GENERATED, Facts, Question
from bot.models.failure import Phase
from bot.reduce.source.text.repair import collected
from bot.reduce.source.text.variables import binds
from bot.sandbox.files import read_plain

# In other phases, either no code was generated, or the failure also depends on its inputs.
PHASES = (Phase.CPP_COMPILE, Phase.TRITON_COMPILE)
_HEAD = "# What Inductor generated for repro.py, as far as its kernels are compiled: this fails in the same way without the graph.\n"
_PLACE = "# kernel path: "  # followed by a file on this machine
_MOST = 1 << 20  # bytes


def compiled_part(module: str) -> str | None:
    """The part of a generated `module` that compiles its kernels, without names that nothing reads; None if it compiles none."""
    try:
        tree = ast.parse(module)
        end = next((one.end_lineno for one in tree.body if ast.unparse(one) == GENERATED), None)
        # only that last statement reads the kernels, and it takes all names
        kernels = frozenset(
            ("", name) for one in tree.body if isinstance(one, ast.Assign) and isinstance(one.value, ast.Call) for name in binds(one)
        )
        kept = "\n".join(line for line in module.split("\n")[:end] if not line.startswith(_PLACE))
        return None if end is None else _HEAD + collected(kept, kernels).lstrip("\n") + "\n"
    except (SyntaxError, ValueError, RecursionError):
        return None


def find(
    script: str, path: Path, answer: Callable[[Question], tuple[Outcome, Facts]], limit: float, fails_alike: Callable[[str], bool]
) -> str | None:
    """The kernels of the `script` alone, in a script that fails as it does; None if there are none, or if they do not fail that way.

    `answer` asks a worker, with a `limit` in seconds, to write the generated code to `path`; `fails_alike` runs a script in a fresh process
    and says whether it fails as `script` does.
    """
    answer(Question(script, "generated", limit, save=str(path)))
    try:
        text = compiled_part(read_plain(path, _MOST).decode())
    except (OSError, ValueError):
        return None
    return text if text is not None and fails_alike(text) else None
