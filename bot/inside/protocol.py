"""The protocol between the user's interpreter and ours: the messages, and the names that both sides use.

Both sides import this module, so it needs only the standard library. A request is a dataclass, which one side encodes as JSON and the
other decodes. An answer is plain JSON with the keys that its TypedDict declares.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple, TypedDict, TypeVar, final

# The purpose of an interpreter started on boot.py.
Role = Literal["server", "spare", "capture", "control", "bytecode"]
Task = Literal[
    "run", "control", "control_fp64", "control_spread", "control_moved", "shapes", "export", "generated", "localize", "origins", "frames"
]
# See `bot.failure.outcome.Outcome`.
RunStatus = Literal["ok", "raised", "exit", "signal", "timeout", "memory", "stopped", "infra"]
# What replaces compiled results in a control: float64; the same, moved as far from eager as rounding explains; eager itself with each
# result moved by a unit in its last place, if float64 is not available. With the first two, whole numbers that rounding decides come out
# differently than in eager; with `exact`, float64 alone, they do not. `eager` is unchanged eager; `copied` are copies of its results.
# In all of them but the last, the program is told that it is being compiled if it asks.
Precision = Literal["fp64", "spread", "moved", "exact", "eager", "copied"]
# The option of a control in its own process: one of these, or `--untold` and `--moved-untold`, the first and the third for a program that
# is not told that it is being compiled, and so behaves as in eager; with `--repeats`, what torch leaves undefined differs each time; with
# `--bare`, a compiled module is the module itself, not a wrapper like that of `torch.compile`.
ControlOption = Literal[
    "--fp64", "--spread", "--moved", "--exact", "--eager", "--copied", "--untold", "--moved-untold", "--repeats", "--bare"
]
HookPoint = Literal["dynamo", "aot", "aoti"]
# How a captured graph failed. `pending`: it was written before it was compiled.
Failed = Literal["", "pending", "compile", "run", "accuracy"]

# The file to which a worker writes the script.
SCRIPT = "repro.py"
# The name for the return value of a script's `forward`: the last operation is in the return statement.
RETURNED = "return"
# The statement of a generated module that waits until its kernels are compiled.
GENERATED = "async_compile.wait(globals())"
OLDEST_TORCH = (2, 9)
INSIDE = os.path.dirname(os.path.abspath(__file__))
BOOT = os.path.join(INSIDE, "boot.py")
# On the path of a Python process that runs `children.start` when it starts.
FOLLOW_DIRECTORY = os.path.join(INSIDE, "follow")
# Contains the architecture of the absent GPU, if programs are to be compiled for one.
CUDA_ARCH = "TORCH_MINIFY_CUDA_ARCH"
# Where Inductor looks for precompiled headers, below the temporary directory of a process in the sandbox.
HEADERS = "torchinductor_program/precompiled_headers"
# Files of a capture, in its directory.
ORDER_FILE, RUN_FILE, ESCAPED_FILE, REGION_PREFIX = "order.json", "run.json", "escaped.json", "region-"
# The subdirectory, in a capture's directory, for regions whose numbers were compared after the program had ended.
COMPARED_DIR = "compared"
# The directory of each process that the program started and that compiled, and its files.
CHILD_PREFIX, CHILD_ERRORS, CHILD_DEATH, CHILD_FACTS = "child-", "errors.json", "death.txt", "process.json"

# The beginning of a log line about a failed shortcut, in a worker's log.
SHORTCUT_FAILED = "torch-minify goes on without a shortcut: "

# The error of a process under the eager control that loads what another one stored: only that process has it.
APART = "RuntimeError: another process stored this"
_REACHED = "[compiler-out] reached: "
_COUNT = r"(\d{1,9})"
_REACHED_LINE = re.compile(
    rf"^{re.escape(_REACHED)}{_COUNT} raised: {_COUNT} asked: {_COUNT} unmade: {_COUNT}(?: (\S.*?))?[ \t\r]*$", re.MULTILINE
)


class PhasePassed(BaseException):
    """The last phase in which the signature can show was passed. Not an Exception, since nothing may swallow it."""


class Fp64Impossible(Exception):
    """The program cannot be evaluated in float64, so float64 says nothing about it."""


# If only the beginning of an error is wanted: how many values are compared at first, and at most.
FEW_VALUES, MORE_VALUES = 16, 64


@dataclass(frozen=True)
class Question:
    """A script to run in a child of the warm parent.

    `limit` is in seconds, `memory` in bytes beyond the parent's own (None: the pool's). The pool fills in `id` and `dir`.
    """

    text: str
    task: Task = "run"
    limit: float = 60.0
    memory: int | None = None
    stop_after: str | None = None  # the phase after which to leave the compiler
    argv: tuple[str, ...] = ()
    repeats: bool = False  # task control: must compute the same whatever torch leaves undefined
    strict: bool = False  # task localize: integral and boolean values count
    tolerance: tuple[float, ...] | None = None  # task localize: see Recipe.tolerance
    beginning: bool = False  # task localize: only where the error begins first
    window: tuple[int, int] | None = None  # task localize, `beginning`: the range of positions of the values to compare; None: all
    lines: tuple[int, ...] = ()  # task frames: lines of the script (1-based) that the failure names
    seed: int = 0  # of the random number generators when the program starts
    as_eager: bool = False  # compiled code draws the same random numbers as eager
    save: str | None = None  # tasks export, generated: the file for the exported program, or the code
    id: int = 0
    dir: str = ""  # the child's working directory


class Cancel(TypedDict):
    """Stop the question with this id."""

    cancel: int


class Ping(TypedDict):
    """Asks the warm parent for a `Pong` with this number, at once."""

    ping: int


@dataclass(frozen=True)
class CaptureOrder:
    """The program that a capture runs, and how."""

    script: str | None  # otherwise `module` is run
    module: str | None
    file: str | None  # the program's own file, if the command names one
    argv: tuple[str, ...]
    out: str  # the directory to write to
    check: bool  # compare each compiled graph with eager and float64
    strict: bool  # integral and boolean values count
    tolerance: tuple[float, ...] | None  # (rtol, atol); () for the defaults of torch.testing.assert_close
    beforehand: bool  # write each graph before it is compiled
    synchronous: bool  # write each graph before its first call: nothing can be read from a device whose context is dead
    dump: bool  # call PyTorch's own dumpers too
    afterwards: bool = False  # compare each compiled graph when the program has ended normally, or by its own verdict
    as_eager: bool = False  # compiled code draws the same random numbers as eager
    fall_back: bool = False  # what the compiler rejects runs in eager
    later_calls: bool = False  # with `check`: also compare later calls of a compiled graph, not only its first


class ValueMeta(TypedDict, total=False):
    """A value's metadata, as in `bot.reduce.graph.form.Meta`; `kind` is always present."""

    kind: str
    shape: list[int]
    stride: list[int]
    dtype: str
    device: str
    dynamic: list[int]
    symbols: list[str | None]
    items: list[ValueMeta]


