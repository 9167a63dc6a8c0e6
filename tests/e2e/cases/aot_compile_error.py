import torch

torch._inductor.config.cpp.inject_relu_bug_TESTING_ONLY = "compile_error"


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(16, 32)
        self.second = torch.nn.Linear(32, 8)

    def forward(self, x):
        h = torch.relu(self.first(x).sin())
        return torch.softmax(self.second(h), dim=-1) * 2


torch.manual_seed(0)
net = Net()
x = torch.randn(4, 16)
print(torch.compile(net)(x).sum())
