import torch

torch._inductor.config.triton.inject_relu_bug_TESTING_ONLY = "compile_error"
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64), torch.nn.Softmax(-1)).cuda().half()
with torch.no_grad():
    print(torch.compile(net, mode="max-autotune")(torch.randn(64, 64, device="cuda", dtype=torch.half)).sum())
