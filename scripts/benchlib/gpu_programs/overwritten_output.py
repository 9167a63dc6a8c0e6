# an output of CUDA graphs is read after the next call
import torch

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.GELU(), torch.nn.Linear(32, 8)).cuda()
compiled = torch.compile(net, mode="reduce-overhead")
with torch.no_grad():
    x = torch.randn(4, 32, device="cuda")
    for _ in range(3):
        compiled(x)
    first = compiled(x)
    second = compiled(x + 1)
    print((first + second).sum())
