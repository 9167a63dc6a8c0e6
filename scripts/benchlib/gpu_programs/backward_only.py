# only the kernels of the backward hold the relu
import torch

torch._inductor.config.triton.inject_relu_bug_TESTING_ONLY = "compile_error"


class Clipped(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return torch.relu(grad)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(32, 32), torch.nn.Linear(32, 8)

    def forward(self, x):
        return self.second(Clipped.apply(torch.tanh(self.first(x))))


torch.manual_seed(0)
net = Net().cuda()
loss = torch.compile(net)(torch.randn(4, 32, device="cuda")).sum()
loss.backward()
