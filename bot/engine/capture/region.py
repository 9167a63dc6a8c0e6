"""What a capture returns: how the program failed, and each graph that failed on its way through the compiler."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from pydantic import Field, FiniteFloat, NonNegativeInt, model_validator

from bot.engine.capture.left import read_json
from bot.failure.outcome import Outcome
from bot.failure.signature import is_of_own_code, is_own_verdict, signature_of
from bot.inside.protocol import REGION_PREFIX, Failed, HookPoint
from bot.models.failure import Model, Signature
from bot.reduce.graph.codec import graph_from_json
from bot.reduce.graph.soundness import fault

# Two errors within this factor of each other count as equal.
_ALIKE = 1.1
_MOST_REGIONS = 1000  # a program could write files without end
# Rounding explains an error of up to this many times eager's.
_ROUNDED = 10


class ChildMain(Model):
    """What a process that the program started ran: the `text` of a file or of a command. For a command, `file` is the directory that it ran
    in. `package` is the package that the file ran as a module of, else empty."""

    file: Path
    text: str
    package: str = ""


class Object(Model):
    """A value of the user's program.

    `text` is code that creates it without anything else. If there is none, the `expressions` are tried. They need the top-level names in
    `wanted`; the last one may need the statements in `definitions` instead.
    """

    text: str | None
    name: str
    expressions: tuple[str, ...] = ()
    wanted: tuple[str, ...] = ()
    definitions: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _can_be_written(self) -> Object:
        """Definitions have to parse, and need an expression that uses them."""
        if self.definitions and not self.expressions:
            raise ValueError("definitions of nothing")
        try:
            ast.parse("\n".join(self.definitions))
        except (SyntaxError, RecursionError, MemoryError) as error:
            raise ValueError("no definition") from error
        return self


class RegionRecipe(Model):
    """How a graph was compiled and called."""

    backend: Object | None = None
    mode: str | None = None
    options: dict[str, Object] = Field(default_factory=dict)
    dynamic: bool | None = None
    fullgraph: bool = False
    config: dict[str, Object] = Field(default_factory=dict)
    contexts: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()
    custom_backend_passes: dict[str, Object] = Field(default_factory=dict)


class RuleUsed(Model):
    """The rule by which a region's numbers were found wrong; see `Recipe.strict` and `Recipe.tolerance`."""

    strict: bool = False
    tolerance: tuple[FiniteFloat, ...] | None = None


class Region(Model):
    """A graph that failed. `graph` is None if it could not be serialized; `reason` says why. `launches` holds the stacks at which it
    launches the user's own Triton kernels, formatted as Python prints frames. `blamed` holds sets of operations, by the compiler's names,
    whose generated code a C++ or Triton compiler rejected, narrowest set first."""

    hook: HookPoint
    failed: Failed
    backward: bool
    recipe: RegionRecipe
    graph: dict[str, Any] | None
    reason: str | None
    blobs: Path
    rule: RuleUsed = RuleUsed()
    against_float64: bool = Field(default=False, description="accuracy: eager misses the tolerance, or nearly, so the errors decided")
    weighted: bool = Field(default=False, description="accuracy: only gradients of a weighted sum are wrong")
    wrong: tuple[NonNegativeInt, ...] = Field(default=(), description="accuracy: positions of the wrong tensors among those returned")
    launches: tuple[str, ...] = ()
    blamed: tuple[tuple[str, ...], ...] = ()


