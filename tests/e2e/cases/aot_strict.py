# log1p is wrong too, but its numbers only reach a comparison and a choice between equals;
# under the usual rule for accuracy relu is the bug, under the strict one (integers and booleans count) it is log1p
import torch

torch._inductor.config.cpp.inject_log1p_bug_TESTING_ONLY = "accuracy"
torch._inductor.config.cpp.inject_relu_bug_TESTING_ONLY = "accuracy"


def f(x):
    x = torch.sin(x)
    m = torch.log1p(x) > 0.5
    x = torch.where(m, x, x)
    x = torch.relu(x - 0.5)
    return torch.cos(x)


torch.compile(f)(torch.linspace(0.1, 2.0, 16))
