"""Graphs with operations whose results nothing takes."""

from __future__ import annotations

import ast

import pytest

from bot.engine.inputs import dump, graphs
from bot.engine.inputs.graphs import Held
from bot.engine.inputs.taken import DumpedGraph, Place
from bot.engine.inputs.unused import returned
from tests.engine.inputs.test_dump import AOT

GRAPH = "        getitem = cos[0];  cos = None\n        return (getitem,)\n"


def forward(text: str) -> str:
    return text.partition("def forward")[2].partition("load_args")[0]


@pytest.mark.parametrize(
    ("lines", "result"),
    [
        ("sub = torch.ops.aten.sub.Tensor(cos, 1)", "return (getitem, sub)"),
        ("sub = torch.ops.aten.sub.Tensor(cos, 1);  sub = None", "return (getitem, sub)"),
        ("copy_ = torch.ops.aten.copy_.default(arg0_1, cos);  copy_ = None", "return (getitem,)"),
        ("item = cos[1]", "return (getitem,)"),
        ("_tensor_constant0 = self._tensor_constant0", "return (getitem,)"),
    ],
)
def test_what_nothing_takes_is_returned(lines: str, result: str) -> None:
    text = AOT.replace(GRAPH, f"        {lines}\n{GRAPH}")
    found = returned(dump.read(text))
    script = dump.script([("repro", found, None)])
    ast.parse(script)
    assert result in forward(script)
    assert "sub = None" not in script


def test_it_is_a_second_script_where_there_is_something(tmp_path) -> None:
    def taken(text: str) -> graphs.Taken:
        held = Held("runnable", "a runnable", (DumpedGraph("0/0", text),))
        return graphs.taken(held, Place(tmp_path / "x.py", tmp_path))

    assert taken(AOT).then == ""
    found = taken(AOT.replace(GRAPH, "        sub = torch.ops.aten.sub.Tensor(cos, 1)\n" + GRAPH))
    assert found.text is not None
    assert ("return (getitem,)" in found.text, "return (getitem, sub)" in found.then) == (True, True)
