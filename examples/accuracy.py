# wrong: compiled, the negative of an absolute value of uint8 does not wrap around; it runs to its end, with other numbers
import torch


def contrast(image, gain):
    inverse = -image.abs()
    bright = torch.where(inverse > 100, 1.0, -1.0)
    smooth = torch.softmax(bright * gain, dim=1)
    return smooth.cumsum(1) + gain


image = torch.tensor([[200, 100, 30], [150, 151, 3]], dtype=torch.uint8)
gain = torch.tensor([0.5, 1.0, 2.0])
print("eager:   ", contrast(image, gain)[0])
print("compiled:", torch.compile(contrast)(image, gain)[0])
