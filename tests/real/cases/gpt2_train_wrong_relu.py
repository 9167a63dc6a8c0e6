"""GPT-2 in a training step: a relu computes wrong numbers."""

import torch
import torch._inductor.config
from transformers import GPT2Config, GPT2LMHeadModel

config = GPT2Config(
    vocab_size=100,
    n_positions=32,
    n_embd=32,
    n_layer=2,
    n_head=2,
    activation_function="relu",
    resid_pdrop=0.0,
    embd_pdrop=0.0,
    attn_pdrop=0.0,
)
torch.manual_seed(0)
model = GPT2LMHeadModel(config)
ids = torch.randint(0, 100, (2, 16))


def step(ids):
    return model(ids, labels=ids).loss


def gradients(function):
    model.zero_grad()
    loss = function(ids)
    loss.backward()
    return [loss.detach(), *(parameter.grad.clone() for parameter in model.parameters())]


expected = gradients(step)
torch._inductor.config.cpp.inject_relu_bug_TESTING_ONLY = "accuracy"
torch.testing.assert_close(gradients(torch.compile(step)), expected, rtol=1e-3, atol=1e-4)
