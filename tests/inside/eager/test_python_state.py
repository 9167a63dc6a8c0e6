"""What a run leaves in Python's own state, put back after it."""

from __future__ import annotations

import collections
import functools
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from bot.inside.eager.fp64 import evaluate  # noqa: E402
from bot.inside.eager.python_state import PythonState  # noqa: E402

TOTAL = 0
SEEN: list[Any] = []


class Kept:
    """Counts in all places where an object can."""

    known: list[int] = []  # noqa: RUF012 -- shared on purpose
    calls = 0

    def __init__(self) -> None:
        self.count = 0
        self.order = collections.OrderedDict(a=1, b=2)
        self.last: collections.deque[int] = collections.deque(maxlen=2)
        self.names = {"a"}

    def __call__(self, x: Any, given: Any = None) -> Any:
        global TOTAL
        TOTAL += 1
        self.count += 1
        self.new = x
        self.order.move_to_end("a")
        self.last.append(self.count)
        self.names.add("b")
        Kept.known.append(self.count)
        Kept.calls += 1
        Kept.fresh = 1
        SEEN.append(x)
        if given is not None:
            given.count += 1
        return x


def held(kept: Kept) -> list[Any]:
    """All that a call of `kept` changes."""
    fresh = [hasattr(kept, "new"), hasattr(Kept, "fresh")]
    return [TOTAL, kept.count, list(kept.order), list(kept.last), set(kept.names), list(Kept.known), Kept.calls, list(SEEN), *fresh]


def nested(x: Any) -> Any:
    """A function with a class of its own in its closure, as a factory makes it."""
    log: list[Any] = []
    count = 0

    class Helper:
        def touch(self, value: Any) -> Any:
            nonlocal count
            count += 1
            log.append(value)
            return value

    def run(value: Any, seen: list[Any] = []) -> Any:  # noqa: B006 -- that is what is looked at
        seen.append(value)
        return Helper().touch(value)

    return run, lambda: (count, list(log), list(run.__defaults__[0])), x


@pytest.mark.parametrize("wrap", [lambda one: one, functools.partial, lambda one: one.__call__, lambda one: lambda x: one(x)])
def test_a_run_leaves_no_trace(wrap: Any) -> None:
    kept = Kept()
    kept(0)  # nothing is empty
    before = held(kept)
    function = wrap(kept)
    state = PythonState(function)
    function(1)
    assert held(kept) != before
    state.put_back()
    assert held(kept) == before


def test_a_closure_and_a_default_are_put_back() -> None:
    run, found, _ = nested(0)
    before = found()
    state = PythonState(run)
    run(1)
    assert found() == (1, [1], [1])
    state.put_back()
    assert found() == before == (0, [], [])


class Cache(torch.nn.Module):
    """Keeps what it saw, as a decoder does, and gives something else each time."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)
        self.seen = torch.zeros(0, 3)
        self.parts: list[Any] = []
        self.step = 0

    def forward(self, x: Any) -> Any:
        self.step += 1
        self.seen = torch.cat([self.seen, self.linear(x)])
        self.parts = [*self.parts, self.seen[-1]]
        return self.seen.sum(0) / self.step


def test_float64_counts_each_call_once_and_keeps_eager_types() -> None:
    torch.manual_seed(0)
    module, other, x = Cache(), Cache(), torch.randn(2, 3)
    other.load_state_dict(module.state_dict())
    for _ in range(3):
        torch.testing.assert_close(evaluate(module, (x,), {}), other(x))
    assert module.step == other.step == 3
    assert module.seen.dtype == torch.float32
    assert [part.dtype for part in module.parts] == [torch.float32] * 3
    torch.testing.assert_close(module.seen, other.seen)


@pytest.mark.parametrize("named", [False, True])
def test_float64_fills_what_the_caller_holds(named: bool) -> None:
    def fill(x: Any, into: list[Any], table: dict[str, Any], kept: Kept) -> Any:
        into.append(x * 2)
        table["n"] = table["n"] + x
        kept.count += 1
        return into[0] + x

    x, into, table, kept = torch.ones(2), [torch.ones(2)], {"n": torch.zeros(2)}, Kept()
    args = ((), {"x": x, "into": into, "table": table, "kept": kept}) if named else ((x, into, table, kept), {})
    result = evaluate(fill, *args)
    assert result.tolist() == [2, 2]
    assert [one.tolist() for one in into] == [[1, 1], [2, 2]]
    assert table["n"].tolist() == [1, 1]
    assert kept.count == 1
    assert {one.dtype for one in (result, *into, table["n"])} == {torch.float32}
