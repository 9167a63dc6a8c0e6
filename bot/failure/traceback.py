"""Reads what Python prints about its own end: tracebacks and faulthandler's dumps.

The input is text alone, so a warm worker, a fresh process and somebody else's terminal are read by the same code.
No function here raises on any text, and each looks at a bounded part of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import dropwhile, islice, pairwise, takewhile

from bot.failure.messages import told

HEADER = "Traceback (most recent call last):"
# How torch begins a traceback of another thread or process (`torch._utils.ExceptionWrapper`: DataLoader, DataParallel).
CARRIED = f"Original {HEADER}"
CUT = "[...]"  # a line that stands for what was left out of a long text
# How Python begins an exception group. Below it, in a margin, are the group's own stack and then each of its exceptions.
GROUP_HEADER = "  + Exception Group Traceback (most recent call last):"
_GROUP = re.compile(rf"^{re.escape(GROUP_HEADER)}\n(?:^ +[|+].*(?:\n|\Z))+", re.MULTILINE)
_BORDER = re.compile(r"^ +\+-(?P<opens>\+-)?-+(?: \S{1,9} -+)?$")  # above each of these, and below the last one
_MARGIN = re.compile(r"^ +\| ?")
# What Python prints between two exceptions of a chain.
JOINTS = _CAUSE, _CONTEXT = (
    "The above exception was the direct cause of the following exception:",
    "During handling of the above exception, another exception occurred:",
)
_ONE = rf"{re.escape(HEADER)}\n(?: .*\n)*.*(?:\n|\Z)"
# Printed chains that do not end the program: from a finalizer, at exit, or of a task that nobody awaited. They come late.
_UNHEARD = re.compile(
    r"^(?:Exception ignored [^\n]*|Error in atexit\._run_exitfuncs:|(?:Task|Future) exception was never retrieved\nfuture: [^\n]*)\n"
    rf"{_ONE}(?:\n(?:{_CAUSE}|{_CONTEXT})\n\n{_ONE})*",
    re.MULTILINE,
)

# The names that faulthandler, and a shell that reports a core dump, give to the signals of a crash.
CRASH_SIGNALS = {
    "Segmentation fault": "SIGSEGV",
    "Aborted": "SIGABRT",
    "Bus error": "SIGBUS",
    "Floating-point exception": "SIGFPE",
    "Floating point exception": "SIGFPE",
    "Illegal instruction": "SIGILL",
}
# What torch.distributed's hook puts before each line of the error that ends a rank.
_RANK = re.compile(r"^\[rank\d{1,9}\]: ?", re.MULTILINE)
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


def frame_place(path: str = r'[^"\n]{1,1000}', line: str = r"\d{1,9}") -> str:
    """The regular expression of what Python prints for the place of a frame, behind its indent, with those of its `path` and its `line`."""
    return f'File "{path}", line {line}'


_PATH, _LINE = r'(?P<path>[^"\n]+)', r"(?P<line>\d+)"
_FRAME = re.compile("^  " + frame_place(_PATH, _LINE) + r"(?:, in (?P<function>.+))?$")
# Indented in any way: a message may quote a traceback.
_QUOTED_FRAME = re.compile(r"^\s*" + frame_place(_PATH, _LINE) + ", in (?P<function>.*)$", re.MULTILINE)
_SHOWN_FRAME = re.compile("^ +" + frame_place('([^"]+)', r"\d+"), re.MULTILINE)
_FAULT_FRAME = re.compile("^  " + frame_place(_PATH, r"(?P<line>\d+|\?\?\?)") + " in (?P<function>.+)$")
_FAULT_CUT = re.compile(r"^ +\.\.\.$")  # stands for the outermost frames of a deep stack
_FAULT_THREAD = re.compile(r"^(?:(?P<current>Current thread|Stack)|Thread)\b.*\(most recent call first\):$")
_DUMP = re.compile(r"^(?=Fatal Python error:|Timeout \(|Stack \(most recent call first\):$)", re.MULTILINE)
_RAISED = re.compile(r"^(?P<name>[^\W\d][\w.]*(?:<locals>[\w.]*)*)(?:: ?(?P<text>.*))?$")
# A worker process's exception arrives as the text of a whole traceback inside the message of another one: from Inductor's pool, the
# standard library's (as a cause, in quotes), `torch.multiprocessing.spawn`.
_CARRIER = re.compile(
    r"\b(?:SubprocException|_?RemoteTraceback|SubprocessException)\b|-- Process \d{1,9} terminated with the following error:"
)
_QUOTES = ('"""', "'''")

