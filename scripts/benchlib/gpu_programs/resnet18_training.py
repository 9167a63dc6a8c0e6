import torch
import torchvision

torch._inductor.config.triton.inject_relu_bug_TESTING_ONLY = "accuracy"
torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = True
torch.manual_seed(0)
net = torchvision.models.resnet18().cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x, labels = torch.randn(4, 3, 64, 64, device="cuda"), torch.randint(0, 1000, (4,), device="cuda")
loss = torch.nn.functional.cross_entropy(torch.compile(net)(x), labels)
loss.backward()
optimizer.step()
print(loss.item())
