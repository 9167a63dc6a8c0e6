# a graph break that the program counts: it says so by an error of its own, and numbers are right
import torch
from torch._dynamo.testing import CompileCounter

counter = CompileCounter()


def scaled(x, factor):
    low, high = x.min(), x.max()
    return (x - low) / (high - low) * factor


def parted(x, w):
    y = torch.tanh(scaled(x, 2.0) @ w)
    y = torch.cat([y, y.flip(0)])
    torch._dynamo.graph_break()
    z = torch.sigmoid(y).sum(dim=1)
    return z.sort().values


x, w = torch.randn(3, 4), torch.randn(4, 2)
compiled = torch.compile(parted, backend=counter)
print(compiled(x, w).shape)
if counter.frame_count > 1:
    raise RuntimeError(f"{counter.frame_count} graphs where one was to be")