class Capture(Model):
    """One rerun of the user's program with the hooks in place."""

    outcome: Outcome
    signature: Signature | None
    own_verdict: bool = Field(default=False, description="the program itself ended this way, perhaps to say that a result is wrong")
    own_code: bool = Field(
        default=False, description="no verdict: code of the program that is not compiled raised, perhaps because of the values that it got"
    )
    passes_as_eager: bool = Field(default=False, description="its own comparison passed when compiled code drew eager's random numbers")
    regions: tuple[Region, ...]
    versions: dict[str, str]
    tolerance: tuple[float, ...] | None = Field(default=None, description="of the program's own last comparison")
    errors: tuple[float, float] | None = Field(
        default=None,
        description="root mean square errors against float64 of compiled and eager, where compiled is farthest off relative to eager",
    )
    off: str = Field(default="", description="the setting that turns the compiler off; empty if none does")
    swallows: bool = Field(default=False, description="Dynamo was told to swallow what the compiler raises")
    whole: bool = Field(default=False, description="integral or boolean results differ from eager's, but do not count")
    compared: tuple[Region, ...] | None = Field(
        default=None,
        description="of all compiled graphs, those whose numbers are wrong, however the program ended; None if they were not compared",
    )
    installed: tuple[int, ...] = Field(
        default=(),
        description="lines at which functions of the program's file begin that the compiler holds, such as the program's lowerings",
    )
    again: bool = Field(default=False, description="whether a compiled graph was called more than once")
    pooled: bool = Field(default=False, description="whether its kernels were compiled in parallel, unlike those of candidates")
    beside: tuple[str, ...] = Field(default=(), description="top-level names of such functions in modules next to that file")
    looked: tuple[str, ...] = Field(default=(), description="directories that the program added to Python's module search path")
    test: str = Field(default="", description="the failing test, as its runner names it: pytest `FILE::TEST`, unittest `MODULE.CLASS.TEST`")
    child: str = Field(default="", description="the process that failed, if the program started it")
    rank: tuple[int, int] | None = Field(default=None, description="rank of that process, and the number of ranks")
    call: str = Field(default="", description="all that this process did: a call of a function in the program's file")
    argv: tuple[str, ...] | None = Field(default=None, description="arguments of that process, if it ran a script")
    main: ChildMain | None = Field(default=None, description="what that process ran, if not the program's own file")
    children: bool = Field(default=False, description="whether a process that the program started called the compiler")
    ended: Outcome | None = Field(
        default=None, description="how the program itself ended, if the failure is an exception that it caught or a child's end"
    )
    behind: str = Field(
        default="", description="the traceback of what the compiler raised, if the program caught it and then failed in its own words"
    )
    caught: str = Field(default="", description="what the compiler raised, if the program caught it and then ended well")
    runs: int = Field(default=1, description="runs of the program until it failed or counted as passing")
    prints: tuple[str, ...] = Field(default=(), description="what each of these runs printed to standard output")
    partial: bool = False  # without the compiler, it ends only after the statement that fails with it
    eager_error: str = Field(default="", description="class and message of what eager raised in code that would be compiled")
    log: Path

    def as_it_ended(self, script: str) -> Capture:
        """The capture with the program's own end as its failure, whatever it caught before; `script` is the name of its file."""
        if self.ended is None:
            return self
        signature = signature_of(self.ended, script=script)
        verdict = signature is not None and is_own_verdict(signature, self.ended, script=script)
        code = signature is not None and not verdict and is_of_own_code(signature, self.ended, script=script)
        own = {"own_verdict": verdict, "own_code": code}
        return self.model_copy(update={"outcome": self.ended, "signature": signature, **own, "ended": None, "child": ""})

    @property
    def wrong(self) -> tuple[Region, ...]:
        """The regions whose numbers are wrong."""
        return tuple(region for region in self.regions if region.failed == "accuracy")

    @property
    def fails(self) -> str:
        """Says that the program fails; the caller adds what that depends on."""
        alone = f"the program fails in its own code ({self.signature.line()})" if self.signature and self.own_code else ""
        return alone or "the program's own comparison fails"

    def with_wrong(self, regions: tuple[Region, ...], **facts: Any) -> Capture:
        """The capture with these `regions`, whose numbers were found wrong, and further `facts` about them. An error that is not a verdict
        may have any cause, so wrong numbers found next to it are not taken for its cause."""
        return self.model_copy(update={**facts, "compared" if self.own_code else "regions": regions})


def nearness(compiled: float, eager: float, *, wrong: bool = False) -> str:
    """Says how close `compiled` results are to float64, compared with those of `eager`; both are root mean square errors. With `wrong`, a
    tolerance rejects the results; otherwise none does, or rounding explains them."""
    near = "nearer to float64 than eager" if compiled * _ALIKE < eager else "as near to float64 as eager"
    if compiled > _ALIKE * eager:
        near = "no farther from float64 than rounding may take it"
        if wrong or compiled > _ROUNDED * eager:
            near = f"{compiled / eager:.2g} times as far from float64 as eager" if eager else "farther from float64 than eager"
            near += "" if wrong else ", which is within the tolerance"
    return f"compiled is {near} (root mean square error {compiled:.1e}, eager {eager:.1e})"


def read_regions(directory: Path) -> tuple[Region, ...]:
    """The regions that a capture wrote into `directory`, in the order in which they failed; if there are very many, the last ones.

    Not trusted: the program can write anything there. What is not a region is skipped, and a region with an invalid graph has a `reason`.
    """
    if directory.is_symlink():
        return ()
    # their numbers have three digits or more
    paths = sorted(directory.glob(f"{REGION_PREFIX}*.json"), key=lambda path: (len(path.name), path.name))
    found = (_region(path) for path in paths[-_MOST_REGIONS:])
    return tuple(region for region in found if region is not None)


def _region(path: Path) -> Region | None:
    facts = read_json(path)
    if not isinstance(facts, dict):
        return None
    try:
        region = Region(**{**facts, "blobs": path.with_suffix("")})
    except ValueError:
        return None
    why = None
    if region.graph is not None:
        try:
            why = fault(graph_from_json(region.graph))
        except (ValueError, RecursionError) as error:
            why = str(error)
    return region if why is None else region.model_copy(update={"graph": None, "reason": why})
