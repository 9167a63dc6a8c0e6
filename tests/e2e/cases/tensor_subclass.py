"""A C++ error behind a traceable tensor subclass: what it holds is what is compiled."""

import torch
from torch.testing._internal.two_tensor import TwoTensor

torch._inductor.config.cpp.inject_relu_bug_TESTING_ONLY = "compile_error"


def model(x, y):
    z = x.sin() @ y
    z = torch.relu(z).cos()
    return (z * 2).softmax(-1)


pair = TwoTensor(torch.randn(3, 3), torch.randn(3, 3))
torch.compile(model, fullgraph=True)(pair, torch.randn(3, 3))
