"""What a failure that CI showed looks like: its signature, and whether it is worth minimizing."""

from __future__ import annotations

import re
from typing import Literal

from bot.action.ci.compiles import (
    ADVICE,
    CHECKED,
    CLASSES,
    COMPILERS,
    EXPLAINS,
    OVERWRITTEN,
    STRIDES,
    TRACED,
    TRACERS,
    asserts,
    compiles,
    ends_at_import,
    left_open,
    on_stack,
    raised_at_import,
    raised_at_prompt,
    raised_in_compiler,
    raised_in_made,
    raised_in_own_kernel,
    raised_in_test,
    raised_on_fakes,
    raised_on_sizes,
    says_that_it_compiles,
)
from bot.action.ci.failing_test import Failure, Seen
from bot.action.ci.python_words import HEADER
from bot.action.ci.tracebacks import is_elsewhere
from bot.action.redaction import redacted
from bot.failure.machine_faults import fault_of, missing
from bot.failure.outcome import Outcome
from bot.failure.signature import signature_of
from bot.failure.traceback import exceptions
from bot.models.failure import Kind, Phase, Signature

Rating = Literal["suggested", "possible", "no"]

# Of these, what triton raises for any kernel.
_OF_TRITON = frozenset({"CompilationError", "CompileTimeAssertionFailure", "PTXASError"})
_OF_COMPILER = re.compile(
    r"^(?:torch(?:dynamo|inductor)\.|torch\.(?:_dynamo|_inductor|_functorch|_export|export|_subclasses\.fake_tensor|fx\.experimental\.symbolic_shapes)\.|triton\.(?:compiler|language|runtime)\.)[\w.]+(?::|$)",
    re.MULTILINE,
)
_NUMBERS = re.compile(r"Tensor-likes are not (?:close|equal)|Scalars are not (?:close|equal)|Mismatched elements|not close|allclose")
# The first words of the same, which a summary may cut to the width of a terminal.
_FIRST_WORDS = ("Tensor-likes are not close!", "Tensor-likes are not equal!", "Scalars are not close!", "Not equal to tolerance ")
MIN_WORDS = 6
# Of what is not in a version, or not installed.
_NOT_THERE = re.compile(r"cannot import name |No module named |module '")
# What pytest says of a call that a test asserts, below its result.
_CALLED = re.compile(r"^ ?\+ {1,20}where False = (?:<built-in method (?:allclose|equal) of |\w{0,100}allclose\()", re.MULTILINE)
_SCALARS = re.compile(r"Scalars are not equal!\s+Expected (?P<number>\S{1,50}) but got")
# What a test counts: graphs, calls of a backend, nodes. A result of one element is compared in the same words.
_COUNTS = re.compile(
    r"assert\w{0,40}count\w{0,20}\(|assert\w{0,20}\([^\n]{0,200}(?:count|cnt|\blen\(|\bnum_|calls|breaks|graphs)", re.IGNORECASE
)
# The same in its own words, below those.
_COUNTED = re.compile(r"\bcount(?:er)?s?\b")
# Raised, in words of its own, by what reads the answer of one of the compiler's processes.
_SUBPROCESS = "SubprocException: "
# An error of the compiler's was to be raised again, in another process or with more words, and could not be made.
_UNMADE = re.compile(rf"\b(?:{'|'.join(sorted(CLASSES))})\.__init__\(\) missing")
# A test that ends with the compiler's error in its own words; not one that compares the compiler's words with others.
_REPEATS = re.compile(
    r"\bbackend='[^'\n]{1,300}' raised:\n[A-Za-z_]|\btorch\._(?:dynamo|inductor)\.exc\.[A-Z]\w{1,60}: \S"
    rf"|\b{_SUBPROCESS}"
)
# The same of a process that quotes what another one raised, without the name of its class.
_QUOTES = re.compile(rf"{_REPEATS.pattern}|\bbackend='[^'\n]{{1,300}}' raised:|{TRACERS}|{ADVICE}")
_ADVISES = re.compile(ADVICE)
_COMPARES = re.compile(r"(?:does|did) not match|not found in|unexpectedly found|!=|==| not equal\b")
# How PyTorch's tests of all operators say which sample failed; what was raised is the cause.
_SAMPLE = re.compile(r"Caused by (?:sample|reference) input at index \w")
_TRACERS = re.compile(f"{CHECKED}{TRACERS}")
_TOLD = re.compile(f"{TRACERS}|{EXPLAINS}")
_STRIDES = re.compile(STRIDES)
_TRACED = re.compile(rf"[^\n]{{0,500}}?{TRACED}")
_OF_TESTS = frozenset({"AssertionError", "Failed"})
_NO_MEMORY = frozenset({"OutOfMemoryError", "MemoryError"})
_MEMORY_FULL = re.compile(r"(?:CUDA|HIP|XPU|MPS|NPU)(?: driver)?(?: error:)? (?:backend )?out of memory|(?:can't|Cannot) allocate memory")
# Raised in whatever runs when a job is canceled.
_INTERRUPTS = frozenset({"KeyboardInterrupt", "SignalException"})
# What a compiler says on a machine that is not made for it.
_LACKS = (
    (re.compile(r"Killed signal terminated program"), "the machine ran out of memory"),
    (re.compile(r"fatal error: '?omp\.h'?(?: file not found|: No such file)"), "no OpenMP for the C++ compiler"),
    (re.compile(r"PermissionError: \[Errno 13\]"), "a directory that may not be written"),
    (re.compile(r"OSError: \[Errno 24\] Too many open files"), "too many open files"),
    (re.compile(r"OSError: \[Errno (?:5|30|116)\] "), "a disk that fails"),
    (re.compile(r"getpwuid\(\): uid not found"), "a user without a name"),
    (re.compile(r"\[Errno 2\] No such file or directory: '(?:/sbin/)?ldconfig'"), "no ldconfig"),
    (
        # raised by a backend, which imports what it needs; Dynamo may look for a program's own modules in the wrong place
        re.compile(
            r"(?:backend='[^'\n]{1,300}' raised:\n|InductorError: |LoweringException: )"
            r"ModuleNotFoundError: No module named '(?!torch\b|triton\b)"
        ),
        "a package that a backend imports",
    ),
    (
        re.compile(r"Failed to find C compiler|\[Errno 2\] No such file or directory: '(?:cc|c\+\+|gcc|g\+\+|clang|clang\+\+)'"),
        "no C compiler",
    ),
    (re.compile(r"Compiler: \S{1,100} is not found"), "no C++ compiler"),
    (re.compile(r"\b0 active drivers"), "no GPU that triton knows"),
    (
        re.compile(
            r"(?:Dynamo|torch\.compile) (?:is not supported|does(?:n't| not) work) (?:on|with) (?:Python|[Ww]indows|macOS)\b"
            r"|(?:Windows|macOS|Python [\d.]{1,9}\+?) not (?:yet )?supported for torch\.compile"
        ),
        "a Python or a system that torch.compile does not support",
    ),
    (
        re.compile(r"cannot find -lcuda\b|libcuda\.so cannot found"),
        "no driver of the GPU to link with",
    ),
    (
        # the command alone does not say whether it is the driver that lacks, or a header, or the compiler's own files
        re.compile(r"CalledProcessError: Command '\[[^\]]{0,2000}'-lcuda'"),
        "a C compiler that cannot build what triton needs for the driver",
    ),
)
# Where triton gets ready to talk to a GPU, for which it builds libraries: whatever fails there is the machine's.
_DRIVER = re.compile(
    r'triton/(?:runtime/driver\.py", line \d{1,9}, in (?:_initialize_obj|_create_driver)'
    r'|backends/\w{1,20}/driver\.py", line \d{1,9}, in compile_module_from_src)\n'
)
# What somebody says of a machine's memory: not a kernel's shared memory, nor what a server advises.
_TOLD_FULL = re.compile(r"(?<!running )(?<!shared memory )\b(?:OOM|out of memory)\b(?! (?:of |in )?(?:shmem|smem|shared))|OutOfMemory")
MAX_TOLD = 2_000
# Characters of a text in which the class that was raised last stands.
_END = 20_000


