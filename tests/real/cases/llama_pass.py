"""Llama in inference: a pass of a vendor after the decompositions knows no sigmoid."""

import torch
import torch._inductor.config
from torch._inductor.custom_graph_pass import CustomGraphPass
from transformers import LlamaConfig, LlamaModel


class Count(CustomGraphPass):
    def __call__(self, graph):
        for node in graph.nodes:
            if node.target is torch.ops.aten.sigmoid.default or node.target is torch.ops.aten.exp.default:
                raise ValueError(f"no kernel for {node.target}")

    def uuid(self):
        return "count"


torch._inductor.config.post_grad_custom_post_pass = Count()
config = LlamaConfig(
    vocab_size=100,
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=3,
    num_attention_heads=2,
    num_key_value_heads=2,
    max_position_embeddings=64,
)
torch.manual_seed(0)
model = LlamaModel(config).eval()
ids = torch.randint(0, 100, (2, 16))
with torch.no_grad():
    model(ids, use_cache=False)
    torch.compile(model)(ids, use_cache=False)
