import torch
import torchvision

torch._inductor.config.triton.inject_relu_bug_TESTING_ONLY = "accuracy"
torch.manual_seed(0)
net = torchvision.models.mobilenet_v3_large().cuda()
net.classifier[2].p = 0.0
x, labels = torch.randn(4, 3, 64, 64, device="cuda"), torch.randint(0, 1000, (4,), device="cuda")


@torch.compile
def step(x, labels):
    with torch.autocast("cuda", dtype=torch.float16):
        return torch.nn.functional.cross_entropy(net(x), labels)


loss = step(x, labels)
loss.backward()
print(loss.item())
