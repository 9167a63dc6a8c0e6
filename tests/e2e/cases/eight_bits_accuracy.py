# no float64 form: the product takes numbers of eight bits, whose rounding is more than any tolerance
import torch

torch._inductor.config.cpp.inject_relu_bug_TESTING_ONLY = "accuracy"


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        weight = torch.randn(64, 64) / 8
        self.register_buffer("scale", weight.abs().max() / 448.0)
        self.register_buffer("weight", (weight / self.scale).to(torch.float8_e4m3fn))

    def forward(self, x):
        scale = x.abs().max().float() / 448.0
        rounded = (x / scale).to(torch.float8_e4m3fn)
        y = torch._scaled_mm(rounded, self.weight.t(), scale_a=scale, scale_b=self.scale, out_dtype=torch.bfloat16)
        return torch.relu(y) + x


torch.manual_seed(0)
net = torch.nn.Sequential(Layer(), Layer())
with torch.no_grad():
    out = torch.compile(net)(torch.randn(32, 64, dtype=torch.bfloat16))
print(out.shape)
