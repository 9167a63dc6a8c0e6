# the first model cannot be compiled, which is known and handled; the second one's numbers are wrong (PyTorch's planted relu)
import sys

import torch

torch._inductor.config.cpp.inject_relu_bug_TESTING_ONLY = "accuracy"


class Branch(torch.nn.Module):
    def forward(self, x):
        return x * 2 if x.sum().item() > 0 else x


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(12, 24)

    def forward(self, x):
        return torch.sigmoid(torch.relu(self.linear(x)))


torch.manual_seed(0)
x = torch.randn(4, 12)
right = True
for model in (Branch(), Net()):
    with torch.no_grad():
        expected = actual = model(x)
        try:
            actual = torch.compile(model, fullgraph=True)(x)
        except Exception as error:
            print("runs in eager:", type(error).__name__)
    right = right and torch.allclose(actual, expected, atol=1e-3)
print("right:", right, file=sys.stderr)
sys.exit(not right)
