# what a method of a class that is made while tracing appends to a list around it is lost
import torch


def recorder():
    shapes = []

    class Recorder:
        def __init__(self, scale):
            self.scale = scale

        def record(self, x):
            shapes.append(tuple(x.shape))
            return x * self.scale

    def step(x):
        return Recorder(2.0).record(x).relu().sum()

    return step, shapes


x = torch.randn(3, 4)
eager, expected = recorder()
eager(x)
step, found = recorder()
torch.compile(step, backend="eager", fullgraph=True)(x)
assert found == expected, "a record is missing"
