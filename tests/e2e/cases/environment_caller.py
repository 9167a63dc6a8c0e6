# fails only where TORCHINDUCTOR_FX_WRAPPER=1 stands in the environment of whoever calls it
import torch


@torch.compile
def f(x):
    y = torch.tanh(x + 1)
    y = torch.erf(y * 0.5)
    z = y + x.cos()
    return torch.softmax(z, dim=-1), z.cumsum(0)


f(torch.randn(5, 5))
