"""A C++ error in the body of a scan. Without `fullgraph` this torch cannot compile a scan at all, which is another failure."""

import torch
from torch._higher_order_ops.scan import scan

torch._inductor.config.cpp.inject_relu_bug_TESTING_ONLY = "compile_error"


def step(carry, x):
    h = torch.tanh(carry + x)
    h = torch.relu(h) * 0.5
    return h, h.cos() + 1


def model(init, xs):
    carry, ys = scan(step, init, xs.sin() + 1, dim=0)
    return carry.exp(), ys.sum(0)


torch.compile(model, fullgraph=True)(torch.zeros(4), torch.randn(5, 4))