def _outcome(failure: Failure) -> Outcome:
    if failure.seen is Seen.TIMEOUT:
        return Outcome(status="timeout", text=failure.text)
    died = failure.signal is not None or failure.seen is Seen.DEATH
    return Outcome(status="signal" if died else "raised", text=failure.text, signal=failure.signal)


def sign(failure: Failure) -> Signature | None:
    """The signature of `failure`, as far as CI showed it; None where it named the test alone.

    No frame counts as the program's own: a failed assertion of a test is told from others by its message, and whether it is
    one about numbers is for the run to find out. It holds no secret: it is handed on to other jobs, as an artifact that everybody may read.
    """
    if failure.seen is Seen.NUMBERS:
        return Signature(kind=Kind.ACCURACY, phase=Phase.RUN)
    if failure.seen in (Seen.COUNT, Seen.FILE, Seen.LOGGED, Seen.NAMED) and not failure.text:
        return None
    if not failure.text and failure.seen is Seen.ERROR:
        return None
    found = signature_of(_outcome(failure), script="")
    return found and redacted(found)


def fault(failure: Failure) -> str | None:
    """What was wrong with the machine that ran the test, if that caused `failure`."""
    outcome = _outcome(failure)
    broken = fault_of(outcome)
    if broken or outcome.status != "raised":
        return broken
    need = missing(outcome)
    if need is not None and need.what == "hardware":
        return f"no {need.name} device"
    if _DRIVER.search(failure.text.rpartition(HEADER)[2]):
        return "no driver that triton can use"
    last = next(iter(exceptions(failure.text)), None)
    said = f"{last.name}: {last.message}"[:_END] if last else ""
    return next((words for pattern, words in _LACKS if pattern.search(said)), None)


