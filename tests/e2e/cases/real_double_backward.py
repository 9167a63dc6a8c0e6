"""AOTAutograd has no double backward: the gradient penalty of a compiled model."""

import torch


class Critic(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))

    def forward(self, x):
        return self.layers(x)


def penalty(critic, real, fake):
    mixed = (0.5 * real + 0.5 * fake).requires_grad_()
    score = critic(mixed).sum()
    (gradient,) = torch.autograd.grad(score, mixed, create_graph=True)
    return ((gradient.norm(dim=1) - 1) ** 2).mean()


torch.manual_seed(0)
critic = torch.compile(Critic())
loss = penalty(critic, torch.randn(4, 8), torch.randn(4, 8))
loss.backward()
