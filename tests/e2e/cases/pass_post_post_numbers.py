# a closure over a list, in the options of torch.compile; ends well
import torch


def make_pass(seen):
    def run(graph):
        for node in graph.nodes:
            seen.append(str(node.target))
            if node.target is torch.ops.aten.cos.default:
                node.target = torch.ops.aten.sin.default

    return run


log = []


@torch.compile(options={"post_grad_custom_post_pass": make_pass(log)})
def f(x, y):
    return (x + y).cos().sum(dim=1)


with torch.no_grad():
    f(torch.ones(3, 4), torch.zeros(4))