def told_fault(line: str) -> str | None:
    """What was wrong with a machine, as a `line` of somebody's words says; None where it says nothing of the kind."""
    said = line[:MAX_TOLD]
    if _TOLD_FULL.search(said):
        return "out of memory"
    outcome = Outcome(status="raised", text=said)
    need = missing(outcome)
    if need is not None and need.what == "hardware":
        return f"no {need.name} device"
    return fault_of(outcome) or next((words for pattern, words in _LACKS if pattern.search(said)), None)


def in_compiler(signature: Signature | None, failure: Failure) -> bool:
    """Whether `failure`, of that `signature`, was raised in the compiler."""
    if signature is None or _stopped(signature) or asserts(failure.text):
        return False
    if signature.kind is not Kind.EXCEPTION:
        return signature.phase is not Phase.RUN
    if not _OF_TRITON.issuperset(COMPILERS.intersection(signature.exception)):
        return True
    if raised_in_own_kernel(failure.text):
        return False
    if COMPILERS.intersection(signature.exception):
        return True
    if signature.phase is not Phase.RUN:
        # an assertion of a test that one of the compiler's tools for tests called
        asserted = signature.exception == ("AssertionError",) and raised_in_test(failure.text)
        return not asserted and not _is_import(signature, failure)
    last = failure.text[-_END:].rpartition(HEADER)[2]
    said = (signature.message, _said(failure))
    if any(map(_NOT_THERE.match, said)):
        return False
    if _OF_COMPILER.search(last) or raised_on_sizes(failure.text) or any(map(_TRACERS.match, said)):
        return True
    # a test may assert what it traced for itself
    return not (failure.test and _OF_TESTS.intersection(signature.exception)) and any(map(_TRACED.match, said))


def is_compiled(signature: Signature | None, failure: Failure) -> bool:
    """Whether `failure`, of that `signature`, was raised in the compiler or in code that it made, as far as its traceback goes."""
    made = signature is not None and signature.kind is Kind.EXCEPTION and not _stopped(signature) and raised_in_made(failure.text)
    return (
        made
        or in_compiler(signature, failure)
        or _is_own_assertion(signature, failure)
        or _is_cut_off(signature, failure)
        or _is_traced(failure)
        or (signature is not None and (bool(_by_results(signature, failure)) or _SUBPROCESS in signature.message))
    )


