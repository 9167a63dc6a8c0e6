"""What `scripts/faults` is made of. Standard library only: it watches interpreters, and is no part of the package."""
