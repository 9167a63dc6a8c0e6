"""How the functions that lead to a failure are called, so that each can be called alone.

The script runs with the compiler taken out. For each function that contains one of the lines and is called from what would have been
compiled, the first call is recorded as source: how to make its object, its arguments, and the modes in force. So is the call of the first
function that would have been compiled, whatever lines it contains: if the compiler fails after it has traced a function, no line of that
function is named.
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from types import CodeType, FrameType, FunctionType
from typing import Any

import torch

from ..capture import literals, recipe
from ..capture.literals import NoText
from ..eager import compiler_out, stand_ins
from ..program import run_watched
from ..protocol import Facts, FrameCall, Question

# Longer lists and strings are data: a script that contains them is not smaller.
MOST_ITEMS, MOST_CHARACTERS = 16, 200
# In a qualified name, comes between a function and one defined inside it.
_INSIDE = "<locals>"


def frames(path: str, question: Question) -> Facts:
    """Facts of the script at `path` with `frames`, the innermost first: `name` (qualified), `callee` and `arguments` (source), `contexts`
    (source).

    The last of the `lines` of the `question` is in the innermost frame: when the function that contains it has been called, the run ends.
    """
    calls = _Calls(path, question.lines)
    stand_ins.CompilerStub.call = calls.within(stand_ins.CompilerStub.call)  # type: ignore[method-assign]
    stand_ins.CompilerStub.exported = calls.within(stand_ins.CompilerStub.exported)  # type: ignore[method-assign]
    compiler_out.take_out()
    facts = run_watched(path, question.argv, calls.watch)
    return {**facts, "frames": [call for _, call in sorted(calls.found.values(), key=lambda found: -found[0])]}


class _Calls:
    """Follows the calls of the script's own functions."""

    def __init__(self, path: str, lines: Sequence[int]) -> None:
        self.path = path
        self.lines = lines
        self.complete = False  # the function that contains the last of the lines was called
        self.found: dict[str, tuple[int, FrameCall]] = {}  # by name: how deep the call is, and how to make it
        self._inside = 0  # depth of calls that would have been compiled
        self._compiled: CodeType | None = None  # the first function that would have been compiled
        self._made: dict[int, tuple[Any, str | None]] = {}  # objects of the script's classes, kept alive so that no id is reused
        self._defaults: dict[CodeType, dict[str, Any]] = {}  # of parameters
        self._names: dict[CodeType, str | None] = {}  # of functions that are recorded; None for the others

    def within(self, run: Callable[..., Any]) -> Callable[..., Any]:
        """`run`, extended so that calls of the script's functions inside it count."""

        def entered(*args: Any, **kwargs: Any) -> Any:
            self._inside += 1
            try:
                result = run(*args, **kwargs)
            finally:
                self._inside -= 1
            if self.complete and not self._inside:
                raise SystemExit(0)
            return result

        return entered

    def watch(self, frame: FrameType, event: str, _argument: object) -> None:
        """A profile function, see `sys.setprofile`: records the call of `frame` if the `event` is one."""
        if event != "call" or frame.f_code.co_filename != self.path:
            return
        if frame.f_code.co_name == "__init__":
            self._note_object(frame)
        if self._inside:
            self._note_call(frame)

    def _note_object(self, frame: FrameType) -> None:
        made = _owner(frame)
        if id(made) not in self._made:
            try:
                said: str | None = ", ".join(self._arguments(frame, self._said))
            except NoText:
                said = None
            self._made[id(made)] = (made, said)

    def _note_call(self, frame: FrameType) -> None:
        self._compiled = self._compiled or frame.f_code
        name = self._name_of(frame.f_code)
        if name is None or name in self.found:
            return
        self.complete = self.complete or self.lines[-1] in self._span(frame.f_code)
        try:
            callee = self._callee(name, _owner(frame))
            arguments = self._arguments(frame, self._said_or_none)
            free = [name for name in frame.f_code.co_freevars if name in frame.f_locals and name != "__class__"]
            reads = [f"{name} = {self._said_or_none(frame.f_locals[name])}" for name in free]
            call: FrameCall = {"name": name, "reads": reads, "callee": callee, "arguments": arguments, "contexts": recipe.contexts()}
            self.found[name] = self._depth(frame), call
        except NoText:
            return

    def _depth(self, frame: FrameType) -> int:
        """Number of active calls of the script's functions."""
        return sum(at.f_code.co_filename == self.path for at, _ in traceback.walk_stack(frame.f_back))

    def _name_of(self, code: CodeType) -> str | None:
        """The qualified name of a function or method of the script that contains one of the lines, or that would
        have been compiled first."""
        if code not in self._names:
            named = None
            if code is self._compiled or any(line in self._span(code) for line in self.lines):
                functions = [(name, function.__code__) for name, function in _functions()]
                named = next((name for name, own in functions if own is code), None) or next(_made_inside(functions, code), None)
            self._names[code] = named
        return self._names[code]

    @staticmethod
    def _span(code: CodeType) -> range:
        last = max((line for _, _, line in code.co_lines() if line is not None), default=code.co_firstlineno)
        return range(code.co_firstlineno, last + 1)

    def _callee(self, name: str, owner: Any) -> str:
        if "." not in name or _INSIDE in name:
            return name.rpartition(".")[2]
        if owner is None:
            return name  # a static method or a class method
        method = name.split(".")[-1]
        said = self._said(owner)
        if isinstance(owner, torch.nn.Module):
            first = next(owner.parameters(), None)
            if first is not None and first.device.type != "cpu":
                said += f".to({first.device.type!r})"
            if first is not None and first.is_floating_point() and first.dtype != torch.get_default_dtype():
                said += f".to({first.dtype})"
            if not owner.training:
                said += ".eval()"
        return said if method in ("forward", "__call__") else f"{said}.{method}"

    def _arguments(self, frame: FrameType, write: Callable[[Any], str]) -> list[str]:
        """The arguments of the call, without its object, as `write` writes them; trailing ones are left out if they are the defaults."""
        code, values = frame.f_code, frame.f_locals
        positional = list(code.co_varnames[: code.co_argcount])
        if positional[:1] in (["self"], ["cls"]):
            positional = positional[1:]
        keywords = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
        defaults = self._defaults_of(code)
        rest = code.co_argcount + code.co_kwonlyargcount
        starred = code.co_varnames[rest] if code.co_flags & inspect.CO_VARARGS else None
        while positional and starred is None and values[positional[-1]] is defaults.get(positional[-1], inspect.Parameter.empty):
            positional.pop()
        said = [write(values[name]) for name in positional]
        if starred is not None:
            said += [write(value) for value in values[starred]]
            rest += 1
        said += [f"{name}={write(values[name])}" for name in keywords if values[name] is not defaults.get(name)]
        if code.co_flags & inspect.CO_VARKEYWORDS:
            said += [f"{name}={write(value)}" for name, value in values[code.co_varnames[rest]].items()]
        return said

    def _defaults_of(self, code: CodeType) -> dict[str, Any]:
        # a program may make many objects, and each passes here
        if code not in self._defaults:
            functions = [function for _, function in _functions() if function.__code__ is code]
            self._defaults[code] = {n: p.default for one in functions[:1] for n, p in inspect.signature(one).parameters.items()}
        return self._defaults[code]

    def _said_or_none(self, value: Any) -> str:
        """An expression for a value; "None" for one that has none. A hook gets its library's module as an argument and rarely reads it: if
        a function does, the call fails differently, and is not the one sought."""
        try:
            return self._said(value)
        except NoText:
            return "None"

    def _said(self, value: Any) -> str:
        """An expression for a value. Raises NoText if there is no short one."""
        if isinstance(value, torch.Tensor):
            return _tensor(value)
        text = literals.scalar(value)
        if text is not None:
            if len(text) > MOST_CHARACTERS:
                raise NoText
            return text
        if isinstance(value, enum.Enum):
            return f"{self._object(type(value))}.{value.name}"
        if not isinstance(value, (list, tuple, dict)):
            return self._object(value)
        text = literals.container(value, self._said) if len(value) <= MOST_ITEMS else None
        if text is None:
            raise NoText
        return text

    def _object(self, value: Any) -> str:
        main = vars(sys.modules["__main__"])
        if isinstance(value, (type, FunctionType)):
            name = str(value.__name__)
            if main.get(name) is not value:
                raise NoText
            return name
        kind = type(value)
        if kind.__module__.startswith("torch.nn.modules.") and not list(value.children()):
            return f"torch.nn.{value!r}"
        if main.get(kind.__name__) is not kind:
            # a config object of some library's class that the script shares
            named = next((name for name, held in main.items() if held is value and not isinstance(held, torch.nn.Module)), None)
            if named is None:
                raise NoText
            return named
        if dataclasses.is_dataclass(value):
            fields = [f for f in dataclasses.fields(value) if f.init and getattr(value, f.name) is not f.default]
            return f"{kind.__name__}({', '.join(f'{f.name}={self._said(getattr(value, f.name))}' for f in fields)})"
        made, said = self._made.get(id(value), (None, None))
        if kind.__init__ in (object.__init__, torch.nn.Module.__init__):
            return f"{kind.__name__}()"
        if made is not value or said is None:
            raise NoText
        return f"{kind.__name__}({said})"


