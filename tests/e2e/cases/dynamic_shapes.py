# a pass that cannot do with a size it does not know: no failure without dynamic=True
import torch


def unroll(gm, example_inputs):
    for node in gm.graph.nodes:
        if node.op == "call_function" and node.target is torch.cat:
            for part in node.args[0]:
                if not isinstance(part.meta["example_value"].shape[0], int):
                    raise TypeError("torch.cat of parts whose size is not known")
    return gm.forward


@torch.compile(backend=unroll, dynamic=True)
def f(x, y):
    a = torch.sin(x) + 1
    b = torch.cat([a, y, a])
    return (b * 2).sum()


f(torch.randn(7), torch.randn(5))
