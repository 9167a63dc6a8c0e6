"""Trains a small language model; three modules deep the front end gives up."""

import argparse
import dataclasses
import json
import math
import random
import time
from collections import deque

import torch
import torch.nn.functional as F
from torch import nn


@dataclasses.dataclass
class Config:
    vocabulary: int = 64
    width: int = 32
    heads: int = 4
    depth: int = 2
    length: int = 12
    dropout: float = 0.1
    capacity: float = 0.75
    lr: float = 1e-3
    warmup: int = 2
    steps: int = 4
    batch: int = 8


class Batches:
    def __init__(self, config, seed):
        self.config = config
        self.random = random.Random(seed)

    def __iter__(self):
        for _ in range(self.config.steps):
            rows = [self._row() for _ in range(self.config.batch)]
            tokens = torch.tensor(rows)
            yield tokens[:, :-1], tokens[:, 1:]

    def _row(self):
        start = self.random.randrange(self.config.vocabulary)
        return [(start + 3 * i) % self.config.vocabulary for i in range(self.config.length + 1)]


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.heads = config.heads
        self.qkv = nn.Linear(config.width, 3 * config.width)
        self.out = nn.Linear(config.width, config.width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in (q, k, v))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class Router(nn.Module):
    def __init__(self, width, capacity):
        super().__init__()
        self.score = nn.Linear(width, 1)
        self.capacity = capacity
        self.history = deque(maxlen=16)

    def forward(self, x):
        weights = torch.sigmoid(self.score(x))
        load = weights.mean()
        if load > self.capacity:
            weights = weights / load
        return weights


class Experts(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.router = Router(config.width, config.capacity)
        self.wide = nn.Linear(config.width, 4 * config.width)
        self.narrow = nn.Linear(4 * config.width, config.width)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x):
        hidden = F.gelu(self.wide(x))
        return self.dropout(self.narrow(hidden)) * self.router(x)


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.before, self.after = nn.LayerNorm(config.width), nn.LayerNorm(config.width)
        self.attention = Attention(config)
        self.experts = Experts(config)

    def forward(self, x):
        x = x + self.attention(self.before(x))
        return x + self.experts(self.after(x))


class Model(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.tokens = nn.Embedding(config.vocabulary, config.width)
        self.positions = nn.Parameter(torch.zeros(config.length, config.width))
        self.blocks = nn.Sequential(*[Block(config) for _ in range(config.depth)])
        self.head = nn.Linear(config.width, config.vocabulary)

    def forward(self, tokens):
        x = self.tokens(tokens) * math.sqrt(self.positions.shape[-1]) + self.positions
        return self.head(self.blocks(x))


class Trainer:
    def __init__(self, config):
        self.config = config
        self.model = Model(config)
        self.compiled = torch.compile(self.model, fullgraph=True)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=config.lr)
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda step: min(1.0, (step + 1) / config.warmup))

    def step(self, tokens, targets):
        logits = self.compiled(tokens)
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.schedule.step()
        return loss.item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    trainer = Trainer(Config())
    started = time.time()
    for number, (tokens, targets) in enumerate(Batches(trainer.config, args.seed)):
        loss = trainer.step(tokens, targets)
        print(json.dumps({"step": number, "loss": loss, "seconds": time.time() - started}))


if __name__ == "__main__":
    main()
