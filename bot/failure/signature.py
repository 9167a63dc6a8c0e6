"""From what a run left behind to the Signature of its failure.

The only input is text, as Python prints it: a traceback (with TORCHDYNAMO_VERBOSE=1, which leaves the compiler's frames
in), or faulthandler's dump for a death or a time-out. One function therefore judges warm workers, fresh processes and
what somebody pasted, and a verdict never depends on where the failure was seen. See docs/signature.md.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from bot.failure.device_errors import CLASS, sticky_error
from bot.failure.messages import CPP_ERRORS, MAX_MESSAGE, MAX_WORDS, WRAPPER_CLASSES, essence, normalize, peel, words
from bot.failure.outcome import Outcome
from bot.failure.phases import innermost, is_backward, is_generated, phase_of
from bot.failure.traceback import Frame, Raised, exceptions, failed_later_than, fault_frames, frame_place, plain, sampled_frames, ungrouped
from bot.models.failure import HEAP, Kind, Phase, Signature

_NO_FAILURE = frozenset({"ok", "stopped", "infra"})
_COMPARISON = re.compile(r"\bnot (?:close|equal|almost equal)\b|\bdo not match\b|\bmismatch", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"\battribute '?(\w+)(?:\(\))?'? do not match|\((shape)s [^\n]* mismatch\)")
_NUMBERS = re.compile(r"\bnot (?:close|equal|almost equal)\b|\bMismatched elements\b|\blocation mismatch\b", re.IGNORECASE)
_CONDITION = re.compile(r"data-dependent expression ([^\n]+?)(?= \(unhinted|\.?\s*\n|\.?$)")
_NO_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:nan|inf)(?![\w.])")
_CHECKERS = ("torch/testing/", "numpy/testing/")
_PYTEST, _DID_NOT_RAISE = "_pytest/outcomes.py", "DID NOT RAISE"
# What `no_grad`, `autocast` and the like put around a function that they decorate, and what calls the program's function in a new process.
_WRAPPERS = (
    "torch/utils/_contextlib.py",
    "torch/amp/autocast_mode.py",
    "torch/multiprocessing/",
    "torch/utils/data/",
    "torch/distributed/elastic/multiprocessing/",
)
# One in this many stacks may lie elsewhere.
STEADY = 3
# The wait for a program is among this many innermost frames.
_NEAR = 4
_MAX_CLASSES = 12
_MAX_NAME = 100
_MAX_FRAME = 200


# What glibc says when it finds its heap corrupted.
_HEAP = re.compile(
    r"^(?:malloc|free|realloc|munmap_chunk|double free|corrupted |malloc_consolidate|\w+\(\): (?:invalid|corrupted|unaligned))[^\n]*$", re.M
)


# Signals that one process sends to another, or to itself: memory and arithmetic faults do not raise them.
_SENT = frozenset({"SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGALRM"})


# A frame and its source line.
_WITH_SOURCE = re.compile("^  " + frame_place(r'(?P<path>[^"\n]+)', r"\d+") + r"[^\n]*\n +(?P<source>[^\n]*)", re.M)
_SPELLED = re.compile(r"[^\w.<>=!+*/%|&^~-]+")
# What the program's own code does not raise. float64 needs more memory, so right numbers say nothing about a lack of it.
_OF_OTHERS = WRAPPER_CLASSES | {"OutOfMemoryError", "MemoryError"}
_LIBRARY = re.compile(r"[/\\](?:site|dist)-packages[/\\]|[/\\]lib[/\\]python\d[\d.]*[/\\]")


def signature_of(outcome: Outcome, *, script: str = "repro.py") -> Signature | None:
    """The failure in the `outcome` of a run of `script`, whose file name tells the program's own frames from others.

    None if the run ended well, was stopped on purpose or failed through our fault (`ok`, `stopped`, `infra`). A run that exceeded its
    memory limit is a crash with the signal `MEMORY`. Never raises, whatever the text.
    """
    if outcome.status in _NO_FAILURE:
        return None
    # a lone surrogate, which JSON can hold, cannot be written into a result
    text = ungrouped(plain(outcome.text)).encode("utf-8", "replace").decode("utf-8")
    if outcome.status == "timeout":
        return _died(Kind.HANG, None, text, _usual(sampled_frames(text)))
    if outcome.status in ("signal", "memory"):
        return _died(Kind.CRASH, outcome.signal or ("MEMORY" if outcome.status == "memory" else "SIGKILL"), text, fault_frames(text))
    if outcome.status == "exit":
        return Signature(kind=Kind.EXCEPTION, phase=Phase.RUN, exception=("SystemExit",), message=str(outcome.exit or 0))
    return _raised(exceptions(text), text, script)


def is_own_verdict(signature: Signature, outcome: Outcome, *, script: str) -> bool:
    """Whether the program itself ended this way: by a comparison, or by a status, an error or a signal of its own, with nothing of torch on
    the stack.

    That may be how it says that a result is wrong. The `signature` is that of the `outcome` of `script`, as for `signature_of`.
    """
    if signature.kind is Kind.CRASH:
        # no dump tells whether it called `os.abort`: right numbers will
        frames = fault_frames(plain(outcome.text))
        return outcome.status == "signal" and (_is_own(frames, script) if frames else outcome.signal in _SENT)
    if signature.kind is Kind.ACCURACY or (outcome.status == "exit" and signature.kind is Kind.EXCEPTION):
        return True
    if signature.kind is not Kind.EXCEPTION or signature.phase is not Phase.RUN or len(signature.exception) != 1:
        return False
    if signature.exception[0] in WRAPPER_CLASSES:
        return False
    # a built-in error, or one of a library, is not the program's judgment
    shown = [frame for raised in exceptions(plain(outcome.text)) for frame in raised.frames]
    return raises_by_itself(outcome.text) and _is_own(shown, script)


def ended_behind(control: Outcome, failed: str, script: str) -> bool:
    """Whether eager got past what fails with the compiler: it raised at a later statement, and another error.

    The compiler traces a backward before eager runs it, so an error of the program's own in it shows at an earlier statement.

    Args:
        control: How the program ended without the compiler.
        failed: What it printed with the compiler.
        script: The name of its file.
    """
    if control.status != "raised" or not failed_later_than(control.text, failed, script):
        return False
    chain = exceptions(plain(failed))
    if all(sticky_error(_named(raised)[1]) for raised in (chain, exceptions(plain(control.text)))):
        return False  # where a kernel's error is raised says nothing about the call that launched it
    compiling = phase_of([frame for raised in chain for frame in raised.frames]) not in (Phase.RUN, Phase.LOAD)
    return not compiling or _error(chain) != _error(exceptions(plain(control.text)))


def _error(chain: Sequence[Raised]) -> tuple[object, ...]:
    """The class of the root cause, where it was raised, and its message."""
    names, message = _named(chain)
    frame = chain[-1].frames[-1] if chain and chain[-1].frames else None
    said = essence(names[-1] if names else "", message)
    return names[-1:], frame and (frame.path.rpartition("/")[2], frame.function, frame.line), said


def is_of_own_code(signature: Signature, outcome: Outcome, *, script: str) -> bool:
    """Whether the program's own code raised as it ran, outside of what is compiled: the values that it got may have led there.

    Torch may have called it, as it calls a hook. The error may be a built-in one, such as that of a table without the computed key, and its
    cause may be another error of that sort, or a comparison. The `signature` is that of the `outcome` of `script`, as for `signature_of`.
    """
    if signature.kind is not Kind.EXCEPTION or signature.phase is not Phase.RUN or _OF_OTHERS & set(signature.exception):
        return False
    text = ungrouped(plain(outcome.text))
    *_, last = (None, *_WITH_SOURCE.finditer(text))
    chain = exceptions(text)
    if last is None or _LIBRARY.search(last["path"]) or any(raised.carrier or not raised.frames for raised in chain):
        return False
    ends = [raised.frames[-1] for raised in chain]
    if any(is_generated(frame.path) or (frame.in_torch and not frame.path.startswith(_CHECKERS)) for frame in ends):
        return False
    return any(frame.path.rpartition("/")[2] == script.rpartition("/")[2] for raised in chain for frame in raised.frames)


def raises_by_itself(text: str, words: tuple[str, ...] = ("raise",)) -> bool:
    """Whether the last statement that the traceback `text` shows begins with one of these `words`, and is not in a library."""
    *_, last = (None, *_WITH_SOURCE.finditer(ungrouped(plain(text))))
    return last is not None and last["source"].startswith(words) and not _LIBRARY.search(last["path"])


def own_words(signature: Signature, text: str = "") -> str:
    """What a failure with this `signature` says in the program's own words: its `assert` about wrong results, normalized, or, from the
    traceback `text`, the data-dependent condition that cannot be guarded on. Empty if a library's comparison speaks, or nothing does."""
    if signature.kind is Kind.EXCEPTION:
        found = _CONDITION.findall(text)
        return str(found[-1]).strip() if found else ""
    says = signature.kind.is_wrong_result and not _COMPARISON.search(signature.message)
    return _NO_NUMBER.sub("N", signature.message) if says else ""


