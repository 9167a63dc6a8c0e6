"""Failures of the machine rather than of the program: reported as such, never minimized."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal

from bot.failure.outcome import Outcome
from bot.failure.traceback import error_line
from bot.models.failure import Signature
from bot.models.result import ReasonCode

_DISK, _MEMORY = "the disk is full", "the machine ran out of memory"
_THREADS = "the machine gave no more threads"
_QUOTA = "the quota of a disk is used up"
_NOWHERE = "no temporary directory can be written to, as on a full disk"
KILLED = "the program was killed, as for its memory"
STOPPED = "a signal has stopped a process"
_KNOWN = (
    (re.compile(r"InvalidCxxCompiler|No working C\+\+ compiler found"), "no C++ compiler"),
    # the kernel killed the compiler, or a process that it had started
    (
        re.compile(r"fatal error: Killed signal terminated program|died with <Signals\.SIGKILL: 9>\.\n(?s:.*)\bCppCompileError: "),
        _MEMORY,
    ),
    (re.compile(r"\[Errno 28\] No space left on device|OSError: .*No space left"), _DISK),
    (re.compile(r"\[Errno 122\] Disk quota exceeded"), _QUOTA),
    # what `tempfile` says in place of that
    (re.compile(r"FileNotFoundError: \[Errno 2\] No usable temporary directory found in \["), _NOWHERE),
    # not for a package with a similar name, nor for a name that torch does not have
    (
        re.compile(
            r"^ModuleNotFoundError: No module named 'torch'|^ImportError: lib(?:torch|c10)\w*\.so|^no torch here: |^torch \S+ is too old",
            re.M,
        ),
        "no usable torch in this interpreter",
    ),
    (re.compile(r"^the sandbox ended the program: no space left on the disk", re.M), _DISK),
    (re.compile(r"^the sandbox ended the program: too many processes", re.M), "the program started too many processes"),
    (re.compile(r"^the program did not end: a signal, such as SIGSTOP, has stopped it", re.M), STOPPED),
    (re.compile(r"Cannot find a working triton installation|TritonMissing"), "no working triton"),
    (re.compile(r"RuntimeError: Cannot find ptxas(?![\w-])"), "no ptxas, which triton compiles with: TRITON_PTXAS_PATH names one"),
    (
        re.compile(r"RuntimeError: Cannot find ptxas-blackwell(?![\w-])"),
        "no ptxas for this GPU, which triton compiles with: TRITON_PTXAS_BLACKWELL_PATH names one",
    ),
    (
        re.compile(r"\bptxas fatal\s+: Value '[^'\n]{1,20}' is not defined for option 'gpu-name'"),
        "a ptxas that does not know the GPU: TRITON_PTXAS_PATH (from sm_100 on TRITON_PTXAS_BLACKWELL_PATH) names a newer one",
    ),
    (re.compile(r"GPUTooOldForTriton|too old to be supported by the triton GPU compiler"), "a GPU that triton does not support"),
    (re.compile(r"fatal error: Python\.h: No such file"), "the interpreter's C headers are missing"),
    (re.compile(r"libstdc\+\+\.so\.6: version `(?:CXXABI|GLIBCXX)_[\d.]{1,20}' not found"), "a C++ library older than the C++ compiler"),
    # printed by Python before it runs anything
    (re.compile(r"^Python runtime state: (?!initialized|finalizing)", re.M), "Python itself could not start"),
)  # fmt: skip


# What is said where the host refuses memory or a thread: by Python and torch of a run that raised, and by what a run calls.
_REFUSED = re.compile(
    r"(?:^|: )MemoryError(?=:|$)|std::bad_alloc|DefaultCPUAllocator: (?:can't allocate|not enough) memory"
    r"|\[Errno 12\] Cannot allocate memory|: failed to map segment from shared object$"
)
_REFUSED_TO_OTHERS = re.compile(
    r"^(?:cc1plus: out of memory allocating |virtual memory exhausted: Cannot allocate memory|LLVM ERROR: out of memory"
    r"|terminate called after throwing an instance of 'std::bad_alloc')",
    re.M,
)
_NO_THREAD = re.compile(r"RuntimeError: can't start new thread$")

_MODULE = re.compile(r"ModuleNotFoundError: No module named '(?P<name>[^']+)'")
_FILE = re.compile(r"FileNotFoundError: .*No such file or directory: (?:b?'(?P<name>[^']+)')")
_FILE_OF_NUMPY = re.compile(r"FileNotFoundError: (?P<name>\S+) not found\.$")
_NEEDS: tuple[tuple[re.Pattern[str], Literal["package", "file"]], ...] = ((_MODULE, "package"), (_FILE, "file"), (_FILE_OF_NUMPY, "file"))
# What torch says if there is no GPU for a program that needs one.
_NO_GPU = re.compile(
    r"Found no NVIDIA driver|Torch not compiled with CUDA enabled|No CUDA GPUs are available|no CUDA-capable device is detected"
    r"|on a CUDA device but torch\.cuda\.is_available\(\) is False|CUDA driver initialization failed|Torch not linked with support for cuda"
    r"|NVIDIA driver on your system is too old|Unexpected error from cudaGetDeviceCount"
)
# What CUDA says about `cuda:1` if there is one GPU.
_NO_SUCH_GPU = re.compile(r"\b(?:CUDA|HIP) error: invalid device ordinal")

_CODES: dict[str, ReasonCode] = {"package": "needs_package", "file": "needs_file", "hardware": "needs_hardware"}


@dataclass(frozen=True)
class Need:
    """What a program says that it lacks: a package or a file, by `name`, or a device: `cuda`, or `such`, one with that number."""

    what: Literal["package", "file", "hardware"]
    name: str

    @property
    def code(self) -> ReasonCode:
        """The reason code for refusing a program that lacks this."""
        return _CODES[self.what]

    @property
    def alone(self) -> str:
        """What a repro lacks. It runs in a directory of ours, where the program has no files, so of a file only the name is given."""
        return f"a file of its own, {PurePath(self.name).name!r}" if self.what == "file" else str(self)

    def __str__(self) -> str:
        return {
            "package": f"a package that this interpreter does not have, {self.name!r}",
            "file": f"a file that is not there, {self.name!r}",
            "hardware": "a GPU" if self.name == "cuda" else "a GPU of a number that none here has",
        }[self.what]


def last_line(outcome: Outcome) -> str:
    """The last line that a run with this `outcome` printed, except for the marks below a line of code; empty if it printed nothing. If it
    raised, the exception's line, whatever came after it; if it died with a dump, the line that names the fault."""
    said = error_line(outcome.text) if outcome.status == "raised" else ""
    lines = [line for line in reversed(outcome.text.splitlines()) if line.strip(" ^~")]
    if outcome.status == "signal":
        said = next((line for line in lines if line.startswith("Fatal Python error: ")), "")
    return said or next(iter(lines), "")


