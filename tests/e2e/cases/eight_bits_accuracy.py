# no float64 form: the product takes numbers of eight bits, whose rounding is more than any tolerance
import torch

torch._inductor.config.cpp.inject_relu_bug_TESTING_ONLY = "accuracy"


def product(x, weight, scale):
    small = (x.float() / scale).to(torch.float8_e4m3fn)
    return torch._scaled_mm(small, weight.t(), scale_a=scale, scale_b=scale, out_dtype=torch.bfloat16)


@torch.compile
def f(x, first, second, scale):
    h = torch.relu(product(x, first, scale)) - x
    return torch.relu(product(h.tanh(), second, scale)) + h


torch.manual_seed(0)
first, second = (torch.randn(64, 64).mul(8).to(torch.float8_e4m3fn) for _ in range(2))
print(f(torch.randn(32, 64, dtype=torch.bfloat16), first, second, torch.tensor(1 / 64)).shape)
