"""Longformer under torch.export: it branches on its mask."""

import torch
from transformers import LongformerConfig, LongformerModel

config = LongformerConfig(
    vocab_size=100,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=48,
    attention_window=8,
    max_position_embeddings=130,
    pad_token_id=1,
)
torch.manual_seed(0)
model = LongformerModel(config).eval()
ids = torch.randint(2, 100, (1, 32))
model(ids)
torch.export.export(model, (ids,))
