# minutes in the compiler, milliseconds in eager
import torch


@torch.compile
def f(x):
    x = torch.cumsum(x, dim=0)
    return torch.diff(x * 2, n=40, dim=0).sum()


print(f(torch.ones(4000)))
