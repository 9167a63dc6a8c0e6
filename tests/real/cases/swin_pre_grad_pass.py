"""swin of timm in inference: a pass over Dynamo's graph does not know that roll takes a tuple."""

import timm
import torch
import torch._inductor.config


def fold_rolls(graph):
    for node in graph.nodes:
        if node.op == "call_function" and node.target is torch.roll:
            shifts = node.kwargs.get("shifts", node.args[1] if len(node.args) > 1 else 0)
            if shifts % 2:
                raise ValueError("odd shift")


torch._inductor.config.pre_grad_custom_pass = fold_rolls
torch.manual_seed(0)
model = timm.create_model("swin_tiny_patch4_window7_224", num_classes=10).eval()
images = torch.randn(1, 3, 224, 224)
model = torch.compile(model)
with torch.inference_mode():
    print(model(images).shape)
