import torch


@torch.compile(backend="non_leaf_compile_error_TESTING_ONLY")
def f(x, y):
    return (x + y).exp() * 3 + y.mul(2)


leaf = torch.randn(4, requires_grad=True)
f(leaf * 2, torch.randn(4))