def complaint(signature: Signature) -> str:
    """What a library's comparison complains about in a failure with this `signature`: "numbers", an attribute (such as "shape"), or "kind"
    for two values of different kinds, such as None and a tensor. Empty if no library's comparison speaks."""
    message = signature.message
    if signature.kind is not Kind.ACCURACY or not _COMPARISON.search(message):
        return ""
    attribute = _ATTRIBUTE.search(message)
    if attribute:
        return attribute[1] or attribute[2]
    return "numbers" if _NUMBERS.search(message) else "kind"


def refusal(signature: Signature, text: str, script: str) -> str:
    """The statement with which a pass, a lowering or a backend of the program `script` rejected what the compiler gave it, from the
    traceback `text`. Only if a failure with this `signature` says nothing else about it: an `assert` without a message, a missing key or
    index."""
    if signature.kind is not Kind.EXCEPTION or signature.phase in (Phase.RUN, Phase.EXPORT, Phase.LOAD):
        return ""
    chain = exceptions(plain(text))
    frames = chain[-1].frames if chain else ()
    if not frames or not frames[-1].is_of(script) or (signature.exception[-1:] == ("AssertionError",) and signature.message):
        return ""
    return statement(text)


def statement(text: str) -> str:
    """The last statement that the traceback `text` shows, without what depends on how it is written. Empty if it shows none, or one that
    raises, since what that raises has words."""
    *_, last = (None, *_WITH_SOURCE.finditer(ungrouped(plain(text))))
    source = last["source"].partition("  #")[0] if last is not None else ""
    return "" if source.startswith("raise") else _SPELLED.sub("", source)


