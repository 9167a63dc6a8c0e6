"""A network of torch_geometric in a training step as one graph: the step looks whether its loss is a number."""

import torch
import torch.nn.functional as F
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GATConv, GINConv, global_mean_pool


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.attend = GATConv(8, 16, heads=2)
        self.mix = GINConv(torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.ReLU(), torch.nn.Linear(32, 32)))
        self.head = torch.nn.Linear(32, 3)

    def forward(self, x, edge_index, batch):
        x = F.elu(self.attend(x, edge_index))
        x = F.relu(self.mix(x, edge_index))
        return self.head(global_mean_pool(x, batch))


def molecule(nodes):
    edges = torch.stack([torch.arange(nodes), (torch.arange(nodes) + 1) % nodes])
    return Data(x=torch.randn(nodes, 8), edge_index=torch.cat([edges, edges.flip(0)], dim=1), y=torch.randint(0, 3, (1,)))


torch.manual_seed(0)
batch = Batch.from_data_list([molecule(5), molecule(7), molecule(6)])
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)


def step(batch):
    loss = F.cross_entropy(model(batch.x, batch.edge_index, batch.batch), batch.y)
    if not torch.isfinite(loss):
        raise FloatingPointError("the loss is no number")
    return loss


compiled = torch.compile(step, fullgraph=True)
for epoch in range(2):
    optimizer.zero_grad()
    compiled(batch).backward()
    optimizer.step()
