"""A detector of torchvision under torch.export: what it returns depends on the numbers."""

import torch
from torchvision.models.detection import ssdlite320_mobilenet_v3_large

torch.manual_seed(0)
model = ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=5).eval()
images = [torch.rand(3, 320, 320)]
with torch.no_grad():
    print(model(images)[0]["boxes"].shape)
    program = torch.export.export(model, (images,))
print(program)
