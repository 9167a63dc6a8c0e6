"""torch-minify: turn a failing PyTorch compiler program into a small script that provably fails the same way."""

__version__ = "0.1.0"
