import torch
from transformers import GPT2Config, GPT2LMHeadModel

torch._inductor.config.triton.inject_relu_bug_TESTING_ONLY = "accuracy"
torch.manual_seed(0)
config = GPT2Config(
    n_embd=64, n_layer=2, n_head=4, vocab_size=200, activation_function="relu", resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0
)
net = GPT2LMHeadModel(config).cuda().to(torch.bfloat16)
ids = torch.randint(0, 200, (2, 16), device="cuda")
loss = torch.compile(net)(input_ids=ids, labels=ids).loss
loss.backward()
print(loss.item())
