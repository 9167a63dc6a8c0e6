# backend aot_eager: no inductor; the gradient of the weight differs from eager's
import torch

torch.manual_seed(0)
weight = torch.randn(48, 48, requires_grad=True)
x = torch.randn(6, 48, dtype=torch.bfloat16)


def project(x):
    with torch.autocast("cpu", enabled=False):
        wide = weight.float()
        return x.float() @ wide.t()


def gradient(fn):
    weight.grad = None
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = fn(x)
    (out * torch.linspace(-1.5, 2.5, out.numel()).view_as(out)).sum().backward()
    return weight.grad


torch.testing.assert_close(gradient(torch.compile(project, backend="aot_eager")), gradient(project))
