# more precise than eager: no error by float64, one by eager's own numbers
import torch

torch._dynamo.config.same_two_models_use_fp64 = False


@torch.compile
def f(x, y):
    return x - y * 100


with torch.no_grad():
    f(torch.tensor(655 * 100, dtype=torch.half, device="cuda"), torch.tensor(655, dtype=torch.half, device="cuda"))
