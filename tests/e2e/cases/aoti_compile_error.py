import torch

torch._inductor.config.cpp.inject_relu_bug_TESTING_ONLY = "compile_error"


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(10, 16), torch.nn.ReLU(), torch.nn.Sigmoid())

    def forward(self, x):
        return self.body(x)


with torch.no_grad():
    exported = torch.export.export(Net(), (torch.randn(8, 10),))
    torch._inductor.aoti_compile_and_package(exported)
