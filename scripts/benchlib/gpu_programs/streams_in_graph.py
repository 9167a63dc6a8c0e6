# the compiled module itself puts half of its work on a second stream
import torch

torch._inductor.config.triton.inject_relu_bug_TESTING_ONLY = "compile_error"


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.left, self.right = torch.nn.Linear(32, 64), torch.nn.Linear(32, 64)
        self.out = torch.nn.Linear(64, 8)
        self.side, self.ready, self.done = torch.cuda.Stream(), torch.cuda.Event(), torch.cuda.Event()

    def forward(self, x):
        x = torch.tanh(x)
        self.ready.record()
        with torch.cuda.stream(self.side):
            self.ready.wait()
            left = torch.sigmoid(self.left(x))
            self.done.record()
        right = torch.relu(self.right(x))
        self.done.wait()
        return self.out(left * right)


torch.manual_seed(0)
net = Net().cuda()
x = torch.randn(4, 32, device="cuda")
with torch.no_grad():
    torch.testing.assert_close(torch.compile(net)(x), net(x))
