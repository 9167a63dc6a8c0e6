"""Scripts without one setting."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.reduce.source.settings import without_calls, without_setting


@pytest.mark.parametrize(
    ("line", "becomes"),
    [
        ("config.my_pass = mine", "pass"),
        ("torch._inductor.config.my_pass = config.other = mine", "pass"),
        ("if a: config.my_pass = mine", "if a: pass"),
        ("with config.patch(my_pass=mine, other=1): f()", "with config.patch(other=1): f()"),
        ('f = torch.compile(g, options={"my_pass": mine, "other": 1})', 'f = torch.compile(g, options={"other": 1})'),
        ('config.patch({"torch._inductor.config.my_pass": mine})', "config.patch({})"),
        ("my_pass = mine", None),
        ("print(config.my_pass)", None),
        ("config.my_pass_too = mine", None),
        ("config.my_pass = (", None),
    ],
)
def test_wherever_it_is_made(line: str, becomes: str | None) -> None:
    found = without_setting(f"import torch\n{line}\n", "my_pass")
    assert found == (None if becomes is None else f"import torch\n{becomes}\n")


@pytest.mark.parametrize(
    ("line", "becomes"),
    [
        ("torch.manual_seed(0)", "pass"),
        ("manual_seed(0); f()", "pass; f()"),
        ("g = torch.Generator().manual_seed(0)", None),
        ("manual_seed(0); g.manual_seed(1).f()", None),
        ("f(manual_seed)", None),
    ],
)
def test_calls_that_stand_alone(line: str, becomes: str | None) -> None:
    found = without_calls(f"import torch\n{line}\n", {"manual_seed"})
    assert found == (None if becomes is None else f"import torch\n{becomes}\n")


LINES = st.sampled_from(
    (
        "config.a = x\n",
        "if b: config.a = config.b = x; f(a=y)\n",
        "with config.patch(a=y), config.patch({'a': y}):\n    a = x\n",
        "f(options={'a': y, 'b': y}, a=y)\n",
        "class C:\n    config.a = x\n",
    )
)


@given(st.text() | st.lists(LINES | st.text(max_size=3), max_size=6).map("".join))
def test_any_text(text: str) -> None:
    found = without_setting(text, "a")
    if found is not None:
        compile(found, "x", "exec")
