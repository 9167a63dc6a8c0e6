# wrong: inductor cannot lower the maximum over no elements that a FractionalMaxPool2d of kernel size 0 leads to
import torch
import torch.nn.functional as F


class Classifier(torch.nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.stem = torch.nn.Conv2d(3, width, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(width)
        self.pool = torch.nn.FractionalMaxPool2d(0, output_size=(4, 4))
        self.head = torch.nn.Linear(width * 16, 10)

    def forward(self, images):
        features = F.gelu(self.norm(self.stem(images)))
        pooled = self.pool(features).flatten(1)
        return F.log_softmax(self.head(pooled), dim=-1)


torch.manual_seed(0)
model, images = Classifier().eval(), torch.randn(2, 3, 16, 16)
with torch.no_grad():
    print("eager:", model(images).shape)
    print("compiled:", torch.compile(model)(images).shape)
