import torch


def contrast(image, gain):
    inverse = -image.abs()
    bright = torch.where(inverse > 100, 1.0, -1.0)
    smooth = torch.softmax(bright * gain, dim=1)
    return smooth.cumsum(1) + gain


image = torch.tensor([[200, 100, 30], [150, 151, 3]], dtype=torch.uint8)
gain = torch.tensor([0.5, 1.0, 2.0])
torch.testing.assert_close(torch.compile(contrast)(image, gain), contrast(image, gain))