_MAX_TEXT = 4_000_000  # characters that are read; of a longer text, its two ends
_MAX_MESSAGE = 1_000_000  # characters kept of one exception's message
_MAX_FRAMES = 2_000  # of one traceback
_MAX_DUMPS = 10  # the last ones are looked at: a program may print its stack on its own
_MAX_DIGITS = 9  # of a line number

# Buck puts everything that a program imports below one directory.
_INSTALLED = re.compile(r"^(?:.*/)?(?:(?:site|dist)-packages|[^/]{1,200}#link-tree)/")
# Builds of torch and of Triton in their source trees have no site-packages in their paths.
_TRITON_TREE = re.compile(r"^(?:.*/)?python/(?=triton/(?:(?:backends|compiler|language|runtime|tools)/|\w+\.py$))")
_SOURCE_TREE = re.compile(
    r"^(?:.*/)?(?=torch/(?:_\w+|ao|autograd|cuda|distributed|distributions|export|fx|func|jit|library|masked|nested|nn"
    r"|onnx|optim|overrides|sparse|testing|utils)/|torch/(?:_\w+|functional|library|overrides)\.py$|functorch/\w+)"
)


@dataclass(frozen=True)
class Frame:
    """One frame of a stack. `path` starts with `torch/`, `triton/`, ... for an installed package, otherwise it is as printed.

    `line` counts from 1; None if none is printed.
    """

    path: str
    function: str
    line: int | None = None

    @property
    def in_torch(self) -> bool:
        """Whether it lies in the torch package."""
        return self.path.startswith(("torch/", "functorch/"))

    def is_of(self, script: str) -> bool:
        """Whether it is in a file called `script`, in any directory."""
        return self.path == script or self.path.endswith("/" + script)

    def __str__(self) -> str:
        return f"{self.path}:{self.function}"


@dataclass(frozen=True)
class Stack:
    """Frames, outermost first. `whole` is False if the outermost ones were left out."""

    frames: tuple[Frame, ...] = ()
    whole: bool = True


@dataclass(frozen=True)
class Raised:
    """One exception of a printed chain."""

    name: str  # short class name; empty if the line does not look like one
    message: str
    frames: tuple[Frame, ...]  # outermost first
    carrier: bool = False  # it only carries the next one, which another process or thread raised


def plain(text: str) -> str:
    """`text` without colors, carriage returns and rank prefixes, and without its middle if it is too long."""
    if len(text) > _MAX_TEXT:
        half = _MAX_TEXT // 2
        start = text.rfind("\n" + HEADER, 0, len(text) - half)
        # The last traceback may be long enough to begin in the middle (huge argument dumps): keep its beginning.
        head = text[:half] if start < half else text[start : start + half]
        text = f"{head}\n{CUT}\n{text[-half:]}"
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    text = text.replace("\r", "") if "\r" in text else text
    return _RANK.sub("", text) if "[rank" in text else text


def ungrouped(text: str) -> str:
    """`text` with each printed exception group replaced by its first exception, as that would be printed alone, and without exceptions that
    do not end the program."""
    text = _GROUP.sub(_first_of_group, text) if GROUP_HEADER in text else text
    return _UNHEARD.sub("", text) if HEADER in text else text


def _first_of_group(group: re.Match[str]) -> str:
    above: list[str] = []  # the stack of the innermost group
    first: list[str] = []
    for line in group[0].rstrip("\n").split("\n")[1:]:
        border = _BORDER.match(line)
        if border and not border["opens"]:
            break
        if border:
            above, first = first or above, []
        else:
            first.append(_MARGIN.sub("", line))
    if first[:1] == [HEADER]:
        return "\n".join(first) + "\n"
    # an exception that was never raised has no stack
    return "\n".join([HEADER, *(line for line in above if line.startswith("  ")), *first]) + "\n"


