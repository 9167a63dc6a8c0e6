import torch

torch._inductor.config.cpp.inject_relu_bug_TESTING_ONLY = "compile_error"


def f(x):
    scale = torch.tensor([0.5, 1.5, 2.5, 3.5, 4.5, 5.5])
    return torch.relu(x * scale + 1.0).cumsum(0)


torch.compile(f)(torch.linspace(-1, 1, 6))
