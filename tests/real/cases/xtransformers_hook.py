"""A decoder of x-transformers as one graph: a hook of the user opens a file."""

import torch
from x_transformers import Decoder, TransformerWrapper

torch.manual_seed(0)
layers = Decoder(dim=32, depth=2, heads=2, attn_dim_head=16, rotary_pos_emb=True)
model = TransformerWrapper(num_tokens=64, max_seq_len=32, attn_layers=layers).eval()


def watch(module, args, output):
    with open("/dev/null", "w") as log:
        log.write(type(module).__name__)


model.to_logits.register_forward_hook(watch)
tokens = torch.randint(0, 64, (2, 32))
with torch.no_grad():
    model(tokens)
    torch.compile(model, fullgraph=True)(tokens)
