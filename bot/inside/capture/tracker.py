"""What the hook points have seen: each graph until it has proved healthy.

A graph that fails is written immediately as a *region*: the graph, how it was compiled and called, and real inputs if they matter.
PyTorch's dumpers are called too, at the same moment; their files are kept next to ours, but nothing is read from them (docs/capture.md
says what they lose).
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..blame import Blame, node_names
from ..eager import accuracy, errors
from ..protocol import COMPARED_DIR, REGION_PREFIX, Failed, write_json
from ..shortcuts import shortcut
from . import dumps, fx_reader, recipe
from .afterwards import Afterwards
from .captured_graph import CapturedGraph, returning
from .child_errors import ChildErrors
from .escaped import Escaped

# Number of later calls of a region that are compared, and the total seconds after which no more are.
_LATER_CALLS, _LATER_SECONDS = 16, 60.0


@dataclass
class Tracker:
    """What the hook points have seen, and where to write it."""

    out: str
    check: bool  # compare each region with eager and fp64 at its first call
    rule: accuracy.ComparisonRule
    beforehand: bool  # write each region before it is compiled, since the process may die of it
    dump: bool  # call PyTorch's dumpers too
    escaped: Escaped
    as_eager: bool = False  # compiled code draws the same random numbers as eager
    fall_back: bool = False  # what the compiler rejects runs in eager
    synchronous: bool = False  # write each region before its first call, after which the device may not be readable any more
    calls: int = 0
    written: int = 0
    dynamo: CapturedGraph | None = None  # the innermost graph that Dynamo passed on, or the last one
    aoti: int = 0  # depth of AOTInductor calls
    kwargs: dict[str, Any] | None = None
    dumping: list[int] = field(default_factory=list)  # processes that write PyTorch's dumps
    errors: tuple[float, float] | None = None  # of compiled code and eager against float64, where compiled code is worst relative to eager
    blame: Blame = field(default_factory=lambda: Blame(node_names))
    decompositions: list[Any] = field(default_factory=list)  # functions that the program passed to an exported program
    later: Afterwards | None = None  # keeps first calls, to compare them when the program has ended
    later_calls: bool = False  # compare later calls, too
    whole: bool = False  # integral or boolean results differ, which do not count
    broke: bool = False  # some call could not be compared with float64: for example, eager rejects what compiled code accepts
    again: bool = False  # some region was called more than once
    comparing: float = 0.0  # seconds spent on later calls

    def judged(self, region: CapturedGraph, found: accuracy.Compared, inputs: Sequence[Any] | None = None) -> None:
        """Record what comparing a `region` on these `inputs` (None: its own) has `found`, and write it if its numbers are wrong."""
        self.broke = self.broke or found.broke or found.unmeasured
        # they mean nothing if not all calls of the program were compared
        self.errors = None if self.broke else errors.farther(self.errors, found.errors)
        self.whole = self.whole or found.whole
        if found.wrong:
            region.compared = found
            region.graph = returning(region.graph, found.written) if found.written else region.graph
            self.flag(region, "accuracy", inputs)

    def compare_later(self) -> bool:
        """Compare the first calls that were kept, and write the regions with wrong numbers into a subdirectory. Returns whether all of
        them could be compared."""
        self.out, self.written, self.dump = os.path.join(self.out, COMPARED_DIR), 0, False
        os.makedirs(self.out, exist_ok=True)
        return self.later is not None and self.later.compare(self.rule, self.judged)

    def __post_init__(self) -> None:
        self.top, self.child = self.out, ChildErrors(self.out)
        self.escaped.entering = self.child.reached
        os.register_at_fork(after_in_child=self.enter_child)

    def enter_child(self) -> None:
        """Mark this as a process that the program started: its files go to a separate place."""
        self.out, self.written, self.calls, self.later = self.child.enter(), 0, 0, None
        self.escaped.listener = self.child.record

    def reached(self) -> None:
        """Count a call of the compiler."""
        self.calls += 1
        self.child.reached()

    def flag(self, region: CapturedGraph, how: Failed, inputs: Sequence[Any] | None = None, error: Exception | None = None) -> str | None:
        """Write a `region` that failed (`how`) with this `error` on these `inputs` (None: its own); returns the file's path. Each failure
        of a graph is written once."""
        if region.failed not in ("", "pending"):
            return None
        region.failed = how
        self.written += 1
        name = f"{REGION_PREFIX}{self.written:03d}"
        real = inputs if inputs is not None else region.inputs
        facts: dict[str, Any] = {
            "hook": region.hook,
            "rule": self._rule(region.compared),
            "wrong": region.compared.wrong,
            "against_float64": not region.compared.near,
            "weighted": region.compared.weighted,
            "failed": how,
            "backward": region.backward,
            "recipe": region.recipe,
            "graph": None,
            "reason": None,
            "launches": [],
            "blamed": [],
        }
        if how == "compile" and region.hook == "aot" and error is not None:
            with shortcut("reading an error"):
                facts["blamed"] = self.blame.guesses(str(error))
        blobs = os.path.join(self.out, name)
        try:
            os.makedirs(blobs, exist_ok=True)
            if region.hook == "aoti":
                facts["graph"] = fx_reader.read_exported(region.graph, blob_dir=blobs)
            else:
                facts["launches"] = fx_reader.launch_stacks(region.graph)
                facts["graph"] = fx_reader.read_graph(region.graph, real, blob_dir=blobs)
        except fx_reader.Unreadable as error:
            facts["reason"] = str(error)
        except Exception as error:  # a fault of ours must not replace the program's own failure
            facts["reason"] = f"{type(error).__name__}: {error}"
        path = os.path.join(self.out, f"{name}.json")
        write_json(path, facts)
        if self.dump and how == "compile":
            self.pytorch_dump(region)
        return path

    def _rule(self, compared: accuracy.Compared) -> dict[str, Any]:
        """The rule by which numbers were found wrong: the program's own comparison, which counts integers too, or PyTorch's."""
        given = self.rule
        if given.tolerance is not None and not compared.own:
            return {"strict": False, "tolerance": None}
        return {"strict": given.strict, "tolerance": given.tolerance}

    def pytorch_dump(self, region: CapturedGraph) -> None:
        """Start PyTorch's own dump of the graph of a `region` that failed to compile, in the background."""
        root = os.path.join(self.top, "pytorch")
        self.dumping.append(dumps.begin(root, region.hook, region.graph, region.inputs, region.compiler))

    @contextlib.contextmanager
    def watching(
        self, region: CapturedGraph, how: Failed, inputs: Sequence[Any] | None = None, *, beforehand: bool = False
    ) -> Iterator[None]:
        """Treat an exception that passes as the failure of this `region`; for `how` and `inputs` see `flag`. With `beforehand`, the region
        is written first."""
        self.child.reached()
        pending = self.flag(region, "pending", inputs) if beforehand else None
        try:
            yield
        except Exception as error:
            if pending:
                self._settle(region, how, pending)
                pending = None
            else:
                self.flag(region, how, inputs, error)
            self.escaped.note(error)
            raise
        finally:
            if pending:
                os.unlink(pending)

    def _settle(self, region: CapturedGraph, how: Failed, pending: str) -> None:
        """Mark the `region` in the file `pending` as failed."""
        region.failed = how
        with open(pending, encoding="utf-8") as file:
            facts = json.load(file)
        write_json(pending, {**facts, "failed": how})
        if self.dump and how == "compile":
            self.pytorch_dump(region)

    def first_call(self, region: CapturedGraph, compiled: Callable[..., Any], boxed: bool) -> Callable[..., Any]:
        """The `compiled` callable of a `region`, watched closely until it has worked once. `boxed`: it takes its arguments in one list."""
        worked = False
        times = 0

        def call(*args: Any) -> Any:
            nonlocal worked, times
            if worked:
                self.again = True
                times += 1
                if self.later_calls and times <= _LATER_CALLS:
                    self._compare_again(region, compiled, args, boxed)
            if worked and boxed:
                return compiled(*args)  # holding its inputs would keep alive what it frees on its way
            if worked:
                with self.watching(region, "run", list(args)):
                    return compiled(*args)
            inputs = list(args[0]) if boxed else list(args)
            kept = _copies(inputs)
            if region.hook == "dynamo":
                # while it compiles, Dynamo makes inference mode look like no_grad
                region.recipe = {**region.recipe, "contexts": recipe.contexts()}
            if self.check and kept is not None:
                self._compare(region, compiled, kept, boxed)
            with self.watching(region, "run", inputs if kept is None else kept, beforehand=self.beforehand or self.synchronous):
                result = compiled(*args)
            worked = True
            if self.later is not None and kept is not None:
                self.later.keep(region, compiled, kept, boxed=boxed)
            return result

        return call

    def _compare_again(self, region: CapturedGraph, compiled: Callable[..., Any], args: Sequence[Any], boxed: bool) -> None:
        """Compare a later call of a `region` that was right so far."""
        if region.failed or self.comparing > _LATER_SECONDS:
            return
        began = time.monotonic()
        kept = _copies(list(args[0]) if boxed else list(args))
        if kept is not None:
            self._compare(region, compiled, kept, boxed)
        self.comparing += time.monotonic() - began

    def _compare(self, region: CapturedGraph, compiled: Callable[..., Any], kept: Sequence[Any], boxed: bool) -> None:
        """Compare one call of a `region` with eager and float64; `kept` are copies of its inputs."""
        backward = region.hook == "dynamo"
        found = accuracy.compare_graph(region.graph, compiled, kept, boxed=boxed, backward=backward, rule=self.rule, backend=region.backend)
        self.judged(region, found, kept)


def _copies(inputs: Sequence[Any]) -> list[Any] | None:
    """Copies of the inputs of a call. None if they cannot be made, as for a tensor type that refuses to be copied: the program never asked
    for copies."""
    try:
        return accuracy.clones(inputs)
    except Exception:
        return None
