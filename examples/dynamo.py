# wrong: with fullgraph=True Dynamo cannot compile a function that defines a class, though eager runs it
import torch


def standardise(batch, epsilon):
    class Statistics:
        def __init__(self, values):
            self.mean = values.mean(dim=0)
            self.scale = values.std(dim=0) + epsilon

    statistics = Statistics(batch)
    centred = (batch - statistics.mean) / statistics.scale
    return torch.tanh(centred).sum(dim=1)


torch.manual_seed(0)
batch = torch.randn(16, 8)
print("eager:", standardise(batch, 1e-3).shape)
print("compiled:", torch.compile(standardise, fullgraph=True)(batch, 1e-3).shape)
