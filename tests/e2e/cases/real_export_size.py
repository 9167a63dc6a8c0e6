# a buffer of a fixed length makes a dynamic size constant; the reshapes do not
from dataclasses import dataclass

import torch
from torch.export import Dim, export, register_dataclass


@dataclass
class Batch:
    tokens: torch.Tensor
    mask: torch.Tensor


register_dataclass(Batch, serialized_type_name="cases.Batch")


class Pooler(torch.nn.Module):
    def __init__(self, vocab=50, dim=8, chunk=4):
        super().__init__()
        self.emb = torch.nn.Embedding(vocab, dim)
        self.chunk = chunk
        self.register_buffer("position", torch.randn(16, dim))

    def forward(self, batch: Batch):
        h = self.emb(batch.tokens) + self.position
        b, s, d = h.shape
        h = h.reshape(b, s // self.chunk, self.chunk, d).mean(2)
        m = batch.mask.reshape(b, s // self.chunk, self.chunk).any(-1, keepdim=True)
        return (h * m).sum(1)


def main():
    torch.manual_seed(0)
    model = Pooler().eval()
    batch = Batch(torch.randint(0, 50, (2, 16)), torch.ones(2, 16, dtype=torch.bool))
    print("eager", model(batch).shape)
    b, s = Dim("b", min=2, max=32), Dim("s", min=4, max=512)
    ep = export(model, (batch,), dynamic_shapes={"batch": [{0: b, 1: s}, {0: b, 1: s}]}, strict=False)
    print("exported", ep.module()(batch).shape)


if __name__ == "__main__":
    main()
