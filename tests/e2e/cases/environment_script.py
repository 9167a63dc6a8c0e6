# a setting that the script gives by an environment variable, before torch reads it
import os

os.environ["TORCHINDUCTOR_FX_WRAPPER"] = "1"

import torch


@torch.compile
def f(x):
    y = torch.tanh(x + 1)
    z = torch.erf(y * 0.5) + x.cos()
    return torch.softmax(z, dim=-1), z.cumsum(0)


f(torch.randn(5, 5))