class FrameCall(TypedDict):
    """How a function of the script was called: Python source, except `name`, which is the qualified name. `reads` assigns what a function
    defined inside another one reads from there."""

    name: str
    reads: list[str]
    callee: str
    arguments: list[str]
    contexts: list[str]


class _Ended(TypedDict):
    status: RunStatus


class Facts(_Ended, total=False):
    """How a run ended, and what its task found."""

    text: str
    exit: int
    signal: str
    seconds: float
    printed: str
    drew: bool  # random numbers
    device: bool  # it started a GPU's runtime
    lingers: bool  # it failed, and its threads keep the process from ending
    calls: int  # of the compiler; this and the next four: task control
    raised: int  # how many of these calls raised
    asked: int  # how often the program asked whether it is being compiled, in code that would have been compiled
    unmade: int  # how often it looked at what only the compiler makes, or passed a backend of its own
    error: str  # class and message of the first error
    values: dict[str, ValueMeta]  # task shapes
    first: list[str]  # task localize: names where an error begins, in program order
    wrong: list[str]  # task localize: names of all wrong values, in program order
    harmless: list[str]  # task localize: wrong names that reach no output
    guesses: list[list[str]]  # task origins: names of values, the narrowest list first
    frames: list[FrameCall]  # task frames: the innermost first


