"""Stand-ins for what the compiler makes: a compiled callable, an exported program, a loaded package."""

# ruff: noqa: D102 -- the methods are those of torch's own classes, under their names

from __future__ import annotations

import atexit
import contextlib
import copy
import functools
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from typing import Any

import torch

from ..protocol import APART, Reached
from .fp64 import Evaluate, clones, untouched

_TOKEN = b"compiler taken out: "
# A directory in which a process tells those that it starts what it stored, and they tell it that they wanted to load that.
_SHARED = "TORCH_MINIFY_STORED"
# Parts of an exported program, and of the module of its graph, that can only be inspected.
_OF_PROGRAM = frozenset({"graph_signature", "call_spec"})
_LOOKED_AT = _OF_PROGRAM | {"graph", "code", "print_readable"}
# Methods of an exported program that are those of the original module.
_TENSORS = frozenset({"parameters", "named_parameters", "buffers", "named_buffers"})


class CompilerStub:
    """Takes the place of the compiler, and counts its calls. `evaluate` calls what would be compiled (None: directly). `tells`: such code
    is told that it is being compiled if it asks."""

    def __init__(self, evaluate: Evaluate | None = None, *, tells: bool = False) -> None:
        self.calls = 0
        self.errors: list[str] = []
        self.evaluate, self.tells = evaluate, tells
        self.packages: dict[bytes, Any] = {}  # by the content of a placeholder file
        self.saved_paths: dict[str, bytes] = {}  # the one last stored at a path
        self.created_files: dict[str, int] = {}  # paths that did not exist, with the process that created a file there
        self.directories: dict[str, int] = {}  # temporary ones, likewise
        self.depth = 0
        self.asked = 0
        self.unmade = 0
        self.tell: Callable[[], None] = lambda: None  # writes `reached` before something that may end this process
        self.bare = False  # a compiled module is the module itself
        atexit.register(self.clear)

    def reached(self) -> Reached:
        """How often the program called the compiler, or what it had compiled, what that raised, how often it asked there whether it is
        being compiled, and for things that only the compiler makes."""
        apart = [APART] if os.path.exists(_shared("loaded")) else []
        return Reached(self.calls, len(self.errors), self.asked, self.unmade + len(apart), "".join([*apart, *self.errors][:1]))

    def is_compiling(self) -> bool:
        """Whether a program that asks should behave as if compiled: the right numbers are those of what the compiler is given."""
        self.asked += bool(self.depth)
        return self.tells and bool(self.depth)

    def call(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Make one call of something compiled: `function(*args, **kwargs)`. A compiled function that calls another is one evaluation, not
        two."""
        self.calls += 1
        self.depth += 1
        try:
            if self.evaluate is not None and self.depth == 1:
                return self.evaluate(function, args, kwargs)
            try:
                return function(*args, **kwargs)
            except Exception as error:
                # the program may expect it: then the failure is that compiled code does not raise
                self.errors.append(_essence(error))
                raise
        finally:
            self.depth -= 1

    def compiled(self, model: Any) -> Any:
        """The stand-in for a compiled `model`."""
        if isinstance(model, torch.nn.Module):
            return model if self.bare else Module(self, model)
        if isinstance(model, type) or not callable(model):
            return model

        @functools.wraps(model, updated=())
        def run(*args: Any, **kwargs: Any) -> Any:
            return self.call(model, args, kwargs)

        run.__dict__["_torchdynamo_orig_callable"] = model
        return run

    def exported(self, module: Any, args: Any, kwargs: Any, export: Callable[[], Any] | None = None) -> Exported:
        """The stand-in for an exported program. The `module` is run once on `args` and `kwargs`, as the exporter would trace it: if eager
        cannot run it either, that is not a bug of the exporter. `export` really exports it, for a program that inspects the graph."""
        self.calls += 1
        with untouched(module):
            module(*clones(tuple(args or ())), **clones(dict(kwargs or {})))
        return Exported(self, module, args, kwargs, export)

    def store(self, module: Any, file: Any, suffix: str) -> Any:
        """Keep `module` under a `file` that `load` recognizes (None: a temporary one with this `suffix`). Returns the path, or the file
        object. As in a real file, its state is the current one.

        The program runs in its user's directory: an existing file is left unchanged.
        """
        if _SHARED not in os.environ:
            os.environ[_SHARED] = tempfile.mkdtemp()
            self.directories[os.environ[_SHARED]] = os.getpid()
        token = _TOKEN + f"{os.getpid()}.{len(self.packages)}".encode()
        self.packages[token] = _apart(module)
        if hasattr(file, "write"):
            file.write(token)
            return file
        if file is None:
            directory = tempfile.mkdtemp()  # whoever cleans up may remove everything next to it
            self.directories[directory] = os.getpid()
            file = os.path.join(directory, f"model{suffix}")
        self._create(os.path.realpath(file), token)
        return os.fspath(file)

    def _create(self, path: str, token: bytes) -> None:
        """Record a path, and create a placeholder there: the program may look for it, rename it or copy it."""
        self.saved_paths[path] = token
        _note(_shared(path))
        with contextlib.suppress(FileExistsError), open(path, "wb" if _is_ours(path) else "xb") as out:
            out.write(token)
            self.created_files[path] = os.getpid()

    def moves(self, source: Any, target: Any, *, copies: bool) -> bool:
        """Move (or with `copies`, copy) what is stored under `source`; False if nothing of ours is stored there, or if `target` is not a
        possible place. The user's files stay where they are, at both ends."""
        source, target = os.path.realpath(source), os.path.realpath(target)
        token = self._stored(source)
        if token not in self.packages or os.path.isdir(target) or not os.path.isdir(os.path.dirname(target)):
            return False
        self._create(target, token)
        if not copies:
            self.saved_paths.pop(source, None)
            with contextlib.suppress(OSError):
                os.unlink(_shared(source))
            if _is_ours(source):
                os.unlink(source)
        return True

    def _stored(self, path: str) -> bytes:
        head = _head(path)
        return head if head in self.packages else self.saved_paths.get(path, b"")

    def clear(self) -> None:
        """Remove the files that this process created; those of a fork belong to the fork."""
        for path, process in self.created_files.items():
            if process == os.getpid() and _is_ours(path):
                with contextlib.suppress(OSError):
                    os.unlink(path)
        for directory, process in self.directories.items():
            if process == os.getpid():
                shutil.rmtree(directory, ignore_errors=True)

    def load(self, file: Any) -> Any:
        """What `store` kept under a path or file object (`file`), each time with its own state; None if the file is not ours. Raises
        RuntimeError if it is another process's, which has what it stored in its memory."""
        head, path = b"", os.path.realpath(file) if not hasattr(file, "read") else ""
        if not path:
            start = file.tell()
            head = file.read(len(_TOKEN) + 20)
            file.seek(start)
            name = getattr(file, "name", None)
            path = os.path.realpath(os.fsdecode(name)) if isinstance(name, (str, bytes, os.PathLike)) else ""
        token = head if head in self.packages or not path else self._stored(path)
        if token in self.packages:
            return _apart(self.packages[token])
        if head.startswith(_TOKEN) or (path and (_is_ours(path) or os.path.exists(_shared(path)))):
            self.unmade += 1
            _note(_shared("loaded"))
            raise RuntimeError(APART.partition(": ")[2])
        return None


def _shared(path: str) -> str:
    """The file that stands for a path in the directory that processes share; empty if there is none."""
    directory = os.environ.get(_SHARED, "")
    return directory and os.path.join(directory, hashlib.sha1(os.fsencode(path), usedforsecurity=False).hexdigest())


def _note(path: str) -> None:
    with contextlib.suppress(OSError), open(path, "wb"):
        pass


def _apart(kept: Any) -> Any:
    """A copy of a module, or of the stand-in for an exported program, so that writes to the buffers of one do not show in the other. What
    cannot be copied is returned itself."""
    if isinstance(kept, Exported):
        return kept.with_module(_apart(kept.original))
    with contextlib.suppress(Exception):
        return copy.deepcopy(kept) if isinstance(kept, torch.nn.Module) else kept
    return kept


def _head(path: Any) -> bytes:
    if not os.path.isfile(path):
        return b""  # opening a pipe would block
    try:
        with open(path, "rb") as given:
            return given.read(len(_TOKEN) + 20)
    except OSError:
        return b""  # the real loader reports what is wrong with the path


def _is_ours(path: str) -> bool:
    return _head(path).startswith(_TOKEN)


def _essence(error: Exception) -> str:
    """Class and first line of an error, with a 0 for each number: sizes change, the error stays."""
    first = (str(error).strip().splitlines() or [""])[0]
    return f"{type(error).__name__}: {re.sub(r'[0-9]+(?:[.][0-9]+)?', '0', first)[:200]}".encode("ascii", "backslashreplace").decode()


class Module(torch.nn.Module):
    """Looks like what `torch.compile(module)` returns: the original is `_orig_mod`, and its attributes are forwarded. Calls go to a
    `stub`."""

    def __init__(self, stub: CompilerStub, module: torch.nn.Module) -> None:
        super().__init__()
        self.__dict__["_stub"] = stub
        self._modules["_orig_mod"] = module
        del self.__dict__["training"]  # read and set on the original instead

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._stub.call(self._orig_mod, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        modules = self.__dict__.get("_modules", {})
        if "_orig_mod" not in modules:
            raise AttributeError(name)  # half constructed, as copy and pickle do it
        return modules["_orig_mod"] if name == "_orig_mod" else getattr(modules["_orig_mod"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        if "_orig_mod" not in self.__dict__.get("_modules", {}):
            super().__setattr__(name, value)
        else:
            setattr(self._orig_mod, name, value)

    def __deepcopy__(self, memo: Any) -> Module:
        return type(self)(self._stub, copy.deepcopy(self._orig_mod, memo))


class ExportedModule(Module):
    """What `ExportedProgram.module()` returns: names its parameters as the original `module` does, and has the graph of what was
    `exported`. The `stub` counts its calls."""

    def __init__(self, stub: CompilerStub, module: torch.nn.Module, exported: Exported) -> None:
        super().__init__(stub, module)
        self.__dict__["_exported"] = exported

    def __getattr__(self, name: str) -> Any:
        if name in ("graph", "code", "print_readable", "recompile") and "_exported" in self.__dict__:
            return getattr(self.__dict__["_exported"].graph_module, name)
        return super().__getattr__(name)

    def __deepcopy__(self, memo: Any) -> Module:
        return type(self)(self._stub, copy.deepcopy(self._orig_mod, memo), self.__dict__["_exported"])

    def __getattribute__(self, name: str) -> Any:
        named = name in ("state_dict", "load_state_dict", "named_parameters", "named_buffers")
        return getattr(self._orig_mod, name) if named else super().__getattribute__(name)


class Exported:
    """Stands for a `torch.export.ExportedProgram` of `module` with the example inputs `args` and `kwargs`. The `stub` counts its calls.

    What can only be inspected, a graph or its signature, comes from a real one, which `export` makes on first access.
    """

    dialect = "ATEN"

    def __init__(self, stub: CompilerStub, module: Any, args: Any, kwargs: Any, export: Callable[[], Any] | None = None) -> None:
        self._stub = stub
        self._export = export
        self._real: Any = None
        self.original = module
        self.example_inputs = (tuple(args or ()), dict(kwargs or {}))
        self.range_constraints: dict[Any, Any] = {}
        self.constants: dict[str, Any] = {}

    def module(self, *_: Any, **__: Any) -> Any:
        """The module that was exported; a call of it counts as a call of something compiled."""
        module = self.original
        return ExportedModule(self._stub, module, self) if isinstance(module, torch.nn.Module) else self._stub.compiled(module)

    def with_module(self, module: Any) -> Exported:
        """The same for another `module`."""
        return Exported(self._stub, module, *self.example_inputs)

    def run_decompositions(self, *_: Any, **__: Any) -> Exported:
        self._stub.calls += 1
        return self

    @property
    def state_dict(self) -> dict[str, Any]:
        return dict(self.original.state_dict())

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("an exported program is run by its module()")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.original, name) if name in _TENSORS else self._unmade(name)

    @property
    def graph_module(self) -> Any:
        return GraphStub(self._unmade)

    def _unmade(self, name: str) -> Any:
        """What only the exporter makes: it can be inspected, and none of it runs."""
        self._stub.unmade += 1
        if self._export is not None and name in _LOOKED_AT:
            with contextlib.suppress(Exception), untouched(self.original):
                if self._real is None:
                    self._stub.tell()
                    self._real = self._export()
                return getattr(self._real if name in _OF_PROGRAM else self._real.graph_module, name)
        return EmptyStub()


class EmptyStub:
    """Stands for what only the compiler makes: it can be inspected, called and iterated, and is empty."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return EmptyStub()

    def __call__(self, *_: Any, **__: Any) -> Any:
        return EmptyStub()

    def __getitem__(self, _: Any) -> Any:
        return EmptyStub()

    def __iter__(self) -> Any:
        return iter(())

    def __len__(self) -> int:
        return 0


class GraphStub(EmptyStub):
    """Stands for the module of a graph, which the program may inspect but not run; `made` returns its attributes by name."""

    def __init__(self, made: Callable[[str], Any]) -> None:
        self._made = made

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)  # half constructed, as copy and pickle do it
        return self._made(name)

    def __call__(self, *_: Any, **__: Any) -> Any:
        return self._made("forward")


class Loaded:
    """Stands for a loaded AOTInductor package of `module`; the `stub` counts its calls."""

    def __init__(self, stub: CompilerStub, module: Any) -> None:
        self._stub = stub
        self.original = module

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._stub.call(self.original, args, kwargs)

    def get_metadata(self) -> dict[str, str]:
        return {}

    def get_constant_fqns(self) -> list[str]:
        return list(self.original.state_dict())

    def load_constants(self, constants_map: dict[str, torch.Tensor], **_: Any) -> None:
        """Load tensors by name from `constants_map`."""
        self.original.load_state_dict(constants_map, strict=False)
