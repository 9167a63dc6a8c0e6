"""Graphs of Dynamo as they are printed into a trace: torch 2.13's, of `print_readable` with strides and device."""

from __future__ import annotations

import pytest

from bot.engine.inputs import dump
from bot.engine.inputs.printed import as_dump
from tests.engine.inputs.test_trace import end, graph, read, record

PRINTED = """\
class GraphModule(torch.nn.Module):
    def forward(self, L_self_modules_lin_parameters_weight_: "f32[2, 3][3, 1]cpu", L_x_: "i64[4][2]cuda:0", L_y_: "f64[][]cpu"):
        l_x_ = L_x_

        # File: /x.py:5 in f, code: y = torch.cos(x)
        y: "f32[4][1]cpu" = torch.cos(l_x_);  l_x_ = None
        cond_true_0 = self.cond_true_0
        cond = torch.ops.higher_order.cond(True, cond_true_0, cond_true_0, (y,));  cond_true_0 = None
        return (cond,)

    class cond_true_0(torch.nn.Module):
        def forward(self, y: "f32[4][1]cpu"):
            return (y,)
"""
FAILED = "BackendCompilerFailed: backend='aot_eager' raised:"


def test_its_inputs_are_made_as_it_says() -> None:
    text = as_dump(PRINTED, FAILED)
    assert text is not None
    found = dump.read(text)
    assert (found.level, found.how["backend"], found.ops, found.devices) == ("dynamo", "aot_eager", 2, frozenset({"cuda"}))
    script = dump.script([("0/0", found, None)])
    assert "buf0 = reader.storage(None, 24, device=torch.device('cpu'), dtype_hint=torch.float32)" in script
    assert "reader.tensor(buf0, (2, 3), (3, 1), dtype=torch.float32, requires_grad=True, is_leaf=True)" in script
    assert "buf1 = reader.storage(None, 56, device=torch.device('cuda:0'), dtype_hint=torch.int64)" in script
    assert "reader.tensor(buf2, (), (), dtype=torch.float64, requires_grad=False, is_leaf=True)" in script
    assert "self.cond_true_0 = self.body_cond_true_0()" in script


@pytest.mark.parametrize(
    "changed",
    [
        PRINTED.replace("i64[4][2]cuda:0", "i64[s0][2]cuda:0"),  # nobody says how large
        PRINTED.replace('L_x_: "i64[4][2]cuda:0"', "L_x_"),
        PRINTED.replace("torch.cos(l_x_)", "self.L__self___conv(l_x_)"),  # a module of the program's
        PRINTED.replace("i64[", "q8["),
        "class GraphModule(",
        "",
    ],
)  # fmt: skip
def test_what_it_does_not_say_is_not_made_up(changed: str) -> None:
    assert as_dump(changed, FAILED) is None


def test_only_a_failed_compilation_without_another_graph_is_taken_from_it() -> None:
    def printed(frame: int) -> str:
        return record({"dynamo_output_graph": {"sizes": {}}, "frame_id": frame, "frame_compile_id": 0, "has_payload": "x"}, PRINTED)

    failed = ("BackendCompilerFailed", "backend='aot_eager' raised:")
    found = read(printed(0), graph(0), end(0), printed(1), end(1), printed(2), end(2, failed=failed))
    assert [(g.name, bool(g.failed)) for g in found.graphs] == [("0/0", False), ("2/0", True)]
    assert found.failures == {}