class RunFacts(Facts, total=False):
    """What a capture writes at its end."""

    versions: dict[str, str]
    tolerance: list[float] | None  # of the program's own last comparison
    errors: list[float] | None  # of compiled code and eager against float64, where compiled code is worst relative to eager
    whole: bool  # integral or boolean results of compiled graphs differ from eager's, which did not count
    off: str  # the setting that turns the compiler off; empty if there is none
    swallows: bool  # Dynamo was told to suppress the compiler's exceptions
    again: bool  # a compiled graph was called more than once
    pooled: bool  # kernels were compiled by several processes, unlike elsewhere
    test: str  # the failing test, as its runner names it
    installed: list[int]  # lines of the program's file where functions begin that the compiler holds
    beside: list[str]  # names of those that modules next to that file define
    looked: list[str]  # directories added to the module search path by the time it ended or a test failed
    behind: str  # traceback of the compiler's exception that the program was handling when it ended otherwise
    threaded: bool  # the last exception that left the compiler ended a thread
    compared: bool | None  # whether every compiled graph was compared after the program had ended; None while that goes on
    ended: float  # on the system's monotonic clock; what the process does afterwards is not the program's


@final
class ChildError(TypedDict):
    """An error in a process that the program started: one that left the compiler, or that ended the process."""

    text: str  # its traceback, up to where it left the compiler
    said: str  # class and first line, as at the end of a traceback
    time: float  # seconds since the epoch
    ended: bool  # the process ended with it, and the compiler was not involved


@final
class ErrorsFile(TypedDict):
    """The errors of one process that the program started, in order."""

    errors: list[ChildError]


@final
class EscapedFile(TypedDict):
    """The last exception that left the compiler, whoever caught it."""

    text: str  # its traceback


@final
class ChildFacts(TypedDict):
    """A process that the program started and that called the compiler."""

    rank: str  # of a distributed program; otherwise empty
    world: str  # number of ranks; otherwise empty
    tolerance: list[float] | None  # of its own last comparison, as in `RunFacts`
    call: str  # of a function in the program's own file that was running; empty if it cannot be written
    file: str  # of its main module; a directory if that has none
    argv: list[str] | None  # after that file, if multiprocessing did not start it
    text: str  # of that module; a command (`python -c`) if `file` is a directory; empty if it cannot be read
    package: str  # of that module, if it was run as part of one; otherwise empty


@final
class Ready(TypedDict):
    """The warm parent accepts questions; versions of what it imported."""

    ready: dict[str, str]


@final
class StartFailed(TypedDict):
    """The warm parent could not import the compiler, and exits."""

    failed: str


@final
class Reply(TypedDict):
    """The outcome of the question with this id."""

    id: int
    outcome: Facts


@final
class Pong(TypedDict):
    """The warm parent got the `Ping` with this number."""

    pong: int


class Reached(NamedTuple):
    """What a process under the eager control saw: calls of the compiler, how many raised, how often the program asked there whether it is
    being compiled, how often it looked at what only the compiler makes or passed a backend of its own, which is not called there; class
    and message of the first error, or `APART` if a process that it started met that."""

    calls: int = 0
    raised: int = 0
    asked: int = 0
    unmade: int = 0
    error: str = ""

    def line(self) -> str:
        """The last line that such a process, and each of its forks, writes to standard error."""
        return f"{_REACHED}{self.calls} raised: {self.raised} asked: {self.asked} unmade: {self.unmade} {self.error}".rstrip()


def read_reached(text: str) -> tuple[Reached, str]:
    """What the process with the most calls saw, by its last line, from the output `text` of all; and that output without these lines."""
    lines = _REACHED_LINE.findall(text)
    found = [Reached(int(calls), int(raised), int(asked), int(unmade), error) for calls, raised, asked, unmade, error in lines]
    return max(found, key=lambda one: one[:4], default=Reached()), _REACHED_LINE.sub("", text).rstrip("\n")


_Request = TypeVar("_Request", Question, CaptureOrder)


def encode(request: Question | CaptureOrder) -> str:
    """A `request` as one line of JSON."""
    return json.dumps(asdict(request))


def decode(kind: type[_Request], message: dict[str, Any]) -> _Request:
    """The request of this `kind` from its parsed JSON `message`. Raises TypeError if a field is missing or unknown."""
    fields: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in message.items()}
    return kind(**fields)


def write_json(path: str, facts: Mapping[str, Any]) -> None:
    """Write `facts` to the file `path` atomically, so that no reader sees a partial file."""
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(facts, file)
    os.replace(path + ".new", path)


def command(python: str, role: Role, *arguments: str) -> list[str]:
    """The command that starts an interpreter `python` in a `role`, with its `arguments`."""
    return [python, BOOT, role, *arguments]