def is_statement(shown: str, wanted: str) -> bool:
    """Whether the statement `shown` is the one that is `wanted`, as far as both go: a traceback may show only its first line. What is not
    shown may be anything."""
    return shown.startswith(wanted) or wanted.startswith(shown)


def shows_a_place(outcome: Outcome) -> bool:
    """Whether a run that did not end, whose `outcome` may hold its stacks, said any: a process that is stopped says none."""
    return bool(sampled_frames(plain(outcome.text)))


def shows_one_place(outcome: Outcome) -> bool:
    """Whether the stacks of a run that did not end, in its `outcome`, lie in one phase: all but a few, and the last one."""
    phases = [phase_of(stack) for stack in sampled_frames(plain(outcome.text))]
    return bool(phases) and STEADY * phases.count(phases[-1]) >= (STEADY - 1) * len(phases)


def waits_for_a_program(outcome: Outcome) -> bool:
    """Whether a run that did not end, whose `outcome` holds its stacks, waited at the end for a program that it had started: a C++ compiler
    or the GPU's assembler stays in one place as long as it works."""
    stacks = sampled_frames(plain(outcome.text))
    return bool(stacks) and any(f"/{frame.path}".endswith("/subprocess.py") for frame in stacks[-1][-_NEAR:])


def _usual(stacks: Sequence[tuple[Frame, ...]]) -> tuple[Frame, ...]:
    """The last of the stacks in the phase that most of them lie in; of equally frequent phases, the one seen last."""
    phases = [phase_of(stack) for stack in stacks]
    most = max(map(phases.count, phases), default=0)
    return next((stack for stack, phase in zip(reversed(stacks), reversed(phases), strict=True) if phases.count(phase) == most), ())


