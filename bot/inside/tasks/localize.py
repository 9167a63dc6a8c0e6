"""Where the numbers go wrong first, and whether that reaches a wrong output of the program.

`Repro.forward` is compiled again so that it returns its local values. A value is wrong if compiled is clearly farther from float64 than
eager is; an error begins at a wrong value whose operands are right. Substituted for eager's own value in an eager run, it shows whether
the error reaches the outputs: `log1p` may be off but harmless if only its sign is used. Values are compared in batches of bounded size.
For each batch, eager runs again, in float64 too, and the program is compiled again, so that never more than one batch is in memory.

A graph of hundreds of operations compiles slowly with all of its values as outputs. If only the beginning is wanted, a few statements at a
time are compiled alone, on eager's values, until one of them is wrong.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import importlib
import os
import tempfile
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import torch

from ..eager import accuracy, fp64, lifetimes, noise
from ..eager.fp64 import drew, keeping_tensors, random_state, restore
from ..eager.scale import at_scale
from ..program import read_source, run_as_main
from ..protocol import FEW_VALUES, MORE_VALUES, RETURNED, Facts, Question
from ..untuned import untuned

# Number of substitutions to try; each is one eager run.
MOST = 400
# Bytes of values held at once: eager's, the compiled program's, and the wrong ones to be substituted.
HELD = 2 << 30
_KEEP = "_torch_minify_keep"


def localize(path: str, question: Question) -> Facts:
    """Facts for a `question` about the script at `path`, with `first` (names where an error begins, in program order), `wrong` (all that
    are wrong) and `harmless` (wrong names that reach no output); if only the beginning is wanted, among what was compared."""
    program = _Program(read_source(path), path)
    rule = accuracy.ComparisonRule(question.strict, question.tolerance)
    original = torch.compile
    found: list[Facts] = []

    def probing(model: Any = None, **kwargs: Any) -> Any:
        if model is None:
            return lambda inner: probing(inner, **kwargs)
        if program.forward is None or type(model).__name__ != "Repro":
            return original(model, **kwargs)

        def call(*args: Any) -> Any:
            probe = _Probe(program, model, lambda: original(model, **kwargs), args, rule, tempfile.mkdtemp(dir=os.path.dirname(path)))
            # what is only a guess where an error begins is asked about
            with untuned() if question.beginning and torch.cuda.is_initialized() else contextlib.nullcontext():
                found.append(probe.beginning(question.window) if question.beginning else probe.judge())
            raise SystemExit(0)

        return call

    torch.compile = probing
    facts = run_as_main(path, question.argv)
    if not found:  # the script does not get there, or does not compile
        return {**facts, "first": [], "wrong": [], "harmless": []}
    return found[0]


class _Program:
    """The script's `forward`, and the two forms in which it exposes its values."""

    def __init__(self, text: str, path: str) -> None:
        self.path = path
        tree = ast.parse(text)
        self.forward = lifetimes.forward(tree)
        # `__future__` imports, such as for annotations, affect how `forward` is compiled
        self.futures = [one for one in tree.body if isinstance(one, ast.ImportFrom) and one.module == "__future__"]
        # for each value, the names that it is computed from
        self.operands: dict[str, list[str]] = {}
        for statement in self.forward.body if self.forward else ():
            if isinstance(statement, ast.Return) and statement.value is not None:
                self.operands[RETURNED] = _names(statement.value)
            elif name := lifetimes.assigned(statement):
                assert isinstance(statement, ast.Assign)
                self.operands[name] = _names(statement.value)

    def kept(self, namespace: dict[str, Any]) -> Any:
        """For eager: each value passes through the function `_KEEP` of the namespace, and is deleted after its last use."""
        function = copy.deepcopy(self.forward)
        assert function is not None
        body: list[ast.stmt] = []
        for statement in function.body:
            body.append(statement)
            if name := lifetimes.assigned(statement):
                body += ast.parse(f"{name} = {_KEEP}({name!r}, {name})").body
        function.body = body
        lifetimes.shorten(function)
        return self._made(function, namespace)

    def returning(self, names: Sequence[str], namespace: dict[str, Any]) -> Any:
        """For the compiler: returns the original result and the values of these names."""
        function = copy.deepcopy(self.forward)
        assert function is not None
        return self._returning(function, names, namespace)

    def _returning(self, function: ast.FunctionDef, names: Sequence[str], namespace: dict[str, Any]) -> Any:
        for statement in function.body:
            if isinstance(statement, ast.Return) and statement.value is not None:
                values = ast.parse("{" + ", ".join(f"{name!r}: {name}" for name in names) + "}", mode="eval").body
                statement.value = ast.Tuple([statement.value, values], ast.Load())
        return self._made(function, namespace)

    def between(self, names: Collection[str], namespace: dict[str, Any]) -> tuple[Any, list[str]]:
        """Like `returning`, but only the statements that make these names, with what they read as extra inputs; also returns the names of
        these inputs."""
        assert self.forward is not None
        function = copy.copy(self.forward)
        function.args = copy.deepcopy(function.args)
        function.body = [
            copy.deepcopy(s) for s in function.body if lifetimes.assigned(s) in names or (isinstance(s, ast.Return) and RETURNED in names)
        ]
        read = dict.fromkeys(used for name in names for used in self.operands[name] if used in self.operands and used not in names)
        function.args.args += [ast.arg(name) for name in read]
        if RETURNED not in names:
            function.body.append(ast.Return(ast.Constant(None)))
        return self._returning(function, [name for name in names if name != RETURNED], namespace), list(read)

    def _made(self, function: ast.FunctionDef, namespace: dict[str, Any]) -> Any:
        made: dict[str, Any] = {}
        module = ast.fix_missing_locations(ast.Module([*self.futures, function], []))
        exec(compile(module, self.path, "exec", dont_inherit=True), namespace, made)
        return made[function.name]