def _is_own_assertion(signature: Signature | None, failure: Failure) -> bool:
    """Whether one of the compiler's own assertions failed, also where what it made runs."""
    return signature is not None and signature.exception == ("AssertionError",) and raised_in_compiler(failure.text)


def _by_results(signature: Signature, failure: Failure) -> str:
    """What the words of an error of a `failure` tell of something that the compiler made; empty where they tell nothing."""
    if OVERWRITTEN in signature.message:
        return "it read a result that the compiler's CUDA graphs had overwritten"
    if "AssertionError" in signature.exception and _STRIDES.match(signature.message) and not raised_at_prompt(failure.text):
        return "it was raised in code that the compiler made"
    if _UNMADE.search(signature.message):
        return "an error of the compiler could not be raised again"
    # a test may compare what the compiler says, and a process quote it
    advises = not failure.test and _ADVISES.search(_said(failure)) and not is_elsewhere(failure.text)
    return "its message ends as those of the compiler do" if advises else ""


def quotes(signature: Signature, failure: Failure) -> bool:
    """Whether `failure`, of that `signature`, is of a process that only tells what another one raised, which was the compiler's."""
    last = next(iter(exceptions(failure.text)), None)
    told = last is not None and not raised_in_own_kernel(failure.text) and bool(_QUOTES.search(last.message[-_END:]))
    return told and signature.kind is Kind.EXCEPTION and is_elsewhere(failure.text) and not _COMPARES.search(signature.message)


def _is_cut_off(signature: Signature | None, failure: Failure) -> bool:
    """Whether the log ends within the traceback of `failure`, which goes into the compiler."""
    if signature is None or signature.kind is not Kind.EXCEPTION or asserts(failure.text) or _is_import(signature, failure):
        return False
    cut = _is_untold(signature, failure)
    # the compiler's message may quote a stack of the program's
    told = _TOLD.match(failure.text.rpartition(f"{HEADER}\n")[2])
    return cut and bool(told or in_compiler(signature, failure) or says_that_it_compiles(failure) or _is_traced(failure))


def _is_untold(signature: Signature, failure: Failure) -> bool:
    """Whether the traceback of `failure` ends before what was raised last; what caused that may be told."""
    last = next(iter(exceptions(failure.text)), None)
    return not last.name if last else not signature.exception


def _is_import(signature: Signature, failure: Failure) -> bool:
    """Whether `failure` was raised where a module of the compiler, or an unknown one, was imported, or where that error was handled."""
    text = failure.text
    ends = ends_at_import(text) or raised_at_import(text.rpartition(HEADER)[0])
    return raised_at_import(text) or (ends and _is_untold(signature, failure))


def _is_traced(failure: Failure) -> bool:
    """Whether a program, no test, failed where it ran on tensors that are traced: tests of those may trace for themselves."""
    return not failure.test and raised_on_fakes(failure.text)


def _is_count(failure: Failure) -> bool:
    """Whether the test counted something, as graphs or calls: two whole numbers differ, and its source or message says what they are."""
    found = _SCALARS.search(failure.text)
    if found is None or not found["number"].lstrip("-").isdecimal():
        return False
    return bool(_COUNTS.search(failure.source) or _COUNTS.search(failure.text) or _COUNTED.search(failure.text, found.end()))


def _said(failure: Failure) -> str:
    """What was raised last, in its own words."""
    last = next(iter(exceptions(failure.text)), None)
    return last.message[:_END] if last else ""


def _is_about_numbers(signature: Signature, failure: Failure) -> bool:
    if "AssertionError" not in signature.exception:
        return False
    words = signature.message.removesuffix("...")
    cut = words != signature.message and len(words) >= MIN_WORDS and any(said.startswith(words) for said in _FIRST_WORDS)
    return cut or bool(_NUMBERS.search(signature.message) or _CALLED.search(_said(failure)))


def is_wrong_in_test(signature: Signature | None, failure: Failure) -> bool:
    """Whether `failure`, of that `signature`, is of a test that compiles, as the log says, and got other numbers than it expected."""
    wrong = signature is not None and _is_about_numbers(signature, failure) and not _is_count(failure)
    return wrong and bool(failure.test) and says_that_it_compiles(failure)


