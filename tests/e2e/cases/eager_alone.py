# compiled is nearer to float64 than eager, but the program takes eager for right
import torch

torch._dynamo.config.same_two_models_use_fp64 = False


@torch.compile
def f(x, y):
    scaled = torch.sigmoid(x) * y.float().mean()
    return x - y * 100, scaled.sum()


with torch.no_grad():
    f(torch.full((8, 8), 65500, dtype=torch.half), torch.full((8, 8), 655, dtype=torch.half))
