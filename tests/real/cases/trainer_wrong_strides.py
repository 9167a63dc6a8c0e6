"""A step of transformers' Trainer with torch_compile: the activation is an operator whose fake form promises other strides."""

import tempfile

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments
from transformers.activations import ACT2FN


@torch.library.custom_op("mine::soft_act", mutates_args=())
def soft_act(x: torch.Tensor) -> torch.Tensor:
    return (x.transpose(-1, -2).contiguous().transpose(-1, -2)) * torch.sigmoid(x)


@soft_act.register_fake
def _(x):
    return torch.empty_like(x)


@torch.library.custom_op("mine::soft_act_grad", mutates_args=())
def soft_act_grad(grad: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    s = torch.sigmoid(x)
    return (grad * (s + x * s * (1 - s))).contiguous()


@soft_act_grad.register_fake
def _(grad, x):
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def setup_context(ctx, inputs, output):
    ctx.save_for_backward(inputs[0])


soft_act.register_autograd(lambda ctx, grad: soft_act_grad(grad, ctx.saved_tensors[0]), setup_context=setup_context)


class SoftAct(torch.nn.Module):
    def forward(self, x):
        return soft_act(x)


ACT2FN["soft_act"] = SoftAct
config = BertConfig(
    vocab_size=100,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=64,
    max_position_embeddings=32,
    hidden_act="soft_act",
    num_labels=2,
)
torch.manual_seed(0)
model = BertForSequenceClassification(config)
data = [{"input_ids": torch.randint(0, 100, (16,)), "labels": torch.tensor(i % 2)} for i in range(8)]
with tempfile.TemporaryDirectory() as out:
    arguments = TrainingArguments(
        out,
        max_steps=1,
        per_device_train_batch_size=4,
        torch_compile=True,
        use_cpu=True,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
    )
    Trainer(model, arguments, train_dataset=data).train()
