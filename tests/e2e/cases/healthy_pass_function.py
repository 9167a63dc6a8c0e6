# x * 1 is x
import torch
import torch._inductor.config as inductor


def drop_identity(graph):
    for node in list(graph.nodes):
        if node.target is torch.ops.aten.mul.Tensor and node.args[1] == 1:
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)


inductor.joint_custom_post_pass = drop_identity
inductor.post_grad_custom_pre_pass = drop_identity


def f(x):
    return (x * 1).sin() * 1 + x


x = torch.linspace(0, 1, 5)
torch.testing.assert_close(torch.compile(f)(x), f(x))
