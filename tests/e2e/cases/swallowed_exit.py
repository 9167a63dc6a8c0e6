# a command line that logs whatever happens and leaves with a status; a second thing that cannot be traced is never reached
import logging
import sys

import torch

log = logging.getLogger("serve")


class Scorer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 4)

    def forward(self, x):
        y = torch.tanh(self.fc(x))
        depth = sys._getframe(0).f_lineno
        with open("/dev/null", "w") as sink:
            sink.write("scored")
        return y.softmax(-1) * depth


def main():
    score = torch.compile(Scorer(), fullgraph=True)
    print(score(torch.randn(2, 4)))
    return 0


if __name__ == "__main__":
    status = 1
    try:
        status = main()
    except Exception:
        log.exception("serving failed")
    sys.exit(status)
