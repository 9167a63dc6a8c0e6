# a pass that takes its time, and refuses three operators together: a search long enough to be interrupted in the middle
import time

import torch
import torch._inductor.config as inductor


def refuse_three(graph):
    time.sleep(0.5)
    if {"sin", "tanh", "sigmoid"} <= {str(n.target).split(".")[1] for n in graph.nodes if n.op == "call_function" and "." in str(n.target)}:
        raise RuntimeError("sin, tanh and sigmoid do not go together")


def chain(x):
    for step in range(40):
        x = [torch.relu, torch.cos, torch.exp, torch.neg, torch.abs][step % 5](x) * 0.5
        if step in (5, 20, 35):
            x = {5: torch.sin, 20: torch.tanh, 35: torch.sigmoid}[step](x)
    return x


inductor.post_grad_custom_post_pass = refuse_three
torch.compile(chain)(torch.linspace(-1, 1, 8))
