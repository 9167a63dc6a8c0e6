# a lowering that waits for what never comes
import threading

import torch
from torch._inductor.lowering import register_lowering


@register_lowering(torch.ops.aten.asinh.default)
def asinh(x):
    threading.Event().wait()


def f(x):
    return torch.softmax(torch.asinh(x.cos()), dim=-1) + x.sum()


x = torch.randn(4, 8)
print(f(x).shape)
print(torch.compile(f)(x).shape)
