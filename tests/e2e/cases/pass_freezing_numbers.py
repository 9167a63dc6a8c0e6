import torch
import torch._inductor.config as inductor


def cos_to_sin(graph):
    for node in graph.nodes:
        if node.target is torch.ops.aten.cos.default:
            node.target = torch.ops.aten.sin.default


inductor.freezing = True
inductor.post_grad_custom_pre_pass = cos_to_sin


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(2, 4, 3)

    def forward(self, x):
        return self.conv(x).cos().mean(dim=(2, 3))


torch.manual_seed(0)
net, x = Net().eval(), torch.randn(1, 2, 6, 6)
with torch.no_grad():
    torch.testing.assert_close(torch.compile(net)(x), net(x))
