"""Rewrites of values: what each proposes."""

from __future__ import annotations

import pytest

from bot.reduce.source.passes.values import imports, inputs, numbers, read_sizes, strings, tuples, unread, used_once
from bot.reduce.source.text.normal_form import MARK


def test_an_assignment_of_several_keeps_those_that_are_read() -> None:
    text = "def f(self):\n    self.a, self.b, c = 1, 2, 3\n    return self.a, c\n"
    assert "def f(self):\n    self.a, c = 1, 3\n    return self.a, c\n" in tuples(text)


def test_what_nobody_reads_goes_out_of_an_assignment_of_several() -> None:
    assert list(tuples("self.a, self.b = 1, 2\nprint(self.b)\n")) == ["self.b = 2\nprint(self.b)\n"]


def test_constant_parts_of_a_string_are_written_out() -> None:
    assert list(strings("f(f'layer{0}', f'{n}', f'{1!r}')\n")) == ["f('layer0', f'{n}', f'{1!r}')\n"]


def test_a_variable_read_once_is_written_out() -> None:
    assert list(used_once("x = a + 1\nf(x * 2)\n")) == ["f((a + 1) * 2)\n"]
    assert list(used_once("x = a\nf(x, x)\n")) == ["f(a, a)\n"], "another name for something"
    assert list(used_once("x = a + 1\nf(x, x)\n")) == []
    assert list(used_once("x = a + 1\nf(lambda: x)\n")) == [], "it may be read later"
    assert list(used_once("x = 'a'\ndef f():\n    g(x, x)\n")) == ["def f():\n    g('a', 'a')\n"], "it is the same then"
    assert list(used_once("x = 1\nf(lambda: x)\nx = 2\n")) == []
    assert list(used_once("x = 1\ndef f(x):\n    g(x)\n")) == [], "another x"


def test_where_the_failure_points_only_another_name_for_something_goes() -> None:
    assert list(used_once(f"x = a + 1{MARK}\nf(x)\n")) == []
    assert list(used_once(f"x = a{MARK}\nf(x)\n")) == ["f(a)\n"]


def test_a_value_that_nobody_reads_loses_its_name() -> None:
    assert list(unread("x = f()\ny = 1\n")) == ["f()\ny = 1\n"]


def test_sizes_become_small_but_the_order_of_dimensions_stays() -> None:
    found = list(numbers("f(8, 4).permute(2, 3)\n"))
    assert found[0] == "f(2, 2).permute(2, 3)\n"
    assert "f(1, 4).permute(2, 3)\n" in found
    assert all(text.endswith(".permute(2, 3)\n") for text in found)


def test_a_size_that_is_read_off_a_tensor_becomes_a_number() -> None:
    assert list(read_sizes("y.view(x.shape[0] * x.size(-1) // 2)\n")) == ["y.view(-1)\n", "y.view(2)\n", "y.view(1)\n"]
    assert "y.view(x.numel(), -1)\n" in list(read_sizes("y.view(x.numel(), x.shape[1])\n")), "each by itself"
    assert list(read_sizes("y.view(x.shape[1:], n * 2)\n")) == []


@pytest.mark.parametrize(
    "setting",
    [
        "torch._dynamo.config.recompile_limit = 5\n",
        "import torch._dynamo.config as cfg\ncfg.recompile_limit = 5\n",
        "from torch._dynamo import config\nconfig.patch(recompile_limit=5)\n",
    ],
)
def test_settings_of_pytorch_are_no_sizes(setting: str) -> None:
    found = list(numbers(f"{setting}f(8)\n"))
    assert found[0] == f"{setting}f(2)\n"
    assert all(text.startswith(setting) for text in found)


def test_a_config_of_the_program_s_own_holds_sizes() -> None:
    assert "self.config.layers = 1\n" in list(numbers("self.config.layers = 12\n"))


def test_an_input_is_made_in_the_plainest_way() -> None:
    found = list(inputs("x = torch.randn(64, 32, 16)\ny = torch.zeros(3)\n"))
    assert found[0] == "x = torch.ones(())\ny = torch.zeros(3)\n"
    assert len(found) == 5


def test_numbers_that_are_written_out_become_random_only_where_a_seed_is_set() -> None:
    """Of a few values of which one is wrong, a single random one is wrong now and then."""
    text = "p = torch.tensor([0.2, 1.5, -0.3, 0.9])\n"
    assert set(inputs(text)) == {"p = torch.ones(())\n", "p = torch.ones(2)\n", "p = torch.ones(2, 2)\n"}
    assert "torch.manual_seed(0)\np = torch.randn(2)\n" in set(inputs("torch.manual_seed(0)\n" + text))


def test_imports_that_nobody_reads_go_together() -> None:
    assert list(imports("import a, b\nfrom c import d\nfrom __future__ import annotations\nb()\n")) == [
        "import b\nfrom __future__ import annotations\nb()\n"
    ]
    assert list(imports("import a\na()\n")) == []
