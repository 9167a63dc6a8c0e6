# a pass that raises in a worker of a DataLoader, which compiles its transform
import torch
import torch._inductor.config as inductor
from torch.utils.data import DataLoader, Dataset


class Checks:
    def __init__(self, most):
        self.most = most

    def __call__(self, graph):
        names = [str(node.target) for node in graph.nodes]
        if "aten.erf.default" in names and len(names) > self.most:
            raise LookupError("erf is not in the table")


inductor.post_grad_custom_post_pass = Checks(most=0)


@torch.compile
def augment(image):
    waves = torch.erf(image * 0.5) + image.flip(-1)
    return torch.tanh(waves).clamp(-1, 1)


class Images(Dataset):
    def __init__(self, count):
        self.images = torch.randn(count, 3, 8)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return augment(self.images[index])


if __name__ == "__main__":
    for batch in DataLoader(Images(4), batch_size=2, num_workers=1):
        print(batch.sum())
