# a pass drops a clamp; the program seeds, and raises an error of its own where it finds a NaN
import torch
import torch._inductor.config as inductor


def drop_clamp(graph):
    for node in list(graph.nodes):
        if node.target is torch.ops.aten.clamp_min.default:
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)


inductor.post_grad_custom_pre_pass = drop_clamp


def spread(x, w):
    variance = (x * x).mean(-1, keepdim=True) - 0.9
    return torch.tanh(x @ w) / variance.clamp_min(1e-6).sqrt()


torch.manual_seed(0)
x, w = torch.randn(6, 16), torch.randn(16, 16)
assert not spread(x, w).isnan().any()
found = torch.compile(spread)(x, w).isnan()
if found.any():
    raise RuntimeError(f"{int(found.sum())} NaN in the compiled output")
