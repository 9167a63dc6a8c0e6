import torch

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.Dropout(0.5), torch.nn.ReLU(), torch.nn.Linear(16, 4)).train()
out = torch.compile(net)(torch.randn(8, 16))
out.sum().backward()
