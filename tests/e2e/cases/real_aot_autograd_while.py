import torch
from torch._higher_order_ops.while_loop import while_loop


@torch.compile
def smooth(field, where):
    start = torch.sin(field) + 1
    source = start

    def going(i, state):
        return i < 3

    def step(i, state):
        return i + 1, torch.scatter(state * 0.5, 0, where, source)

    return while_loop(going, step, (torch.tensor(0), start))[1].sum()


smooth(torch.ones(3, 3), torch.tensor([[0], [1], [2]]))
