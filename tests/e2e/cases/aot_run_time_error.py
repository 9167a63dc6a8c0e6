import torch
import torch._inductor.config as inductor

inductor.cpp.inject_relu_bug_TESTING_ONLY = "runtime_error"


@torch.compile
def f(x, y):
    a = x.sin() + y
    b = torch.relu(a)
    return b.cos().sum(dim=0)


f(torch.ones(8, 6), torch.ones(6))
