"""BERT in inference: the C++ of a relu does not compile."""

import torch
import torch._inductor.config
from transformers import BertConfig, BertModel

torch._inductor.config.cpp.inject_relu_bug_TESTING_ONLY = "compile_error"
config = BertConfig(
    vocab_size=100,
    hidden_size=32,
    num_hidden_layers=4,
    num_attention_heads=2,
    intermediate_size=64,
    max_position_embeddings=64,
    hidden_act="relu",
)
torch.manual_seed(0)
model = BertModel(config).eval()
ids = torch.randint(0, 100, (2, 16))
with torch.no_grad():
    model(ids)
    torch.compile(model)(ids)
