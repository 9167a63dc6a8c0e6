import torch

torch._inductor.config.cpp.inject_relu_bug_TESTING_ONLY = "compile_error"


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(10, 16)

    def forward(self, batch, *, bias):
        h = self.fc(batch["left"]) + bias
        return {"out": torch.sigmoid(torch.relu(h)), "rest": batch["right"] * 2}


batch = {"left": torch.randn(8, 10), "right": torch.randn(3)}
exported = torch.export.export(Net(), (batch,), {"bias": torch.randn(16)})
torch._inductor.aoti_compile_and_package(exported)
