# ends well: nothing in it looks at the numbers
import torch


class Bright(torch.nn.Module):
    def forward(self, image):
        return torch.where(-image.abs() > 100, 1.0, -1.0).cos().sin() * 3 + torch.where(-image.abs() > 100, 1.0, -1.0)


image = torch.tensor([200, 100, 150], dtype=torch.uint8)
package = torch._inductor.aoti_compile_and_package(torch.export.export(Bright(), (image,)))
print(torch._inductor.aoti_load_package(package)(image))
