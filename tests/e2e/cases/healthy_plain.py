import torch


@torch.compile
def f(x, y):
    return torch.relu(x @ y).sum(0)


f(torch.randn(4, 4), torch.randn(4, 4))
