# two branches, each compiled, each on a stream of its own; the error of one shows when the host waits
import torch

torch._inductor.config.triton.inject_relu_bug_TESTING_ONLY = "runtime_error"


class Branch(torch.nn.Module):
    def __init__(self, squash):
        super().__init__()
        self.up, self.down, self.squash = torch.nn.Linear(48, 96), torch.nn.Linear(96, 48), squash

    def forward(self, x):
        return x + self.down(self.squash(self.up(x)))


torch.manual_seed(0)
x = torch.randn(8, 48, device="cuda")
branches = [torch.compile(Branch(squash).cuda()) for squash in (torch.tanh, torch.relu)]
streams = [torch.cuda.Stream() for _ in branches]
outs = []
with torch.no_grad():
    for branch, stream in zip(branches, streams):
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            outs.append(branch(x))
for stream in streams:
    torch.cuda.current_stream().wait_stream(stream)
print(sum(outs).sum().item())
