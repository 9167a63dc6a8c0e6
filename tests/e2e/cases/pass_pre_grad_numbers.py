# a function over a module's dictionary
import torch
import torch._inductor.config as inductor

CHEAPER = {torch.cos: torch.sin}


def cheaper(graph):
    for node in graph.nodes:
        node.target = CHEAPER.get(node.target, node.target)


inductor.pre_grad_custom_pass = cheaper


def f(x, y):
    return torch.cos(torch.tanh(x) * 2) + y


x, y = torch.linspace(-1, 1, 9), torch.ones(9)
torch.testing.assert_close(torch.compile(f)(x, y), f(x, y))
