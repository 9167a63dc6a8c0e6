import torch

net = torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.GELU())
args = (torch.randn(3, 6),)
package = torch._inductor.aoti_compile_and_package(torch.export.export(net, args))
print(torch._inductor.aoti_load_package(package)(*args))
