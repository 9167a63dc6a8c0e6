# a pass that fails in about half of the runs
import os

import torch
import torch._inductor.config as inductor


def refuse_sometimes(graph):
    wanted = any("tanh" in str(n.target) for n in graph.nodes)
    if wanted and os.urandom(1)[0] % 2:
        raise RuntimeError("tanh is refused now and then")


def chain(x):
    for step in range(12):
        x = [torch.relu, torch.cos, torch.exp, torch.neg][step % 4](x) * 0.5
        if step == 6:
            x = torch.tanh(x)
    return x


inductor.post_grad_custom_post_pass = refuse_sometimes
torch.compile(chain)(torch.linspace(-1, 1, 8))
