import torch

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.LayerNorm(64), torch.nn.Softmax(-1)).cuda()
x = torch.randn(8, 32, device="cuda")
torch.compile(net)(x).sum().backward()
