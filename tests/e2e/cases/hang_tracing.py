# an operator whose shape function never ends
import torch


@torch.library.custom_op("shop::halved", mutates_args=())
def halved(x: torch.Tensor) -> torch.Tensor:
    return x / 2


@halved.register_fake
def _(x):
    n = 1.0
    while n > 0:
        n = n / 2 + 1
    return torch.empty_like(x)


class Scale(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weigh = torch.nn.Linear(4, 4)

    def forward(self, x):
        y = torch.relu(self.weigh(x))
        return halved(y) + y.sum()


scale = Scale()
x = torch.randn(2, 4)
print(scale(x).shape)
print(torch.compile(scale)(x).shape)
