# ends well; the wrong relu lies behind random numbers
import torch

torch._inductor.config.cpp.inject_relu_bug_TESTING_ONLY = "accuracy"

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(12, 12), torch.nn.Dropout(0.3), torch.nn.ReLU(), torch.nn.Tanh()).train()
with torch.no_grad():
    print(torch.compile(net)(torch.randn(4, 12)).mean())
