# every intermediate is 32 MB: all of them at once, for eager and compiled and in fp64, would be several GB; they are deleted on the way
import torch

torch._inductor.config.cpp.inject_relu_bug_TESTING_ONLY = "accuracy"


@torch.compile
def f(x):
    for _ in range(10):
        x = torch.sin(x)
    x = torch.relu(x)
    for _ in range(10):
        x = torch.cos(x)
    return x


f(torch.full((2048, 4096), -0.5))
