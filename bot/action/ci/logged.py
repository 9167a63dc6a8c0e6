"""What torch logged before it raised an error, for a log that shows nothing of what was raised."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile

from bot.action.ci.failing_test import Failure, Seen
from bot.action.ci.lines import HEADER, LOGGED, Lines
from bot.action.ci.tracebacks import Printed

# A guard that could not be made, and then the stack of what asked for it.
_GUARDS = f"_guards{LOGGED}"
_GUARD = "Error while creating guard:"
_ASKED = "Created at:"
MAX_GUARD = 60
# The source of a kernel that triton could not compile, and then what triton raised; the arguments of one that could not be launched.
_KERNELS = f"triton_heuristics{LOGGED}"
# A hook of somebody's is left alone.
_HOOK = "jit_post_compile_hook failed"
# What looks for the fastest of several kernels leaves those out that cannot be compiled.
_CHOOSES = "AUTOTUNE "
_UNTOLD = "as torch logged, and the log does not show what ended the program"


def failures(log: Lines, printed: Printed) -> Iterator[Failure]:
    """The failure of the compiler that `log` tells of alone so; none where any other error is `printed`, for that ended the program."""
    if any(not block.who.endswith(LOGGED) for block in printed.all):
        return
    if stack := _of_guard(log):
        yield Failure("a program", "", stack, seen=Seen.LOGGED, note=f"a guard could not be made, {_UNTOLD}")
        return
    logged = any(who.endswith(_KERNELS) for who in log.who)
    if logged and not any(line == _HOOK or line.startswith(_CHOOSES) for line in log.text):
        raised = [block.text for block in printed.all if block.who.endswith(_KERNELS)]
        yield Failure(
            "a program", "", raised[-1] if raised else "", seen=Seen.LOGGED, note=f"a kernel could not be compiled or launched, {_UNTOLD}"
        )


def _of_guard(log: Lines) -> str:
    """A traceback without what was raised, for the guard that was logged last; empty where there is none."""
    last = max((i for i, line in enumerate(log.text) if line == _GUARD and log.who[i].endswith(_GUARDS)), default=None)
    if last is None:
        return ""
    said = [line for line, who in zip(log.text[last : last + MAX_GUARD], log.who[last:], strict=False) if who == log.who[last]]
    frames = said[said.index(_ASKED) + 1 :] if _ASKED in said else []
    return "\n".join([HEADER, *takewhile(lambda line: line.startswith("  "), frames)]) if frames else ""
