"""Kernels for a GPU in one configuration, instead of in the fastest of several."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator, Sequence
from typing import Any
from unittest import mock

from .shortcuts import function_at, shortcut


@contextlib.contextmanager
def untuned() -> Iterator[None]:
    """In the body, Inductor compiles each of its own kernels in the first configuration that it would try.

    Otherwise it compiles a reduction in up to six, one after the other, and times them, which takes most of the time of a small graph.
    Numbers that only decide what is asked next can come from any of these. A user's kernel, whose configurations are part of the program,
    and a template keep theirs.
    """
    with contextlib.ExitStack() as stack:
        with shortcut("kernels in one configuration"):
            heuristics: Any = importlib.import_module("torch._inductor.runtime.triton_heuristics")
            kinds = importlib.import_module("torch._inductor.runtime.hints").HeuristicType
            all_of_them = function_at(heuristics, "cached_autotune", "size_hints", "configs", "triton_meta", "heuristic_type")
            chosen = kinds.USER_AUTOTUNE, kinds.TEMPLATE

            def cached_autotune(
                size_hints: Any, configs: Sequence[Any], triton_meta: Any, heuristic_type: Any, *args: Any, **more: Any
            ) -> Any:
                kept = configs if heuristic_type in chosen else configs[:1]
                return all_of_them(size_hints, kept, triton_meta, heuristic_type, *args, **more)

            stack.enter_context(mock.patch.object(heuristics, "cached_autotune", cached_autotune))
        yield
