"""torch 2.13 cannot compile `map` on a CPU unless `fullgraph` is set: the operation itself is the bug, whatever its body is."""

import torch
from torch._higher_order_ops.map import map as over


class Rows(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Linear(4, 4)

    def forward(self, xs, w):
        xs = torch.nn.functional.gelu(self.embed(xs))
        rows = over(lambda x, w: torch.sigmoid(x) @ w + 1, xs, w)
        return rows.cos().sum(-1)


torch.manual_seed(0)
torch.compile(Rows())(torch.randn(3, 4, 4), torch.randn(4, 4))
