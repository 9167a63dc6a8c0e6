# no float64 form, and nothing wrong
import torch


@torch.compile
def attend(query, key, scale):
    a, b = (value.clamp(-4, 4).div(scale).to(torch.float8_e4m3fn) for value in (query, key))
    weights = torch._scaled_mm(a, b.t(), scale_a=scale, scale_b=scale, out_dtype=torch.float32)
    return torch.softmax(weights / 8, dim=-1).cumsum(dim=0)


torch.manual_seed(0)
print(attend(torch.randn(32, 64), torch.randn(16, 64), torch.tensor(1 / 64)).shape)
