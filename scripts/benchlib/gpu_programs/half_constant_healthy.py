# more precise than eager, as float64 shows
import torch


@torch.compile
def f(x, y):
    return x - y * 100


with torch.no_grad():
    f(torch.tensor(655 * 100, dtype=torch.half, device="cuda"), torch.tensor(655, dtype=torch.half, device="cuda"))
