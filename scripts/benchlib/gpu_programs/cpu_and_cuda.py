# parameters on both devices
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.near = torch.nn.Parameter(torch.randn(20, 20))
        self.far = torch.nn.Parameter(torch.randn(20, 20, device="cuda"))

    def forward(self, x):
        near = torch.sin(self.near) + 1
        far = torch.relu(torch.cos(self.far) @ x)
        return near.sum(), far.sum()


torch.manual_seed(0)
net = Net()
torch.compile(net, backend="relu_compile_error_TESTING_ONLY")(torch.randn(20, 20, device="cuda"))
