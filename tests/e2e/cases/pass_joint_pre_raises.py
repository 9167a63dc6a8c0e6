# a closure over a list that is filled later
import torch
import torch._inductor.config as inductor


def forbidding(targets):
    def check(graph):
        for node in graph.nodes:
            if node.target in targets:
                raise AssertionError(f"{node.target} is forbidden")

    return check


forbidden = []
inductor.joint_custom_pre_pass = forbidding(forbidden)
forbidden += [torch.ops.aten.erf.default, torch.ops.aten.cos.default]


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(6, 6)

    def forward(self, x):
        return torch.cos(self.fc(x)).exp().sum()


torch.compile(Net())(torch.randn(3, 6)).backward()
