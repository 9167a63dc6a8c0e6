"""Launches of the user's own Triton kernels: from a graph to a line of the script. No Triton is needed to read or print one."""

from __future__ import annotations

import sys
from typing import Any

import pytest
import torch
import torch.fx
from torch._higher_order_ops.triton_kernel_wrap import kernel_side_table, triton_kernel_wrapper_functional, triton_kernel_wrapper_mutation

from bot.inside.capture.fx_reader import Unreadable, launch_stacks, read_graph
from bot.reduce.graph.codec import graph_from_json
from bot.reduce.graph.form import Program, Recipe
from bot.reduce.graph.naming import canonical
from bot.reduce.graph.printer.script import render


class Kernel:
    """What stands at the top of a script that decorates a function with `triton.jit`."""

    configs: list[Any]


def launching(kernel: Any, grid: list[Any], **told: Any) -> torch.fx.GraphModule:
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    x.meta["example_value"] = torch.ones(4)
    out = graph.call_function(torch.empty_like, (x,))
    out.meta["example_value"] = torch.ones(4)
    facts = {
        "kernel_idx": kernel_side_table.add_kernel(kernel),
        "constant_args_idx": kernel_side_table.add_constant_args({"n": 4, "BLOCK": 128}),
        "grid": grid,
        "tma_descriptor_metadata": {},
        "kwargs": {"src": x, "dst": out},
        **told,
    }
    graph.call_function(triton_kernel_wrapper_mutation, (), facts)
    graph.output((out,))
    return torch.fx.GraphModule({}, graph)


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    found = Kernel()
    monkeypatch.setattr(sys.modules["__main__"], "add_one", found, raising=False)
    return found


def test_a_launch_is_written_as_people_write_it(kernel: Kernel) -> None:
    read = read_graph(launching(kernel, [(1, 1, 1)]), [torch.ones(4)], blob_dir=None)
    program = Program(canonical(graph_from_json(read)), Recipe(), preamble="add_one = None")
    assert (
        "        empty_like = torch.empty_like(x)\n"
        "        add_one[(1, 1, 1)](src=x, dst=empty_like, n=4, BLOCK=128)\n"
        "        return empty_like\n"
    ) in render(program)


class Config:
    """What is read of a `triton.Config`."""

    def __init__(self, **kwargs: int) -> None:
        self.kwargs = kwargs


def test_a_grid_for_each_configuration_is_a_function_of_what_tells_them_apart(kernel: Kernel) -> None:
    kernel.configs = [Config(WARPS=1, BLOCK=64), Config(WARPS=1, BLOCK=128), Config(WARPS=1, BLOCK=64)]
    read = read_graph(launching(kernel, [(4, 1, 1), (2, 1, 1), (4, 1, 1)]), [torch.ones(4)], blob_dir=None)
    script = render(Program(canonical(graph_from_json(read)), Recipe(), preamble="add_one = None"))
    assert 'add_one[lambda meta: {64: (4, 1, 1), 128: (2, 1, 1)}[meta["BLOCK"]]](src=x, dst=empty_like, n=4, BLOCK=128)\n' in script


def test_configurations_with_one_grid_have_that_one(kernel: Kernel) -> None:
    read = read_graph(launching(kernel, [(4, 1, 1), (4, 1, 1)]), [torch.ones(4)], blob_dir=None)
    assert "add_one[(4, 1, 1)](" in render(Program(canonical(graph_from_json(read)), Recipe(), preamble="add_one = None"))


@pytest.mark.parametrize(
    ("grid", "told", "why"),
    [
        ([(1, 1, 1), (2, 1, 1)], {}, "no parameter tells apart"),
        ([(1, 1, 1)], {"tma_descriptor_metadata": {"src": ("stable", ([4],))}}, "with descriptors"),
    ],
)
def test_what_no_single_launch_says_is_not_written(kernel: Kernel, grid: list[Any], told: dict[str, Any], why: str) -> None:
    with pytest.raises(Unreadable, match=why):
        read_graph(launching(kernel, grid, **told), [torch.ones(4)], blob_dir=None)


def test_what_aot_autograd_makes_of_a_launch_is_not_written(kernel: Kernel) -> None:
    module = launching(kernel, [(1, 1, 1)])
    node = next(n for n in module.graph.nodes if n.target is triton_kernel_wrapper_mutation)
    node.target = triton_kernel_wrapper_functional
    with pytest.raises(Unreadable, match="returns copies"):
        read_graph(module, [torch.ones(4)], blob_dir=None)


def test_a_kernel_that_no_name_leads_to_is_not_written() -> None:
    with pytest.raises(Unreadable, match="no Python name leads to"):
        read_graph(launching(Kernel(), [(1, 1, 1)]), [torch.ones(4)], blob_dir=None)


def test_where_a_graph_launches_is_known_whatever_the_launch_is(kernel: Kernel) -> None:
    """Also of one that cannot be written down, and of a graph inside another."""
    gm = launching(kernel, [(1, 1, 1), (2, 1, 1)])
    (launch,) = gm.graph.find_nodes(op="call_function", target=triton_kernel_wrapper_mutation)
    launch.meta["stack_trace"] = '  File "fail.py", line 7, in op\n    add_one[(1,)](x, out)\n'
    outer = torch.fx.Graph()
    outer.output(outer.call_module("inner", (outer.placeholder("x"),)))
    assert launch_stacks(torch.fx.GraphModule({"inner": gm}, outer)) == [launch.meta["stack_trace"]]
    assert launch_stacks(torch.fx.GraphModule({}, torch.fx.Graph())) == []
