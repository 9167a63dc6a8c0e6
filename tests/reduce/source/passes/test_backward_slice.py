"""The first guess: what each failing frame is cut down to."""

from __future__ import annotations

import textwrap

import pytest

from bot.reduce.source.passes.backward_slice import guesses
from bot.reduce.source.text.normal_form import MARK, normal, unmarked


def guessed(text: str) -> list[str]:
    """The guesses for a program in which `# here` marks the failing frames."""
    return [normal(unmarked(g)) for g in guesses(normal_with_marks(text))]


def normal_with_marks(text: str) -> str:
    return normal(textwrap.dedent(text).replace("# here", MARK))


SCRIPT = """\
    import sys
    import torch

    class Cached:
        def __init__(self, fn):
            self.fn = fn

        def __get__(self, obj, owner=None):
            found = self.fn(obj)  # here
            return found

    class Rounded(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, bits):
            n = bits + 1
            return undefined(x, n)  # here

    class Inner(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = 2

        @{decorator}
        def gain(self):
            frame = sys._getframe()  # here
            return 0.0 * frame.f_lineno

        def forward(self, x):
            y = x + 1
            return {leads}  # here

    model = Inner()
    x = torch.ones(2)
    compiled = torch.compile(model)
    print(float(compiled(x).sum().item()))  # here
"""


@pytest.mark.parametrize(
    ("decorator", "leads", "cut"),
    [
        ("property", "y * self.weight * self.gain", "self.gain"),
        ("Cached", "y * self.weight * self.gain", "self.gain"),
        ("functools.cached_property", "torch.relu(self.gain) + len(y)", "self.gain"),
        ("property", "x @ Rounded.apply(x, self.weight).t()", "Rounded.apply(x, self.weight)"),
        ("property", "self.post(helper(self.gain))", "self.gain"),
    ],
)
def test_a_frame_is_cut_to_what_leads_on(decorator: str, leads: str, cut: str) -> None:
    first = guessed(SCRIPT.format(decorator=decorator, leads=leads))[0]
    assert f"    def forward(self, x):\n        return {cut}\n" in first


def test_the_last_frame_gives_its_value_to_its_caller() -> None:
    first = guessed(SCRIPT.format(decorator="property", leads="y * self.gain"))[0]
    assert "        return sys._getframe()\n" in first


def test_what_is_done_with_the_result_of_the_compiled_function_goes() -> None:
    first = guessed(SCRIPT.format(decorator="property", leads="y * self.gain"))[0]
    assert first.endswith("compiled = torch.compile(model)\ncompiled(x)\n")


def test_a_method_handed_on_is_no_call_of_it() -> None:
    text = """\
        import torch
        from torch.utils.checkpoint import checkpoint

        class Net:
            def step(self, x):
                return x.missing  # here

            def run(self, x):
                y = x + 1
                return checkpoint(self.step, x)  # here

        net = Net()
        torch.compile(net.run)(1)  # here
    """
    found = guessed(text)
    assert found
    assert all("y = x" not in g for g in found)
    assert all("checkpoint(self.step, x)" in g and "torch.compile(net.run)(1)" in g for g in found)


def test_making_a_module_leads_on_only_into_its_constructor() -> None:
    text = """\
        import torch

        class Net:
            def {method}(self, x=0):
                y = x + 1
                return undefined(x)  # here

        done = print(torch.export.export(Net(), (1,)))  # here
    """
    assert guessed(text.format(method="forward"))[0].endswith("\ntorch.export.export(Net(), (1,))\n")
    found = guessed(text.format(method="__init__"))
    assert found
    assert all("torch.export.export(" in g for g in found)


def test_setting_an_attribute_stays_beside_its_value() -> None:
    text = """\
        import torch

        class Net:
            def __init__(self):
                self.n = 0

            def forward(self, x):
                y = x + 1
                self.n += torch.ones(1)  # here
                return self.n + y

        torch.compile(Net().forward)(1)  # here
    """
    first = guessed(text)[0]
    assert "        self.n = 0\n" in first
    assert first.count("self.n += torch.ones(1)") == 1
    assert "y" not in first.split("def forward")[1].split("torch")[0]


def test_a_call_that_writes_what_is_read_later_stays() -> None:
    text = """\
        import torch

        def main():
            x = torch.ones(2)
            path = "model.pt2"
            print(path)
            exported = torch.export.export(Model(), (x,))
            torch._inductor.aoti_compile_and_package(exported, package_path=path)
            unrelated(3)
            runner = torch._inductor.aoti_load_package(path)
            got = runner(x)
            check(got, Model()(x))  # here
            print(got)

        main()  # here
    """
    whole = [g for g in guessed(text) if "check(" in g]
    assert whole
    for guess in whole:
        assert "torch._inductor.aoti_compile_and_package(exported, package_path=path)" in guess
        assert "print" not in guess
        assert "unrelated" not in guess


def test_a_guess_without_the_compiler_is_none() -> None:
    text = """\
        import torch

        def check(a, b):
            assert a == b  # here

        compiled = torch.compile(model)
        check(1, compiled(2))  # here
        other(check(1, 1))  # here
    """
    found = guessed(text)
    assert found
    assert all("torch.compile" in g for g in found)


def test_an_edit_that_leaves_no_python_is_no_guess() -> None:
    tabs = f"def f(x):\n\tif x:\n\t\ty = [x]\n\t\tz = g(y)  {MARK}\n\t\treturn z\n\n\ntorch.compile(f)(1)  {MARK}\n"
    assert guesses(tabs) == [], "edits indent by spaces"
    found = guesses(normal(tabs))
    assert found
    for guess in found:
        compile(guess, "<guess>", "exec")
