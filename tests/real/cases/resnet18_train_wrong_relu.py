"""resnet18 of timm in a training step: a relu computes wrong numbers."""

import timm
import torch
import torch._inductor.config
import torch.nn.functional as F

torch.manual_seed(0)
model = timm.create_model("resnet18", num_classes=10).train()
images = torch.randn(2, 3, 64, 64)
labels = torch.randint(0, 10, (2,))


def step(images, labels):
    return F.cross_entropy(model(images), labels)


torch._inductor.config.cpp.inject_relu_bug_TESTING_ONLY = "accuracy"
loss = torch.compile(step)(images, labels)
loss.backward()
