# a function
import torch
import torch._inductor.config as inductor


def no_cosine(graph):
    for node in graph.nodes:
        if node.target is torch.cos:
            raise ValueError("a cosine is left in the graph")


inductor.pre_grad_custom_pass = no_cosine


@torch.compile
def f(x, y):
    a = torch.sin(x) * y
    b = torch.cos(a) + 1
    return b.sum(-1)


f(torch.randn(4, 5), torch.randn(5))
