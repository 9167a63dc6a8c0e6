"""The code that Inductor generated for a script."""

from __future__ import annotations

from typing import Any

import torch._inductor.codecache

from ..program import run_as_main
from ..protocol import GENERATED, Facts, Question
from ..shortcuts import shortcut


def generated(path: str, question: Question) -> Facts:
    """Save the last Python module that Inductor generated while the script at `path` ran, in the file `question.save`; returns the facts
    of the run."""
    assert question.save is not None
    held: list[str] = []
    with shortcut("reading generated code"):
        cache: Any = torch._inductor.codecache.PyCodeCache
        write = cache.write

        def keep(source_code: str, *args: Any, **options: Any) -> Any:
            if GENERATED in source_code:  # a Triton kernel is also written in a module of its own
                held.append(source_code)
            return write(source_code, *args, **options)

        cache.write = staticmethod(keep)
    facts = run_as_main(path, question.argv)
    if held:
        with open(question.save, "w", encoding="utf-8") as file:
            file.write(held[-1])
    return facts
