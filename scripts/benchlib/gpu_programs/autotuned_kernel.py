# a user's kernel with an autotune table, in one configuration of which it reads far outside
import torch
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})], key=["count"])
@triton.jit
def scaled(source, target, factor, count, FAR: tl.constexpr, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(source + place + FAR, mask=place < count)
    tl.store(target + place, value * factor, mask=place < count)


def doubled(x):
    out = torch.empty_like(x)
    far = 800000000000 if torch.compiler.is_compiling() else 0
    scaled[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, out, 2.0, x.numel(), FAR=far)
    return out


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(64, 64)

    def forward(self, x):
        return torch.softmax(doubled(torch.tanh(self.linear(x))), dim=-1)


torch.manual_seed(0)
net = Net().cuda()
with torch.no_grad():
    print(torch.compile(net)(torch.randn(8, 64, device="cuda")).sum().item())
