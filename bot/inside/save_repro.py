"""Saves the graph that torch.compile fails on, from inside a running program: nobody wants to wait for step 1,000 again.

    from save_repro import save_repro

    with save_repro("out"):
        loss = compiled_step(batch)

If compiling raises, or the compiled code does, the graph is written to out/repro.py, with its inputs if it had any. With check=True each
graph's first results are compared with eager as well, and the first graph that differs is written. Then, on any machine:

    torch-minify run out/repro.py

A process that dies (SIGSEGV, out of memory, killed because it hangs) cannot write anything, so each graph is in out/unfinished-PID.py
while it is compiled and while it is called for the first time. A line announces this beforehand. It costs the graph's text twice; with
check=True the inputs of the first call are written too, without it random ones of their shapes are used.

This file needs nothing but torch (2.9 or later). Graphs that were compiled before the block are not seen.
"""

import contextlib
import copy
import functools
import io
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from typing import Any


@contextlib.contextmanager
def save_repro(directory: str = "repro", check: bool = False) -> Iterator[None]:
    """Save into `directory` the first graph that fails inside the block; with `check` also one whose numbers differ from eager's."""
    import torch._functorch.config as functorch_config
    import torch._inductor.compile_fx as compile_fx

    place: Any = compile_fx
    original, saver = place.wrap_compiler_debug, _Saver(os.path.abspath(directory), check)

    def wrap(inner: Any, *args: Any, **kwargs: Any) -> Any:
        return saver.watch(original(inner, *args, **kwargs), inner)

    place.wrap_compiler_debug = wrap
    try:
        # a graph compiled by an earlier process would come from the cache unseen
        with functorch_config.patch(enable_autograd_cache=False):
            yield
    finally:
        place.wrap_compiler_debug = original


class _Saver:
    def __init__(self, directory: str, check: bool) -> None:
        self.directory, self.check, self.saved, self.told = directory, check, False, False
        self.unfinished: list[str] = []  # the innermost last

    def watch(self, compiler: Any, inner: Any) -> Any:
        @functools.wraps(inner)
        def compile_graph(graph: Any, inputs: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
            import torch

            kept = torch.fx.GraphModule(graph, copy.deepcopy(graph.graph))  # the compiler changes the graph that it gets
            with self.kept_if_fatal(kept, inputs, None), self.saved_if_raised(kept, inputs, "it did not compile"):
                compiled = compiler(graph, inputs, *args, **kwargs)
            return self.watch_call(kept, compiled) if callable(compiled) and not isinstance(compiled, str) else compiled

        return compile_graph

    def watch_call(self, graph: Any, compiled: Any) -> Any:
        first, why = True, "what was compiled raised"

        def call(inputs: list[Any]) -> Any:
            nonlocal first
            given = list(inputs)  # the call empties the list
            if not first:
                with self.saved_if_raised(graph, given, why):
                    return compiled(inputs)
            before = _cloned(given) if self.check and not self.saved else None
            place = os.path.join(self.directory, f"unfinished-{os.getpid()}") if self.check else None
            with self.kept_if_fatal(graph, given, place), self.saved_if_raised(graph, given, why):
                results = compiled(inputs)
            first = False
            if before is not None and _differs(graph, before, results):
                self.save(graph, before, "its results differ from eager")
            return results

        call._boxed_call = True  # type: ignore[attr-defined]
        return call

    @contextlib.contextmanager
    def saved_if_raised(self, graph: Any, inputs: Sequence[Any], why: str) -> Iterator[None]:
        try:
            yield
        except Exception:
            self.save(graph, inputs, why)
            raise

    def save(self, graph: Any, inputs: Sequence[Any], why: str) -> None:
        """Write the graph once; a failure here must not replace the program's own."""
        if self.saved:
            return
        self.saved = True
        try:
            path = self.write("repro.py", _text(graph, inputs, self.directory))
            sys.stderr.write(f"save_repro: {why}; saved: torch-minify run {path}\n")
        except Exception as error:
            sys.stderr.write(f"save_repro: {why}, but it could not be saved: {type(error).__name__}: {error}\n")

    @contextlib.contextmanager
    def kept_if_fatal(self, graph: Any, inputs: Sequence[Any], place: str | None) -> Iterator[None]:
        """Keep the graph in a file until this is over, and its inputs below `place`. They remain if this process
        is killed or interrupted."""
        text, name = "", f"unfinished-{os.getpid()}.py"
        try:
            text = _text(graph, inputs, place)
            path = self.write(name, text)
            if not self.told:
                self.told = True
                sys.stderr.write(f"save_repro: should this process die in a graph: torch-minify run {path}\n")
        except Exception as error:
            sys.stderr.write(f"save_repro: a graph could not be kept: {type(error).__name__}: {error}\n")
        self.unfinished.append(text)
        try:
            yield
        except Exception:
            self.over(name, place)
            raise
        self.over(name, place)

    def over(self, name: str, place: str | None) -> None:
        self.unfinished.pop()
        with contextlib.suppress(OSError):
            # one graph may be compiled while another is called
            self.write(name, self.unfinished[-1]) if self.unfinished else os.remove(os.path.join(self.directory, name))
        if place is not None:
            shutil.rmtree(place, ignore_errors=True)

    def write(self, name: str, text: str) -> str:
        os.makedirs(self.directory, exist_ok=True)
        path = os.path.join(self.directory, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path


def _text(graph: Any, inputs: Sequence[Any], place: str | None) -> str:
    """What torch dumps for a graph, with its inputs saved below `place` if that is given.

    Without the environment variables that torch writes into it (every one whose name contains TORCH, whatever its value), and without the
    setting that Dynamo is off, which is only needed for writing.
    """
    import torch
    from torch._dynamo.repro.after_aot import save_graph_repro

    text = io.StringIO()
    with torch._dynamo.config.patch(disable=True):
        save_graph_repro(text, graph, inputs, "inductor", save_dir=place, stable_hash=True)
    lines = text.getvalue().splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith(("os.environ[", "torch._dynamo.config.disable =")))


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
