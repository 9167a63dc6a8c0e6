import torch

torch._inductor.config.triton.inject_relu_bug_TESTING_ONLY = "accuracy"


@torch.compile
def f(x):
    return torch.relu(torch.sin(x))


with torch.no_grad():
    x = torch.randn(20, 20, device="cuda")
    torch.testing.assert_close(f(x), torch.relu(torch.sin(x)))
