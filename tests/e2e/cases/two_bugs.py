# a lowering that fails (met first) and a kernel that g++ does not take (met later)
import torch

torch._inductor.config.cpp.inject_relu_bug_TESTING_ONLY = "compile_error"

pool = torch.nn.FractionalMaxPool2d(0, output_size=(2, 3))


@torch.compile
def f(x):
    x = torch.relu(x.sin())
    pooled = pool(torch.relu(x + 1))
    return pooled.sum() + torch.relu(x - 1).cos().sum()


with torch.no_grad():
    f(torch.randn(2, 3, 5, 5))
