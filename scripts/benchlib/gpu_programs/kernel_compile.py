import torch
import triton
import triton.language as tl


@triton.jit
def wrong(source, target, count, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(source + place, mask=place < count) + tl.arange(0, 3)
    tl.store(target + place, value * 2, mask=place < count)


@triton.jit
def right(source, target, count, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(source + place, mask=place < count)
    tl.store(target + place, value * 2, mask=place < count)


def doubled(x):
    out = torch.empty_like(x)
    kernel = wrong if torch.compiler.is_compiling() else right
    kernel[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)
    return out


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.norm = torch.nn.Linear(64, 64), torch.nn.LayerNorm(64)

    def forward(self, x):
        return torch.softmax(doubled(torch.tanh(self.norm(self.linear(x)))) + 1, dim=-1)


torch.manual_seed(0)
net = Net().cuda()
with torch.no_grad():
    print(torch.compile(net)(torch.randn(8, 64, device="cuda")).sum().item())
