# PyTorch's planted wrong relu; the program compares by itself, prints, and leaves with a status
import sys

import torch

torch._inductor.config.cpp.inject_relu_bug_TESTING_ONLY = "accuracy"


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(12, 24), torch.nn.Linear(24, 6)
        self.norm = torch.nn.LayerNorm(24)

    def forward(self, x):
        return torch.sigmoid(self.second(torch.relu(self.norm(self.first(x)))))


def main():
    torch.manual_seed(0)
    net, x = Net().eval(), torch.randn(4, 12)
    with torch.no_grad():
        difference = (net(x) - torch.compile(net)(x)).abs().max().item()
    print("largest difference", difference)
    if difference > 1e-3:
        print("FAILED", file=sys.stderr)
        return 1
    return 0


sys.exit(main())
