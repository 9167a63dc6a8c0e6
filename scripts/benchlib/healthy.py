# ruff: noqa: D101, D102, D103
"""A training script as people have them: nothing in it fails."""

import dataclasses
import json
import logging
import math
import os
import random
from collections import OrderedDict, defaultdict

import torch
import torch.nn.functional as functional

logger = logging.getLogger("training")


@dataclasses.dataclass
class Settings:
    width: int = 16
    depth: int = 2
    steps: int = 3
    rate: float = 1e-2
    names: tuple = ("alpha", "beta", "gamma")

    def described(self):
        return json.dumps(dataclasses.asdict(self), sort_keys=True)


def seeded(number):
    random.seed(number)
    torch.manual_seed(number)
    return number


def warmup(step, total, base):
    if step < total // 2:
        return base * (step + 1) / max(1, total // 2)
    return base * 0.5 * (1 + math.cos(math.pi * step / total))


class Meter:
    def __init__(self):
        self.values = defaultdict(list)

    def add(self, name, value):
        self.values[name].append(float(value))

    def mean(self, name):
        found = self.values[name]
        return sum(found) / len(found) if found else 0.0

    def lines(self):
        return [f"{name}: {self.mean(name):.4f}" for name in sorted(self.values)]


class Samples(torch.utils.data.Dataset):
    def __init__(self, count, width):
        self.data = torch.linspace(-1, 1, count * width).view(count, width)
        self.labels = (self.data.sum(1) > 0).long()

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        return self.data[index], self.labels[index]


class Residual(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.first = torch.nn.Linear(width, 2 * width)
        self.second = torch.nn.Linear(2 * width, width)

    def forward(self, values):
        return values + self.second(functional.gelu(self.first(self.norm(values))))


class Attention(torch.nn.Module):
    def __init__(self, width, heads=2):
        super().__init__()
        self.heads = heads
        self.inwards = torch.nn.Linear(width, 3 * width)
        self.outwards = torch.nn.Linear(width, width)

    def forward(self, values):
        query, key, value = (part.unflatten(-1, (self.heads, -1)) for part in self.inwards(values).chunk(3, dim=-1))
        weights = torch.softmax(query @ key.transpose(-2, -1) / math.sqrt(query.size(-1)), dim=-1)
        return values + self.outwards((weights @ value).flatten(-2))


def frequencies(words):
    counts = defaultdict(int)
    for word in words:
        counts[word.lower()] += 1
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def clipped(parameters, most):
    found = [parameter for parameter in parameters if parameter.grad is not None]
    return torch.nn.utils.clip_grad_norm_(found, most)


def classifier(settings):
    layers = OrderedDict()
    for number in range(settings.depth):
        layers[f"attention{number}"] = Attention(settings.width)
        layers[f"block{number}"] = Residual(settings.width)
    layers["head"] = torch.nn.Linear(settings.width, 2)
    return torch.nn.Sequential(layers)


def trained(settings):
    network, meter = classifier(settings), Meter()
    optimizer = torch.optim.SGD(network.parameters(), lr=settings.rate)
    loader = torch.utils.data.DataLoader(Samples(12, settings.width), batch_size=4)
    for step in range(settings.steps):
        for group in optimizer.param_groups:
            group["lr"] = warmup(step, settings.steps, settings.rate)
        for batch, labels in loader:
            optimizer.zero_grad()
            loss = functional.cross_entropy(network(batch), labels)
            loss.backward()
            meter.add("norm", clipped(network.parameters(), 1.0))
            optimizer.step()
            meter.add("loss", loss.detach())
    return network, meter


settings = Settings(steps=int(os.environ.get("STEPS", "2")))
seeded(settings.width)
network, meter = trained(settings)
logger.info("%s %s %s", settings.described(), meter.lines(), frequencies(settings.names))
with torch.no_grad():
    scores = network.eval()(torch.zeros(3, settings.width)).softmax(-1)
print("healthy part:", tuple(scores.shape))
