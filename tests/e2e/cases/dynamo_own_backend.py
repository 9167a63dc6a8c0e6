import operator

import torch

LIMIT = 3


def count(graph, target):
    return sum(node.target is target for node in graph.nodes)


def picky(gm, example_inputs):
    if count(gm.graph, operator.matmul) + count(gm.graph, torch.matmul) and count(gm.graph, torch.tanh) < LIMIT:
        raise NotImplementedError("picky cannot multiply matrices")
    return gm.forward


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.eye(6))

    def forward(self, x):
        x = torch.tanh(x) + 1
        x = x @ self.weight
        return torch.tanh(x).sum(-1)


torch.compile(Net(), backend=picky)(torch.ones(5, 6))
