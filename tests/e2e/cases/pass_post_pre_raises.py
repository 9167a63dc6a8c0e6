# an instance of PatternMatcherPass with a lowering registered at run time
import torch
from torch._inductor import config
from torch._inductor.pattern_matcher import Arg, CallFunction, PatternMatcherPass, register_lowering_pattern

aten = torch.ops.aten
mine = PatternMatcherPass(pass_name="mine")


@register_lowering_pattern(CallFunction(aten.cos.default, CallFunction(aten.mul.Tensor, Arg(), Arg())), pass_dict=mine)
def cos_of_product(match, a, b):
    raise NotImplementedError("cos of a product")


config.post_grad_custom_pre_pass = mine.apply


@torch.compile
def f(x, y):
    return (torch.cos(x * y) + x.tanh()).sum(0)


f(torch.randn(4, 3), torch.randn(4, 3))
