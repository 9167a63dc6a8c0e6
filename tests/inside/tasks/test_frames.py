"""How inner functions are called, as source that makes the same call."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

from bot.inside.protocol import Question
from bot.workers.pool import Pool

SCRIPT = textwrap.dedent("""\
    import dataclasses
    import types
    import torch
    from torch import nn

    @dataclasses.dataclass
    class Config:
        width: int = 4
        rates: tuple = (0.5,)
        act: nn.Module = None

    class Handle:
        pass

    class Inner(nn.Module):
        def __init__(self, config, *sizes, scale=1.0, **names):
            super().__init__()
            self.w = nn.Parameter(torch.ones(config.width))

        def forward(self, x, mask=None, *, flag=False):
            return helper(x * self.w, mask, [1, None], {"a": torch.float64})  # here

    class Base(nn.Module):
        def __init__(self):
            super().__init__()

    class Outer(Base):
        def __init__(self, config):
            super().__init__()
            self.inner = Inner(config, 3, (4, float("inf")), scale=2.0, deep="yes")
            self.handle = Handle()

        def forward(self, x):
            y = self.inner(x.relu(), x > 0)  # here
            return self.method(y, self.handle, config.act, settings)

        def method(self, y, handle, act, settings):
            with torch.no_grad():
                return opened(y, [object()])  # here

    def helper(x, mask, items, table):
        return x + 1  # here

    def opened(y, data):
        return last(y)  # here

    def last(y, more=7):
        return y * 2  # here

    def outside(x):
        return compiled(x)  # here

    settings = types.SimpleNamespace(deep=True)
    config = Config(width=3, act=nn.Dropout(0.25))
    compiled = torch.compile(Outer(config).half().eval())
    outside(torch.ones(2, 3, dtype=torch.float16))
    """)


def asked(pool: Pool, text: str) -> dict[str, dict[str, Any]]:
    lines = tuple(number for number, line in enumerate(text.splitlines(), 1) if "# here" in line)
    outcome, facts = pool.ask(Question(text, "frames", 60.0, lines=lines))
    assert outcome.status == "ok", outcome.text
    return {call["name"]: call for call in facts["frames"]}


@pytest.mark.slow
def test_calls(pool: Pool) -> None:
    found = asked(pool, SCRIPT)
    config = "Config(width=3, act=torch.nn.Dropout(p=0.25, inplace=False))"
    assert list(found) == ["last", "helper", "opened", "Inner.forward", "Outer.method", "Outer.forward"]
    assert found["helper"] == {
        "name": "helper",
        "reads": [],
        "callee": "helper",
        "arguments": [
            "torch.randn(2, 3, dtype=torch.float16, requires_grad=True)",
            "torch.zeros(2, 3, dtype=torch.bool)",
            "[1, None]",
            '{"a": torch.float64}',
        ],
        "contexts": [],
    }
    assert found["opened"]["arguments"][1:] == ["None"], "there is no expression for it, and the function may not look at it"
    assert found["last"]["contexts"] == ["torch.no_grad()"]
    assert len(found["last"]["arguments"]) == 1, "a default is not spelled out"
    inner = found["Inner.forward"]
    assert inner["callee"] == f'Inner({config}, 3, (4, torch.inf), scale=2.0, deep="yes").to(torch.float16).eval()'
    outer = found["Outer.forward"]
    assert outer["callee"] == f"Outer({config}).to(torch.float16).eval()"
    assert found["Outer.method"]["callee"] == outer["callee"] + ".method"
    assert found["Outer.method"]["arguments"][1:] == ["Handle()", "torch.nn.Dropout(p=0.25, inplace=False)", "settings"]
    # every expression makes what it stands for
    main: dict[str, Any] = {"__name__": "__main__"}
    exec(SCRIPT[: SCRIPT.index("config = Config(")], main)
    for call in found.values():
        eval(f"{call['callee']}, dict(args=[{', '.join(a for a in call['arguments'] if '=' not in a.split('(')[0])}])", main)


@pytest.mark.slow
def test_the_run_ends_when_the_innermost_function_was_called(pool: Pool) -> None:
    text = textwrap.dedent("""\
        import torch

        @torch.compile
        def healthy(x):
            return x  # here

        @torch.compile
        def failing(x, y):
            return x  # here

        healthy(torch.ones(2))
        failing(torch.ones(2), torch.ones(3))
        raise KeyError("too far")
        """)
    assert list(asked(pool, text)) == ["healthy", "failing"]


@pytest.mark.slow
def test_a_hook_in_a_model_of_a_library_is_called_alone(pool: Pool) -> None:
    text = textwrap.dedent("""\
        import torch

        def watch(module, args, output):
            print(output.mean())  # here

        model = torch.nn.Sequential(torch.nn.Sequential(torch.nn.Linear(4, 2)))
        model[0].register_forward_hook(watch)
        torch.compile(model)(torch.ones(3, 4))
        """)
    found = asked(pool, text)["watch"]
    assert found["arguments"] == ["None", "(torch.randn(3, 4),)", "torch.randn(3, 2, requires_grad=True)"]


@pytest.mark.slow
def test_what_a_function_reads_that_another_one_makes(pool: Pool) -> None:
    text = textwrap.dedent("""\
        import torch

        def hooked(model, stats, deep):
            def watch(module, args, output):
                stats["mean"] = output.mean()
                deep.note(model, 3)  # here
            model.register_forward_hook(watch)

        class Deep:
            def note(self, model, n): print(n)

        model = torch.nn.Sequential(torch.nn.Linear(4, 2))
        hooked(model, {}, Deep())
        torch.compile(model)(torch.ones(3, 4))
        """)
    found = asked(pool, text)["hooked.<locals>.watch"]
    assert (found["callee"], found["reads"]) == ("watch", ["deep = Deep()", "model = None", "stats = {}"])


@pytest.mark.slow
def test_what_is_exported_is_a_call_too(pool: Pool) -> None:
    text = textwrap.dedent("""\
        import torch

        class M(torch.nn.Module):
            def forward(self, x, k):
                return x * k  # here

        torch.export.export(M(), (torch.ones(2, dtype=torch.int32), 3))
        """)
    assert asked(pool, text)["M.forward"]["arguments"] == ["torch.zeros(2, dtype=torch.int32)", "3"]


@pytest.mark.slow
def test_what_a_thread_calls(pool: Pool) -> None:
    text = textwrap.dedent("""\
        import threading
        import torch

        def f(x):
            return x + 1  # here

        thread = threading.Thread(target=torch.compile(f), args=(torch.ones(3),))
        thread.start()
        thread.join()
        """)
    assert asked(pool, text)["f"]["arguments"] == ["torch.randn(3)"]


@pytest.mark.slow
def test_methods_without_an_object_are_called_by_their_class(pool: Pool) -> None:
    text = textwrap.dedent("""\
        import torch

        class Server:
            def __init__(self, model):
                self.rank = torch.compile(self.rank)

            @staticmethod
            def rank(scores, keep):
                return Server.made(scores > keep)  # here

            @classmethod
            def made(cls, mask):
                return mask.sum()  # here

        Server(object()).rank(torch.ones(3), 0.5)
        """)
    found = asked(pool, text)
    assert [call["callee"] for call in found.values()] == ["Server.made", "Server.rank"]
    assert found["Server.rank"]["arguments"] == ["torch.randn(3)", "0.5"]
    assert found["Server.made"]["arguments"] == ["torch.zeros(3, dtype=torch.bool)"]


@pytest.mark.slow
def test_what_is_compiled_is_a_call_whatever_lines_it_has(pool: Pool) -> None:
    text = textwrap.dedent("""\
        import torch

        def inner(x):
            return x.sum()

        class Outer(torch.nn.Module):
            def forward(self, x, ids):
                return inner(x) + ids

        def train(step, batches):
            for batch in batches:
                step(*batch)  # here

        train(torch.compile(Outer()), [(torch.ones(2), torch.ones(3)), (torch.ones(4), torch.ones(4))])
        """)
    found = asked(pool, text)
    assert [(call["callee"], call["arguments"]) for call in found.values()] == [("Outer()", ["torch.randn(2)", "torch.randn(3)"])]


@pytest.mark.slow
def test_nothing_is_said_of_what_is_not_compiled(pool: Pool) -> None:
    assert asked(pool, "import torch\ndef f(x):\n    return x  # here\nf(torch.ones(2))\n") == {}
