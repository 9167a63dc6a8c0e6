# a package with a wrong relu, which the program makes and never loads
import torch
import torch._inductor.config

torch._inductor.config.cpp.inject_relu_bug_TESTING_ONLY = "accuracy"


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(10, 16)

    def forward(self, x):
        return torch.sigmoid(torch.relu(self.fc(x)))


with torch.no_grad():
    program = torch.export.export(Net(), (torch.randn(8, 10),))
    print(torch._inductor.aoti_compile_and_package(program, package_path="net.pt2"))
