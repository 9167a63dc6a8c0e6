# under freezing the graph that the pass sees holds the weights as constants
import torch
import torch._inductor.config as inductor


def transpose_free(graph):
    for node in graph.nodes:
        if node.op == "get_attr":
            raise LookupError("a frozen weight: " + ("constant" if "frozen" in str(node.target) else "attribute"))


inductor.freezing = True
inductor.post_grad_custom_post_pass = transpose_free

net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)).eval()
with torch.no_grad():
    print(torch.compile(net)(torch.randn(3, 8)))
