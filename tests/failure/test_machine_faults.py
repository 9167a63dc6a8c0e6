"""What is the machine's fault, and what only looks like it."""

from __future__ import annotations

import pytest

from bot.failure.machine_faults import fault_of, is_refusal, last_line, may_differ, may_pass, missing, refused
from bot.failure.outcome import Outcome
from bot.failure.signature import signature_of

CXX = "torch._inductor.exc.InductorError: CppCompileError: C++ compile error\n\nCommand:\ng++ x.cpp\n\nOutput:\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "torch._inductor.exc.InvalidCxxCompiler: No working C++ compiler found in torch._inductor.config.cpp.cxx: (None, 'g++')",
            "compiler",
        ),
        ("OSError: [Errno 28] No space left on device: '/tmp/x'", "disk"),
        ("OSError: [Errno 122] Disk quota exceeded: '/tmp/x'", "quota of a disk"),
        ("FileNotFoundError: [Errno 2] No usable temporary directory found in ['/tmp', '/var/tmp']", "no temporary directory"),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'No usable temporary directory'", None),
        ("ModuleNotFoundError: No module named 'torch'", "torch"),
        ("ModuleNotFoundError: No module named 'torch._inductor'", None),
        ("no torch here: No module named 'torch'", "torch"),
        ("ImportError: libtorch_cpu.so: cannot open shared object file", "torch"),
        ("ModuleNotFoundError: No module named 'torchvision'", None),
        ("ImportError: cannot import name 'no_such' from 'torch' (/x/torch/__init__.py)", None),
        ("torch._inductor.exc.TritonMissing: no", "triton"),
        ("RuntimeError: Cannot find a working triton installation. Either the package is not installed or it is too old.", "triton"),
        ("torch._inductor.exc.InductorError: RuntimeError: Cannot find ptxas", "TRITON_PTXAS_PATH names one"),
        ("RuntimeError: Cannot find ptxas-blackwell", "TRITON_PTXAS_BLACKWELL_PATH names one"),
        ("RuntimeError: Cannot find ptxas_of_mine", None),
        ("ptxas fatal   : Value 'sm_121a' is not defined for option 'gpu-name'", "a ptxas that does not know the GPU: TRITON_PTXAS_PATH"),
        ("ptxas fatal   : Value 'x' is not defined for option 'opt-level'", None),
        (
            "torch._inductor.exc.GPUTooOldForTriton: Found made up which is too old to be supported by the triton GPU compiler",
            "a GPU that triton does not support",
        ),
        ("fatal error: Python.h: No such file or directory", "headers"),
        ("ImportError: /lib64/libstdc++.so.6: version `CXXABI_1.3.9' not found (required by /tmp/made_up.so)", "C++ library"),
        ("ImportError: /lib64/libmade_up.so.6: version `MADE_1.3.9' not found", None),
        ("Fatal Python error: init_fs_encoding: no codec\nPython runtime state: core initialized\n\n  <no Python frame>", "Python"),
        ("Fatal Python error: Aborted\nPython runtime state: initialized\n\nThread 1:", None),
        (f"{CXX}g++: fatal error: Killed signal terminated program cc1plus\ncompilation terminated.", "memory"),
        (f"subprocess.CalledProcessError: Command '['g++', 'x.cpp']' died with <Signals.SIGKILL: 9>.\n\nThe above\n\n{CXX}", "memory"),
        (f"{CXX}x.cpp:3:1: error: expected ';'", None),
        ("subprocess.CalledProcessError: Command '['server']' died with <Signals.SIGKILL: 9>.", None),
        ("AssertionError: the number of dimensions", None),
        ("", None),
    ],
)
def test_faults(text: str, words: str | None) -> None:
    found = fault_of(Outcome(status="raised", text="Traceback (most recent call last):\n" + text + "\n"))
    assert found is None if words is None else words in (found or "")


def test_memory_is_the_machine_and_old_output_is_not_looked_at() -> None:
    assert fault_of(Outcome(status="memory")) == "the machine ran out of memory"
    printed = "No space left on device\n" + "x" * 30_000
    assert fault_of(Outcome(status="raised", text=printed)) is None


@pytest.mark.parametrize(
    ("outcome", "again"),
    [
        (Outcome(status="infra"), True),
        (Outcome(status="memory", signal="SIGKILL"), True),
        (Outcome(status="memory", text="MemoryError"), False),
        (Outcome(status="raised", text="OSError: [Errno 28] No space left on device"), True),
        (Outcome(status="raised", text="FileNotFoundError: [Errno 2] No usable temporary directory found in ['/tmp']"), True),
        (Outcome(status="raised", text="InvalidCxxCompiler: No working C++ compiler found"), False),
        (Outcome(status="raised", text=f"{CXX}g++: fatal error: Killed signal terminated program cc1plus"), True),
        (Outcome(status="signal", signal="SIGSEGV"), False),
        (Outcome(status="timeout"), False),
    ],
)
def test_what_may_end_otherwise_the_next_time(outcome: Outcome, again: bool) -> None:
    assert may_pass(outcome) is again


