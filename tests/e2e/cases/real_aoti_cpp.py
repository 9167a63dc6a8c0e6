import torch


class Darkest(torch.nn.Module):
    def forward(self, image):
        folded = torch.abs(image)
        return torch.minimum(folded, image).float().sum(dim=1)


image = torch.tensor([[10, 150, 201], [255, 3, 128]], dtype=torch.uint8)
net = Darkest()
package = torch._inductor.aoti_compile_and_package(torch.export.export(net, (image,)))
torch.testing.assert_close(torch._inductor.aoti_load_package(package)(image), net(image))
