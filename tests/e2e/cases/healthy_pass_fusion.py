# frozen weights: a pass that is an object lowers a convolution and its relu to one call of oneDNN
import torch
from torch._inductor import config, lowering
from torch._inductor.pattern_matcher import Arg, CallFunction, PatternMatcherPass, register_lowering_pattern

relu, convolution = torch.ops.aten.relu.default, torch.ops.mkldnn._convolution_pointwise.default


class Fusion(PatternMatcherPass):
    def __call__(self, graph):
        assert self.apply(graph) == 2


fusion = Fusion(pass_name="fusion")


@register_lowering_pattern(CallFunction(relu, CallFunction(convolution, *[Arg() for _ in range(10)], _users=1)), pass_dict=fusion)
def with_relu(match, *of_convolution):
    return lowering.lowerings[convolution](*of_convolution[:-3], "relu", [], "")


config.freezing = True
config.post_grad_custom_pre_pass = fusion
net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Conv2d(4, 2, 1), torch.nn.ReLU()).eval()
x = torch.randn(2, 3, 8, 8)
with torch.no_grad():
    torch.testing.assert_close(torch.compile(net)(x), net(x))
