"""What is read from a script's syntax tree, and what is not."""

from __future__ import annotations

import pytest

from bot.inside.traits import UNKNOWN, Traits, traits_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("torch.manual_seed(0)", Traits(seeded=True)),
        ("from torch import manual_seed as fix\nfix(0)", Traits(seeded=True)),
        ("np.random.seed(0)", Traits(seeded=True)),
        ("torch.seed()", Traits()),
        ("# torch.manual_seed(0)", Traits()),
        ("said = 'manual_seed'", Traits()),
        ("manual_seed = 3", Traits()),
        ("loss.backward()", Traits(differentiates=True)),
        ("torch.autograd.grad(y, x)", Traits(differentiates=True)),
        ("partial(torch.autograd.grad, y)", Traits(differentiates=True)),
        ("from torch.func import grad as g\ng(f)(x)", Traits(differentiates=True)),
        ("grad(f)(x)", Traits(differentiates=True)),
        ("vjp(f, x)", Traits(differentiates=True)),
        ("print(x.grad)", Traits()),
        ("y = x.grad.sum()", Traits()),
        ("class F(torch.autograd.Function):\n    def backward(ctx, g): return g", Traits()),
        ("backward_graph = 1", Traits()),
        ("torch.empty(3)", Traits(uninitialized=True)),
        ("torch.ops.aten.empty.memory_format([3])", Traits(uninitialized=True)),
        ("make = x.new_empty", Traits(uninitialized=True)),
        ("if not empty: x = torch.zeros(3)  # torch.empty(3)", Traits()),
        ("y = x.to(torch.int8)", Traits(converts=True)),
        ("y = x.long()", Traits(converts=True)),
        ("torch.ops.prims.convert_element_type.default(x, torch.uint8)", Traits(converts=True)),
        ("n = int(x)", Traits()),
        ("y = x.to(torch.float16)", Traits()),
        ("x[i] = y", Traits(overwrites=True)),
        ("x[:, i] += y", Traits(overwrites=True)),
        ("torch.ops.aten.index_put.default(x, [i], y)", Traits(overwrites=True)),
        ("x.scatter_(0, i, y)", Traits(overwrites=True)),
        ("x[1:, -1, ..., None] = y[i]", Traits()),
        ("x.scatter_add(0, i, y)", Traits()),
        ("torch._inductor.config.fallback_random = True", Traits(draws_as_eager=True)),
        ("torch._inductor.config.fallback_random = False", Traits()),
        ("with torch._inductor.config.patch(fallback_random=True): f(x)", Traits(draws_as_eager=True)),
        ("with torch._inductor.config.patch('fallback_random', True): f(x)", Traits(draws_as_eager=True)),
        ("torch.compile(f, options={'fallback_random': True})", Traits(draws_as_eager=True)),
        ("torch.compile(f, options={'fallback_random': False})", Traits()),
        ("print(config.fallback_random)", Traits()),
        ("fallback_random = 'no entry of a config'", Traits()),
        ("this is no Python", UNKNOWN),
        ("\0", UNKNOWN),
    ],
)
def test_traits(text: str, expected: Traits) -> None:
    assert traits_of(text) == expected


def test_one_visit_finds_all() -> None:
    text = "import torch\ntorch.manual_seed(0)\nx = torch.empty(2)\nx.sum().backward()\ntorch._inductor.config.fallback_random = 1\n"
    assert traits_of(text) == Traits(seeded=True, differentiates=True, uninitialized=True, draws_as_eager=True)
