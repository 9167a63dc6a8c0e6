# wrong: the custom pass takes sin(x)**2 + cos(x)**2 for 1 without looking whether both are of the same x
import torch
from torch._inductor import config
from torch._inductor.custom_graph_pass import CustomGraphPass, get_hash_for_files
from torch._inductor.pattern_matcher import Arg, CallFunction, PatternMatcherPass, register_graph_pattern

aten = torch.ops.aten
patterns = PatternMatcherPass(pass_name="trigonometry")


def squared(function):
    return CallFunction(aten.pow.Tensor_Scalar, CallFunction(function, Arg()), 2)


@register_graph_pattern(CallFunction(aten.add.Tensor, squared(aten.sin.default), squared(aten.cos.default)), pass_dict=patterns)
def one(match, _x, _y):
    node = match.output_node()
    with match.graph.inserting_before(node):
        value = node.meta["val"]
        new = match.graph.call_function(aten.full.default, (list(value.shape), 1.0), {"dtype": value.dtype, "device": value.device})
        new.meta.update(node.meta)
    node.replace_all_uses_with(new)
    match.erase_nodes()


class Trigonometry(CustomGraphPass):
    def __call__(self, graph):
        patterns.apply(graph)

    def uuid(self):
        return get_hash_for_files((__file__,))


config.post_grad_custom_pre_pass = Trigonometry()


def energy(x, y, weights):
    circle = torch.sin(x) ** 2 + torch.cos(y) ** 2
    return torch.relu(circle * weights).sum(dim=-1)


torch.manual_seed(0)
x, y, weights = torch.randn(4, 6), torch.randn(4, 6), torch.rand(6)
torch.testing.assert_close(torch.compile(energy)(x, y, weights), energy(x, y, weights))