def short_path(path: str) -> str:
    """A frame's `path` without the prefix that depends on the machine; the script's own path is left alone."""
    path = path.replace("\\", "/")
    for pattern in (_INSTALLED, _SOURCE_TREE, _TRITON_TREE):
        found = pattern.match(path)
        if found:
            return path[found.end() :]
    return path


def _frame(found: re.Match[str]) -> Frame:
    line = int(found["line"]) if found["line"].isdecimal() and len(found["line"]) <= _MAX_DIGITS else None
    return Frame(short_path(found["path"]), found["function"] or "<module>", line)


def _frames(lines: Sequence[str], start: int) -> tuple[tuple[Frame, ...], int]:
    """The frames from the index `start` on, and the index of the line after them."""
    frames: list[Frame] = []
    i = start
    while i < len(lines):
        line = lines[i]
        found = _FRAME.match(line)
        if found:
            if len(frames) < _MAX_FRAMES:
                frames.append(_frame(found))
        elif line == CUT:
            i += 1  # the next line may be cut off
        # a frame that somebody edited is skipped
        elif not line.startswith(("    ", "  File ", "  [Previous line repeated")):
            break
        i += 1
    return tuple(frames), i


def _split_raised(lines: Sequence[str]) -> tuple[str, str]:
    if not lines:
        return "", ""
    found = _RAISED.match(lines[0])
    if not found:
        return "", "\n".join(lines)[:_MAX_MESSAGE]
    return found["name"].rpartition(".")[2], "\n".join([found["text"] or "", *lines[1:]])[:_MAX_MESSAGE]


def _link(message: Sequence[str], following: str) -> tuple[str, Sequence[str]]:
    """How an exception is linked to the next traceback, whose header is `following`, and its own lines without the link."""
    end = _end(message)
    if end and message[end - 1] in (_CAUSE, _CONTEXT):
        how = "cause" if message[end - 1] == _CAUSE else "context"
        message = message[: _end(message[: end - 1])]
        # what another process raised is in quotes
        return how, message[:-1] if message and message[-1] in _QUOTES else message
    if following == CARRIED or any(_CARRIER.search(line[:2000]) for line in message[:40]):
        return "carrier", message
    return "", message


def _end(lines: Sequence[str]) -> int:
    """The number of lines, without the empty ones at the end."""
    end = len(lines)
    while end and not lines[end - 1].strip():
        end -= 1
    return end


def exceptions(text: str) -> tuple[Raised, ...]:
    """The last printed exception and what caused it, outermost first and root cause last.

    Only `raise ... from ...` counts as a cause, and what another process or thread raised: an exception that was merely being handled says
    nothing about this one. Of an exception group, the first exception counts. Empty if `text` holds no traceback.
    """
    lines = ungrouped(text).split("\n")
    starts = [i for i, line in enumerate(lines) if line in (HEADER, CARRIED)]
    if not starts:
        return ()
    chain: list[Raised] = []
    for start, until in reversed([*pairwise(starts), (starts[-1], None)]):
        frames, end = _frames(lines, start + 1)
        how, message = ("last", lines[end:]) if until is None else _link(lines[end:until], lines[until])
        if how in ("", "context"):
            break
        name, said = _split_raised(message)
        chain.insert(0 if how == "carrier" else len(chain), Raised(name, said, frames, how == "carrier"))
    return tuple(chain)


def error_line(text: str) -> str:
    """Class and message of the last exception in `text`, in one line; empty if there is no traceback.

    What follows in the text, or further down in the message (a graph, code, another traceback), is not part of the error, except for what
    the message's first line announces by a colon.
    """
    chain = exceptions(plain(text))
    if not chain:
        return ""
    said = told([line for line in chain[0].message.split("\n") if line.strip()]).strip()
    return ": ".join(part for part in (chain[0].name, said) if part)


