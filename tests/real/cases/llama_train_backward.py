"""Llama in a training step: a pass fails on an operation that only the backward has."""

import torch
import torch._inductor.config
from torch._inductor.custom_graph_pass import CustomGraphPass
from transformers import LlamaConfig, LlamaForCausalLM


class Check(CustomGraphPass):
    def __call__(self, graph):
        if any("index_put" in str(node.target) for node in graph.nodes):
            raise NotImplementedError("scatter into an embedding")

    def uuid(self):
        return "check"


torch._inductor.config.post_grad_custom_pre_pass = Check()
config = LlamaConfig(
    vocab_size=100,
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=2,
    num_attention_heads=2,
    num_key_value_heads=2,
    max_position_embeddings=64,
)
torch.manual_seed(0)
model = LlamaForCausalLM(config)
ids = torch.randint(0, 100, (2, 16))
model(ids, labels=ids, use_cache=False).loss.backward()
torch.compile(model)(ids, labels=ids, use_cache=False).loss.backward()
