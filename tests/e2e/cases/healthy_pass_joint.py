# a CustomGraphPass in training: forward and backward stay right
import torch
from torch._inductor import config
from torch._inductor.custom_graph_pass import CustomGraphPass


class Squares(CustomGraphPass):
    """x ** 2 becomes x * x."""

    def __call__(self, graph):
        for node in graph.find_nodes(op="call_function", target=torch.ops.aten.pow.Tensor_Scalar):
            if node.args[1] == 2:
                node.target, node.args = torch.ops.aten.mul.Tensor, (node.args[0], node.args[0])

    def uuid(self):
        return b"squares"


config.joint_custom_pre_pass = [Squares()]
x = torch.linspace(-1, 1, 6, requires_grad=True)
torch.compile(lambda x: (x**2).sin().sum())(x).backward()
torch.testing.assert_close(x.grad, 2 * x.detach() * (x.detach() ** 2).cos())
