# the forward is a product alone: the faulty relu is that of a gradient, which somebody scales in a function of their own
import torch

torch._inductor.config.cpp.inject_relu_bug_TESTING_ONLY = "compile_error"


class Clipped(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.sin()

    @staticmethod
    def backward(ctx, grad):
        return torch.relu(grad) * 2


@torch.compile
def f(x, w):
    return Clipped.apply(x * w + 1).cos() - w


x = torch.ones(6, requires_grad=True)
loss = f(x, torch.full((6,), 0.5)).sum()
loss.backward()
