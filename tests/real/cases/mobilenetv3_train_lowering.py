"""mobilenetv3 of timm in a training step with autocast: a lowering of one's own knows no gradient of a convolution with groups."""

import timm
import torch
import torch._inductor.compile_fx  # registers what is replaced here
import torch.nn.functional as F
from torch._inductor.lowering import lowerings

with_groups = lowerings[torch.ops.aten.convolution_backward.default]


def convolution_backward(*args):
    if args[9] != 1:
        raise NotImplementedError(f"no gradient of a convolution with {args[9]} groups")
    return with_groups(*args)


lowerings[torch.ops.aten.convolution_backward.default] = convolution_backward
torch.manual_seed(0)
model = timm.create_model("mobilenetv3_small_050", num_classes=10).train()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
compiled = torch.compile(model)
images = torch.randn(4, 3, 64, 64)
labels = torch.randint(0, 10, (4,))
for _ in range(2):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = F.cross_entropy(compiled(images), labels)
    loss.backward()
    optimizer.step()
