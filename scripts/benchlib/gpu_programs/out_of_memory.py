# the compiled path holds all pairs at once, the eager one a part of them
import torch

torch.cuda.set_per_process_memory_fraction(0.02)


def nearest(x):
    x = torch.tanh(x) * 2
    if torch.compiler.is_compiling():
        return torch.sort((x[:, None] - x[None]).abs(), dim=-1)[0][:, 1]
    return torch.cat([torch.sort((part[:, None] - x[None]).abs(), dim=-1)[0][:, 1].clone() for part in x.split(500)])


with torch.no_grad():
    print(torch.compile(nearest)(torch.randn(40000, device="cuda")).sum())
