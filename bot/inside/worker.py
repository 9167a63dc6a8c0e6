"""What a forked child does with a question: run the script as a person would, and say how it ended."""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import gc
import importlib
import json
import os
import random
import resource
import signal
import sys
import tokenize
import traceback
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import cache, environment

if TYPE_CHECKING:
    import ast

# A traceback can hold megabytes of generated code; the signature needs its two ends.
HEAD, TAIL = 400_000, 60_000


def answer(request: dict[str, Any], pipe: int) -> None:
    """Carry out a request and write the facts as JSON to `pipe`. Never returns."""
    _die_with_parent()
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=False, chain=False)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.enable()
    if request.get("memory"):
        _limit_memory(int(request["memory"]))
    os.makedirs(request["dir"], exist_ok=True)
    os.chdir(request["dir"])
    path = os.path.join(request["dir"], "repro.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(request["text"])
    cache.packages_apart(request["dir"])
    sys.path[:0] = request.get("paths", [])
    environment.state_before_torch(request["text"])
    _seed(int(request.get("seed", 0)))
    before = _drawn()
    own = os.getpid()
    facts = TASKS[request["task"]](path, request)
    facts["drew"] = _drawn() != before
    flush()
    if os.getpid() != own:
        # the program forked, and this is the other one: the answer is not its to give
        os._exit(int(facts["status"] != "ok"))
    with os.fdopen(pipe, "wb") as out:
        out.write(json.dumps(facts).encode())
    # not sys.exit: threads and exit handlers of the program must not hold the answer back
    os._exit(0)


def _seed(number: int) -> None:
    """A process that nobody seeds draws other numbers each time, but children of one parent would all draw the same."""
    random.seed(number)
    for name, function in (("torch", "manual_seed"), ("numpy.random", "seed")):
        if name in sys.modules:
            getattr(sys.modules[name], function)(number)


def _drawn() -> tuple[bytes, int]:
    """The state of torch's random numbers: another one after numbers were drawn, or a seed was set for the CPU."""
    try:
        torch = sys.modules["torch"]
        # a GPU that was not asked for anything has drawn nothing, and asking it would start it
        generators = torch.cuda.default_generators if torch.cuda.is_initialized() else ()
        return bytes(torch.get_rng_state().tolist()), sum(generator.get_offset() for generator in generators)
    except Exception:
        return b"", 0  # the program left torch in a state of its own


def read_source(path: str) -> str:
    """The text of a script as Python reads it: in the encoding that it declares, without a byte order mark.

    Raises:
        SyntaxError: it is not in that encoding, or there is none of that name.
    """
    with contextlib.suppress(SyntaxError, UnicodeDecodeError), tokenize.open(path) as file:
        return file.read()
    with open(path, "rb") as raw:
        compile(raw.read(), path, "exec", dont_inherit=True)  # says it in Python's words
    raise SyntaxError(f"the encoding of {path} cannot be read")


def run_as_main(path: str, argv: list[str], source: Callable[[str], str | ast.Module] = str) -> dict[str, Any]:
    """Execute a script file as `__main__`; the facts of how it ended. `source` gives what to compile of its text."""
    try:
        text = read_source(path)
    except (SyntaxError, ValueError) as error:  # a ValueError: of UTF-16, in older Pythons
        return _ended_by(error)
    module = types.ModuleType("__main__")
    module.__file__ = path
    module.__builtins__ = __builtins__  # type: ignore[attr-defined]
    sys.modules["__main__"] = module
    sys.argv = [path, *argv]
    sys.path.insert(0, os.path.dirname(path))
    try:
        exec(compile(source(text), path, "exec", dont_inherit=True), module.__dict__)
    except SystemExit as leave:
        code = leave.code if isinstance(leave.code, int) else (0 if leave.code is None else 1)
        return {
            "status": "exit" if code else "ok",
            "exit": code,
            "text": "" if isinstance(leave.code, (int, type(None))) else _encodable(str(leave.code)),
        }
    except BaseException as error:
        return _ended_by(error)
    return {"status": "ok", "exit": 0, "text": ""}


def _ended_by(error: BaseException) -> dict[str, Any]:
    if isinstance(error, KeyboardInterrupt):
        return {"status": "infra", "text": "interrupted"}
    if isinstance(error, MemoryError):
        return {"status": "memory", "text": format_error(error)}
    if type(error).__name__ == "PhasePassed":
        return {"status": "stopped"}
    return {"status": "raised", "text": format_error(error)}


def format_error(error: BaseException) -> str:
    """The traceback as Python prints it, its middle left out where it is very long."""
    text = _encodable("".join(traceback.format_exception(type(error), error, error.__traceback__)))
    return text if len(text) <= HEAD + TAIL else text[:HEAD] + "\n[...]\n" + text[-TAIL:]


def _encodable(text: str) -> str:
    """Lone surrogates (names of files that are no UTF-8) as Python prints them."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def flush() -> None:
    """Flush standard output and error; the program may have closed, replaced or removed them."""
    for name in ("stdout", "stderr"):
        try:
            getattr(sys, name).flush()
        except (AttributeError, ValueError, OSError):
            continue


def _run(path: str, request: dict[str, Any]) -> dict[str, Any]:
    from . import early_exit, modules

    ends: list[dict[str, Any]] = []
    # a script that ends in `unittest.main()` leaves with a status alone: what its first failing test raised says more
    modules.listen_to_unittest(lambda error, _: ends.append(_ended_by(error)))
    early_exit.stop_after(request.get("stop_after"))
    if request.get("as_eager"):
        inductor: Any = importlib.import_module("torch._inductor.config")
        inductor.fallback_random = True
    facts = run_as_main(path, request.get("argv", []))
    return ends[0] if ends and facts["status"] == "exit" else facts


def _control(path: str, request: dict[str, Any], fp64: bool = False) -> dict[str, Any]:
    from .eager import compiler_out, lifetimes, uninitialized

    stand = compiler_out.take_out(fp64=fp64)
    compiler_out.spare_children()
    with uninitialized.made_to_differ(request["text"] if request.get("repeats") else ""):
        facts = run_as_main(path, request.get("argv", []), lifetimes.shortened)
    stand.clear()
    return {**facts, "calls": compiler_out.reached(stand.calls), "raised": len(stand.errors), "error": "".join(stand.errors[:1])}


def _control_fp64(path: str, request: dict[str, Any]) -> dict[str, Any]:
    return _control(path, request, fp64=True)


def _shapes(path: str, request: dict[str, Any]) -> dict[str, Any]:
    from .tasks import shapes_and_export

    return shapes_and_export.describe(path, request)


def _export(path: str, request: dict[str, Any]) -> dict[str, Any]:
    from .tasks import shapes_and_export

    return shapes_and_export.export(path, request)


def _localise(path: str, request: dict[str, Any]) -> dict[str, Any]:
    from .tasks import localize

    return localize.localise(path, request)


def _origins(path: str, request: dict[str, Any]) -> dict[str, Any]:
    from .tasks import origins

    return origins.origins(path, request)


def _frames(path: str, request: dict[str, Any]) -> dict[str, Any]:
    from .tasks import frames

    return frames.frames(path, request)


TASKS = {
    "run": _run,
    "control": _control,
    "control_fp64": _control_fp64,
    "shapes": _shapes,
    "export": _export,
    "localise": _localise,
    "origins": _origins,
    "frames": _frames,
}


def _die_with_parent() -> None:
    """Linux: the kernel kills this process when the warm parent is gone, however that ended."""
    try:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    except (OSError, AttributeError):
        return  # other systems: the parent kills its children when it ends in order


def _limit_memory(extra: int) -> None:
    # The address space of the warm parent is not the child's to answer for.
    with open("/proc/self/statm", encoding="ascii") as file:
        pages = int(file.read().split()[0])
    limit = pages * resource.getpagesize() + extra
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
