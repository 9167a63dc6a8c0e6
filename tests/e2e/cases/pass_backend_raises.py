# registered for a device with the backend, not in any config
import torch
from torch._inductor.codegen.common import (
    get_scheduling_for_device,
    get_wrapper_codegen_for_device,
    init_backend_registration,
    register_backend_for_device,
)
from torch._inductor.custom_graph_pass import CustomGraphModulePass


class NoScan(CustomGraphModulePass):
    def __call__(self, gm):
        if any(node.target is torch.ops.aten.cumsum.default for node in gm.graph.nodes):
            raise RuntimeError("this backend cannot scan")

    def uuid(self):
        return None


init_backend_registration()
register_backend_for_device("cpu", get_scheduling_for_device("cpu"), get_wrapper_codegen_for_device("cpu"), device_custom_pass=NoScan())


@torch.compile
def f(x):
    x = torch.tanh(x) - 0.5
    return torch.cumsum(x, 0).exp()


f(torch.ones(4, 4))
