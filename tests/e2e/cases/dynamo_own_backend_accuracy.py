import torch


def rounding(gm, example_inputs):
    """Computes the sigmoid in half precision."""
    for node in gm.graph.nodes:
        if node.target is torch.sigmoid:
            with gm.graph.inserting_before(node):
                node.args = (gm.graph.call_method("half", node.args),)
            with gm.graph.inserting_after(node):
                back = gm.graph.call_method("float", (node,))
            node.replace_all_uses_with(back, delete_user_cb=lambda user, back=back: user is not back)
    gm.recompile()
    return gm


def f(x, y):
    z = (x * y).cumsum(0)
    z = torch.sigmoid(z)
    return torch.log(z + 0.25) - y


torch.manual_seed(0)
x, y = torch.randn(12), torch.rand(12)
torch.testing.assert_close(torch.compile(f, backend=rounding)(x, y), f(x, y))
