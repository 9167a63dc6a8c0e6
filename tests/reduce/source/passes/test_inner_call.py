"""Programs written anew around an inner call."""

from __future__ import annotations

import textwrap

import pytest

from bot.reduce.source.passes.inner_call import InnerCall, rerooted
from bot.reduce.source.text.normal_form import MARK, unmarked

SCRIPT = """\
    import math
    import torch
    torch._dynamo.config.suppress_errors = False
    torch.manual_seed(3)
    SIZE = 8
    OTHER = 9

    def own(gm, inputs):
        return gm

    class Inner(torch.nn.Module):
        def __init__(self, size):
            super().__init__()
            self.size = size

        def forward(self, x):
            y = x + self.size
            return undefined(y)  # here

    class Outer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Inner(SIZE)

        def forward(self, x):
            return self.inner(x * math.pi)  # here

    def main(local):
        model = torch.compile(Outer(), backend=own, mode=local)
        return model(torch.ones(2))  # here

    main(None)  # here
    """


def written(text: str, *calls: InnerCall) -> list[str]:
    text = textwrap.dedent(text)
    lines = [number for number, line in enumerate(text.splitlines(), 1) if "# here" in line]
    return list(rerooted(text, lines, calls))


def test_what_led_there_is_left_out() -> None:
    inner = InnerCall("Inner.forward", "Inner(8)", ("torch.ones(2)",), ("torch.no_grad()", "torch.autocast('cpu')"))
    outer = InnerCall("Outer.forward", "Outer()", ("torch.ones(2)",))
    first, second = written(SCRIPT, inner, outer)
    assert first.count(MARK) == 2, "the failing statement, and the call"
    assert unmarked(first) == textwrap.dedent("""\
        import torch

        torch._dynamo.config.suppress_errors = False
        torch.manual_seed(3)


        def own(gm, inputs):
            return gm


        class Inner(torch.nn.Module):
            def __init__(self, size):
                super().__init__()
                self.size = size

            def forward(self, x):
                y = x + self.size
                return undefined(y)


        with torch.no_grad():
            with torch.autocast("cpu"):
                torch.compile(Inner(8), backend=own)(torch.ones(2))
        """)
    assert second.count(MARK) == 3
    assert "SIZE = 8" in second
    assert "OTHER" not in second
    assert "main" not in second


@pytest.mark.parametrize(
    ("compiled", "arguments", "call"),
    [
        ("torch.compile(f, fullgraph=True)", ("7", "k=1"), "torch.compile(g, fullgraph=True)(7, k=1)"),
        ("torch.export.export(f, (1,), {'a': 2}, strict=False, dynamic_shapes=None)", ("3",), "torch.export.export(g, (3,), strict=False)"),
        ("torch.export.export(f, args=(1,))", ("3", "4", "k=5"), 'torch.export.export(g, (3, 4), kwargs={"k": 5})'),
        ("torch.compile(model=f)", (), "torch.compile(g)()"),
    ],
)
def test_the_compiler_is_called_as_before(compiled: str, arguments: tuple[str, ...], call: str) -> None:
    text = f"import torch\ndef g():\n    return 1  # here\ndef f():\n    return g()\n{compiled}\n"
    (program,) = written(text, InnerCall("g", "g", arguments))
    assert unmarked(program).splitlines()[-1] == call


def test_what_is_compiled_where_it_is_defined_is_called() -> None:
    text = "from torch import compile\nimport torch\n@torch.compile\ndef g(x):\n    return x  # here\ng(1)\n"
    (program,) = written(text, InnerCall("g", "g", ("2",)))
    assert unmarked(program).endswith("\n\ng(2)\n")


def test_without_a_compiler_there_is_nothing_to_write() -> None:
    assert written("def g():\n    return 1  # here\ng()\n", InnerCall("g", "g", ())) == []
    assert written("import torch\ntorch.compile(print)\n", InnerCall("nowhere", "nowhere", ())) == []


def test_a_script_indented_by_tabs() -> None:
    spaces = written(SCRIPT, InnerCall("Inner.forward", "Inner(8).forward", ("torch.ones(2)",)))
    tabs = written(textwrap.dedent(SCRIPT).replace("    ", "\t"), InnerCall("Inner.forward", "Inner(8).forward", ("torch.ones(2)",)))
    assert tabs == spaces != []


def test_a_function_that_another_one_makes_stands_at_the_top() -> None:
    text = """\
        import torch

        def hooked(model, stats):
            def watch(module, args, output):
                stats["mean"] = output.mean()
                undefined(stats)  # here
            model.register_forward_hook(watch)

        model = torch.nn.Linear(4, 2)
        hooked(model, {})
        torch.compile(model, fullgraph=True)(torch.ones(3, 4))  # here
        """
    (program,) = written(text, InnerCall("hooked.<locals>.watch", "watch", ("None", "torch.ones(2)"), (), ("stats = {}",)))
    assert program.count(MARK) == 2
    assert unmarked(program) == textwrap.dedent("""\
        import torch

        stats = {}


        def watch(module, args, output):
            stats["mean"] = output.mean()
            undefined(stats)


        torch.compile(watch, fullgraph=True)(None, torch.ones(2))
        """)
