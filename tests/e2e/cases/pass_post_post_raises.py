# functools.partial of a function, given in the options of torch.compile
import functools

import torch


def at_most(limit, graph, *, target):
    found = sum(1 for node in graph.nodes if node.target == target)
    if found > limit:
        raise OverflowError(f"{found} nodes of {target}, at most {limit}")


check = functools.partial(at_most, 1, target=torch.ops.aten.cos.default)


@torch.compile(options={"post_grad_custom_post_pass": check})
def f(x):
    a = x.cos() + 1
    b = a.exp().cos()
    return (a * b).sin().sum()


f(torch.linspace(0, 1, 6))