def _names(expression: ast.expr) -> list[str]:
    return [n.id for n in ast.walk(expression) if isinstance(n, ast.Name)]


class _Enough(BaseException):
    """Nothing after this is needed. Not an Exception, since nothing in the program may swallow it."""


class _Probe:
    """Compares eager and compiled on the inputs of the first compiled call."""

    def __init__(
        self, program: _Program, model: Any, compiled: Callable[[], Any], args: Sequence[Any], rule: accuracy.ComparisonRule, directory: str
    ) -> None:
        self.program, self.model, self.compiled, self.rule = program, model, compiled, rule
        self.inputs = tuple(accuracy.clones(args))
        self.namespace = type(model).forward.__globals__
        self.kept = program.kept(self.namespace)
        self.expected: Any = None  # what eager returns
        self.reference: _Reference | None = None  # what float64 returns
        self.wrong: set[str] = set()
        self.drew = False  # random numbers
        self.shelf = _Shelf(directory)

    def judge(self) -> Facts:
        """Compare value by value, then try each wrong one in an eager run."""
        compared: set[str] = set()
        while not self._compare(compared):
            # drops compiled code, and with it the limit on recompiling one function
            importlib.import_module("torch._dynamo").reset()
        return self._facts(MOST)

    def beginning(self, window: tuple[int, int] | None) -> Facts:
        """Compare a few statements at a time, of all or of those in the `window`, and try in an eager run where the error begins."""
        left = list(self.program.operands)[slice(*window or (None,))]
        size = len(left) if window else FEW_VALUES
        while left and not self.wrong:
            self._compare_alone(left[:size])
            importlib.import_module("torch._dynamo").reset()
            left, size = left[size:], min(2 * size, MORE_VALUES)
        if self.wrong:
            # what does not reach these is harmless
            self.expected = self._eager(lambda _, value: value)
            self.reference = self._referenced(())[RETURNED]
        return self._facts(0)

    def _facts(self, tries: int) -> Facts:
        """What was found; where an error begins is always tried, and up to `tries` wrong values in all."""
        wrong = [name for name in self.program.operands if name in self.wrong]
        first = [name for name in wrong if self._begins(name)]
        others = [name for name in wrong if not self._begins(name)]
        tried = [*first, *others[: max(0, tries - len(first))]]
        harmless = [name for name in tried if name in self.shelf.names and not self._reaches(name)]
        return {"status": "ok", "text": "", "first": first, "wrong": wrong, "harmless": harmless}

    def _compare(self, compared: set[str]) -> bool:
        """Compare one batch of values that are not in `compared`, and add them to it; returns whether it was the last."""
        batch = _Batch(compared)
        self.expected = self._eager(batch.keep)
        names = [name for name in self.program.operands if name in batch.values]
        returned, values = self._run(self.compiled(), self.program.returning(names, self.namespace))
        known = self._referenced(names)
        if self.reference is None:
            self.reference = known[RETURNED]
            if not self._alike(self.expected, returned, self.reference):
                self.wrong.add(RETURNED)
        self._judge(batch.values, values, known)
        compared.update(batch.values)
        return not batch.full

    def _compare_alone(self, names: Sequence[str]) -> None:
        """Compare these values, computed from eager's own by compiling their statements alone. What follows them is not run."""
        between, read = self.program.between(names, self.namespace)
        batch = _Batch(set(self.program.operands) - set(names))
        given: dict[str, Any] = {}
        random: Sequence[torch.Tensor] = ()

        def keep(name: str, value: Any) -> Any:
            nonlocal random
            if name in read:
                # before it is changed in place
                given[name] = accuracy.clones([value])[0]
            if not batch.values and name not in names:
                random = random_state()
            batch.keep(name, value)
            if name == names[-1]:
                raise _Enough
            return value

        returned_by_eager = self._eager(keep)
        if batch.full:
            return
        try:
            returned, values = self._run(self.compiled(), between, [*self.inputs, *(given[name] for name in read)], random)
        except Exception:
            # if the compiler cannot compile these statements alone, that says nothing about the numbers
            return
        known = self._referenced(names, until=names[-1])
        if RETURNED in names:
            batch.values[RETURNED], values[RETURNED] = returned_by_eager, returned
        self._judge(batch.values, values, known)

    def _judge(self, expected: dict[str, Any], actual: dict[str, Any], known: dict[str, _Reference]) -> None:
        """Compare values by name."""
        for name, value in actual.items():
            if not self._alike(expected[name], value, known[name]) or not self._alike_at_scale(expected[name], value, known[name]):
                self.wrong.add(name)
                # no more are tried, but those where an error begins have priority
                if len(self.shelf.names) < MOST or self._begins(name):
                    self.shelf.put(name, value)

    def _begins(self, name: str) -> bool:
        return not any(used in self.wrong for used in self.program.operands[name])

    def _eager(self, keep: Callable[[str, Any], Any]) -> Any:
        self.namespace[_KEEP] = keep
        return self._run(self.model, self.kept)

    def _referenced(self, names: Sequence[str], *, until: str = RETURNED) -> dict[str, _Reference]:
        """The references for these values and for the return value: float64, or eager moved by its own rounding if that is not available.
        What comes after `until` is unknown."""
        unknown = {name: _Reference() for name in (*names, RETURNED)}
        found = None if self.drew else self._values(frozenset(names), until, fp64.in_double)
        if found is not None:
            return unknown | {name: _Reference(value, True) for name, value in found.items()}
        found = self._values(frozenset(names), until, _moved) or {}
        return unknown | {name: _Reference(value) for name, value in found.items()}

    def _values(self, names: frozenset[str], until: str, call: Callable[..., Any]) -> dict[str, Any] | None:
        """These values, and the return value, from one run of the model through `call` that ends with `until`; None if that fails."""
        values: dict[str, Any] = {}

        def keep(name: str, value: Any) -> Any:
            if name in names:
                values[name] = value
            if name == until:
                raise _Enough
            return value

        self.namespace[_KEEP] = keep
        try:
            returned = self._run(lambda *args: call(self.model, args, {}), self.kept)
        except Exception:
            return None
        return values | {RETURNED: returned} if until == RETURNED else values

    def _run(self, function: Any, forward: Any, inputs: Sequence[Any] | None = None, random: Sequence[torch.Tensor] = ()) -> Any:
        """Call `function`, the model itself or compiled, with this `forward`; the model's tensors stay unchanged.

        `inputs`: None for those of the call that is compared; `random`: the states of the generators, otherwise those given by the seed.
        Returns None if it was stopped early.
        """
        type(self.model).forward = forward
        with keeping_tensors(self.model), torch.random.fork_rng(), torch.no_grad():
            torch.manual_seed(accuracy.SEED)
            restore(random)
            before = random_state()
            # clones keep results separate from what is changed in place later
            result = None
            with contextlib.suppress(_Enough):
                result = function(*accuracy.clones(self.inputs if inputs is None else inputs))
            self.drew = self.drew or drew(before)
            return result

    def _reaches(self, name: str) -> bool:
        def keep(other: str, value: Any) -> Any:
            return self.shelf.copy(name) if other == name else value

        return not self._alike(self.expected, self._eager(keep), self.reference)

    def _alike(self, expected: Any, actual: Any, reference: _Reference | None) -> bool:
        reference = reference or _Reference()
        known = accuracy.tensors_of(reference.value) if reference.value is not None else None
        exact, moved = (known, None) if reference.exact else (None, known)
        return not self.rule.compare(accuracy.tensors_of(expected), accuracy.tensors_of(actual), exact, moved).wrong

    def _alike_at_scale(self, expected: Any, actual: Any, reference: _Reference) -> bool:
        """Like `_alike`, for values scaled so that the largest is about one. Gradients are usually far smaller: an absolute tolerance
        accepts any of them, and they would seem wrong only when many are added up. True if float64 is not known."""
        trees = [accuracy.tensors_of(tree) for tree in (expected, actual, reference.value if reference.exact else None)]
        if len({len(tensors) for tensors in trees}) != 1:
            return True
        scaled = [at_scale(*three) for three in zip(*trees, strict=True)]
        ours, theirs, exact = ([three[place] for three in scaled if three is not None] for place in range(3))
        return not self.rule.compare(ours, theirs, exact).wrong


