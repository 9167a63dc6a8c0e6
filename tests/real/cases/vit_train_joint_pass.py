"""vit_tiny of timm in a training step: a pass over the joint graph takes a constant for a tensor."""

import timm
import torch
import torch._inductor.config
import torch.nn.functional as F


class FoldScales:
    def __call__(self, graph):
        for node in graph.nodes:
            if node.target is torch.ops.aten.erf.default:
                value, scale = node.args[0].args
                if scale.meta["val"].numel() == 1:
                    node.meta["scaled"] = value


torch._inductor.config.joint_custom_pre_pass = FoldScales()
torch.manual_seed(0)
model = timm.create_model("vit_tiny_patch16_224", img_size=64, num_classes=10).train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
step = torch.compile(model)
images, labels = torch.randn(2, 3, 64, 64), torch.randint(0, 10, (2,))
loss = F.cross_entropy(step(images), labels)
loss.backward()
optimizer.step()
