"""What `scripts/bench` is made of. Standard library only: it measures interpreters, and is no part of the package."""
