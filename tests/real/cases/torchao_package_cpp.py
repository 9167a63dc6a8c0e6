"""A network with int8 weights of torchao as a package of AOTInductor: the C++ of its activation does not compile."""

import torch
import torch._inductor.config
from torch import nn
from torchao.quantization import Int8WeightOnlyConfig, quantize_


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))


torch._inductor.config.cpp.inject_relu_bug_TESTING_ONLY = "compile_error"
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 64), Block(64), Block(64), nn.Linear(64, 8)).eval()
quantize_(model, Int8WeightOnlyConfig())
x = torch.randn(4, 16)
with torch.no_grad():
    model(x)
    program = torch.export.export(model, (x,))
    path = torch._inductor.aoti_compile_and_package(program)
    print(torch._inductor.aoti_load_package(path)(x).shape)
