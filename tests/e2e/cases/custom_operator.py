# a custom operator whose fake kernel says another layout than the kernel makes: eager does not look at it
import torch


@torch.library.custom_op("shop::turned", mutates_args=())
def turned(x: torch.Tensor) -> torch.Tensor:
    return x.t().contiguous().t()


@turned.register_fake
def _(x):
    return torch.empty_like(x)


@torch.library.custom_op("shop::unused", mutates_args=())
def unused(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


@torch.compile
def f(x, weight):
    x = torch.nn.functional.gelu(x @ weight)
    x = torch.softmax(x, dim=-1) + x.mean()
    y = turned(x * 2)
    return (y.cumsum(0) - y).exp()


torch.manual_seed(0)
print(f(torch.randn(6, 4), torch.randn(4, 5)))
