# linear and relu are lowered by a pattern of the user's own, to the same numbers
import torch
from torch._inductor import config, lowering
from torch._inductor.pattern_matcher import Arg, CallFunction, PatternMatcherPass, register_lowering_pattern

aten = torch.ops.aten
fuse = PatternMatcherPass(pass_name="fuse")


@register_lowering_pattern(CallFunction(aten.relu.default, CallFunction(aten.add.Tensor, Arg(), Arg())), pass_dict=fuse)
def add_relu(match, a, b):
    return lowering.relu(lowering.lowerings[aten.add.Tensor](a, b))


config.post_grad_custom_pre_pass = fuse.apply

net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh()).eval()


@torch.compile
def f(x, y):
    return torch.relu(net(x) + y)


with torch.no_grad():
    print(f(torch.randn(2, 4), torch.randn(2, 4)))