def _owner(frame: FrameType) -> Any:
    """The object whose method is called; None for a function."""
    code = frame.f_code
    return frame.f_locals.get("self") if code.co_argcount and code.co_varnames[0] == "self" else None


def _functions() -> Iterator[tuple[str, FunctionType]]:
    """The script's functions, and the methods of its classes, with their qualified names; decorated ones as they were defined."""
    for name, value in list(vars(sys.modules["__main__"]).items()):
        if isinstance(value, type) and value.__module__ == "__main__":
            members = [(f"{name}.{method}", getattr(member, "__func__", member)) for method, member in list(vars(value).items())]
        else:
            members = [(name, value)]
        for qualified, member in members:
            function = inspect.unwrap(member) if callable(member) else None
            if isinstance(function, FunctionType) and function.__module__ == "__main__":
                yield qualified, function


def _made_inside(functions: Sequence[tuple[str, CodeType]], code: CodeType) -> Iterator[str]:
    """The qualified name of a nested function of one of these `functions` that has this `code`; no methods."""
    for name, own in functions:
        made = [(f"{name}.{_INSIDE}.{c.co_name}", c) for c in own.co_consts if isinstance(c, CodeType) and c.co_name.isidentifier()]
        yield from (inner for inner, c in made if c is code)
        yield from _made_inside(made, code)


def _tensor(value: torch.Tensor) -> str:
    if type(value) not in (torch.Tensor, torch.nn.Parameter) or value.layout != torch.strided or value.is_quantized:
        raise NoText
    shape = ", ".join(str(int(size)) for size in value.shape) or "()"
    more = "" if value.device.type == "cpu" else f", device={value.device.type!r}"
    if value.dtype.is_floating_point or value.dtype.is_complex:
        dtype = "" if value.dtype == torch.get_default_dtype() else f", dtype={value.dtype}"
        if value.dtype.itemsize == 1:
            raise NoText  # nothing draws these
        return f"torch.randn({shape}{dtype}{more}{', requires_grad=True' if value.requires_grad else ''})"
    # zero is a valid index for everything
    return f"torch.zeros({shape}, dtype={value.dtype}{more})"
