import torch


@torch.compile(backend="relu_runtime_error_TESTING_ONLY")
def f(x):
    for _ in range(10):
        x = torch.sin(x)
    x = torch.relu(x)
    for _ in range(10):
        x = torch.cos(x)
    return x


f(torch.randn(20, 20, device="cuda"))
