"""Controls what the children of one parent share in Inductor's cache directory."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import itertools
import os
import shlex
import shutil
import threading
from collections.abc import Iterator
from typing import Any

from .protocol import HEADERS
from .shortcuts import function_at, shortcut


def link_headers(kept: str) -> None:
    """Let this process and its children find the precompiled headers in the directory `kept`, which may have been built after they
    started."""
    place = os.path.join(os.environ.get("TMPDIR", ""), HEADERS)
    with contextlib.suppress(OSError):
        for name in os.listdir(kept):
            os.makedirs(place, exist_ok=True)
            with contextlib.suppress(FileExistsError):
                os.symlink(os.path.join(kept, name), os.path.join(place, name))


def remember_compiled() -> None:
    """Keep the compiler's output in the cache directory of this process and its children, by command and text, and write each file in one
    step.

    Inductor preprocesses the same header in each process (0.15 seconds), and AOTInductor compiles the same glue again for each candidate
    with the same model (4 seconds). Inductor itself keeps the kernels of torch.compile.
    """
    builder: Any = importlib.import_module("torch._inductor.cpp_builder")
    run, cache = function_at(builder, "_run_compile_cmd", "cmd_line", "cwd"), os.environ.get("TORCHINDUCTOR_CACHE_DIR")

    def remembered(cmd_line: str, cwd: str) -> None:
        words = shlex.split(cmd_line)
        output = os.path.join(cwd, words[words.index("-o") + 1]) if "-o" in words else os.devnull
        if os.path.exists(output) and not os.path.isfile(output):
            return run(cmd_line, cwd)  # a device must not be replaced
        kept = None
        with shortcut("remembering what was compiled"):
            kept = _place(words, cache) if cache and ("-E" in words or "-c" in words) else None
        if kept is not None and _copied(kept, output):
            return None
        with _whole(output) as partial:
            words[words.index("-o") + 1] = partial
            run(shlex.join(words), cwd)
        if kept is not None:
            _copied(output, kept)  # a full disk only costs time
        return None

    builder._run_compile_cmd = remembered


def remember_instructions() -> None:
    """Record in the cache directory which vector instructions work. Otherwise each process that compiles C++ loads a probe for each kind
    in a separate process (torch 2.11 imports torch there, which takes seconds).

    Without a GPU, the parent probes before its children start; with one, probing may initialize the driver in the parent.
    """
    cache = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
    if not cache:
        return
    probed: Any = importlib.import_module("torch._inductor.cpu_vec_isa").VecISA
    check = function_at(probed, "check_build", "self", "code")

    def works(self: Any, code: str) -> bool:
        kept = ""
        with shortcut("remembering instructions"):
            asked = "\0".join([os.environ.get("CXX", ""), self.build_arch_flags(), code])
            kept = os.path.join(cache, "instructions", hashlib.sha256(asked.encode()).hexdigest())
            if os.path.exists(kept):
                return True
        found = bool(check(self, code))
        if found and kept:  # a failed probe may have run out of time or memory
            with contextlib.suppress(OSError):
                os.makedirs(os.path.dirname(kept), exist_ok=True)
                open(kept, "a").close()
        return found

    probed.check_build = works


@contextlib.contextmanager
def _whole(path: str) -> Iterator[str]:
    """A temporary name to write to; the file replaces `path` at the end. Thus a killed process leaves no incomplete library, which
    Inductor would load in the next process instead of building it."""
    partial = f"{path}.{os.getpid()}.{threading.get_ident()}"
    try:
        yield partial
        os.replace(partial, path)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(partial)


def _copied(source: str, target: str) -> bool:
    try:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with _whole(target) as partial:
            shutil.copyfile(source, partial)
    except OSError:
        return False
    return True


def packages_apart(directory: str) -> None:
    """Give this process its own cache directory, in `directory`, once AOTInductor compiles a package. A package's path is the hash of its
    code, it is written again each time, and two processes that make the same one would read each other's incomplete files."""
    shared, own = os.environ.get("TORCHINDUCTOR_CACHE_DIR"), os.path.join(directory, "cache")
    try:
        compiler: Any = importlib.import_module("torch._inductor.codecache").AotCodeCompiler
        compile_package = compiler.compile
    except (ImportError, AttributeError):
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = own  # from the start then: sharing only saves time
        return

    def compiled(*args: Any, **kwargs: Any) -> Any:
        if os.environ.get("TORCHINDUCTOR_CACHE_DIR") == shared:  # the program may have chosen one itself
            os.environ["TORCHINDUCTOR_CACHE_DIR"] = own
        return compile_package(*args, **kwargs)

    compiler.compile = compiled


def _place(words: list[str], cache: str) -> str | None:
    """Where the output of the command `words` is kept, regardless of the paths of its source and output; None if it is not kept."""
    sources = [word for before, word in itertools.pairwise(words) if word.endswith((".hpp", ".cpp")) and before != "-include"]
    if len(sources) != 1:
        return None
    output = words.index("-o") + 1
    if not os.path.isabs(sources[0]) or not os.path.isabs(words[output]):
        return None
    fixed = [word for i, word in enumerate(words) if word != sources[0] and i != output]
    try:
        with open(sources[0], encoding="utf-8") as file:
            # a kernel names its wrapper in a comment, by path
            text = "".join(line.replace(os.path.dirname(sources[0]), "") if line.startswith("//") else line for line in file)
    except OSError:
        return None
    return os.path.join(cache, "compiled", hashlib.sha256("\0".join([*fixed, text]).encode()).hexdigest())
