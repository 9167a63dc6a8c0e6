# a chain of CustomGraphModulePasses, registered for a device with the backend
import torch
from torch._inductor.codegen import common
from torch._inductor.custom_graph_pass import CustomGraphModulePass


class Tidy(CustomGraphModulePass):
    def __call__(self, gm):
        gm.graph.eliminate_dead_code()
        gm.recompile()

    def uuid(self):
        return "tidy"


class Swap(CustomGraphModulePass):
    def __call__(self, gm):
        for node in gm.graph.nodes:
            if node.target is torch.ops.aten.cos.default:
                node.target = torch.ops.aten.sin.default
        gm.recompile()

    def uuid(self):
        return "swap"


class Chain(CustomGraphModulePass):
    def __init__(self, *passes):
        self.passes = passes

    def __call__(self, gm):
        for one in self.passes:
            one(gm)

    def uuid(self):
        return tuple(one.uuid() for one in self.passes)


common.init_backend_registration()
common.register_backend_for_device(
    "cpu",
    common.get_scheduling_for_device("cpu"),
    common.get_wrapper_codegen_for_device("cpu"),
    device_custom_pass=Chain(Tidy(), Swap(), Tidy()),
)


def f(x, y):
    return torch.relu(x).cos() * y


x, y = torch.linspace(-1, 1, 8), torch.full((8,), 2.0)
torch.testing.assert_close(torch.compile(f)(x, y), f(x, y))