def last_path(text: str) -> str:
    """The file of the last frame that `text` shows, as it is printed, however deeply it is quoted; empty if there is none."""
    paths = _SHOWN_FRAME.findall(text)
    return paths[-1] if paths else ""


def failed_later_than(control: str, failed: str, script: str) -> bool:
    """Whether the last error in the text `control` was raised at a later statement of `script` than the one in `failed`.

    The control of a program may end after the statement that fails with the compiler: a statement that looks at what the compiler made (a
    graph, a counter) fails in eager. By then, eager has done all that the failure is about. `script` is a file name.
    """
    for ours, theirs in zip(_script_frames(control, script), _script_frames(failed, script), strict=False):
        if ours.function != theirs.function:
            return False
        if ours.line != theirs.line:
            return (ours.line or 0) > (theirs.line or 0)
    return False


def _script_frames(text: str, script: str) -> list[Frame]:
    """The script's frames in the last traceback, from its outermost up to the first frame that is not the script's."""
    lines = ungrouped(text).split("\n")
    last = max((i for i, line in enumerate(lines) if line == HEADER), default=len(lines))
    behind_launcher = dropwhile(lambda frame: not frame.is_of(script), _frames(lines, last + 1)[0])
    return list(takewhile(lambda frame: frame.is_of(script), behind_launcher))


def _threads(dump: str) -> Iterator[tuple[bool, Stack]]:
    """For each thread of a dump, whether it was hit, and its stack."""
    lines = dump.split("\n")
    heads = [(i, head) for i, line in enumerate(lines) if (head := _FAULT_THREAD.match(line))]
    ends = [*(i for i, _ in heads[1:]), len(lines)]
    for (start, head), end in zip(heads, ends, strict=False):
        found = list(islice(filter(None, map(_FAULT_FRAME.match, lines[start + 1 : end])), _MAX_FRAMES))
        whole = not any(map(_FAULT_CUT.match, lines[start + 1 : end]))
        yield head["current"] is not None, Stack(tuple(map(_frame, reversed(found))), whole)


def fault_frames(text: str) -> tuple[Frame, ...]:
    """The stack in the last of faulthandler's dumps in `text`, outermost first. Empty if there is no dump."""
    return _failing(_threads(text[_last_dump(text) :])).frames


def sampled_frames(text: str) -> list[tuple[Frame, ...]]:
    """The stacks in the last of faulthandler's dumps in `text`, each outermost first, without empty ones.

    A process is asked for them one after the other.
    """
    return [frames for dump in _DUMP.split(text)[-_MAX_DUMPS:] if (frames := _failing(_threads(dump)).frames)]


def final_stack(text: str) -> Stack:
    """All frames in the tracebacks of `text`, including those that a message quotes; or those of a dump after them, which shows the end.

    Frames without a line number are left out.
    """
    text = ungrouped(plain(text))
    raised = list(_QUOTED_FRAME.finditer(text))
    threads = _threads(text[max(_last_dump(text), raised[-1].end() if raised else 0) :])
    dumped = _failing((hit, _with_lines(stack)) for hit, stack in threads)
    return dumped if dumped.frames else _with_lines(Stack(tuple(map(_frame, raised))))


def _with_lines(stack: Stack) -> Stack:
    return replace(stack, frames=tuple(frame for frame in stack.frames if frame.line is not None))


def _last_dump(text: str) -> int:
    """Where the last dump of a death or a timeout begins; 0 if there is none."""
    return max(text.rfind("Fatal Python error:"), text.rfind("\nTimeout ("), 0)


def _failing(threads: Iterable[tuple[bool, Stack]]) -> Stack:
    """The stack of the thread that was hit. If that has no Python frames (the autograd engine's threads have none), the stack of the thread
    that ran the program."""
    found = [(hit, stack) for hit, stack in threads if stack.frames]
    stacks = [stack for _, stack in found]
    last_hit = next((stack for hit, stack in reversed(found) if hit), None)
    program = next((stack for stack in stacks if any(frame.function == "<module>" for frame in stack.frames)), None)
    return last_hit or program or max(stacks, key=lambda stack: len(stack.frames), default=Stack())
