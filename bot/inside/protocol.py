"""What the user's interpreter and ours say to each other: the messages, and the names that both sides use.

Both sides import this module, so it needs the standard library alone. A request is a dataclass, which one side encodes as JSON and
the other decodes. An answer is JSON as it is, with the keys that its TypedDict declares.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple, TypedDict, TypeVar, final

# What an interpreter started on boot.py is for.
Role = Literal["server", "spare", "capture", "control", "bytecode"]
Task = Literal[
    "run", "control", "control_fp64", "control_spread", "control_moved", "shapes", "export", "generated", "localize", "origins", "frames"
]
# See `bot.failure.outcome.Outcome`.
Status = Literal["ok", "raised", "exit", "signal", "timeout", "memory", "stopped", "infra"]
# What takes the place of compiled results in a control: float64; the same, as far from eager as rounding explains; eager itself with each
# result moved by a unit in its last place, where float64 cannot be had. With the first two, whole numbers that rounding decides come out
# otherwise than in eager; with `exact`, float64 alone, they do not. `eager` is eager as it is. In each the program is told, where it asks,
# that it is being compiled.
Precision = Literal["fp64", "spread", "moved", "exact", "eager"]
# The option of a control in a process of its own: one of these, or `--untold` and `--moved-untold`, the first and the third of a program
# that is not told that it is being compiled, and so does what it does in eager; with `--repeats` what torch leaves open differs each time;
# with `--bare` a compiled module is the module itself, not one around it as `torch.compile` makes.
ControlOption = Literal["--fp64", "--spread", "--moved", "--exact", "--eager", "--untold", "--moved-untold", "--repeats", "--bare"]
HookPoint = Literal["dynamo", "aot", "aoti"]
# How a captured graph failed. `pending`: it was written before it was compiled.
Failed = Literal["", "pending", "compile", "run", "accuracy"]

# The file that a worker writes the script to.
SCRIPT = "repro.py"
# The name for the returned value of a script's `forward`: the last operation is in the return statement.
RETURNED = "return"
# The statement of a generated module that waits until its kernels are compiled.
GENERATED = "async_compile.wait(globals())"
OLDEST_TORCH = (2, 9)
INSIDE = os.path.dirname(os.path.abspath(__file__))
BOOT = os.path.join(INSIDE, "boot.py")
# On the path of a Python process that is to do something of ours when it starts: `children.start`.
FOLLOW_DIRECTORY = os.path.join(INSIDE, "follow")
# Holds the architecture of the GPU that is not there, where programs are to be compiled for one.
CUDA_ARCH = "TORCH_MINIFY_CUDA_ARCH"
# Where Inductor looks for precompiled headers, below the temporary directory of a process in the sandbox.
HEADERS = "torchinductor_program/precompiled_headers"
# Files of a capture, in its directory.
ORDER_FILE, RUN_FILE, ESCAPED_FILE, REGION_PREFIX = "order.json", "run.json", "escaped.json", "region-"
# The directory, in that of a capture, of regions whose numbers were compared when the program had ended.
COMPARED_DIR = "compared"
# The directory of each process that the program started and that compiled, and the file of its errors.
CHILD_PREFIX, CHILD_ERRORS, CHILD_DEATH, CHILD_FACTS = "child-", "errors.json", "death.txt", "process.json"

# How a line about a failed shortcut begins, in the log of a worker.
SHORTCUT_FAILED = "torch-minify goes on without a shortcut: "

_REACHED = "[compiler-out] reached: "
_COUNT = r"(\d{1,9})"
_REACHED_LINE = re.compile(
    rf"^{re.escape(_REACHED)}{_COUNT} raised: {_COUNT} asked: {_COUNT} unmade: {_COUNT}(?: (\S.*?))?[ \t\r]*$", re.MULTILINE
)


class PhasePassed(BaseException):
    """The last phase in which the signature can show itself was passed. Not an Exception: nothing may swallow it."""


class Fp64Impossible(Exception):
    """The program cannot be evaluated in float64, so float64 says nothing about it."""


# Where only the beginning of an error is looked for: how many values are compared at first, and at most.
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
    stop_after: str | None = None  # the phase after which the compiler is left
    argv: tuple[str, ...] = ()
    repeats: bool = False  # task control: has to compute the same whatever torch leaves open
    strict: bool = False  # task localize: integral and boolean values count
    tolerance: tuple[float, ...] | None = None  # task localize: see Recipe.tolerance
    beginning: bool = False  # task localize: only where the error begins first
    window: tuple[int, int] | None = None  # task localize, `beginning`: of the values those from one position up to another; None: all
    lines: tuple[int, ...] = ()  # task frames: of the script (1-based), which the failure names
    seed: int = 0  # of the random number generators, as the program finds them
    as_eager: bool = False  # compiled code draws the random numbers that eager draws
    save: str | None = None  # tasks export, generated: the file for the exported program, or the code
    id: int = 0
    dir: str = ""  # the child's working directory


class Cancel(TypedDict):
    """Stop the question with this id."""

    cancel: int


@dataclass(frozen=True)
class CaptureOrder:
    """The program that a capture runs, and how."""

    script: str | None  # else `module` is run
    module: str | None
    file: str | None  # the program's own file, where the command names one
    argv: tuple[str, ...]
    out: str  # the directory to write to
    check: bool  # compare each compiled graph with eager and float64
    strict: bool  # integral and boolean values count
    tolerance: tuple[float, ...] | None  # (rtol, atol); () for the defaults of torch.testing.assert_close
    beforehand: bool  # write each graph before it is compiled
    synchronous: bool  # write each graph before it is first called: a device whose context is dead gives nothing back
    dump: bool  # call PyTorch's own dumpers too
    afterwards: bool = False  # compare each compiled graph when the program has ended well, or by its own verdict
    as_eager: bool = False  # compiled code draws the random numbers that eager draws
    fall_back: bool = False  # what the compiler refuses is run in eager
    later_calls: bool = False  # with `check`: compare later calls of a compiled graph, too, not its first alone


class ValueMeta(TypedDict, total=False):
    """A value in the words of `bot.reduce.graph.form.Meta`; `kind` is always there."""

    kind: str
    shape: list[int]
    stride: list[int]
    dtype: str
    device: str
    dynamic: list[int]
    symbols: list[str | None]
    items: list[ValueMeta]


class FrameCall(TypedDict):
    """How a function of the script was called: all Python source but `name`, which is qualified. `reads` assigns what a function that
    was made inside another one reads there."""

    name: str
    reads: list[str]
    callee: str
    arguments: list[str]
    contexts: list[str]


class _Ended(TypedDict):
    status: Status


class Facts(_Ended, total=False):
    """How a run ended, and what its task found."""

    text: str
    exit: int
    signal: str
    seconds: float
    printed: str
    drew: bool  # random numbers
    device: bool  # it started a GPU's runtime
    lingers: bool  # it failed, and threads of its keep its process from ending
    calls: int  # of the compiler; this and the next four: task control
    raised: int  # how many of these calls raised
    asked: int  # how often the program asked whether it is being compiled, where the compiler would have been
    unmade: int  # how often it looked at what only the compiler makes, or gave it a backend of its own
    error: str  # class and message of the first that raised
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
    errors: list[float] | None  # against float64, of compiled and eager, where compiled is farthest for what eager is
    whole: bool  # integral or boolean results of compiled graphs differ from eager's, which did not count
    off: str  # the setting that turns the compiler off; empty where none does
    swallows: bool  # Dynamo was told to swallow what the compiler raises
    again: bool  # a compiled graph was called more than once
    pooled: bool  # kernels were compiled by several processes, which they are not elsewhere
    test: str  # the failing test, as its runner names it
    installed: list[int]  # lines of the program's file at which functions begin that the compiler holds
    beside: list[str]  # names of those that modules beside that file define
    looked: list[str]  # the directories where it had Python look for modules, when it ended or a test failed, beside those it began with
    behind: str  # the traceback of the compiler's exception that the program handled when it ended otherwise
    compared: bool | None  # every compiled graph, when the program had ended; None while that goes on
    ended: float  # on the system's monotonic clock; what the process does after that is not the program's


@final
class ChildError(TypedDict):
    """An error in a process that the program started: one that left the compiler, or with which the process ended."""

    text: str  # its traceback, up to where it left the compiler
    said: str  # class and first line, as a traceback ends
    time: float  # seconds since the epoch
    ended: bool  # the process ended with it, and the compiler has no part in it


@final
class ErrorsFile(TypedDict):
    """The errors of one process that the program started, as they came."""

    errors: list[ChildError]


@final
class EscapedFile(TypedDict):
    """The last exception that left the compiler, whoever caught it."""

    text: str  # its traceback


@final
class ChildFacts(TypedDict):
    """A process that the program started and that called the compiler."""

    rank: str  # of a distributed program; empty elsewhere
    world: str  # how many ranks there are; empty elsewhere
    tolerance: list[float] | None  # of its own last comparison, as `RunFacts` has it
    call: str  # of a function of the program's own file, which it was at; empty where that cannot be written
    file: str  # of its main module; a directory where that has none
    argv: list[str] | None  # behind that file, where multiprocessing did not start it
    text: str  # of that module, which is a command (`python -c`) where `file` is a directory; empty where that cannot be read
    package: str  # which that module is of, where it was run as one; else empty


@final
class Ready(TypedDict):
    """The warm parent takes questions; versions of what it imported."""

    ready: dict[str, str]


@final
class StartFailed(TypedDict):
    """The warm parent could not import the compiler, and ends."""

    failed: str


@final
class Reply(TypedDict):
    """What became of the question with this id."""

    id: int
    outcome: Facts


class Reached(NamedTuple):
    """What a process under the eager control saw: calls of the compiler, how many raised, how often the program asked there whether
    it is being compiled, how often it looked at what only the compiler makes, or gave it a backend of its own, which nobody calls there;
    class and message of the first error."""

    calls: int = 0
    raised: int = 0
    asked: int = 0
    unmade: int = 0
    error: str = ""

    def line(self) -> str:
        """The last line that such a process, and each that it forked, writes to standard error."""
        return f"{_REACHED}{self.calls} raised: {self.raised} asked: {self.asked} unmade: {self.unmade} {self.error}".rstrip()


def read_reached(text: str) -> tuple[Reached, str]:
    """What the process with most calls saw, at its last word, from the output `text` of all; and that output without their lines."""
    lines = _REACHED_LINE.findall(text)
    found = [Reached(int(calls), int(raised), int(asked), int(unmade), error) for calls, raised, asked, unmade, error in lines]
    return max(found, key=lambda one: one[:4], default=Reached()), _REACHED_LINE.sub("", text).rstrip("\n")


_Request = TypeVar("_Request", Question, CaptureOrder)


def encode(request: Question | CaptureOrder) -> str:
    """A request as one line of JSON."""
    return json.dumps(asdict(request))


def decode(kind: type[_Request], message: dict[str, Any]) -> _Request:
    """The request of this kind from its parsed JSON `message`. Raises TypeError where a field is missing or unknown."""
    fields: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in message.items()}
    return kind(**fields)


def write_json(path: str, facts: Mapping[str, Any]) -> None:
    """Write `facts` to the file `path` in one step, so that no reader finds the half of them."""
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(facts, file)
    os.replace(path + ".new", path)


def command(python: str, role: Role, *arguments: str) -> list[str]:
    """The command that starts an interpreter `python` in a role."""
    return [python, BOOT, role, *arguments]
