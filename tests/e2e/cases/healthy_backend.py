import torch


@torch.compile(backend="relu_compile_error_TESTING_ONLY")
def f(x):
    for _ in range(3):
        x = torch.sin(x).cos()
    return x


f(torch.randn(8, 8))
