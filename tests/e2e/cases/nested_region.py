"""A C++ error inside a region that is compiled once and called three times."""

import torch

torch._inductor.config.cpp.inject_relu_bug_TESTING_ONLY = "compile_error"


@torch.compiler.nested_compile_region
def block(x, w):
    y = torch.nn.functional.layer_norm(x @ w, (4,))
    return torch.relu(y).sin() + x


def model(x, w):
    for _ in range(3):
        x = block(x, w)
    return x.softmax(-1).sum()


torch.compile(model)(torch.randn(4, 4), torch.randn(4, 4, requires_grad=True))
