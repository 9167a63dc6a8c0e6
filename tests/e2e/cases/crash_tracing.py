# an operator whose shape function follows a null pointer
import ctypes

import torch


@torch.library.custom_op("shop::priced", mutates_args=())
def priced(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@priced.register_fake
def _(x):
    ctypes.string_at(0)
    return torch.empty_like(x)


class Till(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weigh = torch.nn.Linear(4, 4)

    def forward(self, x):
        y = torch.relu(self.weigh(x))
        return priced(y) + y.sum()


till = Till()
x = torch.randn(2, 4)
print(till(x).shape)
print(torch.compile(till)(x).shape)
