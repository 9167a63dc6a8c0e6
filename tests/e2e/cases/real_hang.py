# minutes in the compiler, milliseconds in eager
import torch


@torch.compile
def f(n):
    x = torch.full((3600,), 0.5)
    return torch.tanh(torch.diff(x, n=n, dim=0)) + 1


print(f(32).shape)
