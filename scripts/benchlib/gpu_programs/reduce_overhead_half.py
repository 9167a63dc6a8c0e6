import torch

torch._inductor.config.triton.inject_relu_bug_TESTING_ONLY = "compile_error"
torch.manual_seed(0)
layers = [torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.BatchNorm2d(16), torch.nn.ReLU(), torch.nn.Conv2d(16, 16, 3), torch.nn.Hardswish()]
net = torch.nn.Sequential(*layers, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(16, 4)).eval().cuda().half()
compiled = torch.compile(net, mode="reduce-overhead", dynamic=True)
with torch.no_grad():
    for size in (32, 40):
        print(compiled(torch.randn(2, 3, size, size, device="cuda", dtype=torch.half)).sum())
