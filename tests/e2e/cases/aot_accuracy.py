# ends well: nothing in it looks at the numbers
import torch

torch._inductor.config.cpp.inject_relu_bug_TESTING_ONLY = "accuracy"


def f(x, w):
    h = (x @ w).tanh()
    h = torch.relu(h - 0.25)
    return h.exp().mean(dim=1)


torch.manual_seed(0)
out = torch.compile(f)(torch.randn(6, 5), torch.randn(5, 7))
print(out.shape)
