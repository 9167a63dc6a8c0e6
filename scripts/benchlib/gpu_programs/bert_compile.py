import torch
from transformers import BertConfig, BertModel

torch._inductor.config.triton.inject_relu_bug_TESTING_ONLY = "compile_error"
torch.manual_seed(0)
config = BertConfig(hidden_size=64, num_hidden_layers=6, num_attention_heads=4, intermediate_size=128, vocab_size=200, hidden_act="relu")
net = BertModel(config).eval().cuda()
ids = torch.randint(0, 200, (2, 16), device="cuda")
with torch.no_grad():
    print(torch.compile(net)(ids).last_hidden_state.sum())
