import torch


class Layer(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        weight = torch.randn(width, width) / width**0.5
        self.register_buffer("scale", weight.abs().max() / 448.0)
        self.register_buffer("weight", (weight / self.scale).to(torch.float8_e4m3fn))

    def forward(self, x):
        scale = x.abs().max().float() / 448.0
        rounded = (x / scale).to(torch.float8_e4m3fn)
        y = torch._scaled_mm(rounded, self.weight.t(), scale_a=scale, scale_b=self.scale, out_dtype=torch.bfloat16)
        return torch.relu(y) + x


torch.manual_seed(0)
net = torch.nn.Sequential(*[Layer(64) for _ in range(3)]).cuda()
x = torch.randn(32, 64, device="cuda", dtype=torch.bfloat16)
with torch.no_grad():
    print(torch.compile(net)(x).sum())
