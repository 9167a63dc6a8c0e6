"""What torch logged before it raised an error, for a log that shows nothing of what was raised."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile

from bot.action.ci.compiles import CALL_FAILED, CLASSES, TRACED, on_stack
from bot.action.ci.failing_test import Failure, Seen
from bot.action.ci.judge import told_fault
from bot.action.ci.lines import LOGGED, Lines
from bot.action.ci.python_words import ERRORS, HEADER
from bot.action.ci.told_errors import COMPILED, FAILS, WENT_ON, compiles
from bot.action.ci.tracebacks import Printed, is_whole

# What is logged of guards as an error is one that could not be made, and then the stack of what asked for it.
_GUARDS = f"_guards{LOGGED}"
_ASKED = "Created at:"
MAX_GUARD = 60
# The source of a kernel that triton could not compile, and then what triton raised; the arguments of one that could not be launched.
_KERNELS = f"triton_heuristics{LOGGED}"
_UNTOLD = "as torch logged, and the log does not show what ended the program"
# What one line means, behind the name of the part of torch that logged it, if one did.
_ALONE = {
    # a question without an answer, for which what asked may have been ready; it is warned of above, where the log may end
    f"a size that is traced could not be told, {_UNTOLD}": re.compile(
        r".{0,200}?recording\(logged\) (?:failed while running evaluate_|torch\.fx\.experimental\.symbolic_shapes\.GuardOnDataDependent)"
        r"|(?:\[rank\d{1,5}\]:)?W\d{4} \d\d:\d\d:\d\d\.\d{6} .{0,300}[\\/]symbolic_shapes\.py:\d{1,6}\](?: \[[\d/_]{1,40}\])?"
        r" failed during evaluate_expr\("
    ),
    f"Inductor could not write code for a buffer, {_UNTOLD}": re.compile(
        r"(?:.{0,200}?scheduler\(logged\) |CRITICAL:torch\._inductor\.scheduler:)Error in codegen for "
    ),
    "a compiled graph gives other numbers than eager, as PyTorch's minifier says": re.compile(
        r".{0,400}\] Accuracy failed for the (?:AOT Autograd|TorchDynamo produced) graph\b"
    ),
    # a file of Inductor's has its hash as name; an error that is fatal is the machine's: it lacks a header
    "C++ that Inductor made does not compile, as its compiler says": re.compile(
        r"\S{0,500}/c[a-z2-7]{51}(?:\.\w{1,20})?\.cpp:\d{1,9}(?::\d{1,9})?: error: "
    ),
}
# How a program in C++ that nothing of Python's runs tells of an exception.
_IN_CPP = re.compile(rf"(?: {{0,4}}what\(\):  |C\+\+ exception with description \")(?P<said>[^\n]{{0,2000}}{CALL_FAILED}\S[^\n]{{0,500}})")
_TRACED = re.compile(TRACED)
# What an operator raised that ran on tensors that hold no values.
_FAKES = f"fake_tensor{LOGGED}"
_META = "failed while attempting to run meta for "
_ERROR = re.compile(rf"[A-Za-z_][\w.]{{0,200}}{ERRORS}: ")
# So many of the last lines that torch logged may tell of a fault of the machine.
MAX_LOGGED = 2_000
# What triton raises, alone: of whose kernel that is, only a program shows that compiles and has none of its own.
_OF_TRITON = re.compile(
    r"(?:E {1,7}|> )?(?:triton(?:\.\w{1,40}){1,3}\.)?"
    r"(?P<error>OutOfResources: out of resource: |RuntimeError: (?:Triton Error \[\w{1,10}\]: |PassManager::run failed|`?ptxas`? failed )"
    r"|ValueError: Pointer argument \(at \d{1,3}\) cannot be accessed from Triton"
    r"|ptxas (?:fatal|error) )"
)
# The same in a sentence that says of what it was raised.
_IN_WORDS = re.compile(
    r"(?P<words>[^\n]{0,500}?)\b(?:g[eo]ts?|rais(?:es|ed)|throws?|hits?|saw) (?:an? |the )?`?"
    r"(?P<error>RuntimeError: (?:Triton Error \[\w{1,10}\]: |PassManager::run failed))"
)
# An error of the compiler's as Python shows the object, in words that say that something failed with it.
_SHOWN = re.compile(rf"(?P<words>[^\n]{{0,500}}?)\b(?P<name>{'|'.join(sorted(CLASSES))})\((?P<quote>['\"])(?P<said>[^\n]{{0,2000}})")
_NO_ERROR = re.compile(r"\b(?:raise|except|assert\w{0,20}|isinstance|warn(?:ings?)?|info|debug)\b|Warning\b", re.IGNORECASE)
MAX_LINE = 3_000
# A hook of somebody's is left alone.
_HOOK = "jit_post_compile_hook failed"
# What looks for the fastest of several kernels leaves those out that cannot be compiled.
_CHOOSES = "AUTOTUNE "


def failures(log: Lines, printed: Printed) -> Iterator[Failure]:
    """The failure of the compiler that `log` tells of alone so; none where any other error is `printed`, for that ended the program."""
    if any(not block.who.endswith(LOGGED) and (is_whole(block.text) or on_stack(block.text)) for block in printed.all):
        return
    logged = [line for line, who in zip(log.text, log.who, strict=True) if who.endswith(LOGGED)]
    if any(map(told_fault, logged[-MAX_LOGGED:])):
        return
    if any(who.endswith(_GUARDS) for who in log.who):
        yield Failure("a program", "", _of_guard(log), seen=Seen.LOGGED, note=f"a guard could not be made, {_UNTOLD}")
        return
    fakes = [line for line, who in zip(log.text, log.who, strict=True) if who.endswith(_FAKES)]
    error = next(filter(_ERROR.match, reversed(fakes)), "")
    if error or any(line.startswith(_META) for line in fakes):
        note = f"an operator failed where its results are traced, {_UNTOLD}"
        yield Failure("a program", "", error and f"{HEADER}\n{error}", seen=Seen.LOGGED, note=note)
        return
    if shown := next(filter(None, map(_shown, log.text)), None):
        yield shown
        return
    for note, how in _ALONE.items():
        if any(how.match(f"{who} {line}" if who.endswith(LOGGED) else line) for line, who in zip(log.text, log.who, strict=True)):
            yield Failure("a program", "", "", seen=Seen.LOGGED, note=note)
            return
    called = (found["said"] for line in log.text if CALL_FAILED in line and (found := _IN_CPP.match(line)))
    if any(map(_TRACED.search, called)) and not any(map(told_fault, log.text)):
        yield Failure("a program", "", "", seen=Seen.LOGGED, note="a program in C++ died of a call in what the compiler made")
        return
    by_triton = [found for line in log.text if (found := _OF_TRITON.match(line)) and not told_fault(line)] if compiles(log.text) else []
    by_triton += [found for line in log.text if (found := _tells(line))]
    if by_triton:
        error = by_triton[0].string[by_triton[0].start("error") :].strip("`* ")
        text = f"{HEADER}\n{error}" if _ERROR.match(error) else ""
        yield Failure("a program", "", text, seen=Seen.LOGGED, note="a kernel of a program that compiles failed, as triton says")
        return
    kernels = any(who.endswith(_KERNELS) for who in log.who)
    if kernels and not any(line == _HOOK or line.startswith(_CHOOSES) for line in log.text):
        raised = [block.text for block in printed.all if block.who.endswith(_KERNELS)]
        yield Failure(
            "a program", "", raised[-1] if raised else "", seen=Seen.LOGGED, note=f"a kernel could not be compiled or launched, {_UNTOLD}"
        )


def _shown(line: str) -> Failure | None:
    """The failure of which a `line` says that something ended with it; None where it says nothing of the kind, or that it went on."""
    found = _SHOWN.match(line[:MAX_LINE]) if "('" in line or '("' in line else None
    if found is None or not FAILS.search(found["words"]) or WENT_ON.search(line[:MAX_LINE]) or _NO_ERROR.search(found["words"]):
        return None
    said = found["said"].partition(found["quote"] + ")")[0].partition("\\n")[0]
    return Failure("a program", "", f"{HEADER}\n{found['name']}: {said}", seen=Seen.LOGGED, note="the log shows an error of the compiler's")


def _tells(line: str) -> re.Match[str] | None:
    """What a `line` of words says that triton raised in what compiles; None where it says nothing of the kind."""
    found = _IN_WORDS.match(line[:MAX_LINE]) if "RuntimeError: " in line[:MAX_LINE] else None
    compiled = found is not None and bool(COMPILED.search(found["words"]))
    return found if compiled and not (WENT_ON.search(line[:MAX_LINE]) or told_fault(line)) else None


def _of_guard(log: Lines) -> str:
    """A traceback without what was raised, for the guard that was logged last; empty where the log ends before its stack."""
    logged = [line for line, who in zip(log.text, log.who, strict=True) if who.endswith(_GUARDS)]
    asked = max((i for i, line in enumerate(logged) if line == _ASKED), default=len(logged))
    frames = list(takewhile(lambda line: line.startswith("  "), logged[asked + 1 : asked + MAX_GUARD]))
    return "\n".join([HEADER, *frames]) if frames else ""
