import torch
import torch.nn.functional as F

torch._inductor.config.triton.inject_relu_bug_TESTING_ONLY = "compile_error"


class Block(torch.nn.Module):
    def __init__(self, width, heads, wrong):
        super().__init__()
        self.heads, self.wrong = heads, wrong
        self.before, self.behind = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.query, self.key, self.value, self.out = (torch.nn.Linear(width, width) for _ in range(4))
        self.up, self.gate, self.down = (
            torch.nn.Linear(width, 4 * width),
            torch.nn.Linear(width, 4 * width),
            torch.nn.Linear(4 * width, width),
        )

    def forward(self, x):
        y = self.before(x)
        q, k, v = (part(y).unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in (self.query, self.key, self.value))
        angle = torch.arange(q.shape[-2], device=q.device).unsqueeze(-1) * torch.linspace(0, 1, q.shape[-1], device=q.device)
        q, k = (part * angle.cos() + part.flip(-1) * angle.sin() for part in (q, k))
        weights = torch.softmax(q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5, dim=-1)
        x = x + self.out((weights @ v).transpose(1, 2).flatten(2))
        y = self.behind(x)
        act = torch.relu if self.wrong else F.gelu
        return x + self.down(act(self.up(y)) * torch.sigmoid(self.gate(y)))


torch.manual_seed(0)
net = torch.nn.Sequential(*[Block(64, 4, i == 5) for i in range(8)]).cuda()
with torch.no_grad():
    print(torch.compile(net)(torch.randn(2, 16, 64, device="cuda")).sum())
