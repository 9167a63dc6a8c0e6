import torch

torch._dynamo.config.capture_dynamic_output_shape_ops = True


@torch.compile(fullgraph=True)
def f(scores, weight):
    scores = torch.sigmoid(scores @ weight)
    kept = torch.nonzero(scores > 0.5).flatten()
    if kept.size(0) > 2:
        kept = kept[:2]
    return scores[kept].sum()


f(torch.ones(6, 3), torch.ones(3))
