import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Sequential(torch.nn.Linear(10, 16), torch.nn.ReLU(), torch.nn.Sigmoid())

    def forward(self, x):
        return self.inner(x) + 1


torch.manual_seed(0)
net, x = Net().eval().cuda(), torch.randn(8, 10, device="cuda")
with torch.no_grad():
    package = torch._inductor.aoti_compile_and_package(torch.export.export(net, (x,)))
    out = torch._inductor.aoti_load_package(package)(x)
    torch.testing.assert_close(out, net(x))
