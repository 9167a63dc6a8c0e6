# wrong: the kernel that inductor writes for the minimum of an absolute value and its unsigned argument is not valid C++
import torch


class Shadows(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("weights", torch.tensor([0.299, 0.587, 0.114]))

    def forward(self, pixels, *, gain):
        folded = torch.minimum(torch.abs(pixels), pixels)
        grey = (folded.float() / 255 * self.weights).sum(dim=-1)
        return torch.sigmoid(grey * gain)


model = Shadows().eval()
pixels = torch.arange(48).to(torch.uint8).view(16, 3)
print("eager:", model(pixels, gain=2.0).shape)
with torch.no_grad():
    exported = torch.export.export(model, (pixels,), {"gain": 2.0})
    package = torch._inductor.aoti_compile_and_package(exported)
    print("compiled:", torch._inductor.aoti_load_package(package)(pixels, gain=2.0).shape)
