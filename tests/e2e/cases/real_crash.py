# dies of a signal inside the compiler
import torch


def energy(m):
    return ((m.trace() * torch.eye(4)) @ m.sin()).sum()


second = torch.func.jacfwd(torch.func.jacfwd(energy))
m = torch.full((4, 4), 0.5)
print(second(m).shape)
print(torch.compile(second)(m).shape)
