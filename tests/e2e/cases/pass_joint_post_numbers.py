# a function; wrong gradients and a wrong value
import torch
import torch._inductor.config as inductor

aten = torch.ops.aten


def cos_to_sin(graph):
    for node in graph.nodes:
        if node.op == "call_function" and node.target == aten.cos.default:
            node.target = aten.sin.default


inductor.joint_custom_post_pass = cos_to_sin


def f(x):
    return (torch.cos(x) * x.tanh()).sum()


def gradient(fn):
    x = torch.linspace(0.1, 1, 5, requires_grad=True)
    fn(x).backward()
    return x.grad


torch.testing.assert_close(gradient(torch.compile(f)), gradient(f))
