import torch
import torch._inductor.config as inductor


def sum_to_double(graph):
    """x + x becomes 2 * x."""
    for node in graph.nodes:
        if node.op == "call_function" and node.target.__name__ == "add" and node.args[0] is node.args[1]:
            node.target = torch.mul
            node.args = (node.args[0], 2)


inductor.pre_grad_custom_pass = sum_to_double
net = torch.nn.Linear(5, 5)
x = torch.randn(2, 5)
out = torch.compile(lambda x: torch.relu(net(x) + net(x)) + x)(x)
y = torch.compile(lambda x: (x + x).cos())(x)
torch.testing.assert_close(y, (x + x).cos())
