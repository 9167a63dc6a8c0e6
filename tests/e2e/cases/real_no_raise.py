import torch


def loss(p, t):
    return torch.nn.functional.binary_cross_entropy(p.sigmoid(), t * 2)


def refuses(fn):
    try:
        fn(torch.zeros(3, 3), torch.ones(3, 3))
    except RuntimeError as error:
        return "between 0 and 1" in str(error)
    return False


assert refuses(loss)
assert refuses(torch.compile(loss)), "compiled takes a target that eager refuses"
