# an extension replaces a function that the compiler takes by its name when it is imported
import sys

import torch
import torch._prims_common

plain = torch._prims_common.is_integer_dtype


def checked(dtype):
    if sys._getframe(1).f_globals["__name__"] == "torch._inductor.lowering":
        raise TypeError("the extension knows no such type")
    return plain(dtype)


torch._prims_common.is_integer_dtype = checked


class Pool(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = torch.nn.Linear(4, 4)

    def forward(self, x):
        return self.proj(x).mean(-1) + x.sum(-1)


net = Pool()
print(torch.compile(net)(torch.randn(2, 4)))
