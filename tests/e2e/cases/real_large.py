# some hundred operators around one that has no legal lowering
import torch
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.inwards, self.outwards = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.inwards(x).chunk(3, dim=-1))
        scores = torch.softmax(q @ k.mT / q.size(-1) ** 0.5, dim=-1)
        return self.outwards((scores @ v).transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, 2)
        self.wide, self.narrow = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        x = x + self.attention(self.before(x))
        return x + self.narrow(F.silu(self.wide(self.after(x))))


class Encoder(nn.Module):
    def __init__(self, width=16, depth=8):
        super().__init__()
        self.tokens = nn.Embedding(30, width)
        self.layers = nn.ModuleList(Layer(width) for _ in range(depth))
        self.pool = nn.FractionalMaxPool2d(0, output_size=(2, 3))

    def forward(self, ids):
        x = self.tokens(ids)
        for i, layer in enumerate(self.layers):
            x = layer(x)
            if i == 4:
                x = x + self.pool(x).mean(dim=(1, 2), keepdim=True)
        return x.mean(dim=1)


torch.manual_seed(0)
ids = torch.arange(20).view(2, 10)
with torch.no_grad():
    print(torch.compile(Encoder().eval())(ids).shape)
