"""Calls of the user's own Triton kernels in an FX graph.

Dynamo writes down numbers of a table that lives in this process: which kernel, and which arguments could not stand in a graph.
"""

from __future__ import annotations

import sys
from typing import Any

import torch.fx

from .fx_targets import Unreadable, path_of

_LAUNCH = "triton_kernel_wrapper_"


def is_launch(node: torch.fx.Node) -> bool:
    """Whether a `node` launches a kernel."""
    return str(node.target).startswith(_LAUNCH)


def launch(node: torch.fx.Node) -> tuple[str, Any, dict[str, Any]]:
    """Of the launch `node`: the kernel's name in the script, its grid, and its arguments by name, as they stand in the graph.

    Raises `Unreadable` for several configurations at once, descriptors made on the host, a kernel that no name leads to, and for what
    AOTAutograd makes of a launch: that one returns copies, and no script says so.
    """
    if str(node.target) != f"{_LAUNCH}mutation":
        raise Unreadable("a launch of a Triton kernel that returns copies of what it changes")
    from torch._higher_order_ops.triton_kernel_wrap import kernel_side_table

    told = dict(node.kwargs)
    grids: Any = told["grid"]
    if len(grids) != 1 or told.get("tma_descriptor_metadata"):
        raise Unreadable("a launch of a Triton kernel with several configurations, or with descriptors")
    kernel = kernel_side_table.get_kernel(told["kernel_idx"])
    constants = kernel_side_table.get_constant_args(told["constant_args_idx"])
    given: Any = told["kwargs"]
    return _name_of(kernel), tuple(grids[0]), {**given, **constants}


def _name_of(kernel: Any) -> str:
    main = vars(sys.modules["__main__"])
    for name, value in main.items():
        if value is kernel:
            return name
    return path_of(kernel)
