import torch
from torch._inductor.codegen import common
from torch._inductor.custom_graph_pass import CustomGraphModulePass


class Count(CustomGraphModulePass):
    nodes = 0

    def __call__(self, gm):
        Count.nodes += len(gm.graph.nodes)

    def uuid(self):
        return "count"


common.init_backend_registration()
common.register_backend_for_device(
    "cpu",
    common.get_scheduling_for_device("cpu"),
    common.get_wrapper_codegen_for_device("cpu"),
    device_custom_pass=Count(),
)
torch.compile(lambda x: x.cos() + 1)(torch.ones(4))
print(Count.nodes)
