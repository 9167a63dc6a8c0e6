import torch

torch._inductor.config.triton.inject_relu_bug_TESTING_ONLY = "compile_error"


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Sequential(torch.nn.Linear(10, 16), torch.nn.ReLU(), torch.nn.Sigmoid())

    def forward(self, x):
        return self.inner(x) + 1


torch.manual_seed(0)
net, x = Net().eval().cuda(), torch.randn(8, 10, device="cuda")
with torch.no_grad():
    torch._inductor.aoti_compile_and_package(torch.export.export(net, (x,)))
