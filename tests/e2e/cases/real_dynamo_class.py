import torch


def f(x, scale):
    y = torch.sin(x) * scale

    class Holder:
        def __init__(self, value):
            self.value = value

    z = Holder(y + 1)
    return torch.cos(z.value).sum()


x = torch.linspace(0, 1, 6)
print(f(x, 2.0), torch.compile(f, fullgraph=True)(x, 2.0))
