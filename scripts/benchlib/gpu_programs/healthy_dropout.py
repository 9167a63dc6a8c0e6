import torch

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.Dropout(0.5), torch.nn.Linear(64, 8)).cuda()
torch.compile(net)(torch.randn(8, 32, device="cuda")).sum().backward()
