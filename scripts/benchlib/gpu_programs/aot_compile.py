import torch

torch._inductor.config.triton.inject_relu_bug_TESTING_ONLY = "compile_error"


@torch.compile
def f(x):
    return torch.relu(torch.sin(x))


with torch.no_grad():
    print(f(torch.randn(20, 20, device="cuda")).sum())