@pytest.mark.parametrize(
    ("last", "words"),
    [
        ("ModuleNotFoundError: No module named 'timm'", "a package that this interpreter does not have, 'timm'"),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'a.pt'", "a file that is not there, 'a.pt'"),
        ("FileNotFoundError: data/gains.txt not found.", "a file that is not there, 'data/gains.txt'"),
        ("ValueError: No module named 'timm'", None),
        ("RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU", "a GPU"),
        ("AssertionError: Torch not compiled with CUDA enabled", "a GPU"),
        (
            "RuntimeError: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before? Error 304: OS call failed",
            "a GPU",
        ),
        ("RuntimeError: CUDA error: an illegal memory access was encountered", None),
        ("", None),
    ],
)
def test_what_a_program_lacks(last: str, words: str | None) -> None:
    outcome = Outcome(status="raised", text=f"printed\n{last}\n    ^~~~\n\n" if last else "")
    assert last_line(outcome) == last
    assert (missing(outcome) and str(missing(outcome))) == words


@pytest.mark.parametrize(
    ("last", "words"),
    [
        ("ModuleNotFoundError: No module named 'timm'", "a package that this interpreter does not have, 'timm'"),
        ("FileNotFoundError: [Errno 2] No such file or directory: '/scratch/job-1/questions/q2/a.json'", "a file of its own, 'a.json'"),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'data/a.json'", "a file of its own, 'a.json'"),
    ],
)
def test_what_a_repro_lacks_is_told_without_where_it_ran(last: str, words: str) -> None:
    need = missing(Outcome(status="raised", text=last))
    assert need is not None
    assert need.alone == words


def test_the_last_line_of_a_dump_says_of_what_it_died() -> None:
    text = "Fatal Python error: Aborted\n\nThread 0x1 (most recent call first):\n\nExtension modules: torch._C (total: 1)"
    assert last_line(Outcome(status="signal", signal="SIGABRT", text=text)) == "Fatal Python error: Aborted"


def test_the_last_line_of_an_exception_is_its_own() -> None:
    """Whatever its message goes on with, and whatever the program printed on its way out."""
    text = 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\nx.Refused: \n  no\n\ngraph():\n    return 7\nbye\n'
    assert last_line(Outcome(status="raised", text=text)) == "Refused: no"
    assert last_line(Outcome(status="exit", text=text)) == "bye"


@pytest.mark.parametrize(
    ("message", "last"),
    [
        ("ValueError: the rows do not fit:\n  x has 3\n  y has 4\n", "ValueError: the rows do not fit: x has 3; y has 4"),
        ("x.BackendFailed: backend='y' raised:\nKeyError: 7\n", "BackendFailed: backend='y' raised: KeyError: 7"),
    ],
)
def test_a_line_of_an_exception_that_ends_in_a_colon_goes_on(message: str, last: str) -> None:
    text = f'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n{message}'
    assert last_line(Outcome(status="raised", text=text)) == last


RAISED = 'Traceback (most recent call last):\n  File "repro.py", line 1, in <module>\n'
MEMORY, THREADS = "the machine ran out of memory", "the machine gave no more threads"


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("MemoryError", MEMORY),
        ("MemoryError: Unable to allocate 8.00 GiB for an array", MEMORY),
        ("torch._inductor.exc.InductorError: MemoryError: ", MEMORY),
        ("RuntimeError: std::bad_alloc", MEMORY),
        (
            "RuntimeError: [enforce fail at alloc_cpu.cpp:124] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate",
            MEMORY,
        ),
        ("RuntimeError: [enforce fail at alloc_cpu.cpp:117] data. DefaultCPUAllocator: not enough memory: you tried to allocate 8", MEMORY),
        ("OSError: [Errno 12] Cannot allocate memory", MEMORY),
        ("ImportError: /x/libtorch_cpu.so: failed to map segment from shared object", MEMORY),
        ("RuntimeError: can't start new thread", THREADS),
        (f"{CXX}cc1plus: out of memory allocating 65536 bytes after a total of 1 bytes", MEMORY),
        (f"{CXX}virtual memory exhausted: Cannot allocate memory", MEMORY),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", None),
        ("ImportError: /x/libgomp.so.1: cannot allocate memory in static TLS block", None),
        ("AssertionError: no MemoryError was raised", None),
        ("MyMemoryError: 7", None),
    ],
)
def test_what_the_host_refuses(said: str, words: str | None) -> None:
    outcome = Outcome(status="raised", text=f"{RAISED}{said}\n")
    assert refused(outcome) == words
    assert may_differ(outcome) is (words is not None)
    assert not may_pass(outcome), "a query of the search is not asked again for it: each has a limit of its own"
    failure = signature_of(outcome)
    assert failure is not None
    # a compiler's words are in its log, which is no part of a signature
    assert is_refusal(failure) is (words is not None and CXX not in said)


def test_what_dies_of_it_is_refused_as_well() -> None:
    died = Outcome(status="signal", signal="SIGABRT", text="terminate called after throwing an instance of 'std::bad_alloc'\n")
    assert (refused(died), may_differ(died)) == (MEMORY, True)
    assert refused(Outcome(status="signal", signal="SIGABRT", text="terminate called after throwing an instance of 'int'\n")) is None
    assert refused(Outcome(status="ok", text="MemoryError\n")) is None
    assert refused(Outcome(status="infra", text=f"{RAISED}MemoryError\n")) == MEMORY
    assert refused(Outcome(status="infra", text="cannot start python: [Errno 12] Cannot allocate memory")) == MEMORY


def test_a_limit_of_ones_own_is_reached_again() -> None:
    assert (refused(Outcome(status="memory")), may_differ(Outcome(status="memory"))) == (MEMORY, False)
