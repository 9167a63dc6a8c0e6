"""The bodies of higher-order operations. Script and print are torch 2.13's of a `cond` in a `cond`, shortened."""

from __future__ import annotations

import ast

from bot.engine.inputs.bodies import with_bodies
from tests.engine.inputs.test_dump import AOT
from tests.engine.inputs.test_trace import end, graph, read, record

SCRIPT = AOT.replace("        super().__init__()\n", "        super().__init__()\n        self.true_graph_0 = <lambda>()\n", 1)
READABLE = """\
class <lambda>(torch.nn.Module):
    def forward(self, arg0_1: "f32[2, 3]"):
         # File: /x.py:5 in f, code: y = torch.cond(...)
        true_graph_0 = self.true_graph_0
        cond = torch.ops.higher_order.cond(arg0_1, true_graph_0, true_graph_0, (arg0_1,));  true_graph_0 = None
        return (cond,)

    class true_graph_0(torch.nn.Module):
        def forward(self, arg0_1: "f32[2, 3]"):
            inner_0 = self.inner_0
            sin: "f32[2, 3]" = torch.ops.aten.sin.default(arg0_1);  arg0_1 = None
            return (sin,)

        class inner_0(torch.nn.Module):
            def forward(self, arg0_1: "f32[2, 3]"):
                return (arg0_1,)
"""


def test_a_body_becomes_a_class_of_the_graph_s() -> None:
    text = with_bodies(SCRIPT, READABLE)
    (repro,) = (node for node in ast.parse(text).body if isinstance(node, ast.ClassDef))
    (body,) = (node for node in repro.body if isinstance(node, ast.ClassDef))
    assert [node.name for node in body.body if isinstance(node, ast.ClassDef)] == ["body_inner_0"]
    assert "self.true_graph_0 = self.body_true_graph_0()" in text
    assert "self.inner_0 = self.body_inner_0()" in text


def test_a_print_without_that_body_leaves_the_script_as_it_was() -> None:
    assert with_bodies(SCRIPT, READABLE.replace("class true_graph_0", "class other")) == SCRIPT
    assert with_bodies(SCRIPT, "no python (") == SCRIPT
    assert with_bodies(AOT, READABLE) == AOT


def test_a_trace_has_the_print_behind_the_graph() -> None:
    printed = record({"artifact": {"name": "before_post_grad_graph"}, "frame_id": 0, "frame_compile_id": 0, "has_payload": "x"}, READABLE)
    other = record({"artifact": {"name": "before_post_grad_graph"}, "frame_id": 1, "frame_compile_id": 0, "has_payload": "x"}, READABLE)
    assert "body_true_graph_0" in read(graph(0, text=SCRIPT), printed, end(0)).graphs[0].text
    assert "body_true_graph_0" not in read(graph(0, text=SCRIPT), other, end(0)).graphs[0].text
