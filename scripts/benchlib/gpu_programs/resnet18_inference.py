import torch
import torchvision

torch._inductor.config.triton.inject_relu_bug_TESTING_ONLY = "accuracy"
torch.manual_seed(0)
net = torchvision.models.resnet18().eval().cuda()
x = torch.randn(2, 3, 64, 64, device="cuda")
with torch.no_grad():
    print(torch.compile(net)(x).sum())