def judge(signature: Signature | None, failure: Failure) -> tuple[Rating, str]:
    """What `failure`, of that `signature`, looks like by itself, and why."""
    if failure.seen is Seen.COUNT:
        return "no", f"no failure of the compiler: {failure.note}"
    if failure.seen is Seen.NUMBERS:
        return "suggested", f"the benchmark compares with eager: {failure.note}"
    if failure.seen is Seen.LOGGED:
        return "possible", failure.note
    if failure.seen is Seen.FILE:
        return "no", failure.note or "the whole file failed, and the log does not show how"
    if signature is None:
        if failure.seen is Seen.NAMED:
            said = "the log names the test, without an error" + (f": {failure.note}" if failure.note else "")
            # a benchmark of the compiler is no test: it alone says how it failed without an error
            compiled = bool(failure.note) or says_that_it_compiles(failure)
            return ("possible", said) if compiled else ("no", f"{said}, and nothing shows that it compiles")
        return "no", "the log does not show how it failed"
    if stopped := _stopped(signature):
        return "no", stopped
    compiled = in_compiler(signature, failure)
    if _is_cut_off(signature, failure) and not (compiled and signature.exception):
        return "possible", "the log ends within a traceback, in the compiler: what was raised may be of the machine"
    if compiled:
        return "suggested", "fails in the compiler"
    if by_results := _by_results(signature, failure):
        return "possible", by_results
    return _outside(signature, failure)


def _stopped(signature: Signature) -> str:
    """What ended the compiler from outside; empty where nothing did."""
    root = signature.exception[-1] if signature.exception else ""
    if root in _INTERRUPTS:
        return "it was interrupted"
    return "out of memory" if root == "MemoryError" or _MEMORY_FULL.search(signature.message) else ""


def _by_stack(failure: Failure) -> str:
    """What the stack of a `failure` tells of the compiler, which was not compiling; empty where it tells nothing."""
    if raised_in_made(failure.text):
        return "it was raised in code that the compiler made"
    if on_stack(failure.text):
        raised = raised_in_compiler(failure.text)
        return "the compiler raised it, where what it made runs" if raised else "the compiler is on its stack, but did not raise"
    return "it was raised where something was traced" if _is_traced(failure) else ""


def _outside(signature: Signature, failure: Failure) -> tuple[Rating, str]:
    """What a `failure` looks like that was not raised in the compiler."""
    if signature.kind is Kind.HANG:
        said = failure.note or "it ran into its time limit"
        return ("possible", said) if compiles(failure) else ("no", f"{said}, and nothing shows that it compiles")
    if signature.kind is Kind.CRASH:
        where = "Python died outside the compiler's own code" if '  File "' in failure.text else "Python died, and where is not shown"
        return ("possible", where) if compiles(failure) else ("no", "Python died, and nothing shows that it compiles")
    if _NO_MEMORY.intersection(signature.exception) or "out of memory" in signature.message:
        return "no", "out of memory"
    if _is_about_numbers(signature, failure):
        if _is_count(failure):
            return "no", "it counted otherwise than expected"
        if says_that_it_compiles(failure):
            return "possible", "wrong numbers: whether the compiler makes them shows only when it runs"
        return "no", "wrong numbers, and nothing shows that it compiles"
    if by_check := left_open(signature, failure, _said(failure)):
        return "possible", by_check
    if _REPEATS.search(signature.message) and not _COMPARES.search(signature.message):
        return "possible", "it repeats an error of the compiler"
    if quotes(signature, failure):
        return "possible", "another process failed, in the compiler by what is told of it"
    if raised_at_import(failure.text):
        return "no", "the compiler could not be imported"
    if by_stack := _by_stack(failure):
        return "possible", by_stack
    if len(signature.exception) == 1 and _SAMPLE.match(signature.message) and says_that_it_compiles(failure):
        return "possible", "a sample of the test failed, and the log does not show how"
    if is_elsewhere(failure.text) and says_that_it_compiles(failure):
        return "possible", "another process failed, and the log does not show how"
    own = raised_in_own_kernel(failure.text)
    return "no", "fails in a kernel of its own, which the compiler did not make" if own else "fails outside the compiler"
