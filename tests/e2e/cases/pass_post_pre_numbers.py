# a PatternMatcherPass that is a custom pass itself, with a replacement registered at run time
import torch
from torch._inductor import config
from torch._inductor.pattern_matcher import Arg, CallFunction, PatternMatcherPass, register_graph_pattern


class Patterns(PatternMatcherPass):
    def __init__(self):
        super().__init__(pass_name="patterns")

    def __call__(self, graph):
        self.apply(graph)

    def uuid(self):
        return b"patterns, first edition"


patterns = Patterns()


@register_graph_pattern(CallFunction(torch.ops.aten.cos.default, Arg()), pass_dict=patterns)
def replace_cos(match, x):
    node = match.output_node()
    with match.graph.inserting_before(node):
        new = match.graph.call_function(torch.ops.aten.sin.default, (x,))
        new.meta.update(node.meta)
    node.replace_all_uses_with(new)
    match.erase_nodes()


with config.patch(post_grad_custom_pre_pass=patterns):

    def f(x, y):
        return (x.exp().cos() @ y).relu()

    x, y = torch.full((3, 4), 0.5), torch.eye(4)
    torch.testing.assert_close(torch.compile(f)(x, y), f(x, y))
