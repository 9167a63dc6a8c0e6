"""Where the numbers go wrong first, and whether that reaches a wrong output of the program.

`Repro.forward` is compiled once more so that it returns each of its local values. A value that is wrong although what it
is made of is right is where an error begins. Put into an eager run in place of eager's own value, it shows whether the
error reaches the outputs: `log1p` may be off and harmless where only its sign is used.
"""

from __future__ import annotations

import ast
import copy
from typing import Any

import torch

from . import accuracy

# Substitutions that are tried; each is one eager run.
MOST = 400
RETURNED = "return"
_ALL = "_torch_minify_values"
_PUT = "_torch_minify_put"


def localise(path: str, request: dict[str, Any]) -> dict[str, Any]:
    """Facts with `first` (names where an error begins, in program order) and `harmless` (wrong names that reach no output)."""
    from . import child

    with open(path, encoding="utf-8") as file:
        tree = ast.parse(file.read())
    operands = _instrument(tree)
    with open(path, "w", encoding="utf-8") as file:
        file.write(ast.unparse(tree))
    tolerance = request.get("tolerance")
    probe = _Probe(accuracy.Rule(bool(request.get("strict")), None if tolerance is None else tuple(tolerance)))
    original = torch.compile

    def probing(model: Any = None, **kwargs: Any) -> Any:
        if model is None:
            return lambda inner: probing(inner, **kwargs)
        return probe.wrap(model, original(model, **kwargs))

    torch.compile = probing
    facts = child.run_as_main(path, request.get("argv", []))
    if not probe.compiled:  # the script does not get there, or does not compile
        return {**facts, "first": [], "harmless": []}
    return {"status": "ok", "text": "", **probe.judge(operands)}


def _instrument(tree: ast.Module) -> dict[str, list[str]]:
    """Make `forward` return its values too, and take replacements; for each value the names it is made of."""
    operands: dict[str, list[str]] = {}
    forward = next(
        (
            inner
            for outer in tree.body
            if isinstance(outer, ast.ClassDef) and outer.name == "Repro"
            for inner in outer.body
            if isinstance(inner, ast.FunctionDef) and inner.name == "forward"
        ),
        None,
    )
    if forward is None:
        return operands
    body: list[ast.stmt] = []
    for statement in forward.body:
        if isinstance(statement, ast.Return) and statement.value is not None:
            operands[RETURNED] = _names(statement.value)
            names = [name for name in operands if name != RETURNED]
            values = "{" + ", ".join(f"{name!r}: {name}" for name in names) + "}"
            body += ast.parse(f"{RETURNED}_value = None\n{_ALL} = {values}\n").body
            assign = body[-2]
            assert isinstance(assign, ast.Assign)
            assign.value = statement.value
            body += ast.parse(f"def f():\n    return {RETURNED}_value, {_ALL}").body[0].body  # type: ignore[attr-defined]
            continue
        body.append(statement)
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            name = statement.targets[0].id
            operands[name] = _names(statement.value)
            body += ast.parse(f"{name} = {_PUT}.get({name!r}, {name})").body
    forward.body = body
    tree.body.insert(0, ast.parse(f"{_PUT} = {{}}").body[0])
    ast.fix_missing_locations(tree)
    return operands


def _names(expression: ast.expr) -> list[str]:
    return [n.id for n in ast.walk(expression) if isinstance(n, ast.Name)]


class _Probe:
    """Runs the module eagerly and compiled at its first compiled call, on the same inputs."""

    def __init__(self, rule: accuracy.Rule) -> None:
        self.rule = rule
        self.eager: dict[str, Any] = {}
        self.compiled: dict[str, Any] = {}
        self.model: Any = None
        self.inputs: tuple[Any, ...] = ()

    def wrap(self, model: Any, compiled: Any) -> Any:
        def call(*args: Any) -> Any:
            self.model, self.inputs = model, tuple(accuracy.clones(args))
            self.eager = self._values(model)
            self.compiled = self._values(compiled)
            raise SystemExit(0)

        return call

    def _values(self, function: Any) -> dict[str, Any]:
        with torch.random.fork_rng(), torch.no_grad():
            torch.manual_seed(accuracy.SEED)
            # clones keep what is computed apart from what is changed in place later
            returned, values = function(*accuracy.clones(self.inputs))
            return {RETURNED: returned, **values}

    def judge(self, operands: dict[str, list[str]]) -> dict[str, Any]:
        """Compare value by value, then try each wrong one in an eager run."""
        wrong = [name for name in self.eager if not self._alike(self.eager[name], self.compiled.get(name))]
        first = [name for name in operands if name in wrong and not any(used in wrong for used in operands[name])]
        harmless = [name for name in [*first, *[w for w in wrong if w not in first]][:MOST] if name != RETURNED and not self._reaches(name)]
        return {"first": first, "harmless": harmless}

    def _reaches(self, name: str) -> bool:
        forward = type(self.model).forward
        put = forward.__globals__[_PUT]
        put[name] = copy.deepcopy(self.compiled[name])
        try:
            return not self._alike(self.eager[RETURNED], self._values(self.model)[RETURNED])
        finally:
            put.clear()

    def _alike(self, expected: Any, actual: Any) -> bool:
        from torch.utils._pytree import tree_leaves

        ours = [x for x in tree_leaves(expected) if isinstance(x, torch.Tensor)]
        theirs = [x for x in tree_leaves(actual) if isinstance(x, torch.Tensor)]
        return self.rule.same(ours, theirs)