class _Reference(NamedTuple):
    """What a value is compared with: float64 if it is `exact`, otherwise eager moved by its own rounding; None if there is neither."""

    value: Any = None
    exact: bool = False


def _moved(model: Any, args: Any, kwargs: Any) -> Any:
    with noise.Jittered():
        return model(*args, **kwargs)


class _Batch:
    """Values of one eager run, from the first that was not compared yet, until they are too large to be held together."""

    def __init__(self, compared: set[str]) -> None:
        self.compared = compared
        self.values: dict[str, Any] = {}
        self.full = False
        self._storages: set[int] = set()
        self._bytes = 0

    def keep(self, name: str, value: Any) -> Any:
        if name in self.values:
            self.values[name] = value
        elif name not in self.compared and not self.full:
            # views of what is held already cost nothing
            fresh = {s.data_ptr(): s.nbytes() for s in _storages(value) if s.data_ptr() not in self._storages}
            # half, since the float64 values take up to twice as many bytes
            self.full = bool(self.values) and self._bytes + sum(fresh.values()) > HELD // 2
            if not self.full:
                self.values[name] = value
                self._storages |= fresh.keys()
                self._bytes += sum(fresh.values())
        return value


class _Shelf:
    """Values kept for later: in memory as long as they fit, the others on disk."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.names: dict[str, int] = {}  # each with a number
        self._held: dict[str, Any] = {}
        self._bytes = 0

    def put(self, name: str, value: Any) -> None:
        self.names[name] = len(self.names)
        size = sum(storage.nbytes() for storage in _storages(value))
        if self._bytes + size <= HELD:
            self._held[name] = value
            self._bytes += size
        else:
            torch.save(value, self._file(name))

    def copy(self, name: str) -> Any:
        """A separate copy for each caller."""
        return copy.deepcopy(self._held[name]) if name in self._held else torch.load(self._file(name), weights_only=False)

    def _file(self, name: str) -> str:
        return os.path.join(self.directory, f"{self.names[name]}.pt")


def _storages(tree: Any) -> list[Any]:
    return [x.untyped_storage() for x in accuracy.tensors_of(tree) if x.layout is torch.strided]
