import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 4)

    def forward(self, x):
        h = torch.relu(self.fc(x))
        picked = h[h.sum(dim=1) > 0.0]
        if picked.shape[0] > 1:
            h = h + picked.mean(dim=0)
        return h.sum()


torch.manual_seed(0)
print(torch.export.export(Net(), (torch.randn(5, 4),)))
