# the value is right, its gradient is not
import torch

torch._inductor.config.cpp.inject_relu_bug_TESTING_ONLY = "accuracy"


class Clipped(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.exp()

    @staticmethod
    def backward(ctx, grad):
        return torch.relu(grad)


def f(x, w):
    return (Clipped.apply(x * w) * 3 + w).sum()


def gradient(fn):
    x = torch.linspace(0, 1, 8, requires_grad=True)
    fn(x, torch.linspace(1, 2, 8)).backward()
    return x.grad


torch.testing.assert_close(gradient(torch.compile(f)), gradient(f))
