import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = torch.nn.FractionalMaxPool2d(0, output_size=(3, 2))
        self.out = torch.nn.Conv2d(2, 4, 1)

    def forward(self, image, *, gain):
        h = torch.nn.functional.pad(image * gain, (1, 1, 1, 1))
        return self.out(self.pool(h.sigmoid())).sum(dim=(2, 3))


with torch.no_grad():
    exported = torch.export.export(Net(), (torch.rand(1, 2, 6, 6),), {"gain": torch.tensor(0.5)})
    torch._inductor.aoti_compile_and_package(exported)