def missing(outcome: Outcome) -> Need | None:
    """What a program that ended with this `outcome` lacks, by its own words; None if it names nothing."""
    said = last_line(outcome)
    for pattern, what in _NEEDS:
        if found := pattern.match(said):
            return Need(what, found["name"])
    if _NO_GPU.search(said):
        return Need("hardware", "cuda")
    return Need("hardware", "such") if _NO_SUCH_GPU.search(said) else None


def may_pass(outcome: Outcome) -> bool:
    """Whether the next run may end differently from this `outcome`: after a fault of ours, on a disk that was full, or if the kernel killed
    the run or its compiler. The kernel kills the largest process, whoever filled the memory. A run that reached its own limit reaches it
    again."""
    if outcome.status == "infra" or outcome.signal == "SIGKILL":
        return True
    return outcome.status != "memory" and fault_of(outcome) in (_DISK, _QUOTA, _NOWHERE, _MEMORY)


def refused(outcome: Outcome) -> str | None:
    """What the host refused a run with this `outcome`, which ended because of it, by its own words: memory (not a GPU's) or a thread. What
    others hold is given back, so the next run may get it; or the program asks for too much."""
    said = last_line(outcome) if outcome.status in ("raised", "infra") else ""
    if _NO_THREAD.search(said):
        return _THREADS
    by_others = outcome.status in ("raised", "signal") and _REFUSED_TO_OTHERS.search(outcome.text[-20_000:])
    return _MEMORY if outcome.status == "memory" or _REFUSED.search(said) or by_others else None


def is_refusal(failure: Signature) -> bool:
    """Whether the `failure` itself is that the host refuses memory or a thread."""
    said = ": ".join((*failure.exception, *failure.message.split("\n", 1)[:1]))
    return failure.signal == "MEMORY" or any(pattern.search(said) for pattern in (_REFUSED, _NO_THREAD))


def may_differ(outcome: Outcome) -> bool:
    """Whether a second run of a whole program may end differently from this `outcome`: as `may_pass`, or since the host refused it."""
    return may_pass(outcome) or (outcome.status != "memory" and refused(outcome) is not None)


def fault_of(outcome: Outcome) -> str | None:
    """What is wrong with the machine according to this `outcome`, in a few words; None if the program is to blame."""
    if outcome.status == "memory":
        return _MEMORY
    for pattern, words in _KNOWN:
        if pattern.search(outcome.text[-20_000:]):
            return words
    return None
