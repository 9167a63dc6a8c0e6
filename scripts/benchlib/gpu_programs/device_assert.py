import torch

torch._inductor.config.triton.inject_relu_bug_TESTING_ONLY = "runtime_error"


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = torch.nn.Linear(48, 96), torch.nn.Linear(96, 48)

    def forward(self, x):
        return x + torch.sin(self.down(torch.relu(self.up(x))))


torch.manual_seed(0)
net = torch.nn.Sequential(*[Block() for _ in range(4)]).cuda()
with torch.no_grad():
    out = torch.compile(net)(torch.randn(8, 48, device="cuda"))
torch.cuda.synchronize()
print(out.sum())
