"""Saves the graph that torch.compile fails on, from inside a running program: nobody wants to wait for step 1,000 again.

    from save_repro import save_repro

    with save_repro("out"):
        loss = compiled_step(batch)

Where compiling raises, or what was compiled raises, the graph is written to out/repro.py, with its inputs where it had any. With
check=True each graph's first results are compared with eager as well, and the first that differs is written. Then on any machine:

    torch-minify run out/repro.py

This file needs nothing but torch (2.9 or later). Graphs that were compiled before the block are not seen.
"""

import contextlib
import copy
import functools
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any


@contextlib.contextmanager
def save_repro(directory: str = "repro", check: bool = False) -> Iterator[None]:
    """Save into `directory` the first graph that fails inside the block; with `check` also one whose numbers differ from eager's."""
    import torch._inductor.compile_fx as compile_fx

    place: Any = compile_fx
    original, saver = place.wrap_compiler_debug, _Saver(os.path.abspath(directory), check)

    def wrap(inner: Any, *args: Any, **kwargs: Any) -> Any:
        return saver.watch(original(inner, *args, **kwargs), inner)

    place.wrap_compiler_debug = wrap
    try:
        yield
    finally:
        place.wrap_compiler_debug = original


class _Saver:
    def __init__(self, directory: str, check: bool) -> None:
        self.directory, self.check, self.saved = directory, check, False

    def watch(self, compiler: Any, inner: Any) -> Any:
        @functools.wraps(inner)
        def compile_graph(graph: Any, inputs: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
            import torch

            kept = torch.fx.GraphModule(graph, copy.deepcopy(graph.graph))  # the compiler changes the one that it is given
            try:
                compiled = compiler(graph, inputs, *args, **kwargs)
            except Exception:
                self.save(kept, inputs, "it did not compile")
                raise
            return self.watch_call(kept, compiled) if callable(compiled) and not isinstance(compiled, str) else compiled

        return compile_graph

    def watch_call(self, graph: Any, compiled: Any) -> Any:
        checked = not self.check

        def call(inputs: list[Any]) -> Any:
            nonlocal checked
            given = list(inputs)  # the list is emptied
            before = None if checked or self.saved else _cloned(given)
            try:
                results = compiled(inputs)
            except Exception:
                self.save(graph, given, "what was compiled raised")
                raise
            if before is not None:
                checked = True
                if _differs(graph, before, results):
                    self.save(graph, before, "its results differ from eager")
            return results

        call._boxed_call = True  # type: ignore[attr-defined]
        return call

    def save(self, graph: Any, inputs: Sequence[Any], why: str) -> None:
        """Write the graph once; a failure of this must not take the place of the program's own."""
        if self.saved:
            return
        self.saved = True
        try:
            import torch
            from torch._dynamo.repro.after_aot import save_graph_repro

            os.makedirs(self.directory, exist_ok=True)
            path = os.path.join(self.directory, "repro.py")
            with torch._dynamo.config.patch(disable=True), open(path, "w", encoding="utf-8") as file:
                save_graph_repro(file, graph, inputs, "inductor", save_dir=self.directory, stable_hash=True)
            _scrub(path)
            sys.stderr.write(f"save_repro: {why}; saved: torch-minify run {path}\n")
        except Exception as error:
            sys.stderr.write(f"save_repro: {why}, but it could not be saved: {type(error).__name__}: {error}\n")


def _scrub(path: str) -> None:
    """Take out the environment variables that torch writes into it: every one whose name contains TORCH, whatever it holds; and that
    Dynamo was off, which it was for the writing alone."""
    with open(path, encoding="utf-8") as file:
        lines = file.readlines()
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(line for line in lines if not line.startswith(("os.environ[", "torch._dynamo.config.disable =")))


def _cloned(values: Sequence[Any]) -> list[Any]:
    import torch

    return [value.detach().clone() if isinstance(value, torch.Tensor) else value for value in values]


def _differs(graph: Any, inputs: Sequence[Any], results: Any) -> bool:
    import torch

    with torch._dynamo.config.patch(disable=True), torch.no_grad():
        expected = graph(*_cloned(inputs))
    pairs = zip(torch.utils._pytree.tree_leaves(expected), torch.utils._pytree.tree_leaves(results), strict=False)
    return any(
        isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor) and not torch.allclose(a, b, rtol=1e-2, atol=1e-2, equal_nan=True)
        for a, b in pairs
        if getattr(a, "is_floating_point", bool)()
    )
