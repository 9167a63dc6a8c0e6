"""The eager control: takes the compiler out.

`torch.compile` becomes the identity, an exported program's `module()` the original module, an AOTInductor package a handle to it. A
program that still fails then fails without the compiler, so its failure says nothing about the compiler. The program's calls of the
compiler are counted: a control without any proves nothing. Calls from inside torch (higher-order operations compile their own wrappers in
eager mode) are left alone: they belong to eager. If that compile fails, the operation is run as plain Python (`plain_forms`).
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib
import inspect
import os
import shutil
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from .. import children, environment
from ..entry_points import Sort, places
from ..program import execute, flush, format_error, listen_to_unittest, read_source, run_module
from ..protocol import Precision
from . import lifetimes, plain_forms, uninitialized
from .fp64 import EVALUATORS
from .stand_ins import CompilerStub, Exported, Loaded

# A program may ask these whether it is being compiled, and then behave differently.
_ASKED = (("torch.compiler", "is_compiling"), ("torch.compiler", "is_dynamo_compiling"), ("torch._dynamo", "is_compiling"))
# Calls functions assumed to be constant, for traced code.
_TRACER = "torch._dynamo.variables.functions"
# Torch reads it at each call of `torch.compile`, even with `fullgraph`.
_DISABLE = "TORCHDYNAMO_DISABLE"
_INSIDE = ("torch", "functorch", "torch_minify_inside")
# How often torch has called an entry point of the compiler in this process for one of its own operations.
_called_for_itself = 0


def _called_by_torch() -> bool:
    """Whether the caller of the replaced function is torch itself."""
    return str(sys._getframe(2).f_globals.get("__name__", "")).partition(".")[0] in _INSIDE


class _ExportResult(NamedTuple):
    graph_module: Any
    guards: Any


def _module_of(program: Any) -> Any:
    """The callable behind whatever is passed to a compiler of exported programs."""
    if isinstance(program, Exported):
        return program.original
    return program.module() if isinstance(program, torch.export.ExportedProgram) else program


def _replace(sort: Sort, stand_in: Callable[..., Any]) -> None:
    """Put `stand_in`, which takes the original first, in place of each entry point of one sort, for callers outside torch."""
    for place in places(sort):
        owner, _, name = place.rpartition(".")
        with contextlib.suppress(ImportError, AttributeError):  # entry points come and go between versions
            _replace_one(importlib.import_module(owner), name, stand_in)


def _replace_one(owner: Any, name: str, stand_in: Callable[..., Any]) -> None:
    original = getattr(owner, name)

    @functools.wraps(original)
    def entry(*args: Any, **kwargs: Any) -> Any:
        if not _called_by_torch():
            return stand_in(original, *args, **kwargs)
        global _called_for_itself
        _called_for_itself += 1
        return original(*args, **kwargs)

    setattr(owner, name, entry)


def take_out(precision: Precision | None = None, *, tells: bool = True) -> CompilerStub:
    """Permanently replace the entry points of the compiler in this process. Returns the stub that counts the calls of them.

    With a `precision`, what would be compiled is evaluated in that precision instead (see `fp64.evaluate`, which may raise
    `Fp64Impossible` inside the program), and the program is told that it is being compiled, unless `tells` is False.
    """
    stub = CompilerStub(EVALUATORS[precision] if precision else None, tells=tells and precision is not None)
    _take_out_compile(stub)
    _take_out_export(stub)
    _take_out_aoti(stub)
    _take_out_own_compiles(stub)
    for owner, name in _ASKED:
        _answer(stub, importlib.import_module(owner), name)
    return stub


def _answer(stub: CompilerStub, owner: Any, name: str) -> None:
    """Make `stub` tell callers outside torch whether they are being compiled; torch itself runs as in eager."""
    original = getattr(owner, name)

    # When torch compiles for itself, Dynamo knows the original, but has to be told not to trace its replacement.
    @torch.compiler.assume_constant_result
    @functools.wraps(original)
    def asked() -> Any:
        if sys._getframe(1).f_globals.get("__name__") == _TRACER:
            return True
        return original() or (not _called_by_torch() and stub.is_compiling())

    setattr(owner, name, asked)


def _take_out_compile(stub: CompilerStub) -> None:
    def compiler(original: Any, /, model: Any = None, **options: Any) -> Any:
        if model is None:
            return functools.partial(compiler, original, **options)
        stub.calls += 1
        stub.unmade += callable(options.get("backend"))
        return stub.compiled(model)

    def compile_in_place(self: torch.nn.Module, *_: Any, **options: Any) -> None:
        stub.calls += 1
        stub.unmade += callable(options.get("backend"))
        # bound to the original call, as torch does it, so the module stays itself
        self._compiled_call_impl = stub.compiled(self._call_impl)

    def optimize(_original: Any, /, backend: Any = None, *_: Any, **__: Any) -> Any:
        stub.calls += 1
        stub.unmade += callable(backend)
        return stub.compiled

    def dynamo_export(_original: Any, /, function: Any, *given: Any, **more: Any) -> Any:
        def export(*args: Any, **kwargs: Any) -> Any:
            return _ExportResult(stub.compiled(stub.exported(function, args, kwargs).original), None)

        options = {"aten_graph", "pre_dispatch", "decomposition_table", "tracing_mode", "dynamic_shapes", "assume_static_by_default"}
        return export(*given, **{k: v for k, v in more.items() if k not in options}) if given else export

    def graph_compiler(_original: Any, /, graph: Any, *_: Any, **__: Any) -> Any:
        stub.calls += 1
        return stub.compiled(_module_of(graph))

    _replace(Sort.COMPILE, compiler)
    _replace(Sort.OPTIMIZE, optimize)
    _replace(Sort.TRACE, dynamo_export)
    _replace(Sort.COMPILE_GRAPH, graph_compiler)
    torch.nn.Module.compile = compile_in_place


def _take_out_export(stub: CompilerStub) -> None:
    def export(original: Any, /, mod: Any, args: Any = (), kwargs: Any = None, *given: Any, **more: Any) -> Exported:
        return stub.exported(mod, args, kwargs, lambda: original(mod, args, kwargs, *given, **more))

    def save(original: Any, /, program: Any, file: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(program, Exported):
            return original(program, file, *args, **kwargs)
        stub.store(program, file, ".pt2")
        return None

    def load(original: Any, /, file: Any, *args: Any, **kwargs: Any) -> Any:
        return stub.load(file) or original(file, *args, **kwargs)

    def unflatten(original: Any, /, program: Any, *args: Any, **kwargs: Any) -> Any:
        return program.module() if isinstance(program, Exported) else original(program, *args, **kwargs)

    _replace(Sort.EXPORT, export)
    _replace(Sort.SAVE, save)
    _replace(Sort.LOAD, load)
    _replace(Sort.UNFLATTEN, unflatten)


def _take_out_aoti(stub: CompilerStub) -> None:
    def package(_original: Any, /, program: Any, *_: Any, package_path: Any = None, **__: Any) -> Any:
        stub.calls += 1
        return stub.store(_module_of(program), package_path, ".pt2")

    def compiler(_original: Any, /, module: Any, args: Any = (), kwargs: Any = None, *_: Any, **__: Any) -> Any:
        stub.calls += 1
        return stub.store(stub.exported(_module_of(module), args, kwargs).original, None, ".so")

    def load(original: Any, /, path: Any, *args: Any, **kwargs: Any) -> Any:
        module = stub.load(path)
        return original(path, *args, **kwargs) if module is None else Loaded(stub, module)

    def repackage(original: Any, /, archive: Any, files: Any, *args: Any, **kwargs: Any) -> Any:
        first = next(iter(files.values())) if isinstance(files, dict) else files
        module = stub.load(first[0] if isinstance(first, list) else first)
        return original(archive, files, *args, **kwargs) if module is None else stub.store(module, archive, ".pt2")

    _replace(Sort.PACKAGE, package)
    _replace(Sort.COMPILE_LIBRARY, compiler)
    _replace(Sort.LOAD_PACKAGE, load)
    _replace(Sort.REPACKAGE, repackage)


def _takes(function: Callable[..., Any], args: Any, kwargs: Any) -> bool:
    """Whether a function can be called with these arguments."""
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def _take_out_own_compiles(stub: CompilerStub) -> None:
    """If the eager form of an operation, which compiles it, fails, run the operation as plain Python: what a user would compare with."""

    def spare(plain: Callable[..., Any]) -> Callable[..., Any]:
        def run(original: Any, /, *args: Any, **kwargs: Any) -> Any:
            before = _called_for_itself
            try:
                return original(*args, **kwargs)
            except Exception:
                if _called_for_itself == before:
                    raise  # it rejects its arguments, and has compiled nothing yet
                stub.calls += 1  # the compiler was called
                if not _takes(plain, args, kwargs):
                    raise
                return plain(*args, **kwargs)

        return run

    for plain, known in plain_forms.FORMS:
        for owner, name in known:
            with contextlib.suppress(ImportError, AttributeError):
                _replace_one(importlib.import_module(owner), name, spare(plain))


def disable_compile_in_subprocesses() -> None:
    """Make the processes that the program starts run in eager, without replacing anything in them.

    Torch would read the variable in this process as well when it compiles for itself, so it is hidden there.
    """
    if _DISABLE in os.environ:
        return
    frames: Any = importlib.import_module("torch._dynamo.eval_frame")
    optimize = frames._optimize

    @functools.wraps(optimize)
    def hidden(*args: Any, **kwargs: Any) -> Any:
        value = os.environ.pop(_DISABLE, None)
        try:
            return optimize(*args, **kwargs)
        finally:
            if value is not None:
                os.environ[_DISABLE] = value

    frames._optimize = hidden
    os.environ[_DISABLE] = "1"


def _say_at_the_end(stub: CompilerStub) -> None:
    """Make this process, and each of its forks, write its count once, however Python exits; and whenever `stub` calls `tell`."""
    said: set[int] = set()
    leave = os._exit
    stderr = os.dup(2)  # a program, or pytest, may replace it
    known = os.fstat(stderr)

    def tell() -> None:
        with contextlib.suppress(AttributeError, ValueError, OSError):  # the program may have closed it, or all descriptors
            sys.stderr.flush()
        line = f"\n{stub.reached().line()}\n"
        with contextlib.suppress(OSError):
            os.write(stderr if _is(stderr, known) else 2, line.encode())

    def say() -> None:
        if os.getpid() not in said:
            said.add(os.getpid())
            tell()

    def leave_at_once(status: int) -> None:
        say()
        stub.clear()
        leave(status)

    stub.tell = tell
    atexit.register(say)
    os._exit = leave_at_once  # type: ignore[assignment]


def _is(descriptor: int, known: os.stat_result) -> bool:
    """Whether a descriptor is still open and refers to the same file."""
    try:
        return os.path.samestat(os.fstat(descriptor), known)
    except OSError:
        return False


def _keep_targets(stub: CompilerStub) -> None:
    """Keep a file that the program saves elsewhere and then moves into place from replacing an existing file."""

    def spare(owner: Any, name: str) -> None:
        original = getattr(owner, name)

        @functools.wraps(original)
        def move(src: Any, dst: Any, **how: Any) -> Any:
            if how.keys() & {"src_dir_fd", "dst_dir_fd"} or not stub.moves(src, dst, copies=owner is shutil):
                return original(src, dst, **how)
            return dst if owner is shutil else None

        setattr(owner, name, move)

    for owner, name in ((os, "rename"), (os, "replace"), (shutil, "copyfile")):
        spare(owner, name)


def take_out_and_say(precision: Precision | None = None, *, tells: bool = True, bare: bool = False) -> None:
    """Replace the compiler in this process as `take_out` does with `precision` and `tells`, and write the number of calls on exit. With
    `bare`, compiled modules are the modules themselves."""
    stub = take_out(precision, tells=tells)
    stub.bare = bare
    _say_at_the_end(stub)
    _keep_targets(stub)


def run_control(path: str, argv: list[str], *, precision: Precision | None, repeats: bool, tells: bool = True, bare: bool = False) -> None:
    """Run a script file with arguments `argv` as `__main__`, or, if `path` is `-m`, a module, with the compiler taken out.

    On exit each process writes its number of calls to stderr, after everything that the program writes there. Exceptions of a script
    propagate; for a module's tests the first error is written. `precision`, `tells`: see `take_out`; `bare`: see `take_out_and_say`;
    `repeats`, for a script: see `uninitialized`.
    """
    take_out_and_say(precision, tells=tells, bare=bare)
    children.follow("control")
    if path == "-m":
        disable_compile_in_subprocesses()
        _run_module(argv)
        return
    text = read_source(path)
    environment.state_before_torch(text)
    disable_compile_in_subprocesses()
    with uninitialized.made_to_differ(text if repeats else ""):
        execute(path, argv, lifetimes.shortened)


def _run_module(argv: list[str]) -> None:
    errors: list[str] = []

    def on_error(error: BaseException, _: str) -> None:
        errors.append(format_error(error))

    listen_to_unittest(on_error)
    facts = run_module(argv[0], argv[1:], on_error)
    if facts["status"] == "ok":
        return
    flush()
    sys.stderr.write("".join(errors[:1]) or facts["text"])
    sys.exit(facts.get("exit") or 1)
