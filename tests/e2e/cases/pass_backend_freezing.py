import torch
import torch._inductor.config as inductor
from torch._inductor.codegen import common
from torch._inductor.custom_graph_pass import CustomGraphModulePass


class NoMean(CustomGraphModulePass):
    def __call__(self, gm):
        for node in gm.graph.nodes:
            if node.target is torch.ops.aten.tanh.default:
                raise RuntimeError("this backend has no tanh")

    def uuid(self):
        return None


inductor.freezing = True
common.init_backend_registration()
common.register_backend_for_device(
    "cpu",
    common.get_scheduling_for_device("cpu"),
    common.get_wrapper_codegen_for_device("cpu"),
    device_custom_pass=NoMean(),
)
net = torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.Tanh(), torch.nn.Linear(6, 2)).eval()
with torch.no_grad():
    torch.compile(net)(torch.randn(3, 6))
