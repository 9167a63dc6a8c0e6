# a buffer of a fixed length makes a dynamic size constant; the reshapes do not
import torch
from torch.export import Dim, export


class Pooler(torch.nn.Module):
    def __init__(self, length=16, dim=8, chunk=4):
        super().__init__()
        self.embed = torch.nn.Embedding(50, dim)
        self.chunk = chunk
        self.register_buffer("position", torch.randn(length, dim))

    def forward(self, tokens, mask):
        h = self.embed(tokens) + self.position
        b, s, d = h.shape
        h = h.reshape(b, s // self.chunk, self.chunk, d).mean(2)
        m = mask.reshape(b, s // self.chunk, self.chunk).any(-1, keepdim=True)
        return (h * m).sum(1)


torch.manual_seed(0)
model = Pooler().eval()
tokens, mask = torch.randint(0, 50, (2, 16)), torch.ones(2, 16, dtype=torch.bool)
s = Dim("s", min=4, max=512)
print(export(model, (tokens, mask), dynamic_shapes=({1: s}, {1: s})).module()(tokens, mask).shape)
