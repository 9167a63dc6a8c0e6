import torch

torch._inductor.config.cpp.inject_relu_bug_TESTING_ONLY = "accuracy"


def f(x):
    table = torch.tensor([[1.0, -2.0, 3.0], [-4.0, 5.0, -6.0]])
    return torch.relu(table) * x


x = torch.ones(2, 3)
torch.testing.assert_close(torch.compile(f)(x), f(x))