def _died(kind: Kind, signal: str | None, text: str, frames: Sequence[Frame]) -> Signature:
    message = HEAP if kind is Kind.CRASH and _HEAP.search(text) else ""
    return Signature(kind=kind, phase=phase_of(frames), backward=is_backward(frames), message=message, frame=_frame(frames), signal=signal)


def _raised(chain: Sequence[Raised], text: str, script: str) -> Signature:
    if not chain:
        # A script that Python cannot parse has no traceback, only the last line of one.
        last = next((line for line in reversed(text[-4000:].split("\n")) if line.strip()), "")
        name, colon, said = last.partition(": ")
        if not colon or not name.endswith("Error") or not name.isidentifier():
            name, said = "", last
        shown = " ".join(said.split())[:MAX_WORDS]
        message = normalize(said)[:MAX_MESSAGE]
        return Signature(kind=Kind.EXCEPTION, phase=Phase.RUN, exception=(name,) if name else (), message=message, said=shown)
    names, message = _named(chain)
    frames = [frame for raised in chain for frame in raised.frames]
    carried = chain[next((i for i in range(len(chain), 0, -1) if chain[i - 1].carrier), 0) :]
    if _is_comparison(*_named(carried), [frame for raised in carried for frame in raised.frames], script):
        kind, phase, frame, names = Kind.ACCURACY, Phase.RUN, None, _named(carried)[0]
    else:
        kind, phase, frame = Kind.EXCEPTION, phase_of(frames, names), _frame(frames)
    late = sticky_error(message) if kind is Kind.EXCEPTION else None
    if late is not None:
        # raised at whatever call came next
        phase, frame, frames, names, message = Phase.RUN, None, [], [CLASS], late
    found = Signature(
        kind=kind,
        phase=phase,
        backward=kind is Kind.EXCEPTION and is_backward(frames),
        exception=tuple(name[:_MAX_NAME] for name in names[:_MAX_CLASSES]),
        message=essence(names[-1] if names else "", message),
        frame=frame,
    )
    if complaint(found) == "numbers":
        return found  # the kind already says that numbers are wrong: a library's comparison adds nothing
    said = words(names[-1] if names else "", message)
    return found.model_copy(update={"said": said or (_asserted(text) if kind is Kind.ACCURACY else "")})


def _asserted(text: str) -> str:
    """The `assert` that the traceback `text` ends with, if it is shown whole: one without a message says nothing else."""
    *_, last = (None, *_WITH_SOURCE.finditer(text))
    shown = last["source"].partition("  #")[0].strip() if last is not None else ""
    try:
        whole = [type(one) for one in ast.parse(shown).body] == [ast.Assert]
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return ""
    return words("", shown) if whole else ""


def _named(chain: Sequence[Raised]) -> tuple[list[str], str]:
    """The names of the exceptions in a chain, and the message of the last."""
    names: list[str] = []
    message = ""
    for raised in chain:
        found, message = peel(raised.name, raised.message)
        # "Outer: Inner: text" raised from Inner names Inner twice.
        names += found[1:] if names and found and names[-1] == found[0] else found
        if names and names[-1] in CPP_ERRORS:
            break  # its cause is only that the compiler's process ended this way
    return names, message


def _is_comparison(names: Sequence[str], said: str, frames: Sequence[Frame], script: str) -> bool:
    """Whether the program itself says that a result is wrong: by an AssertionError raised in its own run, from a comparison or its own
    `assert`, or by pytest's error for code that did not raise, with nothing of the compiler (or of compiled code) on the stack."""
    by_pytest = list(names) == ["Failed"] and said.startswith(_DID_NOT_RAISE) and bool(frames) and frames[-1].path.endswith(_PYTEST)
    return (by_pytest or list(names) == ["AssertionError"]) and _is_own(frames, script)


def _is_own(frames: Sequence[Frame], script: str) -> bool:
    """Whether the program's own run raised, with these frames, rather than the compiler or compiled code."""
    if any(frame.in_torch and not frame.path.startswith(_CHECKERS + _WRAPPERS) for frame in frames):
        return False
    return any(frame.path.rpartition("/")[2] in (script.rpartition("/")[2], "<string>") for frame in frames)


def _frame(frames: Sequence[Frame]) -> str | None:
    found = innermost(frames)
    return found[:_MAX_FRAME] if found else None
