# ends well: nothing in it looks at the numbers
import torch

torch._inductor.config.cpp.inject_relu_bug_TESTING_ONLY = "accuracy"


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 6)

    def forward(self, batch, *, bias):
        return torch.sigmoid(torch.relu(self.fc(batch["left"]) + bias)) + batch["right"]


torch.manual_seed(0)
args, kwargs = ({"left": torch.randn(8, 4), "right": torch.randn(6)},), {"bias": torch.randn(6)}
package = torch._inductor.aoti_compile_and_package(torch.export.export(Net(), args, kwargs))
print(torch._inductor.aoti_load_package(package)(*args, **kwargs).shape)
