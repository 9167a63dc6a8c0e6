"""Reads what Python prints about its own end: tracebacks and faulthandler's dumps.

Nothing but text comes in, so a warm worker, a fresh process and somebody else's terminal are read by the same code.
Never raises on any text, and looks at a bounded part of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

HEADER = "Traceback (most recent call last):"
CUT = "[...]"  # a line that stands for what was left out of a long text
_CAUSE = "The above exception was the direct cause of the following exception:"
_CONTEXT = "During handling of the above exception, another exception occurred:"

_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_FRAME = re.compile(r'^  File "(?P<path>[^"\n]+)", line \d+(?:, in (?P<function>.+))?$')
_FAULT_FRAME = re.compile(r'^  File "(?P<path>[^"\n]+)", line (?:\d+|\?\?\?) in (?P<function>.+)$')
_FAULT_THREAD = re.compile(r"^(?:(?P<current>Current thread|Stack)|Thread)\b.*\(most recent call first\):$")
_DUMP = re.compile(r"^(?=Fatal Python error:|Timeout \(|Stack \(most recent call first\):$)", re.MULTILINE)
_RAISED = re.compile(r"^(?P<name>[A-Za-z_][\w.]*(?:<locals>[\w.]*)*)(?:: ?(?P<text>.*))?$")
# A worker process's exception arrives as the text of a whole traceback inside the message of another one.
_CARRIER = re.compile(r"\b(?:SubprocException|_RemoteTraceback|SubprocessException)\b")

_MAX_TEXT = 4_000_000  # characters looked at, of a longer text its two ends
_MAX_MESSAGE = 1_000_000  # characters kept of one exception's message
_MAX_FRAMES = 2_000  # of one traceback
_MAX_DUMPS = 10  # looked at, the last ones: a program may print its stack on its own

_INSTALLED = re.compile(r"^(?:.*/)?(?:site|dist)-packages/")
# A build of torch in its source tree has no site-packages in its paths.
_SOURCE_TREE = re.compile(
    r"^(?:.*/)?(?=torch/(?:_\w+|ao|autograd|cuda|distributed|distributions|export|fx|func|jit|library|masked|nested|nn"
    r"|onnx|optim|overrides|sparse|testing|utils)/|torch/(?:_\w+|functional|library|overrides)\.py$|functorch/\w+)"
)


@dataclass(frozen=True)
class Frame:
    """One line of a stack. `path` starts with `torch/`, `triton/`, ... for an installed package, else it is as printed."""

    path: str
    function: str

    @property
    def in_torch(self) -> bool:
        """Whether it lies in the torch package."""
        return self.path.startswith(("torch/", "functorch/"))

    def __str__(self) -> str:
        return f"{self.path}:{self.function}"


@dataclass(frozen=True)
class Raised:
    """One exception of a printed chain."""

    name: str  # short class name; empty where the line does not look like one
    message: str
    frames: tuple[Frame, ...]  # outermost first


def plain(text: str) -> str:
    """`text` without colours and carriage returns, cut to a bounded length by leaving out its middle."""
    if len(text) > _MAX_TEXT:
        half = _MAX_TEXT // 2
        start = text.rfind("\n" + HEADER, 0, len(text) - half)
        # The last traceback may be long enough to begin in the middle (huge argument dumps): keep its beginning.
        head = text[:half] if start < half else text[start : start + half]
        text = f"{head}\n{CUT}\n{text[-half:]}"
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    return text.replace("\r", "") if "\r" in text else text


def short_path(path: str) -> str:
    """A frame's path without the prefix that depends on the machine; the script's own path is left alone."""
    path = path.replace("\\", "/")
    for pattern in (_INSTALLED, _SOURCE_TREE):
        found = pattern.match(path)
        if found:
            return path[found.end() :]
    return path


def _frames(lines: Sequence[str], start: int) -> tuple[tuple[Frame, ...], int]:
    frames: list[Frame] = []
    i = start
    while i < len(lines):
        line = lines[i]
        found = _FRAME.match(line)
        if found:
            if len(frames) < _MAX_FRAMES:
                frames.append(Frame(short_path(found["path"]), found["function"] or "<module>"))
        elif line == CUT:
            i += 1  # the next line may be a torn one
        elif not line.startswith(("    ", "  [Previous line repeated")):
            break
        i += 1
    return tuple(frames), i


def _short_name(name: str) -> str:
    return name.rpartition(".")[2]


def _split_raised(lines: Sequence[str]) -> tuple[str, str]:
    if not lines:
        return "", ""
    found = _RAISED.match(lines[0])
    if not found:
        return "", "\n".join(lines)[:_MAX_MESSAGE]
    return _short_name(found["name"]), "\n".join([found["text"] or "", *lines[1:]])[:_MAX_MESSAGE]


def _link(message: Sequence[str]) -> tuple[str, Sequence[str]]:
    """How an exception is tied to the next traceback, and its own lines without the line that says so."""
    end = len(message)
    while end and not message[end - 1].strip():
        end -= 1
    if end and message[end - 1] in (_CAUSE, _CONTEXT):
        return ("cause" if message[end - 1] == _CAUSE else "context"), message[: end - 1]
    if any(_CARRIER.search(line[:2000]) for line in message[:40]):
        return "carrier", message
    return "", message


def exceptions(text: str) -> tuple[Raised, ...]:
    """The last printed exception and what caused it, the outermost first and the root cause last.

    Only `raise ... from ...` counts as a cause: an exception that merely was being handled says nothing about this one.
    Empty if `text` holds no traceback.
    """
    lines = text.split("\n")
    starts = [i for i, line in enumerate(lines) if line == HEADER]
    if not starts:
        return ()
    chain: list[Raised] = []
    for i in range(len(starts) - 1, -1, -1):
        frames, end = _frames(lines, starts[i] + 1)
        until = starts[i + 1] if i + 1 < len(starts) else len(lines)
        how, message = _link(lines[end:until]) if i + 1 < len(starts) else ("last", lines[end:until])
        if how in ("", "context"):
            break
        name, said = _split_raised(message)
        raised = Raised(name, said, frames)
        if how == "carrier":
            chain.insert(0, raised)
        else:
            chain.append(raised)
    return tuple(chain)


def _threads(text: str) -> Iterator[tuple[bool, list[Frame]]]:
    current, inside = False, False
    frames: list[Frame] = []
    for line in text.split("\n"):
        head = _FAULT_THREAD.match(line)
        if head:
            if inside:
                yield current, frames
            current, frames, inside = head["current"] is not None, [], True
            continue
        found = _FAULT_FRAME.match(line) if inside else None
        if found and len(frames) < _MAX_FRAMES:
            frames.append(Frame(short_path(found["path"]), found["function"]))
    if inside:
        yield current, frames


def fault_frames(text: str) -> tuple[Frame, ...]:
    """The stack in faulthandler's last dump, outermost first. Empty if there is no dump."""
    start = max(text.rfind("Fatal Python error:"), text.rfind("\nTimeout ("))
    return _stack(text[max(start, 0) :])


def sampled_frames(text: str) -> list[tuple[Frame, ...]]:
    """The stacks that a process was asked for one after the other (faulthandler's last dumps), each outermost first; no empty ones."""
    return [stack for dump in _DUMP.split(text)[-_MAX_DUMPS:] if (stack := _stack(dump))]


def _stack(dump: str) -> tuple[Frame, ...]:
    """That of the thread that was hit; of the thread that ran the program where the one hit has no Python frames (the
    autograd engine's have none)."""
    threads = list(_threads(dump))
    if not threads:
        return ()
    hit = next((frames for current, frames in reversed(threads) if current and frames), None)
    program = next((frames for _, frames in threads if any(frame.function == "<module>" for frame in frames)), None)
    return tuple(reversed(hit or program or max((frames for _, frames in threads), key=len)))
