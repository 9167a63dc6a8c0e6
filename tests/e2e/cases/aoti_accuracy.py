import torch

torch._inductor.config.cpp.inject_relu_bug_TESTING_ONLY = "accuracy"


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(10, 16)

    def forward(self, x):
        return torch.sigmoid(torch.relu(self.fc(x)))


torch.manual_seed(0)
net = Net().eval()
x = torch.randn(8, 10)
with torch.no_grad():
    package = torch._inductor.aoti_compile_and_package(torch.export.export(net, (x,)))
    out = torch._inductor.aoti_load_package(package)(x)
    torch.testing.assert_close(out, net(x))
