# an instance of CustomGraphPass; ends well
import torch
from torch._inductor import config
from torch._inductor.custom_graph_pass import CustomGraphPass, get_hash_for_files


class Swap(CustomGraphPass):
    def __init__(self, old, new):
        self.old, self.new = old, new

    def __call__(self, graph):
        for node in graph.find_nodes(op="call_function", target=self.old):
            node.target = self.new

    def uuid(self):
        return get_hash_for_files((__file__,))


config.joint_custom_pre_pass = Swap(torch.ops.aten.cos.default, torch.ops.aten.sin.default)


@torch.compile
def f(x):
    return (x * 2).cos().abs() + x.sigmoid()


f(torch.linspace(0, 3, 7))
